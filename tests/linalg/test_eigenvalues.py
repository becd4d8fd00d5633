"""Eigenvalues of matrices that are made of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.linalg import aslinearoperator

from kernelcore import linalg

VALUES = np.array([-1.0, 0.0, 0.5, 2.0, 3.0, 7.0])


def known(rng, values, dtype):
    q = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    a = (q * values) @ q.T
    return ((a + a.T) / 2).astype(dtype)


def near(n, eps, size=7.0):
    """LAPACK's backward error, with a factor of 4 for rounding the entries."""
    return 4 * n * eps * size


@pytest.mark.parametrize("overwrite", [False, True])
def test_eigh(rng, library, dtype, eps, overwrite):
    a = known(rng, VALUES, dtype)
    given = library(a.copy(order="F"))
    values, vectors = linalg.eigh(given, overwrite=overwrite)
    values, vectors = library.back(values, dtype), library.back(vectors, dtype)
    assert_allclose(values, VALUES, atol=near(6, eps))
    assert_allclose(vectors.T @ vectors, np.eye(6), atol=near(6, eps))
    assert_allclose((vectors * values) @ vectors.T, a, atol=near(6, eps))
    if not overwrite:
        np.testing.assert_array_equal(library.read(given), a)


def test_eigvalsh(rng, library, dtype, eps):
    got = library.back(linalg.eigvalsh(library(known(rng, VALUES, dtype))), dtype)
    assert_allclose(got, VALUES, atol=near(6, eps))


@pytest.mark.parametrize("count", [1, 3, 6])
def test_the_largest(rng, library, dtype, eps, count):
    a = known(rng, VALUES, dtype)
    values, vectors = linalg.top_eigh(library(a), count)
    assert_allclose(library.back(values, dtype), VALUES[6 - count :], atol=near(6, eps))
    vectors = library.back(vectors, dtype)
    assert vectors.shape == (6, count)
    assert_allclose(a @ vectors, vectors * VALUES[6 - count :], atol=near(6, eps))
    alone, nothing = linalg.top_eigh(library(a), count, vectors=False)
    assert_allclose(library.back(alone, dtype), VALUES[6 - count :], atol=near(6, eps))
    assert nothing is None


@pytest.mark.parametrize("vectors", [False, True])
def test_lanczos(rng, library, vectors):
    n, eps = 60, float(np.finfo(float).eps)
    top = np.array([3.0, 5.0, 7.0])
    a = known(rng, np.concatenate([np.linspace(0, 1, n - 3), top]), np.float64)
    for given in (library(a), aslinearoperator(a)):
        values, basis = linalg.lanczos(given, 3, vectors=vectors)
        order = np.argsort(library.read(values))
        assert_allclose(library.read(values)[order], top, atol=near(n, eps))
        if vectors:
            basis = library.read(basis)[:, order]
            assert_allclose(a @ basis, basis * top, atol=1e-7)  # the root of its tolerance
        else:
            assert basis is None


def test_tridiagonal(library, dtype, eps):
    """Of ones beside the diagonal they are 2 cos(k pi/(n + 1))."""
    n = 10
    on, off = np.full(n, 0.5, dtype), np.ones(n - 1, dtype)
    got = library.back(linalg.eigvalsh_tridiagonal(library(on), library(off)), dtype)
    assert_allclose(got, 0.5 + 2 * np.cos(np.arange(n, 0, -1) * np.pi / (n + 1)), atol=near(n, eps))


def test_resolution():
    assert linalg.resolution(4, 1e-16) == pytest.approx(1e-15)
    assert linalg.resolution(40_000, 1e-16) == pytest.approx(2e-14)
