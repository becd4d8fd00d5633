"""Experiments as a whole: what is saved is not run again, and what fails stops nothing else."""

import dataclasses
import json
import random
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
import tiny

from kernelcore import cli, experiments
from kernelcore.experiments import Cells, Claim, Failure, Result, _base, _compare


@dataclasses.dataclass(frozen=True)
class Settings(experiments.Settings):
    n: int = 3
    data: str = ""


@pytest.fixture
def toy(monkeypatch):
    """An experiment of three cells that counts its work, beside one that fails."""
    module = types.ModuleType("kernelcore.experiments.toy")
    module.work, module.measured = [], 1.0

    def run(settings=Settings(), *, cells=None, progress=None):
        def cell(k):
            module.work.append(k)
            if settings.n < 0:
                raise ValueError("n must not be\nnegative: got -1")
            return {"x": float(k)}

        found = (cells or Cells()).map(cell, [(k,) for k in range(3)], progress)
        return Result("toy", settings, {"x": [one["x"] for one in found]})

    def claims(result):
        return [Claim.near("one", "Nobody 2000", 1.0, module.measured, 0.01)]

    for name, value in {
        "Settings": Settings, "PRESETS": {"small": Settings(), "paper": Settings(n=30)},
        "SECONDS": {"small": 0, "paper": 7200}, "run": run, "claims": claims,
        "plot": lambda result: [], "paragraph": lambda result: "words", "tables": lambda result: [],
    }.items():  # fmt: skip
        setattr(module, name, value)
    bad = types.ModuleType("kernelcore.experiments.bad")
    vars(bad).update({k: v for k, v in vars(module).items() if not k.startswith("__")})
    bad.PRESETS = {"small": Settings(n=-1)}
    monkeypatch.setitem(sys.modules, "kernelcore.experiments.toy", module)
    monkeypatch.setitem(sys.modules, "kernelcore.experiments.bad", bad)
    names = {"bad": "it fails", "toy": "it works", "uci": experiments.NAMES["uci"]}
    monkeypatch.setattr(experiments, "NAMES", names)
    monkeypatch.setattr(cli, "NAMES", names)
    return module


def test_what_is_saved_is_not_run_again(toy, tmp_path):
    first = experiments.run("toy", out=tmp_path)
    assert toy.work == [0, 1, 2]
    assert experiments.run("toy", out=tmp_path)["x"].tolist() == first["x"].tolist()
    assert toy.work == [0, 1, 2]
    other = experiments.run("toy", "paper", out=tmp_path)
    assert (other.settings["n"], toy.work) == (30, [0, 1, 2] * 2)
    experiments.run("toy", out=tmp_path)  # its cells are still there
    assert toy.work == [0, 1, 2] * 2
    experiments.run("toy", out=tmp_path, fresh=True)
    assert toy.work == [0, 1, 2] * 3
    experiments.run("toy")  # in memory
    assert toy.work == [0, 1, 2] * 4


def test_results_of_another_version_are_run_again(toy, tmp_path, monkeypatch):
    experiments.run("toy", out=tmp_path)
    monkeypatch.setattr(_base, "__version__", "999")
    experiments.run("toy", out=tmp_path)
    assert toy.work == [0, 1, 2] * 2


def test_a_damaged_result_is_run_again(toy, tmp_path):
    whole = experiments.run("toy", out=tmp_path).save(tmp_path / "whole.npz").read_bytes()
    (tmp_path / "toy.npz").write_bytes(whole[:100])
    experiments.run("toy", out=tmp_path)
    assert (tmp_path / "toy.npz").read_bytes() == whole


def test_a_crash_stops_nothing_else_and_is_remembered(toy, tmp_path):
    told = []
    found = experiments.run_all(["bad", "toy"], out=tmp_path, tell=lambda *what: told.append(what))
    message = "n must not be negative: got -1"
    assert found[0] == Failure("bad", message)
    assert isinstance(found[1], Result)
    fractions = [("toy", k / 3) for k in (1, 2, 3)]
    assert told == [("bad", found[0]), *fractions, ("toy", found[1])]
    saved = experiments.saved(tmp_path)
    assert [type(one.outcome) for one in saved] == [Failure, Result]
    assert saved[0].outcome.message == message
    assert saved[1].machine["numpy"] == np.__version__
    assert saved[1].seconds >= 0
    _, again = experiments.run_all(["bad", "toy"], out=tmp_path, texts={"none": "3", "n": "4"})
    assert again.settings["n"] == 4


