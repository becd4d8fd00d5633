"""What the control groups of this process allow, on Linux: bytes of memory, and time of CPUs.

A process is in one group of each hierarchy, and a limit of any group above holds as well. In
/proc/self/cgroup a line is ``number:controllers:group``, in which version 2 has no controllers. In
/proc/self/mountinfo the fourth and fifth field of a line are the group that is mounted, and where:
a container may see no more than its own group, which is the root of what is mounted.
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
    """Return the folders of this process's groups and of all groups above, in both versions."""
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
    """Return the bytes allowed, infinity where there is no limit. They are looked up once."""
    sizes = [math.inf]
    for folder in folders("memory"):
        sizes += _numbers(folder, "memory.max") or _numbers(folder, "memory.limit_in_bytes")
    return min(sizes)


@functools.cache
def cpus() -> float:
    """Return the CPUs whose whole time the process may take; infinity where there is no limit."""
    found = [math.inf]
    for folder in folders("cpu"):
        pair = _numbers(folder, "cpu.max") or _numbers(
            folder, "cpu.cfs_quota_us", "cpu.cfs_period_us"
        )
        if len(pair) == 2 and pair[0] > 0 and pair[1] > 0:  # a quota of -1 is none
            found.append(pair[0] / pair[1])
    return min(found)
