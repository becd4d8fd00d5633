"""Write the page of the manual with the results at the sizes of the papers.

    kernelcore run NAME --preset paper --out FOLDER     # minutes to an hour each; it can be resumed
    python benchmarks/paper.py FOLDER

Each experiment of FOLDER becomes a section of ``docs/about/paper.md``: what it is about, its claims
with their verdicts, its tables, its settings, and how long it took on which machine. Whether it ran
at the sizes of its paper is checked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import kernelcore as kc
from kernelcore.experiments import NAMES, Failure, Table
from kernelcore.report._page import numbers

PAGE = Path(__file__).parents[1] / "docs" / "about" / "paper.md"
HEAD = """# At the sizes of the papers

`kernelcore run NAME --preset paper` takes the sizes of an experiment's paper as far as it states
them. This page is written from the results of such runs by `benchmarks/paper.py`; the page that
`kernelcore report` draws of them has their figures, too. A claim holds where what was measured lies
within what is allowed, which was fixed before the run.
"""


def cells(row: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], labels: int) -> str:
    """A table whose columns are numbers but for the first ones."""
    line = ["---" if k < labels else "---:" for k in range(len(head))]
    return "\n".join(map(cells, [head, line, *rows]))


def claims(found: Sequence[Any]) -> str:
    rows = []
    for claim in found:
        told = numbers(claim)
        verdict = "holds" if claim.holds else "**fails**"
        text = f"{claim.text} ({claim.paper})" if claim.paper else claim.text
        rows.append([verdict, text, told["Measured"], told["Predicted"], told["Allowed"]])
    return markdown(("", "claim", "measured", "predicted", "allowed"), rows, 2)


def drawn(table: Table) -> str:
    return f"{markdown(table.head, table.rows, table.labels)}\n\n{table.caption}"


def section(saved: Any) -> str:
    """The text of an experiment."""
    result = saved.outcome
    if isinstance(result, Failure):
        raise SystemExit(f"paper.py: {result.name} has no result: {result.message}")
    module = kc.experiments.load(result.name)
    paper = module.PRESETS["paper"].as_dict()
    # Where data lie is not a size.
    differ = [key for key in paper if key != "data" and paper[key] != result.settings.get(key)]
    if differ:
        raise SystemExit(f"paper.py: {result.name} has other settings: {', '.join(differ)}")
    found = module.claims(result)
    held = sum(claim.holds for claim in found)
    settings = ", ".join(f"{k} = {v}" for k, v in result.settings.items() if k != "data")
    machine = ", ".join(f"{k} {v}" for k, v in saved.machine.items())
    parts = [
        f"## {module.TITLE}", NAMES[result.name],
        f"{held} of {len(found)} claims hold. It took {saved.seconds / 60:.1f} minutes: {machine}.",
        claims(found), *map(drawn, module.tables(result) if hasattr(module, "tables") else ()),
        f"Settings: {settings}.",
    ]  # fmt: skip
    return "\n\n".join(parts)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    found = kc.experiments.saved(args.folder)
    if not found:
        sys.exit(f"paper.py: {args.folder} has no results")
    PAGE.write_text("\n\n".join([HEAD.rstrip(), *map(section, found)]) + "\n", encoding="utf-8")
    print(f"{PAGE}: {len(found)} experiments")


if __name__ == "__main__":
    main()
