"""Write the table of GPU.md: registers, spilled bytes, shared memory and occupancy of every kernel.

Needs no device: NVRTC compiles every driver for every architecture and tells.
"""

import pathlib
import re

from kernelcore.engine.gpu import compile as _compile
from kernelcore.engine.gpu import drivers
from kernelcore.program import Code

DOCUMENT = pathlib.Path(__file__).parents[1] / "GPU.md"
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
RELU = drivers.Needs(drivers.mask([Code.TRAINED, Code.RELU]), wants=3, kinds=1).defines(32 + 64)
PART = re.compile(r"(?<=<!-- resources -->\n).*?(?=<!-- end -->)", re.S)
WARPS = {"sm_75": 32, "sm_80": 64, "sm_90": 64, "sm_100": 64, "sm_120": 48}
SHARED = {"sm_75": 64, "sm_80": 164, "sm_90": 228, "sm_100": 228, "sm_120": 100}
"""What a multiprocessor has: warps, kB of shared memory; everywhere 65,536 registers, 32 blocks."""
PLANE = 32 * 32
LINES = 32 * 37
"""Entries in shared memory, of images of 32 x 32: of each of two planes, and of lines."""


def dynamic(kernel: str) -> int:
    """Return the shared memory that a launch adds, for images of 32 x 32, in bytes."""
    if not re.fullmatch(r"spatial_(covariance|tangent)_f\d+", kernel):
        return 0
    number = int(kernel[-2:]) // 8
    return (2 * PLANE + LINES) * number * (2 if "tangent" in kernel else 1)


def blocks_on(arch: str, registers: int, shared: int, threads: int = drivers.BLOCK) -> int:
    """Return how many blocks of threads a multiprocessor holds.

    Registers are given to warps by 256, and 1 kB of shared memory is taken by every block.
    """
    warps = threads // 32
    by_registers = 65536 // (-(-registers * 32 // 256) * 256) // warps
    return min(32, WARPS[arch] // warps, by_registers, SHARED[arch] * 1024 // (shared + 1024))


def cell(arch: str, name: str, used: _compile.Resources) -> str:
    """Return what the table says of a kernel: with warps on a multiprocessor, of the most."""
    warps = blocks_on(arch, used.registers, used.shared + dynamic(name)) * drivers.BLOCK // 32
    return f"{used.registers} / {used.spilled} / {used.shared} / {warps} of {WARPS[arch]}"


def table() -> str:
    """Return the table, by the compiler that is installed."""
    lines = [
        f"Compiler: {_compile.compiler().name}.",
        "",
        f"| driver | kernel | {' | '.join(ARCHITECTURES)} |",
        f"| --- | --- | {' | '.join(['---'] * len(ARCHITECTURES))} |",
    ]
    for driver in _compile.drivers():
        found = {arch: _compile.resources(driver, arch, RELU) for arch in ARCHITECTURES}
        for name in found["sm_80"]:
            cells = (cell(arch, name, used[name]) for arch, used in found.items())
            lines.append(f"| {driver} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    found = table()
    DOCUMENT.write_text(PART.sub(lambda _: found, DOCUMENT.read_text()))
