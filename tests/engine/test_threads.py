"""Threads: how many a call really uses, counted by the kernel of the system in a fresh process."""

import math
import os
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import kernelcore as kc
from kernelcore.engine import cgroup, progress, threads
from kernelcore.linalg import blas

pytestmark = pytest.mark.skipif(
    not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc"
)

BEGIN = """
import os, sys, time
import numpy as np
import kernelcore as kc

def ids():
    return set(os.listdir("/proc/self/task"))

def clock(task):
    "Ticks that a thread has spent."
    with open(f"/proc/self/task/{task}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])

def used(call):
    "Threads that worked on a call: OpenMP's stay when it is over, BLAS's were there before."
    call_before = ids()
    before = {task: clock(task) for task in call_before}
    end = time.monotonic() + 0.2  # twenty ticks of the clock
    while time.monotonic() < end:
        call()
    return sum(clock(task) > before.get(task, 0) or task not in before for task in ids())

rng = np.random.default_rng(0)
X, y = rng.standard_normal((2000, 3)), rng.standard_normal(2000)
net = kc.presets.mlp(3)
"""


def counted(line, blas_threads=1, **environment):
    """What ``used`` gives for a line of Python in a process of its own."""
    environment = {"OPENBLAS_NUM_THREADS": str(blas_threads)} | environment
    environment["PYTHONPATH"] = str(pathlib.Path(kc.__file__).parents[1])
    clean = {k: v for k, v in os.environ.items() if k != "KERNELCORE_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", f"{BEGIN}\n{line}"], env=clean | environment,
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return [int(word) for word in done.stdout.split()]


openmp = pytest.mark.skipif(kc.info()["openmp"] != "yes", reason="built for one thread")

WAYS = {
    "Gram matrix": "net.ntk(X, n_threads={n})",
    "both kernels": "net.kernels(X, n_threads={n})",
    "terms": "net.ntk.terms(X[:1000], n_threads={n})",
    "images": "kc.presets.cntk(2).ntk(X.reshape(-1, 5, 4, 3)[..., :1], n_threads={n})",
    "cyclic signals": "kc.CyclicConvolution(2, 2, [0.0, 0.5, 0.5])(X, n_threads={n})",
    "diagonal of images": "kc.presets.cntk(4).ntk.diag(X[:800].reshape(-1, 5, 4, 3)[:, :, :, :1]"
    ".repeat(20, 0), n_threads={n})",
    "numerical duals": "kc.Sequential(kc.Dense(), kc.Activation(np.sin), kc.Dense()).nngp"
    ".diag(X[:300], n_threads={n})",  # has no cells, which would be kept
    "features' products": "waves.gram(X, n_threads={n})",
    "tangent features' products": "slopes.gram(X[:500], n_threads={n})",
    "Nystrom": "kc.solvers.nystrom_ridge(net.ntk, X, y, 1.0, centres=300, n_threads={n})",
    "Nystrom, direct": "kc.solvers.nystrom_ridge(net.ntk, X, y, 1.0, centres=300, "
    "solver='direct', n_threads={n})",
    "Nystrom, prediction": "model.predict(X, n_threads={n})",
    "EigenPro": "kc.solvers.eigenpro(net.ntk, X[:500], y[:500], 1.0, epochs=1, subsample=200, "
    "n_threads={n})",
    "EigenPro, centres": "kc.solvers.eigenpro_centres(net.ntk, X, y, 1.0, centres=300, epochs=1, "
    "n_threads={n})",
    "ASkotch": "kc.solvers.askotch(net.ntk, X, y, 1.0, epochs=1, n_threads={n})",
}
BEFORE = (
    "waves = kc.features.FourierFeatures(n_features=4000, seed=0).fit(X)",
    "slopes = kc.features.TangentFeatures(3000, seed=0).fit(X)",
    "model = kc.solvers.nystrom_ridge(net.ntk, X, y, 1.0, centres=300, n_threads=1)",
)


@pytest.fixture(scope="module")
def threads_of_calls():
    """The threads of every way with one asked for, then of every way with three: one process."""
    lines = ["import scipy.linalg, scipy.optimize", *BEFORE]
    for call in WAYS.values():
        lines += [call.format(n=1), f"print(used(lambda: {call.format(n=1)}))"]
    for call in WAYS.values():  # those of the call before have gone to sleep
        lines += ["time.sleep(0.1)", f"print(used(lambda: {call.format(n=3)}))"]
    found = counted("\n".join(lines), blas_threads=2)
    return dict(zip(WAYS, zip(found[: len(WAYS)], found[len(WAYS) :], strict=True), strict=True))


