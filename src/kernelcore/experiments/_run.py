"""Experiments as a whole: results in a folder, one after the other or several at a time.

A folder has ``NAME.npz``, the result; ``NAME.json``, on which machine it was computed and in how
many seconds; ``NAME.failed.json``, if the last run of it failed, why; and ``cells/``, parts of runs
that may have been interrupted.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from .. import _check
from .._info import info
from ..engine.threads import available, get_threads, set_threads
from ._base import Cells, Progress, Result, Settings

OUT = "kernelcore-results"
MACHINE = ("platform", "cpu", "level", "openmp", "threads", "blas", "python", "numpy", "scipy")
"""The part of kernelcore.info() that says where numbers come from; it names no folder."""
TRACEBACK = "KERNELCORE_TRACEBACK"
"""The environment variable that makes a failure print where it came from."""


class Failure(NamedTuple):
    """An experiment without a result, and why; ``absent`` where only data or a package lack.

    Parameters
    ----------
    name : str
    message : str
    absent : bool, default False

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.experiments.Failure("uci", "needs a folder of data", absent=True).absent
    True
    """

    name: str
    message: str
    absent: bool = False


def failure(name: str, error: BaseException) -> Failure:
    absent = isinstance(error, (_check.MissingData, ImportError))
    return Failure(name, " ".join(str(error).split()) or type(error).__name__, absent)


def settings_of(name: str, preset: str = "small", texts: Mapping[str, str] | None = None) -> Any:
    """Return the settings of a preset of an experiment, some of them changed by texts.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    preset : str, default 'small'
    texts : mapping of str to str, optional
        Settings by name, written as a command line has them.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.experiments.settings_of("curves", texts={"seed": "3"}).seed
    3
    """
    from . import load

    presets = load(name).PRESETS
    settings: Settings = presets[_check.choice(preset, "preset", tuple(presets))]
    return settings.changed(texts or {})


def run(
    name: str,
    settings: Settings | str = "small",
    *,
    out: str | PathLike[str] | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Run an experiment, or read what an earlier run of the same settings and version saved.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    settings : Settings or str
        Those of the experiment, or the name of a preset.
    out : path, optional
        The folder of results. A run that was killed is called again and goes on where it was; None
        keeps everything in memory.
    fresh : bool
        Compute again what is there.
    progress : callable taking a number from 0 to 1, optional

    Returns
    -------
    Result

    Examples
    --------
    >>> import kernelcore as kc
    >>> result = kc.experiments.run("profiles")
    >>> all(claim.holds for claim in kc.experiments.profiles.claims(result))
    True
    """
    from . import load

    module = load(name)
    given: Settings = settings_of(name, settings) if isinstance(settings, str) else settings
    _check.an_instance(given, module.Settings, "settings", f"Settings of {name} or a preset")
    if out is None:
        return module.run(given, progress=progress)
    folder = _check.a_path(out, "out")
    cells = folder / "cells" / f"{name}-{given.key(name)[:16]}"
    if fresh:
        for file in (folder / f"{name}.npz", *cells.glob("*.npz")):
            file.unlink(missing_ok=True)
    with suppress(FileNotFoundError, ValueError):  # a damaged one is computed again
        saved = Result.load(folder / f"{name}.npz")
        if saved.key == given.key(name):
            (folder / f"{name}.failed.json").unlink(missing_ok=True)
            return saved
    began = time.monotonic()
    try:
        result = module.run(given, cells=Cells(cells), progress=progress)
    except Exception as error:
        _remember(folder, failure(name, error))
        raise
    result.save(folder / f"{name}.npz")
    facts = {key: str(value) for key, value in info().items() if key in MACHINE}
    _write(folder / f"{name}.json", {"seconds": time.monotonic() - began, "machine": facts})
    (folder / f"{name}.failed.json").unlink(missing_ok=True)
    return result


def _remember(folder: Path, failed: Failure) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / f"{failed.name}.failed.json", failed._asdict())


def _write(path: Path, note: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    """Return a note; an empty one where it is missing or damaged."""
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}


class Saved(NamedTuple):
    """What a folder has of one experiment."""

    outcome: Result | Failure
    seconds: float | None = None
    machine: Mapping[str, str] = {}


def saved(out: str | PathLike[str], names: Iterable[str] | None = None) -> list[Saved]:
    """Return what a folder has, in the order of ``NAMES``; a damaged file is a failure.

    Where the last run failed, the failure stands in the place of an earlier result.

    Parameters
    ----------
    out : path
        The folder of a run.
    names : iterable of str, optional
        All that are there by default.

    Examples
    --------
    >>> import kernelcore as kc
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kc.experiments.saved(folder)
    []
    """
    from . import NAMES

    folder, found = _check.a_folder(out, "results"), []
    for name in NAMES if names is None else names:
        failed, note = _read(folder / f"{name}.failed.json"), _read(folder / f"{name}.json")
        if failed:
            absent = failed.get("absent") is True
            found.append(Saved(Failure(name, str(failed.get("message")), absent)))
            continue
        try:
            result = Result.load(folder / f"{name}.npz")
        except FileNotFoundError:
            continue
        except ValueError as error:
            found.append(Saved(Failure(name, str(error))))
            continue
        if result.name != name:
            found.append(Saved(Failure(name, f"{name}.npz has a result of {result.name!r}")))
            continue
        seconds, machine = note.get("seconds"), note.get("machine")
        plain = isinstance(seconds, (int, float)) and 0 <= seconds <= sys.float_info.max
        known = float(seconds) if isinstance(seconds, (int, float)) and plain else None
        facts = machine.items() if isinstance(machine, dict) else ()
        found.append(Saved(result, known, {key: str(value) for key, value in facts}))
    return found


