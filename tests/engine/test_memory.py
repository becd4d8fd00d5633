"""The memory budget: where it comes from, what is asked of it, and that it is asked in time."""

import contextlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import kernelcore as kc
from kernelcore import _check, features, solvers
from kernelcore.engine import cgroup, memory
from kernelcore.engine.cpu.rows import Rows

GIB = 2**30


def run(script, timeout=120, **environment):
    """What a fresh Python prints; the time-out fails a test."""
    source = str(pathlib.Path(kc.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"} | environment,
        capture_output=True, text=True, timeout=timeout, check=True,
    ).stdout  # fmt: skip


# ---- control groups


class Machine:
    """Files as Linux shows them to a process in some control groups."""

    def __init__(self, folder):
        self.folder, self.groups, self.mounts = folder, [], []

    def process(self):
        (self.folder / "cgroup").write_text("".join(self.groups))
        (self.folder / "mountinfo").write_text("".join(self.mounts))

    def mount(self, version, place, controllers="", root="/"):
        """A hierarchy at a place below the folder."""
        (self.folder / place).mkdir(parents=True, exist_ok=True)
        kind = "cgroup2 cgroup2 rw" if version == 2 else f"cgroup cgroup rw,{controllers}"
        place = str(self.folder / place).replace(" ", "\\040")
        self.mounts.append(f"31 23 0:28 {root} {place} rw,relatime shared:9 - {kind}\n")

    def file(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroup, "PROC", str(tmp_path))
    made = Machine(tmp_path)
    made.mounts.append("23 1 8:1 / / rw,relatime - ext4 /dev/root rw\n")
    yield made
    cgroup.memory.cache_clear()
    cgroup.cpus.cache_clear()


def found(machine):
    machine.process()
    cgroup.memory.cache_clear()
    cgroup.cpus.cache_clear()
    return cgroup.memory(), cgroup.cpus()


def test_no_control_groups(machine):
    assert found(machine) == (math.inf, math.inf)


def test_a_container_of_version_2_is_the_root_of_what_it_sees(machine):
    machine.groups.append("0::/\n")
    machine.mount(2, "sys")
    machine.file("sys/memory.max", "4294967296")
    machine.file("sys/cpu.max", "150000 100000")
    assert found(machine) == (4 * GIB, 1.5)


@pytest.mark.parametrize("at", ["", "user.slice", "user.slice/app.scope"])
def test_a_limit_of_any_group_above_counts(machine, at):
    machine.groups.append("0::/user.slice/app.scope\n")
    machine.mount(2, "sys")
    for folder in ("", "user.slice", "user.slice/app.scope"):
        machine.file(f"sys/{folder}/memory.max", str(GIB) if folder == at else "max")
        machine.file(f"sys/{folder}/cpu.max", ("300000" if folder == at else "max") + " 100000")
    machine.file("sys/other.slice/memory.max", "1")
    machine.file("sys/user.slice/app.scope/below/memory.max", "1")
    assert found(machine) == (GIB, 3.0)


def test_the_least_limit_counts(machine):
    machine.groups.append("0::/a/b\n")
    machine.mount(2, "sys")
    for folder, amount in (("a", 5), ("a/b", 7)):
        machine.file(f"sys/{folder}/memory.max", str(amount))
        machine.file(f"sys/{folder}/cpu.max", f"{amount}0000 10000")
    assert found(machine) == (5, 5.0)


def test_version_1_has_a_hierarchy_for_each_controller(machine):
    machine.groups += ["9:memory:/job/1\n", "2:cpu,cpuacct:/job\n", "0::/\n"]
    machine.mount(1, "memory", "memory")
    machine.mount(1, "cpu", "cpu,cpuacct")
    machine.mount(1, "unified", "name=systemd")
    machine.file("memory/memory.limit_in_bytes", "9223372036854771712")
    machine.file("memory/job/memory.limit_in_bytes", str(3 * GIB))
    machine.file("memory/job/1/memory.limit_in_bytes", "9223372036854771712")
    machine.file("cpu/cpu.cfs_quota_us", "-1")
    machine.file("cpu/cpu.cfs_period_us", "100000")
    machine.file("cpu/job/cpu.cfs_quota_us", "250000")
    machine.file("cpu/job/cpu.cfs_period_us", "100000")
    machine.file("unified/memory.max", "1")
    assert found(machine) == (3 * GIB, 2.5)


def test_both_versions_at_once(machine):
    machine.groups += ["4:memory:/job\n", "0::/job\n"]
    machine.mount(1, "memory", "memory")
    machine.mount(2, "unified")
    machine.file("memory/job/memory.limit_in_bytes", str(2 * GIB))
    machine.file("unified/job/memory.max", str(GIB))
    assert found(machine)[0] == GIB


def test_a_group_that_is_mounted_is_not_part_of_the_path_below(machine):
    """A container that shares the names of its host sees /docker/1 where it is mounted."""
    machine.groups.append("4:memory:/docker/1/inner\n")
    machine.mount(1, "memory", "memory", root="/docker/1")
    machine.file("memory/memory.limit_in_bytes", str(2 * GIB))
    machine.file("memory/inner/memory.limit_in_bytes", str(GIB))
    assert found(machine)[0] == GIB
    machine.groups[:] = ["4:memory:/elsewhere\n"]
    assert found(machine)[0] == 2 * GIB


def test_names_and_numbers_that_are_odd(machine):
    machine.groups.append("0::/a b\n")
    machine.mount(2, "a place")
    machine.file("a place/a b/memory.max", str(GIB))
    machine.file("a place/memory.max", "much")
    machine.file("a place/cpu.max", "")
    assert found(machine) == (GIB, math.inf)


# ---- the budget


@pytest.mark.parametrize(
    ("physical", "group", "address", "want", "source"),
    [
        (10 * GIB, math.inf, math.inf, 8 * GIB, "80 % of physical memory"),
        (10 * GIB, 5 * GIB, math.inf, 4 * GIB, "80 % of what its cgroup may have"),
        (10 * GIB, 20 * GIB, 5 * GIB, 4 * GIB, "80 % of its address space (ulimit -v)"),
        (math.inf,) * 3 + (2**63 - 1, "unlimited: the memory of this machine is unknown"),
    ],
)  # fmt: skip
def test_the_default_is_a_share_of_the_least_limit(
    monkeypatch, physical, group, address, want, source
):
    monkeypatch.delenv("KERNELCORE_MEMORY", raising=False)
    monkeypatch.setattr(memory, "_physical", lambda: physical)
    monkeypatch.setattr(cgroup, "memory", lambda: group)
    monkeypatch.setattr(memory, "_address_space", lambda: address)
    assert memory.limit() == (want, source)
    assert kc.get_memory() == memory.budget() == want
    assert kc.info()["memory"] == f"{_check.in_bytes(want)}, {source}"


def test_the_physical_memory():
    assert memory._physical() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_the_limit_of_the_address_space():
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({GIB}, {GIB}))
import kernelcore as kc
print(kc.get_memory())
try:
    kc.Gaussian(1.0)([[0.0]] * 11_000)
