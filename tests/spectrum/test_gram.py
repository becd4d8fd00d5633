"""Spectra of Gram matrices."""

import itertools
import math
import re
import sys

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse.linalg import aslinearoperator

import kernelcore as kc
from kernelcore.spectrum import Spectrum

EPS = 2.0**-52


def known(rng, values):
    """A symmetric matrix with these eigenvalues, and its eigenvectors."""
    q = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    k = (q * values) @ q.T
    return (k + k.T) / 2, q


def test_known_eigenvalues(rng):
    values = np.geomspace(100, 1e-3, 80)
    k, q = known(rng, values)
    spectrum = kc.spectrum.gram(k)
    np.testing.assert_allclose(80 * spectrum.eigenvalues, values, atol=80 * EPS * 100)
    np.testing.assert_allclose(np.abs((spectrum.eigenvectors * q).sum(0)), 1, rtol=1e-9)
    assert len(spectrum) == spectrum.n == 80
    assert set(spectrum.multiplicities) == {1}
    np.testing.assert_array_equal(spectrum.log_multiplicities, 0)
    np.testing.assert_array_equal(spectrum.mass, spectrum.eigenvalues)
    assert spectrum.trace == pytest.approx(values.sum() / 80, rel=1e-14)
    assert spectrum.tail <= 80 * EPS * spectrum.trace
    np.testing.assert_allclose(np.exp(spectrum.log_eigenvalues), spectrum.eigenvalues, rtol=1e-14)
    plain = kc.spectrum.gram(k, vectors=False)
    np.testing.assert_allclose(plain.eigenvalues, spectrum.eigenvalues, atol=80 * EPS * 2)


@pytest.mark.parametrize("rank", [1, 3, 7, 20, 199, 200])
def test_the_top_without_the_rest(rng, rank):
    """By both methods: rank 3 of 200 is Lanczos, rank 20 is not."""
    values = np.geomspace(1, 1e-6, 200)
    k, _ = known(rng, values)
    whole, top = kc.spectrum.gram(k), kc.spectrum.gram(k, rank)
    np.testing.assert_allclose(top.eigenvalues, whole.eigenvalues[:rank], atol=10 * EPS)
    overlap = np.abs((top.eigenvectors * whole.eigenvectors[:, :rank]).sum(0))
    np.testing.assert_allclose(overlap, 1, rtol=1e-7)
    assert top.tail == pytest.approx(values[rank:].sum() / 200, abs=200 * EPS)
    y = rng.standard_normal(200)
    power = top.target_power(y)
    assert power.sum() == pytest.approx(np.mean(y**2), rel=1e-13)
    assert len(power) == (200 if rank == 200 else rank + 1)
    np.testing.assert_allclose(power[:rank], whole.target_power(y)[:rank], atol=1e-7)
    if rank < 200:
        operator = kc.spectrum.gram(aslinearoperator(k), rank, trace=values.sum())
        np.testing.assert_allclose(operator.eigenvalues, top.eigenvalues, atol=10 * EPS)
        assert operator.trace == pytest.approx(top.trace, rel=1e-14)
        plain = kc.spectrum.gram(aslinearoperator(k), rank, trace=values.sum(), vectors=False)
        np.testing.assert_allclose(plain.eigenvalues, top.eigenvalues, atol=10 * EPS)


def test_equal_eigenvalues_come_out_as_often_as_they_occur():
    """All of a cube: multiplicities 1, 9, 36, ... by Lanczos."""
    cube = np.array(list(itertools.product([-1.0, 1.0], repeat=9)))
    k = kc.CyclicConvolution(9, 1, [0.1, 0.4, 0.3, 0.2])(cube)
    want = np.linalg.eigvalsh(k / len(cube))[::-1]
    for rank in (5, 10, 24):
        got = kc.spectrum.gram(k, rank).eigenvalues
        np.testing.assert_allclose(got, want[:rank], atol=len(cube) * EPS * want[0])


