"""What kernels are called and combined with: rows, tiny inputs, numbers, scikit-learn, forks."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import kernelcore as kc
from kernelcore import _check
from kernelcore.engine import progress as _progress

NET = kc.presets.mlp(2, b_std=0.3)
KERNELS = {
    "ntk": NET.ntk,
    "sum": NET.nngp + 0.5 * kc.Gaussian(2.0),
    "cyclic": kc.CyclicConvolution(2, 2, [0.0, 1.0, 0.5]),
}


def run(script, timeout=60):
    """What a fresh Python prints, or how it fails; the time-out fails a test."""
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(kc.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-c", script],
        env=environment, capture_output=True, text=True, timeout=timeout, check=True,
    ).stdout  # fmt: skip


# ---- numbers times kernels


def test_arrays_times_kernels_are_refused():
    for combine in (
        lambda: np.array([1.0, 2.0]) * NET.ntk,
        lambda: NET.ntk * np.array([1.0, 2.0]),
        lambda: np.ones((2, 2)) + NET.ntk,
        lambda: NET.ntk / np.ones(2),
        lambda: np.multiply(2.0, NET.ntk),
    ):
        with pytest.raises(TypeError):
            combine()


@pytest.mark.parametrize("two", [2, 2.0, np.float64(2), np.float32(2), np.int64(2), np.array(2.0)])
def test_numbers_of_every_kind(two):
    assert two * NET.ntk == NET.ntk * two == 2 * NET.ntk
    assert NET.ntk / two == 0.5 * NET.ntk


def test_sums_powers_and_quotients(rng):
    x = rng.standard_normal((6, 3))
    a, b = NET.ntk, kc.Gaussian(1.0)
    assert sum([a, b]) == a + b
    assert sum([a]) == a**1 == a
    assert a**3 == a * a * a
    np.testing.assert_array_equal((b / 4)(x), b(x) / 4)
    np.testing.assert_array_equal((a**2)(x), a(x) * a(x))
    np.testing.assert_array_equal((a**2).diag(x), np.diag((a**2)(x)))


# ---- two rows; scikit-learn asks for them one by one


@pytest.mark.parametrize("name", KERNELS)
def test_two_rows_are_one_number(name, rng, dtype):
    k, x = KERNELS[name], rng.standard_normal((4, 5)).astype(dtype)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    K = k(x)
    for i in range(4):
        for j in range(4):
            value = k(x[i], x[j])
            assert value.shape == ()
            assert value.dtype == dtype
            assert value == K[i, j]
    assert k(x[0].tolist(), x[1].tolist()).shape == ()


def test_one_row_alone_is_still_refused(rng):
    x = rng.standard_normal((4, 5))
    for call in (lambda: NET.ntk(x[0]), lambda: NET.ntk(x, x[0]), lambda: NET.ntk(x[0], x)):
        with pytest.raises(ValueError, match=r"must have shape \(n, d\): got shape \(5,\)"):
            call()


def test_scikit_learn_takes_kernels(rng):
    from sklearn.cluster import SpectralClustering
    from sklearn.decomposition import KernelPCA
    from sklearn.kernel_approximation import Nystroem
    from sklearn.kernel_ridge import KernelRidge

    k, y = NET.ntk, rng.standard_normal(20)
    x = np.concatenate([rng.standard_normal((10, 3)) + 4, rng.standard_normal((10, 3)) - 4])
    new = rng.standard_normal((5, 3))
    K = k(x)
    # The same numbers in the same order of operations: nothing is forgiven.
    given = KernelRidge(kernel=k, alpha=0.1).fit(x, y)
    computed = KernelRidge(kernel="precomputed", alpha=0.1).fit(K, y)
    np.testing.assert_array_equal(given.predict(new), computed.predict(k(new, x)))

    given = KernelPCA(3, kernel=k, eigen_solver="dense").fit_transform(x)
    computed = KernelPCA(3, kernel="precomputed", eigen_solver="dense").fit_transform(K)
    np.testing.assert_array_equal(given, computed)

    given = SpectralClustering(2, affinity=k, random_state=0).fit_predict(x)
    computed = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(K)
    np.testing.assert_array_equal(given, computed)

    # All points are landmarks: the features' products are the kernel, to what the root of K loses.
    features = Nystroem(k, n_components=20, random_state=0).fit_transform(x)
    np.testing.assert_allclose(features @ features.T, K, atol=1e-6 * K.max())


# ---- cosines a few units in the last place beyond 1


def test_cosines_of_unit_rows_are_cosines(rng, dtype):
    v = rng.standard_normal((300, 40)).astype(dtype)
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    u = v @ v.T
    assert u.max() > 1  # or there is nothing to test
    values = NET.ntk.profile(u)
    np.testing.assert_array_equal(values[u >= 1], NET.ntk.profile(1.0))
    assert kc.profiles.Kappa0()(u).max() == 1
    np.testing.assert_array_equal(NET.ntk.profile(-u)[u >= 1], NET.ntk.profile(-1.0))


def test_more_than_that_is_refused(dtype):
    eps = np.finfo(dtype).eps
    fine, bad = (dtype.type(1 + n * eps) for n in (_check.ULPS, _check.ULPS + 1))
    assert NET.ntk.profile(fine) == NET.ntk.profile(1.0)
    for u in (bad, -bad):
        with pytest.raises(ValueError, match=r"^u must be in \[-1, 1\]: got "):
            NET.ntk.profile(u)


# ---- tiny inputs


BARE = kc.presets.mlp(2)
TINY = {
    "zero rows": (BARE.ntk, 0.0, 0.0),
    "small": (BARE.ntk, 1e-150, 3e-300),
    "a bias": (kc.presets.mlp(1, b_std=0.5).nngp, 1e-200, 0.5),
    "of the angle": (kc.ArcCosine(0), 1e-200, 1.0),
    "signs": (kc.Sequential(kc.Dense(), kc.Sign(), kc.Dense()).nngp, 1e-200, 1.0),
    "no weights": (kc.Sequential(kc.Dense(0.0)).nngp, 1e-200, 0.0),
    "of a distance": (kc.Gaussian(1.0), 1e-200, 1.0),
}


@pytest.mark.parametrize("name", TINY)
def test_tiny_rows_where_their_kernel_is_a_number(name):
    k, size, want = TINY[name]
    x = size * np.ones((2, 3))
    # 1e-150 squared is 1e-300 to 2 units in the last place, and the network rounds some more.
    np.testing.assert_allclose(k(x), want, rtol=64 * 2.0**-52)
    np.testing.assert_array_equal(k.diag(x), np.diag(k(x)))


@pytest.mark.parametrize("size", [1e-160, 1e-200, 5e-324])
def test_tiny_rows_are_refused_where_it_is_none(size):
    x = np.array([[1.0, 2.0], [size, size], [0.0, 0.0]])
    calls = [BARE.ntk, BARE.nngp, BARE.kernels, BARE.ntk.diag, kc.ArcCosine(1)]
    calls += [kc.Polynomial(2, offset=0.0), lambda x: BARE.ntk(x[:1], x), BARE.ntk.terms]
    calls.append(kc.Sequential(kc.Dense(), kc.Project()).nngp)
    for call in calls:
        with pytest.raises(FloatingPointError, match=r"the variance underflows; scale X up$"):
            call(x)
        call(x[[0, 2]])
    with pytest.raises(FloatingPointError, match="underflows"):
        BARE.ntk.profile(0.5, radius=size)


def test_tiny_images():
    images = np.zeros((3, 4, 4, 2))
    images[0, 1, 1, 0], images[1, 2] = 1.0, 1e-200
    plain, biased = kc.presets.cntk(3), kc.Sequential(kc.Conv(3, b_std=0.5), kc.Flatten())
    for call in (plain.ntk, plain.ntk.diag, plain.kernels, lambda x: plain.nngp(x[:1], x)):
        with pytest.raises(FloatingPointError, match=r"the variance underflows; scale X up$"):
            call(images)
        call(images[[0, 2]])
    dim = images[:1] + np.where(images[:1] == 0, 1e-200, 0.0)  # dark pixels beside a bright one
    np.testing.assert_array_equal(plain.ntk(dim), plain.ntk(images[:1]))
    np.testing.assert_array_equal(biased.nngp(images[1:2]), biased.nngp(images[2:]))
    single = (1e18 * images).astype(np.float32)  # 1e-182 is zero
    assert plain.ntk(single)[1, 1] == 0
    single[1, 2] = 1e-25
    with pytest.raises(FloatingPointError, match="within float32"):
        plain.ntk(single)


# ---- signals


def test_one_axis_of_the_preset_is_the_network_of_signals(rng):
    signals = rng.standard_normal((3, 7, 2))
    root = 2**0.5
    for gap in (True, False):
        net = kc.Sequential(
            kc.Input(sum=True),
            *[kc.Conv((3,), w_std=root), kc.Relu()] * 2,
            kc.GlobalAvgPool() if gap else kc.Flatten(sum=True),
            kc.Dense(),
        )
        assert kc.presets.cntk(3, gap=gap, axes=1) == net
        assert net.ntk(signals).shape == (3, 3)
    assert kc.presets.cntk(3, axes=2) == kc.presets.cntk(3)


def test_what_the_hints_say_works(rng):
    x = rng.standard_normal((2, 8, 6))
    for layers in ([kc.Conv(3)], [kc.AvgPool(2)], [kc.GaussianPool((2, 2))]):
        with pytest.raises(ValueError, match="for signals") as caught:
            kc.Sequential(*layers, kc.Flatten()).nngp(x)
        written = str(caught.value).split("write ")[1].split(" for signals")[0]
        signals = kc.Sequential(eval(f"kc.{written}"), kc.Flatten())
        assert signals.nngp(x).shape == (2, 2)
        assert kc.Sequential(*layers, kc.Flatten()).nngp(x[..., None]).shape == (2, 2)
    images = np.pad(rng.standard_normal((1, 28, 28, 1)), ((0, 0), (2, 2), (2, 2), (0, 0)))
    assert kc.presets.myrtle(5).nngp(images).shape == (1, 1)


# ---- progress


@pytest.mark.parametrize("name", [*KERNELS, "images"])
def test_progress_changes_nothing(name, rng, capsys, monkeypatch):
    k = kc.presets.cntk(3).ntk if name == "images" else KERNELS[name]
    x = rng.standard_normal((70, 3, 3, 1) if name == "images" else (150, 3))
    want, cross = k(x), k(x, x[:9])
    assert capsys.readouterr() == ("", "")
    clock = iter(np.arange(0, 1e6, 3.0))
    monkeypatch.setattr(_progress.time, "monotonic", lambda: float(next(clock)))
    np.testing.assert_array_equal(k(x, progress=True), want)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    n = len(x)
    assert out == ""
    assert all(line.startswith("Gram matrix, entries: ") for line in lines)
    done = [int(line.split(": ")[1].split("/")[0]) for line in lines]
    assert done == sorted(set(done))
    whole = n * (n + 1) // 2
    assert f" {whole}/{whole}, " in lines[-1]
    np.testing.assert_array_equal(k(x, x[:9], progress=True), cross)
    assert f" {9 * n}/{9 * n}, " in capsys.readouterr().err.splitlines()[-1]


# ---- imports


def test_rooms():
    assert "uci" in kc.experiments.NAMES
    assert {"experiments", "spectrum"} <= set(dir(kc)) & set(kc.__all__)


def test_a_first_call_does_not_import_masked_arrays():
    script = """