except MemoryError as error:
    print(error)
kc.set_memory("2GB")
try:
    kc.Gaussian(1.0)([[0.0]] * 14_000)
except MemoryError as error:
    print(error)
"""
    amount, refused, none = run(script, KERNELCORE_MEMORY="").splitlines()
    assert 0 < int(amount) <= 0.8 * GIB
    assert refused == (
        "K must fit into memory: 968.0 MB are needed for 11000 x 11000 float64, the budget is "
        f"{_check.in_bytes(int(amount))}; use GramOperator, float32 or kernelcore.set_memory"
    )
    assert none == (
        "K must fit into memory: 1.6 GB are needed for 14000 x 14000 float64, and the system gives "
        "no more; use GramOperator, float32 or fewer points"
    )


def test_the_order_of_those_who_may_say(monkeypatch):
    monkeypatch.setenv("KERNELCORE_MEMORY", "3GB")
    assert memory.limit() == (3 * 10**9, "by KERNELCORE_MEMORY")
    kc.set_memory(1000)
    assert memory.limit() == (1000, "by kernelcore.set_memory")
    monkeypatch.setenv("KERNELCORE_MEMORY", "4GB")
    assert kc.get_memory() == 1000
    kc.set_memory(None)
    assert kc.get_memory() == 4 * 10**9


@pytest.mark.parametrize("text", ["much", "8G"])
def test_an_amount_of_the_environment_that_is_none(monkeypatch, text):
    monkeypatch.setenv("KERNELCORE_MEMORY", text)
    kc.presets.mlp(1).ntk(np.ones((10, 2)))  # does not ask
    message = (
        f"KERNELCORE_MEMORY must be a number of bytes, or have a unit as in 8GB or 512MiB: got "
        f"{text!r}"
    )
    for call in (kc.get_memory, kc.info, lambda: kc.Gaussian(1.0)(np.ones((1200, 2)))):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            call()


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("8GB", 8 * 10**9),
        ("512MiB", 512 * 2**20),
        ("1e9", 10**9),
        (" 1.5 tib ", 3 * 2**39),
        ("2.5e-1kB", 250),
        ("100B", 100),
        ("1KIB", 1024),
        (10**12, 10**12),
        (8e9, 8 * 10**9),
        (np.float32(1024), 1024),
        (0.5, 1),
    ],
)
def test_amounts(given, want):
    kc.set_memory(given)
    assert kc.get_memory() == want


@pytest.mark.parametrize(
    ("amount", "want"),
    [
        (1, "0.0 kB"),
        (1000, "1.0 kB"),
        (999_000, "999.0 kB"),
        (10**6, "1.0 MB"),
        (19_200_000_000, "19.2 GB"),
        (8 * 10**14, "800.0 TB"),
        (10**15, "1.0 PB"),
        (10**21, "1000000.0 PB"),
    ],
)
def test_amounts_in_words(amount, want):
    assert _check.in_bytes(amount) == want


def test_small_arrays_ask_nothing(monkeypatch):
    def never():
        raise AssertionError

    monkeypatch.setattr(_check, "budget", never)
    kc.presets.mlp(1).ntk(np.ones((1000, 2)))
    with pytest.raises(AssertionError):
        kc.presets.mlp(1).ntk(np.ones((1200, 2)))


def test_an_array_of_the_caller_asks_nothing():
    kc.set_memory(1000)
    x = np.ones((1200, 2))
    out = np.empty((1200, 1200))
    assert kc.Gaussian(1.0)(x, out=out) is out
    features.FourierFeatures(n_features=1200, seed=0).fit(x).transform(x, out=out)


def test_what_fits_exactly_is_allowed():
    kc.set_memory(8 * 1200**2)
    assert kc.Gaussian(1.0)(np.ones((1200, 2))).shape == (1200, 1200)
    kc.set_memory(8 * 1200**2 - 1)
    with pytest.raises(MemoryError):
        kc.Gaussian(1.0)(np.ones((1200, 2)))


# ---- what a call asks for is what it takes


N = 700
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
Y = np.sin(X[:, 0])
GAUSSIAN, LAPLACIAN, NET = kc.Gaussian(1.0), kc.Laplacian(1.0), kc.presets.mlp(2)
K = LAPLACIAN(X)
WAVES = features.FourierFeatures(n_features=4 * N, seed=0).fit(X)


def process(**more):
    return kc.GaussianProcess(LAPLACIAN, **more).fit(X, Y)


def regressor(kernel=LAPLACIAN, **more):
    return kc.KernelRegressor(kernel, **more).fit(X, Y)


BOTH = LAPLACIAN + NET.ntk
# Kernels that need more matrices than their own, and how many there are in all.
ALGEBRA = {
    GAUSSIAN * BOTH: 2,
    GAUSSIAN + LAPLACIAN * NET.ntk: 2,
    GAUSSIAN * (2.0 * BOTH): 2,
    GAUSSIAN * kc.Matern(6.3, 1.0): 2,
    GAUSSIAN * (LAPLACIAN + GAUSSIAN * BOTH): 4,
    kc.CyclicConvolution(2, 2, GAUSSIAN * LAPLACIAN): 3,
    kc.CyclicConvolution(2, 2, 2.0 * GAUSSIAN + LAPLACIAN): 4,
    GAUSSIAN * kc.CyclicConvolution(2, 2, GAUSSIAN): 4,
}
# The name, how many N x N arrays of float64 the arguments hold, and the call.
TAKEN = {
    "Gram matrix": (0, lambda: LAPLACIAN(X)),
    "terms": (0, lambda: NET.ntk.terms(X)),
    "kernels": (0, lambda: NET.kernels(X)),
    "product of a sum": (0, lambda: (GAUSSIAN * (LAPLACIAN + NET.ntk))(X)),
    "sum of a product": (0, lambda: (GAUSSIAN + LAPLACIAN * NET.ntk)(X)),
    "cyclic": (0, lambda: kc.CyclicConvolution(2, 2, GAUSSIAN)(X)),
    "cyclic, two": (0, lambda: kc.CyclicConvolution(2, 2, GAUSSIAN)(X, X.copy())),
    **{repr(k): (0, lambda k=k: k(X)) for k in ALGEBRA if "Matern" not in repr(k)},  # in blocks
    "ridge": (1, lambda: solvers.ridge(K, Y, 1.0)),
    "RidgePath": (1, lambda: solvers.RidgePath(K, Y)),
    "gradient_flow": (1, lambda: solvers.gradient_flow(K, Y, [1.0])),
    "ensemble_flow": (2, lambda: solvers.ensemble_flow(K, K, Y, [1.0])),
    "gram": (1, lambda: kc.spectrum.gram(K)),
    "gram, values": (1, lambda: kc.spectrum.gram(K, vectors=False)),
    "gram, float32": (0.5, lambda: kc.spectrum.gram(K.astype(np.float32))),
    "regressor": (0, regressor),
    "regressor, cholesky": (0, lambda: regressor(ridge=1.0, solver="cholesky")),
    "regressor, cholesky, loo": (0, lambda: regressor(solver="cholesky")),
    "regressor, eigen": (0, lambda: regressor(ridge=1.0, solver="eigen")),
    "classifier": (0, lambda: kc.KernelClassifier(LAPLACIAN, ridge=1.0).fit(X, Y > 0)),
    "process": (0, process),
    "process, noise": (0, lambda: process(noise_variance=1.0)),
    "process, initial": (0, lambda: process(noise_variance=1.0, initial=GAUSSIAN)),
    "KernelPCA": (0, lambda: kc.KernelPCA(kernel=LAPLACIAN).fit(X)),
    "KernelPCA, few": (0, lambda: kc.KernelPCA(3, kernel=LAPLACIAN).fit(X)),
    "SpectralEmbedding": (0, lambda: kc.SpectralEmbedding(3, kernel=LAPLACIAN).fit(X)),
    "transform": (0, lambda: WAVES.transform(X)),
    "nystrom_ridge, direct": (
        0, lambda: solvers.nystrom_ridge(LAPLACIAN, X, Y, 1.0, centres=N, solver="direct")
    ),
    "feature_error": (0, lambda: features.feature_error(WAVES.set_params(n_features=100), X, 6)),
    "legendre": (0, lambda: kc.spectrum.legendre(3, N - 1, np.linspace(-1, 1, N))),
    "effective_dimension": (
        0, lambda: kc.theory.effective_dimension(np.arange(1.0, N + 1) ** -2, np.ones(N))
    ),
    "decay": (0, lambda: kc.spectrum.GramSpectrum(np.ones(N), None, 1.0, N).decay(np.ones(N))),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_asked_for_is_what_is_taken(name, monkeypatch):
    """The most that is asked for at a time, against the peak that NumPy's allocations reach.

    Within 0.3 of a matrix: panels, tables, vectors and blocks of a fixed size come on top of it.
    """
    held, call = TAKEN[name]
    kc.set_threads(1)  # each has scratch of its own
    asked = []
    room = _check.room

    def note(what, shape, dtype, arrays=1, remedies=()):
        asked.append(arrays * math.prod(shape) * np.dtype(dtype).itemsize)
        room(what, shape, dtype, arrays, remedies)

    call()  # tables and modules that stay are there
    monkeypatch.setattr(_check, "room", note)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    matrix = 8 * N * N
    assert max(asked) / matrix == pytest.approx(peak / matrix + held, abs=0.3)


# ---- and it is asked before any work


REFUSED = """
import json, resource, sys, time
import numpy as np
import sklearn, scipy.linalg
import kernelcore as kc
from kernelcore import features, solvers, spectrum

