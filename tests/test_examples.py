"""Every example of the documentation runs as it stands, pasted into an empty session."""

import doctest
import importlib
import pkgutil
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import kernelcore as kc

PARTS = pkgutil.walk_packages(kc.__path__, "kernelcore.")
MODULES = ["kernelcore", *sorted(part.name for part in PARTS if "._cpu" not in part.name)]
ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "SCALE.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md"]
MANUAL = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts]
PAGES += [path.relative_to(ROOT).as_posix() for path in MANUAL]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCES = [(page, *found) for page in PAGES for found in FENCE.findall((ROOT / page).read_text())]
EXCUSE = re.compile(r"# Not run: .{10,}\.\n")  # a first line that says why
BLOCKS = [(page, text) for page, kind, text in FENCES if kind == "python"]
SNIPPETS = [(page, text) for page, text in BLOCKS if not EXCUSE.match(text)]
COMMANDS = [(page, text) for page, kind, text in FENCES if kind == "sh"]


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


@pytest.mark.parametrize("name", MODULES)
def test_results_read_alike_in_numpy_1_and_2(name):
    """Scalars are written as np.float64(1.5) by NumPy 2 and as 1.5 by NumPy 1."""
    examples = [example for test in docstrings(name) for example in test.examples]
    only_one = re.compile(r"\bnp\.(\w*\d+\(|True_|False_)")
    assert [e.source for e in examples if only_one.search(e.want)] == []


def test_there_are_examples():
    tried = {name: sum(len(test.examples) for test in docstrings(name)) for name in MODULES}
    for name in "activations _layers maps profiles".split():
        assert tried[f"kernelcore.layers.{name}"] >= 2, name
    for name in "architecture presets program kernels._programs kernels._cyclic".split():
        assert tried[f"kernelcore.{name}"] >= 2, name
    assert sum(tried.values()) >= 350


def test_fences_say_what_they_hold():
    """Python and commands are tried below; what has no name is a drawing, and no line of code."""
    assert len(SNIPPETS) >= 5
    assert {kind for _, kind, _ in FENCES} == {"python", "sh", "cmake", "cpp", ""}
    code = re.compile(
        r"^(import|from \w+ import|python3?|pip|pytest|git|kernelcore) ", re.MULTILINE
    )
    assert [text for _, kind, text in FENCES if not kind and code.search(text)] == []


@pytest.mark.parametrize("shape", ["(20, 32, 32, 3)", "(20, 100, 2)"])
def test_the_readme_shows_images_and_signals(shape):
    assert len([text for page, text in SNIPPETS if page == "README.md" and shape in text]) == 1


@pytest.mark.parametrize(
    ("page", "snippet"), SNIPPETS, ids=[text.strip().splitlines()[-1][:40] for _, text in SNIPPETS]
)
def test_snippets_run_as_they_stand(page, snippet):
    exec(compile(snippet, page, "exec"), {"__name__": "snippet"})


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
@pytest.mark.parametrize(("page", "commands"), COMMANDS)
def test_commands_are_commands_and_name_files_that_exist(page, commands):
    subprocess.run(["sh", "-n"], input=commands, text=True, check=True)
    for file in re.findall(r"\b(?:benchmarks|tests|src|ext)/[\w./]+", commands):
        assert (ROOT / file).exists(), file


def inside():
    """Names of the table in the README; what comes after a dot goes for the whole code span."""
    table = (ROOT / "README.md").read_text().split("## What is inside")[1].split("\n- **")[0]
    for span in re.findall(r"`([^`]+)`", table):
        first, *rest = re.sub(r"\(.*?\)", "", span).split()
        home, _, name = first.rpartition(".")
        if name[0].isalpha() and all(word.isidentifier() for word in rest):
            yield from (f"{home}.{word}".strip(".") for word in (name, *rest))


def test_the_table_of_the_readme_names_what_is_there():
    words = {"same", "valid", "circular", "trainable=False"}
    names = [name for name in inside() if name not in words]
    assert len(names) > 70
    missing = [name for name in names if not reaches(name)]
    assert missing == []


def reaches(name):
    thing = kc
    for part in name.split("."):
        thing = getattr(thing, part, None)
    return thing is not None


def test_the_table_of_the_readme_leaves_no_kernel_layer_or_estimator_out():
    names = {name.rpartition(".")[2] for name in inside()}
    public = {
        name for name in kc.__all__
        if isinstance(getattr(kc, name), type) and not name.startswith("_")
    }  # fmt: skip
    assert public - names == {"Kernel", "Kernels"}  # which the others return
