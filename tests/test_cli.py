"""The command line."""

import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import kernelcore as kc
from kernelcore import cli

FACTS = (
    "version", "python", "numpy", "scipy", "platform", "cpu", "level", "levels built",
    "levels of this machine", "openmp", "threads", "memory", "blas", "optional: matplotlib",
    "gpu", "gpu compiler", "gpu drivers", "headers",
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
    for name in ("config.h", "duals/erf.h", "host/tile.h"):
        assert (folder / "kernelcore" / name).is_file()


@pytest.mark.parametrize(("part", "extra"), [("matplotlib", "plot"), ("sklearn", "sklearn")])
def test_info_names_the_extra_of_a_missing_part(monkeypatch, part, extra):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *rest: None if name == part else find(name, *rest),
    )
    assert kc.info()[f"optional: {part}"] == f"absent; pip install 'kernelcore[{extra}]'"


def test_info_recommends_only_extras_that_install_something():
    found = {name for name in kc.info() if name.startswith("optional: ")}
    assert found == {"optional: matplotlib", "optional: sklearn"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"], ["info", "more"], ["report", "--colour"], ["run"], ["run", "cifar"],
        ["run", "--data", "x"], ["run", "uci", "--data", "x", "--resume"], ["compare", "a"],
    ],
)  # fmt: skip
def test_unknown_commands_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("usage: kernelcore")
    assert captured.out == ""


def test_without_a_command_all_of_them_are_listed(capsys):
    assert cli.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("usage: kernelcore")
    assert {"info", "report", "run"} <= set(re.findall(r"^    (\w+) ", captured.err, re.M))


def test_a_missing_experiment_is_all_that_run_misses(capsys):
    with pytest.raises(SystemExit):
        cli.main(["run"])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "kernelcore run: error: the following arguments are required: NAME"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["info"], "what this installation is made of"),
        (["report"], "one HTML page"),
        (["run"], "uci           NTKs classify UCI data"),
        (["list"], "what they claim"),
        (["compare"], "beyond noise"),
    ],
    ids=["info", "report", "run", "list", "compare"],
)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_help(arguments, told, flag, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as caught:
        cli.main([*arguments, flag])
    assert caught.value.code == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"usage: kernelcore {' '.join(arguments)} ")
    assert told in captured.out
    assert captured.err == ""


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


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "MemoryError"),
        (MemoryError("no room for\n9 GB"), "no room for 9 GB"),
        (OverflowError("too large"), "too large"),
        (ZeroDivisionError("by zero"), "by zero"),
        (OSError(5, "broken", "disk"), "[Errno 5] broken: 'disk'"),
        (RuntimeError("not today"), "not today"),
        (ImportError("not there"), "not there"),
        (UnicodeError("no text"), "no text"),
    ],
    ids=repr,
)
def test_whatever_fails_is_one_line(monkeypatch, capsys, error, line):
    def fail():
        raise error

    monkeypatch.setattr("kernelcore._info.info", fail)
    assert cli.main(["info"]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"kernelcore: {line}\n")
    monkeypatch.setenv("KERNELCORE_TRACEBACK", "1")
    assert cli.main(["info"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last):\n")
    assert told.endswith(f"\nkernelcore: {line}\n")


def test_faults_of_the_package_keep_their_traceback(monkeypatch):
    def fail():
        raise AttributeError("ours")

    monkeypatch.setattr("kernelcore._info.info", fail)
    with pytest.raises(AttributeError, match=r"^ours$"):
        cli.main(["info"])


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "must name a file in an existing folder: {folder}"),
        ("missing/page.html", "must name a file in an existing folder: {folder}/missing/page.html"),
        ("-", "must name a file: got '-'; ./- is a file of that name"),
    ],
)
def test_the_output_of_a_report_is_checked_before_any_work(
    monkeypatch, tmp_path, capsys, name, rule
):
    from kernelcore import experiments

    monkeypatch.setattr(experiments, "run_all", lambda *_, **__: pytest.fail("work has begun"))
    output = name if name == "-" else str(tmp_path / name)
    assert cli.main(["report", "--output", output]) == 1
    assert capsys.readouterr().err == f"kernelcore: --output {rule.format(folder=tmp_path)}\n"
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_one_line_and_130(monkeypatch, capsys):
    def wait():
        print("some of it")
        raise KeyboardInterrupt

    monkeypatch.setattr("kernelcore._info.info", wait)
    assert cli.main(["info"]) == 130
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("some of it\n", "kernelcore: interrupted\n")


def program(*arguments, **environment):
    """Command and environment of a process."""
    path = os.pathsep.join(
        [str(pathlib.Path(kc.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    plain = {"PYTHONPATH": path, "PYTHONUNBUFFERED": ""}
    environment = os.environ | plain | environment
    return {"args": [sys.executable, "-m", "kernelcore", *arguments], "env": environment}


def run(*arguments, **environment):
    return subprocess.run(
        **program(*arguments, **environment),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
def test_a_signal_ends_a_report(tmp_path):
    """After a first experiment, so in the middle of the work."""
    page = tmp_path / "page.html"
    # The handler is Python's own, which a parent in the background would keep from being there.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from kernelcore.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "report", "--output", str(page), "--out", str(tmp_path)],
        env=program()["env"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert re.match(r"\[1/\d+\] profiles: done", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "kernelcore: interrupted"
    assert "Traceback" not in err
    assert not page.exists()


@pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
@pytest.mark.parametrize("arguments", [["info"], ["--help"], ["run", "uci", "--help"]])
def test_a_closed_pipe_is_no_error(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        **program(*arguments), stdout=writer, stderr=subprocess.PIPE, timeout=120, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            **program("info"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "kernelcore: [Errno 28] No space left on device\n"


@pytest.mark.skipif(os.name != "posix", reason="names of files in no encoding")
def test_a_name_in_no_encoding_is_printed_somehow(monkeypatch, tmp_path):
    page = os.fsdecode(os.fsencode(tmp_path) + b"/page-\xff.html")
    code = (
        "import sys; from kernelcore import cli, experiments, report\n"
        "report.write = lambda results, path, **_: path\n"
        "experiments.saved = lambda *_: []\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "report", "--from", str(tmp_path), "--output", page],
        env=program(PYTHONIOENCODING="ascii")["env"], capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"\n" + os.fsencode(tmp_path) + b"/page-\\udcff.html\n")


def test_help_without_docstrings():
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "kernelcore", "run", "uci", "--help"],
        env=program()["env"], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: kernelcore run ")


def test_as_a_program():
    good = run("info", KERNELCORE_NUM_THREADS="3", KERNELCORE_MEMORY="1.5GB")
    assert (good.returncode, good.stderr) == (0, "")
    assert printed(good.stdout)["threads"] == "3"
    assert printed(good.stdout)["memory"] == "1.5 GB, by KERNELCORE_MEMORY"
    bad = run("frobnicate")
    assert bad.returncode == 2
    assert "invalid choice: 'frobnicate'" in bad.stderr
    assert run("--version").stdout == f"kernelcore {kc.__version__}\n"


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
