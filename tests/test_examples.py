"""Every example of the documentation runs as it stands, pasted into an empty session."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import kernelcore as kc

PARTS = pkgutil.walk_packages(kc.__path__, "kernelcore.")
MODULES = ["kernelcore", *sorted(part.name for part in PARTS if "._cpu" not in part.name)]
README = Path(__file__).parent.parent / "README.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


def docstrings(name):
    """The docstrings of a module that have examples, each with an empty namespace of its own."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    module = importlib.import_module(name)
    return [test for test in finder.find(module, globs={}) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_run_as_they_stand(name):
    told = []
    runner = doctest.DocTestRunner(verbose=False)
    for test in docstrings(name):
        runner.run(test, out=told.append, clear_globs=True)
    assert not told, "".join(told)


def test_there_are_examples():
    tried = {name: sum(len(test.examples) for test in docstrings(name)) for name in MODULES}
    for name in "activations architecture cyclic kernels layers maps presets profiles".split():
        assert tried[f"kernelcore.{name}"] >= 2, name
    assert sum(tried.values()) >= 350


def test_readme_has_snippets():
    assert len(SNIPPETS) >= 4


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda s: s.strip().splitlines()[-1][:40])
def test_readme_runs_as_it_stands(snippet):
    exec(compile(snippet, "README.md", "exec"), {"__name__": "readme"})
