"""The report."""

from messages import Case, without

from kernelcore import report

CASES = [
    Case(
        ImportError,
        "kernelcore report needs matplotlib; install it with: pip install 'kernelcore[plot]'",
        without("matplotlib", lambda: report.write("page.html")),
    ),
]
