"""The report."""

import tempfile

from messages import Case, without

from kernelcore import report

FOLDER = tempfile.TemporaryDirectory()
CASES = [
    Case(
        ImportError,
        "kernelcore report needs matplotlib; install it with: pip install 'kernelcore[plot]'",
        without("matplotlib", lambda: report.write("page.html")),
    ),
    Case(
        ValueError,
        f"results must be a folder with results: got none in {FOLDER.name}; kernelcore run "
        "computes them",
        lambda: report.write(FOLDER.name, f"{FOLDER.name}/page.html"),
    ),
]
