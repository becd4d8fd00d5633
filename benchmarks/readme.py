"""Write the numbers of speed in README.md anew, from runs on this machine.

    KERNELCORE_PEERS=DIR python benchmarks/readme.py [--dense FILE] [--spatial FILE]

runs dense_table.py and spatial_table.py, a few minutes each, or takes what their ``--json`` has
saved today. Their numbers replace all that stands in README.md between the comments that begin with
``speed`` and ``end of speed``, and the manual takes its own from there.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BLOCK = re.compile(r"(<!-- speed.*? -->\n).*(<!-- end of speed -->)", re.S)
VECTORS = {"v1": "SSE2", "v3": "AVX2", "v4": "AVX-512"}


def run(name: str, folder: Path) -> Path:
    """Run a table; a target that is missed is its reader's business."""
    file = folder / f"{name}.json"
    subprocess.run([sys.executable, HERE / f"{name}.py", "--no-instructions", "--json", file])
    return file


def times(ratio: list[float]) -> str:
    """A ratio, with the quartiles of the rounds."""
    digits = 0 if ratio[0] >= 20 else 1
    return "{:,.{d}f} [{:,.{d}f}, {:,.{d}f}]".format(*ratio, d=digits)


def short(value: float) -> str:
    """Three digits that count."""
    return f"{float(f'{value:.3g}'):,g}"


def span(rows: list[dict[str, Any]]) -> str:
    found = sorted(row["peer ratio"][0] for row in rows)
    return f"{found[0]:,.0f} to {found[-1]:,.0f}"


def table(head: str, rows: list[list[str]]) -> str:
    names = head.split(" | ")
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def block(dense: dict[str, Any], spatial: dict[str, Any], day: str) -> str:
    facts, first = dense["machine"], spatial["rows"][0]
    if "peer" not in dense["rows"][0]:
        raise SystemExit("the peer was not run: KERNELCORE_PEERS must name its environment")
    peer = f"neural-tangents {dense['rows'][0]['peer']['neural_tangents']}"
    level, count = facts["kernelcore level"], dense["rows"][0]["n"]
    memory = next(t["value"] for t in spatial["targets"] if t["target"].startswith("MB beyond"))
    rows = []
    for row in dense["rows"]:
        ns = {name: 1e9 * min(s) / row["n"] ** 2 for name, s in row["seconds"].items()}
        rows.append([
            str(row["d"]), f"{ns['ours, new result']:.2f} ({ns['ours, 2 threads']:.2f})",
            f"{ns['neural-tangents']:.1f}", times(row["peer ratio"]), f"{row['limit ns']:.2f}",
            f"{row['limit fraction'][0]:.0%}",
        ])  # fmt: skip
    pairs = []
    for row in spatial["rows"]:
        ms = {name: 1e3 * min(s) for name, s in row["seconds"].items()}
        pairs.append([
            row["name"], row["kernel"].upper(),
            short(ms["ours"]), short(ms["neural-tangents"]), times(row["peer ratio"]),
        ])  # fmt: skip
    return f"""\
<!-- fast -->
Beside {peer} on the same two cores kernelcore is {span(dense["rows"])} times as fast on rows,
and {span(spatial["rows"])} times as fast on pairs of images.
<!-- end of fast -->

Measured on {day} on {facts["CPUs used"]} cores of an {facts["processor"]} with {VECTORS[level]} \
(`python benchmarks/readme.py`):
times are minima over interleaved rounds, and in brackets stand the quartiles of the ratios of the
rounds. Trust the ratios rather than the times. The NTK of 3 hidden ReLU layers on {count} rows in
float32, in nanoseconds per entry, with a new result (with `out=`):

{table("columns | kernelcore | neural-tangents | ratio | `X @ X.T` + a write | of its speed", rows)}

Pairs of 32 x 32 x 3 images, in milliseconds per pair:

{table("network | kernel | kernelcore | neural-tangents | ratio", pairs)}

For the first network that is {first["entry ns"]:.2f} ns per entry, layer and core: \
{first["limit fraction"]:.0%} of the speed that the same
operations would have at the machine's rate of multiply-adds. Memory beyond the images and the
matrix stayed below {math.ceil(memory)} MB.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("dense", "spatial"):
        parser.add_argument(f"--{name}", type=Path, help=f"what {name}_table.py has saved today")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [
            json.loads((getattr(options, name) or run(f"{name}_table", Path(folder))).read_text())
            for name in ("dense", "spatial")
        ]
    text = block(*found, datetime.date.today().isoformat())
    README.write_text(BLOCK.sub(lambda old: old[1] + text + old[2], README.read_text()))


if __name__ == "__main__":
    main()
