"""Which solver is chosen, and what is said about it."""

import numpy as np
import pytest

import kernelcore as kc
from kernelcore.scale import choose as module
from kernelcore.scale.choose import Choice, choose

SLOW, FAST = (lambda: 1e-3), (lambda: 1e-9)


def chosen(n, budget, entry=FAST, arrays=1, **options):
    return choose(n, 4, arrays=arrays, budget=budget, entry=entry, **options)


def none():
    raise AssertionError("an entry is measured where that does not matter")


@pytest.mark.parametrize(
    ("options", "solver", "matrix"),
    [
        ({"n": 1000, "budget": 4e6, "entry": none}, "direct", "in memory"),
        ({"n": 1000, "budget": 12e6, "arrays": 3, "entry": none}, "direct", "in memory"),
        ({"n": 1000, "budget": 11e6, "arrays": 3, "entry": none}, "cg", "in memory"),
        ({"n": 50_000, "budget": 2e9}, "cg", "on the fly"),
        ({"n": 50_000, "budget": 2e9, "entry": SLOW}, "cg", "out of core"),
        ({"n": 50_000, "budget": 2e9, "entry": SLOW, "storable": False}, "cg", "on the fly"),
        ({"n": 50_000, "budget": 2e9, "entry": none, "remote": True}, "cg", "on the cluster"),
        ({"n": 50_000, "budget": 11e9, "entry": none, "remote": True}, "direct", "in memory"),
        ({"n": 50_000, "budget": 12e9, "entry": none, "arrays": 2, "precomputed": True}, "cg",
         "in memory"),
        ({"n": 10**6, "budget": 1e9}, "eigenpro", "on the fly"),
        ({"n": 10**6, "budget": 1e9, "remote": True}, "eigenpro", "on the cluster"),
    ],
)  # fmt: skip
def test_what_is_chosen(monkeypatch, options, solver, matrix):
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: type("", (), {"free": 1e12}))
    found = chosen(**options)
    assert (found.solver, found.matrix) == (solver, matrix)
    if found.solver == "cg":
        n, budget = options["n"], options["budget"]
        assert 1 <= found.rank <= 10 * n**0.5
        assert module.COPIES * 4 * n * found.rank <= budget / 4


@pytest.mark.parametrize("lacks", ["disk", "zarr"])
def test_without_room_for_a_store(monkeypatch, lacks):
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: type("", (), {"free": 1e10}))
    if lacks == "zarr":
        monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    n = 50_000 if lacks == "disk" else 1000
    assert chosen(n, 4 * n * n / 5, SLOW).matrix == "on the fly"


def test_it_is_told_in_a_line():
    assert str(chosen(1000, 4e6)) == "a factorisation, K in memory: it needs 4.0 MB of 4.0 MB"
    told = Choice("cg", "on the fly", 50, 1e9, 90.0, "why")
    line = "conjugate gradients with a preconditioner of rank 50, K on the fly, about 90 s: why"
    assert str(told) == line
    assert str(told._replace(solver="eigenpro", seconds=None)) == "EigenPro, K on the fly: why"


# ---- in a fit

X = np.random.default_rng(0).standard_normal((1200, 8)).astype(np.float32)
Y = np.sign(X[:, 0] * X[:, 1])
KERNEL = kc.presets.mlp(2).ntk


@pytest.fixture
def budget(monkeypatch):
    """Hold a fit to 5 MB, where K needs 5.8; the disk is said to be slow, or fast."""

    def at(disk):
        monkeypatch.setattr(module, "DISK_RATE", disk)
        kc.set_memory("5MB")

    monkeypatch.setattr("kernelcore._check.SMALL", 0)
    yield at
    kc.set_memory(None)


@pytest.mark.parametrize(("disk", "matrix"), [(1.0, "on the fly"), (1e15, "out of core")])
def test_a_fit_that_does_not_fit(budget, capsys, disk, matrix, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    exact = kc.KernelClassifier(KERNEL, ridge=1.0, probabilities=None).fit(X, Y)
    assert exact.plan_.solver == "direct"
    assert capsys.readouterr().err == ""
    budget(disk)
    model = kc.KernelClassifier(KERNEL, ridge=1.0, probabilities=None, random_state=0).fit(X, Y)
    assert (model.plan_.solver, model.plan_.matrix) == ("cg", matrix)
    assert capsys.readouterr().err == f"KernelClassifier: {model.plan_}\n"
    assert list(tmp_path.iterdir()) == []
    off = model.decision_function(X) - exact.decision_function(X)
    assert np.linalg.norm(off) < 1e-3 * np.linalg.norm(Y)  # ten times the tolerance
    assert model.n_iter_ > 1


def test_other_solvers_have_no_plan():
    assert kc.KernelRegressor(KERNEL, ridge=1.0, solver="cholesky").fit(X[:9], Y[:9]).plan_ is None


def test_progress_is_shown_when_asked_for(budget, capsys, monkeypatch):
    monkeypatch.setattr("kernelcore.engine.progress.Progress.__init__.__defaults__", (0.0,))
    budget(1e15)
    kc.KernelRegressor(KERNEL, ridge=1.0, random_state=0, verbose=1).fit(X, Y)
    lines = capsys.readouterr().err
    assert "Gram matrix, tiles: " in lines
    assert "conjugate_gradients: " in lines


def test_weights_are_not_stored(budget):
    budget(1e15)
    model = kc.KernelRegressor(KERNEL, ridge=1.0, random_state=0)
    model.fit(X, Y, sample_weight=np.ones(1200))
    assert model.plan_.matrix == "on the fly"
