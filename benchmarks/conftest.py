"""Collects ``bench_*`` only when this directory or a file of it is named: ``pytest benchmarks``."""

from pathlib import Path

HERE = Path(__file__).parent


def pytest_configure(config):
    base = config.invocation_params.dir
    named = [(base / str(arg).partition("::")[0]).resolve() for arg in config.args]
    if any(path.is_relative_to(HERE) for path in named):
        config.addinivalue_line("python_files", "bench_*.py")
        config.addinivalue_line("python_functions", "bench_*")