def test_a_failure_is_forgotten_where_there_is_a_result_after_all(toy, tmp_path):
    experiments.run("toy", out=tmp_path)
    with pytest.raises(ValueError, match="must not be"):
        experiments.run("toy", Settings(n=-1), out=tmp_path)
    assert isinstance(experiments.saved(tmp_path)[0].outcome, Failure)
    experiments.run("toy", out=tmp_path)
    assert isinstance(experiments.saved(tmp_path)[0].outcome, Result)


def test_a_result_of_another_experiment_is_none(toy, tmp_path):
    experiments.run("toy", out=tmp_path)
    (tmp_path / "toy.npz").rename(tmp_path / "bad.npz")
    (one,) = experiments.saved(tmp_path)
    assert one.outcome == Failure("bad", "bad.npz has a result of 'toy'")


def test_notes_that_are_damaged_are_left_out(toy, tmp_path):
    experiments.run("toy", out=tmp_path)
    for text in ("[]", "{", '{"seconds": "x", "machine": 3}'):
        (tmp_path / "toy.json").write_text(text)
        (one,) = experiments.saved(tmp_path)
        assert isinstance(one.outcome, Result)
        assert (one.seconds, one.machine) == (None, {})


def test_processes_end_in_the_same_results(tmp_path):
    names = ["profiles", "uci"]  # of which the second has no data at this preset
    told = {}
    found = experiments.run_all(
        names,
        "paper",
        out=tmp_path / "two",
        jobs=2,
        tell=lambda name, what: told.update({name: what}),
    )
    assert isinstance(found[0], Result)
    assert found[1].absent
    assert found[1].message == "data must name a folder of UCI data sets: got none; pass --data DIR"
    assert list(told.values()) == found or list(told.values()) == found[::-1]
    experiments.run_all(["profiles"], "paper", out=tmp_path / "one")
    one, two = (tmp_path / folder / "profiles.npz" for folder in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert json.loads((tmp_path / "two" / "uci.failed.json").read_text())["absent"] is True


def test_a_process_that_is_killed_is_a_failure(tmp_path, monkeypatch):
    from kernelcore.experiments import _run

    monkeypatch.setattr(_run, "_child", _dies)
    first, _ = experiments.run_all(["profiles", "curves"], out=tmp_path, jobs=2)
    assert first == Failure("profiles", "its process ended with status -9")


def _dies(*_):
    signal.raise_signal(signal.SIGKILL)


# ---- the command line


def test_run_prints_claims_and_verdicts(toy, tmp_path, capsys):
    arguments = ["run", "toy", "--set", "n=5", "--out", str(tmp_path)]
    assert cli.main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "holds     toy: one: 1 ± 0.01 (0.95 to 1.05)", "1 claims hold, 0 fail"
    ]  # fmt: skip
    assert captured.err.startswith("[1/1] toy: done")
    assert Result.load(tmp_path / "toy.npz").settings["n"] == 5
    toy.measured = 1.2
    assert cli.main(arguments) == 1
    assert capsys.readouterr().out.startswith("FAILS     toy: one: 1.2 ± 0.01 (0.95 to 1.05)\n")
    assert toy.work == [0, 1, 2]