@openmp
@pytest.mark.parametrize("name", WAYS)
def test_one_thread_is_one_thread(name, threads_of_calls):
    """Also where BLAS has two, in products and factorisations; where three are asked for, more."""
    one, more = threads_of_calls[name]
    assert one == 1
    assert more > 1


@openmp
def test_as_many_threads_as_are_asked_for():
    line = "print(used(lambda: net.ntk(X)))"
    each = "for n in (1, 2, 3):\n    "
    assert counted(f"{each}print(used(lambda: net.ntk(X, n_threads=n)))") == [1, 2, 3]
    changed = f"{each}kc.set_threads(n); {line}"
    assert counted(changed, KERNELCORE_NUM_THREADS="5") == [1, 2, 3]
    for n in (1, 3):
        assert counted(line, KERNELCORE_NUM_THREADS=str(n)) == [n]
    assert counted(line, KERNELCORE_NUM_THREADS="2", OMP_NUM_THREADS="4") == [2]


@openmp
def test_affinity_limits_the_default():
    cpu = min(os.sched_getaffinity(0))
    line = f"os.sched_setaffinity(0, {{{cpu}}})\nprint(kc.get_threads(), used(lambda: net.ntk(X)))"
    assert counted(line) == [1, 1]


@openmp
def test_a_number_of_the_call_goes_before_the_default():
    line = "kc.set_threads(3)\nprint(used(lambda: net.ntk(X, n_threads=1)))"
    assert counted(line) == [1]


@pytest.mark.parametrize(
    ("quota", "want"), [(math.inf, 4), (2.0, 2), (1.5, 2), (0.1, 1), (64.0, 4)]
)
def test_the_quota_of_a_cgroup_limits_the_default(monkeypatch, quota, want):
    monkeypatch.setattr(cgroup, "cpus", lambda: quota)
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    assert threads.available() == want


def test_none_is_the_number_of_the_call_around():
    kc.set_threads(7)
    with threads.Call(3) as n:
        assert (n, threads.resolve(None), threads.resolve(2)) == (3, 3, 2)
        with threads.Call(2):
            assert threads.resolve(None) == 2
        with threads.Call(None) as same:
            assert same == 3
        other = []
        thread = threading.Thread(target=lambda: other.append(threads.resolve(None)))
        thread.start()
        thread.join()
        assert other == [7]
    with pytest.raises(ZeroDivisionError), threads.Call(3):
        raise ZeroDivisionError
    assert threads.resolve(None) == 7


def test_blas_is_held_to_one_thread_where_one_is_asked_for():
    from threadpoolctl import threadpool_info, threadpool_limits

    def most():
        return max(x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas")

    with threadpool_limits(2, user_api="blas"):
        with blas.threads(1) as n:
            assert (n, most()) == (1, 1)
        for given in (2, None):
            with blas.threads(given):
                assert most() == 2
        kc.set_threads(1)
        with blas.threads(None) as n:
            assert (n, most()) == (1, 2)


@pytest.mark.parametrize("n", [1, 3])
def test_features_are_computed_on_as_many_threads(n, monkeypatch):
    """Blocks of rows on threads that are gone when they are done; each stays a while in one."""
    seen = []

    def block(x, out, arrays):
        seen.append(threading.get_ident())
        time.sleep(0.02)
        out[...] = 0

    monkeypatch.setattr(WAVES, "_block", block)
    WAVES.transform(np.ones((2000, 3)), n_threads=n)
    assert len(set(seen)) == n


def test_diag_does_not_depend_on_threads(rng):
    x = rng.standard_normal((300, 3))
    for kernel in (kc.presets.mlp(2).ntk, kc.Sequential(kc.Dense(), kc.Tanh(), kc.Dense()).ntk):
        want = kernel.diag(x)
        for n in (1, 2, 3):
            np.testing.assert_array_equal(kernel.diag(x, n_threads=n), want)


# ---- progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_progress_begins_after_two_seconds_and_goes_on_every_two(clock, capsys):
    told = progress.Progress("work", 40, True)
    for k, second in enumerate((0.0, 1.9, 2.0, 2.1, 3.9, 4.0, 9.0)):
        clock[0] = 100.0 + second
        told.at(k)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "work: 2/40, 2 s\nwork: 5/40, 4 s\nwork: 6/40, 9 s\n"
    clock[0] += 2
    told.at(7, "a note")
    assert capsys.readouterr().err == "work: 7/40, 11 s, a note\n"


def test_progress_of_a_driver_is_told_in_fractions(clock, capsys):
    told = progress.Progress("work", 40, True)
    for watch, fraction in ((told, 0.5), (told.watch(), 0.25), (told.watch(20, 30), 0.55)):
        clock[0] += 2
        watch(fraction)
    clock[0] += 2
    told.watch(30)(1.0)
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "work: 20/40", "work: 10/40", "work: 25/40", "work: 40/40"
    ]  # fmt: skip


