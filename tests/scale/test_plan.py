"""The planner, kernels and arrays by name, and the command line of large matrices."""

import json
import pathlib
import re

import matplotlib as mpl
import numpy as np
import pytest

import kernelcore as kc
from kernelcore import cli
from kernelcore.scale import cost, named, plan, store

mpl.use("agg")
MLP = kc.presets.mlp(2).ntk
X = np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32)


@pytest.fixture
def known(monkeypatch):
    """An entry takes a millisecond."""
    monkeypatch.setattr(cost, "core_seconds", lambda *a: 1e-3)


def test_a_plan_adds_up(known):
    p = kc.plan(MLP, n=10_000, shape=784, workers=50)
    assert p.entries == 10_000 * 10_001 // 2
    assert p.core_hours == pytest.approx(p.entries * 1e-3 / 3600)
    assert p.tile**2 * 1e-3 <= plan.TASK_SECONDS
    assert p.tiles == len(store.Tiles((10_000, 10_000), p.tile, True))
    assert p.disk == 4 * 10_000**2
    assert p.network == p.disk + p.tiles * 2 * p.tile * 784 * 4
    assert p.memory == 4 * p.tile**2 * 4 + 2 * p.tile * 784 * 4 + plan.RUNTIME_BYTES
    # Workers are at most half as fast, and times spread: not less than shared work, and little more
    assert 3600 * p.core_hours / 50 < p.wall_seconds < 1.2 * 3600 * p.core_hours / 50
    across = kc.plan(MLP, n=10_000, m=30, shape=784, workers=50, tile=7, dtype="float64")
    assert (across.entries, across.m, across.tile) == (300_000, 30, 7)
    assert across.disk == 8 * 300_000
    assert (p.n, p.m, p.workers) == (10_000, 10_000, 50)


def test_schedules(monkeypatch):
    """Without spread: two workers and three equal tasks, one waits for a third of the time."""
    monkeypatch.setattr(plan, "SPREAD", 0.0)
    monkeypatch.setattr(plan, "SLOW", 0.0)
    np.testing.assert_array_equal(np.sort(plan.schedule([1.0, 1.0, 1.0], 2)), [1.0, 2.0])
    np.testing.assert_allclose(plan.schedule([1.0], 2, before=6.0), [4.0, 3.0])
    monkeypatch.setattr(plan, "SLOW", 1.0)
    np.testing.assert_allclose(plan.schedule([1.0] * 8, 4), [4.0] * 4)
    np.testing.assert_array_equal(plan.schedule([1.0] * 8, 4, measured=True), [2.0] * 4)


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_last_tiles_are_those_of_the_list(symmetric):
    tiles = store.Tiles((50, 50), 8, symmetric)
    whole = plan._last(tiles, 10**6)
    assert len(whole) == len(tiles)
    assert sum(whole) == (50 * 51 // 2 if symmetric else 2500)
    assert plan._last(tiles, 5) == whole[-5:]


def test_a_plan_is_measured_and_prints(capsys):
    p = kc.plan(MLP, n=500, shape=20, workers=3, seconds=0.001)
    assert 1e-10 < p.entry_seconds < 1e-3
    lines = str(p).splitlines()
    assert lines[1] == "matrix       500 x 500, 1.252e+05 entries to compute"
    assert [s.name for s in p.solvers] == [line.split("  ")[0] for line in lines[-4:]]
    assert "wall time" in str(p)


def test_solvers_that_do_not_fit_say_so(known):
    kc.set_memory("1GB")
    p = kc.plan(MLP, n=1_000_000, shape=16)
    fits = {s.name: s.fits for s in p.solvers}
    assert fits == {"direct": False, "out of core": True, "on the fly": True, "nystrom": False}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2e-9, "2 ns"), (2e-6, "2 us"), (0.02, "20 ms"), (100, "100 s"), (3600, "60 min"),
        (86400, "24 h"), (10 * 86400, "10 days"),
    ],
)  # fmt: skip
def test_times_in_words(seconds, text):
    assert plan._time(seconds) == text


def test_the_figure_shows_when_workers_are_done(known):
    p = kc.plan(MLP, n=1000, shape=784, workers=5)
    ax = p.plot()
    np.testing.assert_allclose(
        [bar.get_width() for bar in ax.patches], np.sort(p.finished)[::-1] / 60
    )
    assert ax.get_xlabel() == "minutes"


# ---- passes on paper


@pytest.mark.parametrize("parts", [1, 5])
def test_a_pass_of_eigenpro_adds_up(monkeypatch, parts):
    """Counted step by step and worker by worker, with workers that are alike."""
    monkeypatch.setattr(plan, "SPREAD", 0.0)
    monkeypatch.setattr(plan, "SLOW", 0.0)
    n, dim, r, workers, m, s, q = 1000, 7, 3, 4, 100, 40, 10
    e = plan.epoch(
        n=n, dim=dim, outputs=r, workers=workers, batch=m, subsample=s, rank=q, parts=parts,
        entry_seconds=1e-3,
    )  # fmt: skip
    entries = flops = 0
    for start in range(0, n, m):
        rows = len(range(start, min(start + m, n)))
        for _ in range(workers * parts):
            entries += rows * n // (workers * parts)
            flops += rows * n // (workers * parts) * 2 * (dim + r)
    assert (e.steps, e.flops) == (10, flops)
    assert e.steps * workers * e.seconds["computing"] == pytest.approx(1e-3 * entries)
    assert e.seconds["waiting for the slowest worker"] == pytest.approx(0, abs=1e-9)
    assert e.seconds["one scheduler for all tasks"] == workers * parts * plan.START_SECONDS
    assert e.seconds["latency of two sums"] == 2 * 2 * 2 * plan.LATENCY  # halved twice, doubled
    received = m * dim if parts == 1 else s * r
    assert e.step_bytes == 4 * (received + 2 * m * r + 2 * q * r)
    held = n // workers if parts == 1 else n
    rows_of_k, vectors = m * n // (workers * parts), s // workers * q
    points = held * dim + 2 * held * r + m * dim
    assert e.memory == 4 * (points + rows_of_k + vectors) + plan.RUNTIME_BYTES


