"""The command line."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import kernelcore as kc
from kernelcore import cli

FACTS = (
    "version", "python", "numpy", "scipy", "platform", "cpu", "level", "levels built",
    "levels of this machine", "openmp", "threads", "blas", "optional: matplotlib", "headers",
)  # fmt: skip


def printed(text):
    """Name and value of every line: two blanks or more between them."""
    return dict(re.split(r"  +", line, maxsplit=1) for line in text.splitlines())


def test_info_prints_what_info_returns(capsys):
    assert cli.main(["info"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    facts = printed(captured.out)
    assert facts == {name: str(value) for name, value in kc.info().items()}
    assert set(FACTS) <= set(facts)
    assert facts["version"] == kc.__version__
    assert facts["numpy"] == np.__version__
    assert facts["level"] in facts["levels built"].split(", ")
    assert facts["level"] in facts["levels of this machine"].split(", ")
    assert int(facts["threads"]) == kc.get_threads()


def test_headers_are_where_info_says():
    folder = pathlib.Path(kc.info()["headers"])
    assert str(folder) == kc.get_include()
    for name in ("tile.h", "config.h", "duals/erf.h"):
        assert (folder / "kernelcore" / name).is_file()


def test_info_names_the_extra_of_a_missing_part(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *rest: None if name == "zarr" else find(name, *rest),
    )
    assert kc.info()["optional: zarr"] == "absent; pip install 'kernelcore[scale]'"


@pytest.mark.parametrize(
    "arguments", [["frobnicate"], [], ["info", "more"], ["report", "--colour"]]
)
def test_unknown_commands_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: kernelcore")


def test_version_and_help_exit_with_0(capsys):
    for arguments, start in (
        (["--version"], f"kernelcore {kc.__version__}\n"),
        (["--help"], "usage: kernelcore"),
    ):
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        assert caught.value.code == 0
        assert capsys.readouterr().out.startswith(start)


def test_errors_exit_with_1_and_one_line(monkeypatch, capsys):
    monkeypatch.setenv("KERNELCORE_NUM_THREADS", "many")
    assert cli.main(["info"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "kernelcore: KERNELCORE_NUM_THREADS must be a positive integer: got 'many'\n"
    )


def run(*arguments, **environment):
    path = os.pathsep.join(
        [str(pathlib.Path(kc.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    return subprocess.run(
        [sys.executable, "-m", "kernelcore.cli", *arguments],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_as_a_program():
    good = run("info", KERNELCORE_NUM_THREADS="3")
    assert (good.returncode, good.stderr) == (0, "")
    assert printed(good.stdout)["threads"] == "3"
    bad = run("frobnicate")
    assert bad.returncode == 2
    assert "invalid choice: 'frobnicate'" in bad.stderr


def test_import_loads_neither_compiled_modules_nor_scipy():
    code = (
        "import sys, kernelcore; print([m for m in sys.modules if m.startswith"
        "(('scipy', 'threadpoolctl', 'kernelcore._cpu.', 'matplotlib', 'kernelcore.report'))])"
    )
    path = str(pathlib.Path(kc.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
