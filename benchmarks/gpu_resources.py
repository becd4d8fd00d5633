"""Write the table of GPU.md: registers, spilled bytes and shared memory of every kernel.

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


def table() -> str:
    """Return the table, by the compiler that is installed."""
    lines = [
        f"Compiler: {_compile.compiler().name}.",
        "",
        f"| driver | kernel | {' | '.join(ARCHITECTURES)} |",
        f"| --- | --- | {' | '.join(['---'] * len(ARCHITECTURES))} |",
    ]
    for driver in _compile.drivers():
        found = [_compile.resources(driver, arch, RELU) for arch in ARCHITECTURES]
        for name in found[0]:
            cells = (f"{k.registers} / {k.spilled} / {k.shared}" for k in (f[name] for f in found))
            lines.append(f"| {driver} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    found = table()
    DOCUMENT.write_text(PART.sub(lambda _: found, DOCUMENT.read_text()))