def test_progress_that_nobody_asked_for_costs_nothing(capsys, monkeypatch):
    told = progress.Progress("work", 40, False)
    monkeypatch.setattr(progress.time, "monotonic", None)
    told.at(3)
    told(0.5)
    assert told.watch() is None
    assert capsys.readouterr() == ("", "")


X = np.random.default_rng(0).standard_normal((300, 3))
Y = np.sin(X[:, 0])
NTK = kc.presets.mlp(1).ntk
WAVES = kc.features.FourierFeatures(n_features=40, seed=0).fit(X)
WIDE = kc.features.FourierFeatures(n_features=2**16, seed=0).fit(X)
SLOPES = kc.features.TangentFeatures(2**14, seed=0).fit(X)
TOLD = {
    "Gram matrix, entries": lambda p: NTK(X, progress=p),
    "randomly_pivoted_cholesky": lambda p: kc.solvers.randomly_pivoted_cholesky(
        NTK, X, rank=50, block=5, seed=0, progress=p
    )[0],
    "feature_error, draws": lambda p: np.array(kc.features.feature_error(WAVES, X, progress=p)),
    "ridge_features, rows": lambda p: kc.features.ridge_features(
        WAVES, X, Y, 1.0, progress=p
    ).coefficients,
    "gram of features, rows": lambda p: WIDE.gram(X[:140], progress=p),  # 128 of them at a time
    "gram of features, rows ": lambda p: SLOPES.gram(X[:140], progress=p),
    "degree_power, rows": lambda p: kc.spectrum.degree_power(X, Y, 3, progress=p)[0],
    "nystrom_ridge": lambda p: kc.solvers.nystrom_ridge(
        NTK, X, Y, 1.0, centres=20, solver="direct", seed=0, progress=p
    ).alpha,
    "eigenpro_centres": lambda p: kc.solvers.eigenpro_centres(
        NTK, X, Y, 1.0, centres=20, batch=50, epochs=2, seed=0, progress=p
    ).alpha,
    "askotch": lambda p: kc.solvers.askotch(NTK, X, Y, 1.0, seed=0, progress=p).alpha,
    "conjugate_gradients": lambda p: kc.KernelRegressor(
        NTK, 1.0, "cg", random_state=0, verbose=p
    ).fit(X, Y).alpha_,
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD)
def test_progress_changes_nothing(name, capsys, monkeypatch):
    want = TOLD[name](False)
    assert capsys.readouterr() == ("", "")
    clock = iter(np.arange(0, 1e6, 3.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    np.testing.assert_array_equal(TOLD[name](True), want)
    out, err = capsys.readouterr()
    assert out == ""
    assert any(line.startswith(f"{name.strip()}: ") for line in err.splitlines()), err


def test_a_fit_in_one_matrix_tells_of_it(capsys, monkeypatch):
    clock = iter(np.arange(0, 1e6, 3.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    kc.KernelRegressor(NTK, 1.0).fit(X, Y)
    assert capsys.readouterr().err == ""
    kc.KernelRegressor(NTK, 1.0, verbose=1).fit(X, Y)
    assert capsys.readouterr().err.startswith("Gram matrix, entries: ")


def test_a_warning_names_the_line_of_the_caller():
    for more in ({"tol": 1e-12}, {"step": 1e9, "tol": 0.0}):
        with pytest.warns(RuntimeWarning, match=r"^eigenpro di") as told:
            kc.solvers.eigenpro(NTK, X, Y, seed=0, n_threads=1, epochs=3, **more)
        assert told[0].filename == __file__
    with pytest.warns(RuntimeWarning, match=r"^askotch did") as told:
        kc.solvers.askotch(NTK, X, Y, seed=0, epochs=1, tol=1e-12)
    assert told[0].filename == __file__
    with pytest.warns(RuntimeWarning, match=r"^eigenpro_centres did") as told:
        kc.solvers.eigenpro_centres(NTK, X, Y, centres=9, batch=50, seed=0, epochs=1, tol=1e-12)
    assert told[0].filename == __file__