def test_waiting_for_the_slowest(monkeypatch):
    """Half as fast is the slowest of many: with equal shares all wait as long as they compute."""
    monkeypatch.setattr(plan, "SPREAD", 0.0)
    alike = {"n": 10**6, "dim": 16, "workers": 500, "batch": 500, "entry_seconds": 1e-9}
    waits = {}
    for parts in (1, 20):
        seconds = plan.epoch(**alike, parts=parts).seconds
        waits[parts] = seconds["waiting for the slowest worker"] / seconds["computing"]
    assert waits[1] == pytest.approx(1)
    assert waits[20] < 0.15  # at most a slow worker's task, a tenth, and what the slow ones lack


def test_the_page_shows_what_its_lines_print(capsys):
    text = (pathlib.Path(__file__).parents[2] / "SCALE.md").read_text()
    code, told = re.search(
        r"```python\n([^`]*epoch[^`]*)```\n\n```\n(.*?)```", text, re.DOTALL
    ).groups()
    exec(code, {})
    assert capsys.readouterr().out == told


# ---- names


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("mlp:depth=2", MLP),
        ("mlp:depth=2,nngp", kc.presets.mlp(2).nngp),
        ("cntk:depth=3,gap=false", kc.presets.cntk(3, gap=False).ntk),
        ("cntk:depth=3,gap", kc.presets.cntk(3).ntk),
        ("myrtle:depth=5", kc.presets.myrtle(5).ntk),
        ("gaussian:lengthscale=2.5", kc.Gaussian(2.5)),
        ("polynomial:degree=3", kc.Polynomial(3)),
    ],
)
def test_kernels_by_name(text, kernel):
    assert named.kernel(text) == kernel


def test_arrays_by_name(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "one.npz", X=X)
    np.savez(tmp_path / "two.npz", X=X, y=X[:, 0])
    kc.gram(MLP, X, store=tmp_path / "k")
    for name in ("x.npy", "one.npz", "two.npz:X"):
        np.testing.assert_array_equal(named.array(str(tmp_path / name), "DATA"), X)
    np.testing.assert_array_equal(named.array(str(tmp_path / "k"), "DATA")[:], MLP(X))


# ---- commands


def test_from_data_to_predictions(tmp_path, monkeypatch, capsys):
    """The whole way, twice: the second time for programs. Labels are classes, of two signs."""
    monkeypatch.chdir(tmp_path)
    X64, test = X.astype(np.float64), np.random.default_rng(1).standard_normal((9, 5))
    labels = (X[:, 0] > 0).astype(int)
    np.savez("data.npz", X=X64, y=labels, test=test)
    gram = ["gram", "data.npz:X", "--kernel", "mlp:depth=2", "--store", "k.zarr", "--tile", "25"]
    solve = ["solve", "k.zarr", "data.npz:y", "--ridge", "0.1", "--tol", "1e-10"]
    predict = ["predict", "data.npz:test", "--train", "data.npz:X", "--kernel", "mlp:depth=2"]
    for command in (gram, solve, predict):
        assert cli.main(command) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("k.zarr: 60 x 60 float64, 6 tiles of 25, complete after ")
    assert out[1].startswith("alpha.npy: converged after ")
    assert out[2] == "predictions.npy: (9, 2)"
    targets = np.eye(2)[labels] - 0.5
    expected = MLP(test, X64) @ np.linalg.solve(MLP(X64) + 0.1 * np.eye(60), targets)
    np.testing.assert_allclose(np.load("predictions.npy"), expected, atol=1e-8)
    for command in (gram, solve, predict):
        assert cli.main([*command, "--json"]) == 0
    facts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert facts[0]["shape"] == [60, 60]
    assert facts[1]["converged"] is True
    assert facts[2] == {"output": "predictions.npy", "shape": [9, 2]}


def test_numbers_are_regressed_where_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X.astype(np.float64))
    np.save("y.npy", np.arange(60))
    assert cli.main(["gram", "x.npy", "--kernel", "laplacian:lengthscale=1", "--store", "k"]) == 0
    assert cli.main(["solve", "k", "y.npy", "--ridge", "1", "--regression"]) == 0
    K = kc.Laplacian(1.0)(X.astype(np.float64))
    expected = np.linalg.solve(K + np.eye(60), np.arange(60.0))
    np.testing.assert_allclose(np.load("alpha.npy"), expected, atol=1e-4 * np.abs(expected).max())


def test_plan_of_the_command_line(tmp_path, monkeypatch, capsys, known):
    monkeypatch.chdir(tmp_path)
    plan = ["plan", "--kernel", "cntk:depth=21,gap", "--n", "60000", "--shape", "32,32,3"]
    assert cli.main([*plan, "--workers", "64", "--figure", "p.png"]) == 0
    assert "1.8e+09 entries to compute" in capsys.readouterr().out
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert cli.main([*plan, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["disk"] == 4 * 60_000**2
    assert [s["name"] for s in facts["solvers"]] == [
        "direct",
        "out of core",
        "on the fly",
        "nystrom",
    ]
