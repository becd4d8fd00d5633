"""Lint, format and types, as CONTRIBUTING.md has them."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
SOURCES = [path for kind in ("*.h", "*.cu") for path in (ROOT / "ext").rglob(kind)]
CLANG = "from clang_format import clang_format; clang_format()"
COMMANDS = {
    "ruff check": ["-m", "ruff", "check", "."],
    "ruff format": ["-m", "ruff", "format", "--check", "."],
    "clang-format": ["-c", CLANG, "--dry-run", "-Werror", *sorted(map(str, SOURCES))],
    "mypy": ["-m", "mypy"],  # pyproject.toml says what and how
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_style(command):
    run = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