import sys
import kernelcore as kc
kc.presets.mlp(1).ntk([[1.0, 2.0]])
print("numpy.ma" in sys.modules)
"""
    assert run(script) == "False\n"


FORK = """
import importlib.abc, os, signal, sys, threading, time
import kernelcore as kc
from kernelcore.engine.cpu import dispatch as _dispatch

_dispatch.level()  # looks for the compiled modules, without importing any

class Slow(importlib.abc.MetaPathFinder):
    # Holds the lock of a module for a second, as a slow disk does.
    def find_spec(self, name, path, target=None):
        if name.startswith("{slow}") and not begun.is_set():
            begun.set()
            time.sleep(1)

def call():
    {call}

begun = threading.Event()
sys.meta_path.insert(0, Slow())
first = threading.Thread(target=call)
first.start()
begun.wait(5)
pid = os.fork()
if pid == 0:
    call()
    os._exit(0)
first.join()
for _ in range(100):
    if os.waitpid(pid, os.WNOHANG) != (0, 0):
        print("both")
        break
    time.sleep(0.1)
else:
    os.kill(pid, signal.SIGKILL)
    print("the child hangs")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize(
    ("slow", "call"),
    [
        ("numpy.ma", "kc.Gaussian(1.0)([[1.0, 2.0]])"),
        ("kernelcore._cpu.dense", "kc.Gaussian(1.0)([[1.0, 2.0]])"),
        ("kernelcore._cpu.spatial", "kc.presets.cntk(2).ntk([[[[1.0]]]])"),
        ("scipy.special", "kc.presets.mlp(1, kc.Silu()).ntk([[1.0, 2.0]])"),
    ],
)
def test_a_fork_during_the_first_call_of_another_thread(slow, call):
    assert run(FORK.format(slow=slow, call=call)) == "both\n"