n = 10_000
X, y = np.zeros((n, 3)), np.zeros(n)
K = np.broadcast_to(1.0, (n, n))  # takes no memory
small = np.ones((2, 3))
k, net = kc.Gaussian(1.0), kc.presets.mlp(2)
waves = features.FourierFeatures(n_features=4000, seed=0).fit(small)
levels = np.arange(1.0, 5001.0) ** -2
calls = {
    "gram": lambda: k(X),
    "cross": lambda: net.nngp(X, np.zeros((n, 3))),
    "float32": lambda: k(X.astype(np.float32)),
    "terms": lambda: net.ntk.terms(X),
    "kernels": lambda: net.kernels(X),
    "images": lambda: kc.presets.cntk(2).ntk(np.zeros((n, 2, 2, 1))),
    "ridge": lambda: solvers.ridge(K, y, 1.0),
    "interpolate": lambda: solvers.interpolate(K, y),
    "RidgePath": lambda: solvers.RidgePath(K, y),
    "gradient_flow": lambda: solvers.gradient_flow(K, y, 1.0),
    "ensemble_flow": lambda: solvers.ensemble_flow(K, K, y, 1.0),
    "cholesky": lambda: solvers.randomly_pivoted_cholesky(k, X, rank=2000),
    "uniform": lambda: solvers.nystrom_preconditioner(k, X, rank=2000, method="uniform"),
    "deflation": lambda: solvers.eigenpro_preconditioner(k, X, rank=100),
    "jacobi": lambda: solvers.block_jacobi(k, X, block=2000),
    "nystrom": lambda: solvers.nystrom_ridge(k, X, y, 1.0, centres=2000, solver="cg"),
    "direct": lambda: solvers.nystrom_ridge(k, X, y, 1.0, centres=4000, solver="direct"),
    "transform": lambda: waves.transform(X),
    "features gram": lambda: waves.gram(X),
    "tangent gram": lambda: features.TangentFeatures(9, seed=0).fit(small).gram(X),
    "weights": lambda: features.NetworkFeatures(n_features=4_000_000).fit(small),
    "axes": lambda: features.FourierFeatures(kc.Cauchy(1.0), 8_000_000).fit(small),
    "primal": lambda: features.ridge_features(waves, X, y, 1.0),
    "dual": lambda: features.ridge_features(waves, X, y, 1.0, solver="dual"),
    "bounded": lambda: features.ridge_features(waves, X, y, 1.0, bound=1.0),
    "feature_error": lambda: features.feature_error(waves, X),
    "regressor": lambda: kc.KernelRegressor(k, solver="eigen").fit(X, y),
    "regressor, cholesky": lambda: kc.KernelRegressor(k, 1.0, "cholesky").fit(X, y),
    "classifier": lambda: kc.KernelClassifier(k, solver="eigen").fit(X, np.arange(n) % 2),
    "process": lambda: kc.GaussianProcess(k).fit(X, y),
    "prior": lambda: kc.GaussianProcess(k).predict(X, return_cov=True),
    "pca": lambda: kc.KernelPCA(kernel=k).fit(X),
    "embedding": lambda: kc.SpectralEmbedding(2, k).fit(X),
    "spectrum": lambda: spectrum.gram(K),
    "legendre": lambda: spectrum.legendre(3, 5000, np.zeros(n)),
    "harmonics": lambda: spectrum.RandomFunction(30, [0, 0, 0, 0, 1.0], centres=20_000),
    "modes": lambda: kc.theory.modes(levels, levels, y + 1.0),
    "dimension": lambda: kc.theory.effective_dimension(levels, y + 1.0),
    "ball": lambda: kc.theory.approximation(levels, levels, y + 1.0),
}

