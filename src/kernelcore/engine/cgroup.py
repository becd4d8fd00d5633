"""The memory and the CPU time that the control groups of this process allow, on Linux.

A process is in one group of each hierarchy, and the limits of all parent groups hold, too. A line
of /proc/self/cgroup is ``number:controllers:group``, without controllers in version 2. The fourth
and fifth field of a line of /proc/self/mountinfo are a group and the folder where it is mounted: a
container may see only its own group, mounted as the root.
"""

from __future__ import annotations

import functools
import math
import os
import posixpath
import re

PROC = "/proc/self"


def _lines(name: str) -> list[str]:
    try:
        with open(f"{PROC}/{name}", errors="surrogateescape") as file:
            return file.read().splitlines()
    except OSError:
        return []


def folders(controller: str) -> list[str]:
    """Return the folders of this process's groups and of their parents, in both versions."""
    own: dict[str, str] = {}
    for line in _lines("cgroup"):
        _, controllers, group = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), group)
    found = []
    for line in _lines("mountinfo"):
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        name = {"cgroup2": "", "cgroup": controller}.get(kind)
        if name not in own or (name and name not in options.split(",")):
            continue
        root, place = (
            re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), field)
            for field in left.split()[3:5]
        )
        below = posixpath.relpath(own[name], root)
        parts = [] if below.startswith("..") or below == "." else below.split("/")
        found += [posixpath.join(place, *parts[:k]) for k in range(len(parts), -1, -1)]
    return found


def _numbers(folder: str, *names: str) -> list[float]:
    """Read all words in these files as numbers, "max" as infinity; none if a file is missing."""
    try:
        words = []
        for name in names:
            with open(os.path.join(folder, name)) as file:
                words += file.read().split()
        return [math.inf if word == "max" else float(word) for word in words]
    except (OSError, ValueError):
        return []


@functools.cache
def memory() -> float:
    """Return the bytes allowed, infinity where there is no limit; they are read only once."""
    sizes = [math.inf]
    for folder in folders("memory"):
        sizes += _numbers(folder, "memory.max") or _numbers(folder, "memory.limit_in_bytes")
    return min(sizes)


@functools.cache
def cpus() -> float:
    """Return how many CPUs' full time the process may use; infinity where there is no limit."""
    found = [math.inf]
    for folder in folders("cpu"):
        pair = _numbers(folder, "cpu.max") or _numbers(
            folder, "cpu.cfs_quota_us", "cpu.cfs_period_us"
        )
        if len(pair) == 2 and pair[0] > 0 and pair[1] > 0:  # a quota of -1 is none
            found.append(pair[0] / pair[1])
    return min(found)
