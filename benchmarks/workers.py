"""Worker processes that time named cases on request, each in a virtual environment of its own.

A script that uses them calls `serve` when it is started with ``--serve``, and `Worker` otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

VISIT = 0.1  # seconds

Call = Callable[[], object]


def serve(cases: Mapping[str, Callable[[], Call]], least: int = 3, once: float = 1e9) -> None:
    """Answer each line of the standard input, the name of a case, with the seconds of its call.

    A case is a function that sets up and returns the call to be timed. It is called once, and then
    for a tenth of a second, ``least`` times at least; the fastest counts. Where that first call
    took more than ``once`` seconds it is the only one, and the answer for good.
    """
    calls: dict[str, Call] = {}
    slow: dict[str, float] = {}
    for name in map(str.strip, sys.stdin):
        if name not in calls:
            calls[name] = cases[name]()
            first = clock(calls[name])
            if first > once:
                slow[name] = first
        best, begin, count = slow.get(name, float("inf")), time.perf_counter(), 0
        while name not in slow and (count < least or time.perf_counter() - begin < VISIT):
            best, count = min(best, clock(calls[name])), count + 1
        print(best, flush=True)


def clock(call: Call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


class Worker:
    """The worker of a script, in a virtual environment, or with the Python that asks as it is."""

    def __init__(self, script: str, directory: str | None = None, **variables: str) -> None:
        env = {**os.environ, "OMP_WAIT_POLICY": "passive", **variables}
        python = Path(sys.executable)
        if directory is not None:
            python = Path(directory) / "bin" / "python"
            env = {k: v for k, v in env.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
        self._process = subprocess.Popen(
            [python, script, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def measure(self, name: str) -> float:
        print(name, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"the worker ended: {name}")
        return float(answer)