# ---- several

Tell = Callable[[str, float | Result | Failure], None]
"""Called with a name and the fraction done, and at the end with the outcome."""


def run_all(
    names: Iterable[str] | None = None,
    preset: str = "small",
    *,
    out: str | PathLike[str] = OUT,
    jobs: int = 1,
    fresh: bool = False,
    texts: Mapping[str, str] | None = None,
    tell: Tell | None = None,
) -> list[Result | Failure]:
    """Run experiments into a folder; one that fails does not stop the others.

    Parameters
    ----------
    names : iterable of str, optional
        All by default.
    preset : str
        ``small`` or ``paper``; an experiment without that preset runs its ``small`` one.
    out : path
        The folder of results; what it has of the same settings and version is not run again.
    jobs : int
        How many processes run experiments; each has its share of the CPUs.
    fresh : bool
        Compute again what is there.
    texts : dict of str, optional
        Settings as a command line has them; where there are several names, each experiment takes
        those that it has.
    tell : callable taking a name and the fraction done or the outcome, optional

    Returns
    -------
    list of Result and Failure
        In the order of ``names``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = kc.experiments.run_all(["profiles"], out=folder)
    >>> [result.name for result in results]
    ['profiles']
    """
    from . import NAMES, load

    names = [
        _check.choice(name, "names", tuple(NAMES)) for name in (NAMES if names is None else names)
    ]
    jobs = _check.count(jobs, "jobs", least=1)
    told = (lambda name, what: None) if tell is None else tell
    tasks = {}
    for name in names:
        presets = load(name).PRESETS
        has = presets["small"].as_dict() if len(names) > 1 else texts or {}
        given = {key: text for key, text in (texts or {}).items() if key in has}
        tasks[name] = settings_of(name, preset if preset in presets else "small", given)
    if jobs > 1 and len(names) > 1:
        found = _in_processes(tasks, out, jobs, fresh, told)
    else:
        found = {}
        for name, settings in tasks.items():
            found[name] = _attempt(name, settings, out, fresh, partial(told, name))
            told(name, found[name])
    return [found[name] for name in names]


def _attempt(
    name: str, settings: Settings, out: str | PathLike[str], fresh: bool, progress: Progress
) -> Result | Failure:
    try:
        return run(name, settings, out=out, fresh=fresh, progress=progress)
    except Exception as error:  # of any kind: the others still run
        if os.environ.get(TRACEBACK):
            traceback.print_exception(error)
        return failure(name, error)


def _child(
    pipe: Connection, name: str, settings: Settings, out: str, fresh: bool, threads: int
) -> None:
    """Run one experiment in a process of its own, and send what becomes of it."""
    import threadpoolctl

    set_threads(threads)
    with suppress(BrokenPipeError), threadpoolctl.threadpool_limits(threads):
        outcome = _attempt(name, settings, out, fresh, pipe.send)
        # A result is in its file, and need not go through the pipe.
        pipe.send(outcome if isinstance(outcome, Failure) else None)


def _in_processes(
    tasks: Mapping[str, Settings], out: str | PathLike[str], jobs: int, fresh: bool, tell: Tell
) -> dict[str, Result | Failure]:
    context = mp.get_context("spawn")  # threads of this process do not come along
    threads = max(1, min(available(), get_threads()) // jobs)
    left, found = list(tasks), {}
    running: dict[Connection, tuple[str, Any]] = {}
    try:
        while left or running:
            while left and len(running) < jobs:
                name = left.pop(0)
                here, there = context.Pipe(duplex=False)
                arguments = (there, name, tasks[name], str(out), fresh, threads)
                process = context.Process(target=_child, args=arguments, daemon=True)
                with _deaf():
                    process.start()
                there.close()
                running[here] = name, process
            for pipe in wait(list(running)):
                assert isinstance(pipe, Connection)
                name, process = running[pipe]
                try:
                    message = pipe.recv()
                except EOFError:  # it has ended without a word: killed, say, for want of memory
                    process.join()
                    message = Failure(name, f"its process ended with status {process.exitcode}")
                    _remember(Path(out), message)
                if isinstance(message, float):
                    tell(name, message)
                    continue
                process.join()
                del running[pipe]
                pipe.close()
                found[name] = Result.load(Path(out) / f"{name}.npz") if message is None else message
                tell(name, found[name])
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()
    return found


@contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C: this one does, and ends them."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # only the main thread may say so
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