def high():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

for name, call in calls.items():
    before, began = high(), time.process_time()
    try:
        call()
        said = "nothing"
    except MemoryError as error:
        said = str(error)
    took = time.process_time() - began
    print(json.dumps([name, said, took, (high() - before) * 1024]))
"""

WANTED = {
    name: f"{what} must fit into memory: {need} are needed for {each}, the budget is 100.0 MB; "
    f"use {others} or kernelcore.set_memory"
    for name, what, need, each, others in (
        ("gram", "K", "800.0 MB", "10000 x 10000 float64", "GramOperator, float32"),
        ("cross", "K", "800.0 MB", "10000 x 10000 float64", "GramOperator, float32"),
        ("float32", "K", "400.0 MB", "10000 x 10000 float32", "GramOperator"),
        ("terms", "terms", "2.4 GB", "3 x 10000 x 10000 float64", "float32"),
        ("kernels", "K", "1.6 GB", "2 arrays of 10000 x 10000 float64", "GramOperator, float32"),
        ("images", "K", "800.0 MB", "10000 x 10000 float64", "GramOperator, float32"),
        (
            "ridge", "K", "1.6 GB", "2 arrays of 10000 x 10000 float64",
            "overwrite_K=True, conjugate_gradients, float32",
        ),
        (
            "RidgePath", "K", "3.2 GB", "4 arrays of 10000 x 10000 float64",
            "overwrite_K=True, float32",
        ),
        ("gradient_flow", "K", "3.2 GB", "4 arrays of 10000 x 10000 float64", "float32"),
        ("ensemble_flow", "ntk", "4.0 GB", "5 arrays of 10000 x 10000 float64", "float32"),
        ("cholesky", "the factor", "160.0 MB", "10000 x 2000 float64", "a smaller rank, float32"),
        (
            "uniform", "the factor", "320.0 MB", "2 arrays of 10000 x 2000 float64",
            "a smaller rank, float32",
        ),
        (
            "deflation", "columns of K", "160.0 MB", "10000 x 2000 float64",
            "a smaller subsample, float32",
        ),
        ("jacobi", "all blocks", "160.0 MB", "10000 x 2000 float64", "a smaller block, float32"),
        (
            "nystrom", "K_nm", "160.0 MB", "10000 x 2000 float64",
            "solver='direct', fewer centres, float32",
        ),
        ("direct", "K_mm", "384.0 MB", "3 arrays of 4000 x 4000 float64", "fewer centres"),
        ("transform", "features", "320.0 MB", "10000 x 4000 float64", "ridge_features, float32"),
        ("features gram", "K", "800.0 MB", "10000 x 10000 float64", "ridge_features, float32"),
        ("weights", "weights_", "192.0 MB", "2 arrays of 4000000 x 3 float64", "fewer features"),
        ("primal", "Z'Z", "128.0 MB", "4000 x 4000 float64", "solver='dual', fewer features"),
        (
            "dual", "ZZ'", "1.6 GB", "2 arrays of 10000 x 10000 float64",
            "solver='primal', fewer points",
        ),
        ("bounded", "Z'Z", "256.0 MB", "2 arrays of 4000 x 4000 float64", "fewer features"),
        (
            "feature_error", "errors of all draws", "19.2 GB", "24 arrays of 10000 x 10000 float64",
            "fewer points",
        ),
        (
            "regressor", "K", "2.4 GB", "3 arrays of 10000 x 10000 float64",
            "solver='cg', solver='nystrom', solver='eigenpro', float32",
        ),
        (
            "regressor, cholesky", "K", "800.0 MB", "10000 x 10000 float64",
            "solver='cg', solver='nystrom', solver='eigenpro', float32",
        ),
        ("process", "K", "2.4 GB", "3 arrays of 10000 x 10000 float64", "float32"),
        ("prior", "K", "800.0 MB", "10000 x 10000 float64", "GramOperator, float32"),
        ("pca", "K", "2.4 GB", "3 arrays of 10000 x 10000 float64", "a small n_components"),
        ("embedding", "K", "1.6 GB", "2 arrays of 10000 x 10000 float64", "fewer points"),
        (
            "spectrum", "K", "2.4 GB", "3 arrays of 10000 x 10000 float64",
            "a small rank, vectors=False",
        ),
        ("legendre", "all degrees", "400.1 MB", "5001 x 10000 float64", "fewer of them"),
        (
            "harmonics", "pairs of centres", "12.8 GB", "4 arrays of 20000 x 20000 float64",
            "fewer centres",
        ),
        (
            "modes", "learnability", "800.0 MB", "2 arrays of 10000 x 5000 float64",
            "learnability=False",
        ),
        (
            "dimension", "all levels at all ridges", "2.0 GB", "5 arrays of 10000 x 5000 float64",
            "fewer of them",
        ),
        (
            "ball", "all levels at all norms", "1.6 GB", "4 arrays of 10000 x 5000 float64",
            "fewer of them",
        ),
    )
}  # fmt: skip
WANTED |= {
    "interpolate": WANTED["ridge"],
    "tangent gram": WANTED["features gram"],
    "axes": WANTED["weights"],
    "classifier": WANTED["regressor"],
}


@pytest.fixture(scope="module")
def refused():
    lines = run(REFUSED, KERNELCORE_MEMORY="100MB").splitlines()
    return {name: rest for name, *rest in map(json.loads, lines)}


@pytest.mark.parametrize("name", WANTED)
def test_refused_before_any_work(refused, name):
    """Nothing of the size of what is refused is touched: less than the budget, in a second."""
    said, seconds, grown = refused[name]
    assert said == WANTED[name]
    assert seconds < 1
    assert grown < 40e6


@pytest.mark.parametrize("kernel", ALGEBRA, ids=repr)
@pytest.mark.parametrize("own", [False, True])
def test_all_matrices_of_an_algebra_are_asked_for_before_the_first(kernel, own, monkeypatch):
    arrays = ALGEBRA[kernel]
    out = np.empty((N, N)) if own else None
    with budget(arrays * 8 * N * N, small=0):
        kernel(X, out=out)
    need = rf"^K must fit into memory: .* are needed for {arrays} arrays of {N} x {N} float64, the "
    with budget(arrays * 8 * N * N - 1, small=0), monkeypatch.context() as patch:
        patch.setattr(Rows, "gram", lambda *_: pytest.fail("a matrix was computed"))
        with pytest.raises(MemoryError, match=need):
            kernel(X, out=out)


def test_every_way_in_is_refused(refused):
    assert set(refused) == set(WANTED)


# ---- and later, where it is not known before


PATH = solvers.RidgePath(K, Y)
TANH = kc.Sequential(kc.Dense(), kc.Tanh(), kc.Dense()).nngp


def ensemble(times):
    tests = {"ntk_test": K, "nngp_test": K, "nngp_test_test": K}
    return solvers.ensemble_flow(K, K, Y, times, **tests)


def weighted(**more):
    return kc.KernelRegressor(ridge=1.0, solver="cg", **more).fit(K, Y, np.arange(1.0, N + 1))


@contextlib.contextmanager
def budget(amount, small=_check.SMALL):
    before, _check.SMALL = _check.SMALL, small
    kc.set_memory(amount)
    try:
        yield
    finally:
        kc.set_memory(None)
        _check.SMALL = before


def test_a_covariance_for_each_output_is_asked_for():
    model = kc.GaussianProcess(GAUSSIAN, 0.1).fit(X[:20], np.ones((20, 30)))
    with budget(4 * 8 * N * N, small=0):
        model.predict(X, return_std=True)
        with pytest.raises(MemoryError, match=r"^a covariance per output must fit into memory: "):
            model.predict(X, return_cov=True)
        kc.set_memory(2 * 8 * N * N)
        with pytest.raises(MemoryError, match=r"^covariances must fit into memory: "):
            model.predict(X, return_cov=True)


@pytest.mark.parametrize(
    ("what", "amount", "call"),
    [
        ("alpha at all ridges or times", 2, lambda: PATH.alpha(np.ones(N))),
        ("K", 2, lambda: solvers.interpolate(np.ones((N, N)), Y, overwrite_K=True)),
        ("K", 2, lambda: regressor(ridge=0.0, kernel=kc.Polynomial(1))),
        ("covariances at all times", 5, lambda: ensemble(np.ones(6))),
        ("tables of numerical duals", 0.1, lambda: TANH.diag(X)),
        ("decay", 1, lambda: kc.spectrum.GramSpectrum(np.ones(N), None, 1.0, N).decay(np.ones(N))),
        ("K", 2, lambda: weighted(kernel="precomputed")),
    ],
)
def test_refused_on_the_way(what, amount, call):
    with (
        budget(int(amount * 8 * N * N), small=0),
        pytest.raises(MemoryError, match=rf"^{what} must fit into memory: "),
    ):
        call()


def test_solvers_with_room_of_their_own_keep_to_the_budget():
    """Without them told, "auto" holds no K_nm that is past it, and batches are of fewer points."""
    y = np.stack([Y] * 2, 1)
    wanted = solvers.nystrom_ridge(LAPLACIAN, X, y, 1.0, centres=200, seed=0)
    assert wanted.solver == "cg"
    held = solvers.eigenpro(LAPLACIAN, X, Y, 1.0, epochs=1, seed=0, batch=N)
    with budget(4 * 8 * 200 * 200, small=0):
        model = solvers.nystrom_ridge(LAPLACIAN, X, y, 1.0, centres=200, seed=0)
        assert model.solver == "direct"
        np.testing.assert_allclose(model.predict(X), wanted.predict(X), atol=1e-2)
    with budget(3 * 8 * N * N, small=0):
        np.testing.assert_allclose(
            solvers.eigenpro(LAPLACIAN, X, Y, 1.0, epochs=1, seed=0, batch=N).alpha, held.alpha,
            atol=1e-9,
        )  # fmt: skip