def test_a_singular_matrix(rng):
    """Zeros come out as rounding of either sign, and count as zeros."""
    x = rng.standard_normal((60, 4))
    spectrum = kc.spectrum.gram(x @ x.T)
    assert (np.abs(spectrum.eigenvalues[4:]) < 60 * EPS * spectrum.eigenvalues[0]).all()
    assert (spectrum.eigenvalues[4:] < 0).any()
    negative = spectrum.eigenvalues <= 0
    assert np.isneginf(spectrum.log_eigenvalues[negative]).all()
    assert (spectrum.mass >= 0).all()
    assert (spectrum.decay(1e300)[4:] >= 0).all()
    assert np.isfinite(spectrum.log_eigenvalues[:4]).all()
    # least squares with four parameters
    y = x @ [1.0, 2.0, 3.0, 4.0]
    error = kc.theory.learning_curve(spectrum, spectrum.target_power(y), 30, 1e-9)
    assert error < 1e-15 * np.mean(y**2)


def test_float32(rng):
    x = rng.standard_normal((50, 6)).astype(np.float32)
    k = kc.Gaussian(2.0)(x)
    spectrum = kc.spectrum.gram(k)
    assert spectrum.eigenvalues.dtype == np.float64
    want = np.linalg.eigvalsh(k.astype(float))[::-1] / 50
    np.testing.assert_allclose(spectrum.eigenvalues, want, atol=50 * EPS)
    off = k.copy()
    off[3, 4] *= 1 + 1e-6  # as another order of summation would make it
    kc.spectrum.gram(off)


def test_residuals_decay_along_eigenvectors(rng):
    """exp(-K t) from SciPy, by Pade approximation."""
    k, _ = known(rng, np.linspace(0.1, 3, 20))
    spectrum = kc.spectrum.gram(k)
    y = rng.standard_normal(20)
    for t in (0.0, 0.3, 4.0):
        v = spectrum.eigenvectors
        got = v @ (spectrum.decay(t) * (v.T @ y))
        np.testing.assert_allclose(got, expm(-t * k) @ y, atol=1e-12)
    assert spectrum.decay([[1.0, 2.0]]).shape == (1, 2, 20)


def test_the_spectrum_of_random_points_is_the_kernels(rng):
    """Linear kernel of 2000 points on a sphere in 20 dimensions: 20 eigenvalues near 1/20."""
    x = rng.standard_normal((2000, 20))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    spectrum = kc.spectrum.gram(x @ x.T, rank=25)
    # Marchenko and Pastur's edges, and their fluctuations
    edge = (1 + math.sqrt(20 / 2000)) ** 2
    np.testing.assert_allclose(20 * spectrum.eigenvalues[:20], 1, atol=edge - 1 + 0.05)
    assert spectrum.eigenvalues[:20].sum() == pytest.approx(1, rel=1e-12)


def test_plot(rng):
    import matplotlib.pyplot as plt

    x = rng.standard_normal((40, 3))
    spectrum = kc.spectrum.gram(x @ x.T)
    theory = Spectrum(np.log([0.5, 2.0, 0.01]), [3, 2, 10**30], 10.0)
    ax = spectrum.plot(theory)
    points, line = ax.lines
    shown = spectrum.eigenvalues > 0
    np.testing.assert_array_equal(points.get_ydata(), spectrum.eigenvalues[shown])
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 5, 6, 40])
    np.testing.assert_allclose(line.get_ydata(), [2, 2, 0.5, 0.5, 0.01, 0.01], rtol=1e-14)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert spectrum.plot(ax=ax) is ax
    few = Spectrum(np.log([1.0, 0.5]), [100, 3], 10.0)
    np.testing.assert_array_equal(spectrum.plot(few).lines[1].get_xdata(), [1, 40])
    plt.close("all")


def test_plot_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = "plot needs matplotlib; install it with: pip install 'kernelcore[plot]'"
    with pytest.raises(ImportError, match=f"^{re.escape(text)}$"):
        kc.spectrum.gram(np.eye(3)).plot()


def test_the_former_name():
    assert kc.spectrum.gram is kc.spectrum.empirical