def test_run_of_all_goes_on_behind_a_crash(toy, tmp_path, capsys):
    assert cli.main(["run", "bad", "toy", "--out", str(tmp_path), "--set", "seed=1"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "CRASHED   bad: n must not be negative: got -1"
    assert out[1].startswith("holds     toy: one")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("n", "--set must be NAME=VALUE: got 'n'"),
        ("n=x", "n must be a whole number: got 'x'"),
        ("m=1", "--set must name a setting: got 'm'; there are seed, n, data"),
    ],
)
def test_settings_are_checked_before_any_work(toy, tmp_path, capsys, setting, told):
    assert cli.main(["run", "toy", "--set", setting, "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"kernelcore: {told}\n"
    assert toy.work == []


def test_data_go_to_the_experiments_that_read_some(toy, tmp_path):
    cli.main(["run", "toy", "--data", "here", "--out", str(tmp_path)])
    assert Result.load(tmp_path / "toy.npz").settings["data"] == "here"


def test_list_has_times_and_claims(toy, capsys):
    assert cli.main(["list"]) == 0
    head, _, line, _ = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "small", "paper", "claim"]
    assert line.split(maxsplit=5) == ["toy", "0", "s", "2.0", "h", "it works"]


def test_progress_says_what_is_left(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    told = cli._Told(["toy"])
    for now[0], fraction in ((0.0, 0.1), (1.0, 0.2), (3.0, 0.4), (4.0, 0.5), (9.0, 1.0)):
        told("toy", fraction)
    told("toy", Failure("toy", "why"))
    assert capsys.readouterr().err.splitlines() == [
        "[1/1] toy: 40 %, 6 s left", "[1/1] toy: failed: why, 9.0 s"
    ]  # fmt: skip


def test_report_runs_what_is_missing_and_draws_the_rest(toy, tmp_path, capsys):
    page, out = tmp_path / "page.html", tmp_path / "out"
    arguments = ["report", "--only", "toy", "--out", str(out), "--output", str(page)]
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(page)
    assert cli.main(arguments) == 0
    assert toy.work == [0, 1, 2]
    page.unlink()
    assert cli.main(["report", "--from", str(out), "--output", str(page)]) == 0
    assert "words" in page.read_text(encoding="utf-8")
    assert toy.work == [0, 1, 2]


def test_compare_says_what_changed_beyond_noise(toy, tmp_path, capsys):
    for folder in ("a", "b"):
        experiments.run("toy", out=tmp_path / folder)
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert cli.main(["compare", *folders]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "1 claims compared, 0 changed beyond noise"
    (tmp_path / "b" / "toy.npz").unlink()
    assert cli.main(["compare", *folders]) == 1
    assert capsys.readouterr().out.startswith("CHANGED  toy: one: 1 ± 0.01, holds -> none\n")


@pytest.mark.parametrize(
    ("one", "other", "beyond"),
    [((1.0, 0.03), (1.09, 0.03), True), ((1.0, 0.03), (1.08, 0.03), False), ((1, 0), (1, 0), False),
     ((1.0, 0.0), (1.0 + 1e-12, 0.0), False), ((1.0, 0.0), (1.001, 0.0), True),
     ((np.nan, 0.0), (np.nan, 0.0), True)],
)  # fmt: skip
def test_noise_is_two_errors_of_the_difference(one, other, beyond):
    claims = (Claim("", "", None, *pair, -np.inf, np.inf) for pair in (one, other))
    assert _compare.Change("toy", "", *claims).beyond is beyond


def test_a_killed_command_goes_on_and_ends_in_the_same_file(tmp_path):
    s = tiny.SETTINGS["curves"] | {"draws": 12}
    given = [
        f"--set={k}={','.join(map(str, v)) if isinstance(v, tuple) else v}" for k, v in s.items()
    ]

    def start(folder):
        command = [
            sys.executable,
            "-m",
            "kernelcore",
            "run",
            "curves",
            *given,
            "--out",
            str(folder),
        ]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    chance = random.Random(0)
    with start(tmp_path / "whole") as process:
        process.communicate(timeout=120)
    cells = tmp_path / "killed" / "cells"
    seen = 0
    for _ in range(2):
        with start(tmp_path / "killed") as process:
            while len(list(cells.glob("*/*.npz"))) <= seen and process.poll() is None:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.03))
            process.kill()
        seen = len(list(cells.glob("*/*.npz")))
    with start(tmp_path / "killed") as process:
        process.communicate(timeout=120)
    one, other = (tmp_path / folder / "curves.npz" for folder in ("whole", "killed"))
    assert one.read_bytes() == other.read_bytes()
    assert seen > 0


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2", "--preset", "paper")], ids=["one", "two"])
def test_ctrl_c_leaves_what_is_done(tmp_path, jobs):
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from kernelcore.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "run", "profiles", "curves", *jobs]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        while "profiles: done" not in (line := process.stderr.readline()):
            assert "curves" in line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "kernelcore: interrupted"
    assert "Traceback" not in err
    assert Result.load(tmp_path / "profiles.npz").name == "profiles"
    assert not (tmp_path / "curves.npz").exists()
