"""The manual: no public name is missing, none lacks a parameter or an example, and it builds."""

import functools
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
import types

import pytest

import kernelcore as kc

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
MAKER = re.compile(r"(?:result of|made by) ``([\w.]+)``|``([\w.]+)`` (?:returns|draws one)")
BUILDERS = ("sphinx", "numpydoc", "myst_parser", "sphinx_gallery", "pydata_sphinx_theme")


def public():
    """Every public name, and what it stands for; rooms are where their names are."""
    for name in {*kc.__all__, *kc._ESTIMATORS, *kc._ADAPTIVE}:
        thing = getattr(kc, name)
        if isinstance(thing, types.ModuleType):
            yield from ((f"{thing.__name__}.{n}", getattr(thing, n)) for n in thing.__all__)
        else:
            yield f"kernelcore.{name}", thing


def named(name):
    """The name under which a user reads it: rooms of layers are at the top."""
    return name.replace("kernelcore.layers.", "kernelcore.")


PUBLIC = {named(name): thing for name, thing in public()}
# One class, under two names.
SAME = {"kernelcore.spectrum.RandomFunction": "kernelcore.data.RandomFunction"}
DESCRIBED = {name: thing for name, thing in PUBLIC.items() if callable(thing) and name not in SAME}


def listed():
    """The names that the pages of the reference list."""
    for page in (DOCS / "reference").glob("*.rst"):
        room = ""
        for line in page.read_text().splitlines():
            if found := re.match(r"\.\. currentmodule:: (\S+)", line):
                room = found[1]
            elif found := re.match(r"   ([A-Za-z]\w*)$", line):
                yield f"{room}.{found[1]}"


def test_the_reference_has_every_public_name_once_and_no_other():
    names = [name for name in listed() if not (DOCS / "reference" / f"{short(name)}.rst").exists()]
    names = [name for name in names if not (DOCS / "reference" / f"{short(name)}.md").exists()]
    assert len(names) == len(set(names))
    assert set(names) == set(PUBLIC) - set(SAME) - {"kernelcore.__version__"}
    for name, other in SAME.items():
        assert PUBLIC[name] is PUBLIC[other]


def short(name):
    return name.rpartition(".")[2]


def described(thing):
    """The parameters and attributes that a docstring describes."""
    text = inspect.getdoc(thing) or ""
    for title in ("Parameters", "Attributes", "Other Parameters"):
        section = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", text, re.M | re.S)
        for heads in re.findall(r"^(\S.*?)(?: :.*)?$", section[1] if section else "", re.M):
            yield from (name.strip().lstrip("*") for name in heads.split(","))


def parameters(thing):
    """The names that a call takes; those of a class without a constructor are none."""
    names = list(inspect.signature(thing).parameters)
    return [] if names == ["args", "kwargs"] and isinstance(thing, type) else names


def maker(name, text):
    """What makes a result, whose users call nothing but that: its docstring names it."""
    found = MAKER.search(text.partition("\n")[0])
    if found is None:
        return None
    called, *method = (found[1] or found[2]).split(".")
    room = name.rpartition(".")[0]
    made = PUBLIC.get(f"{room}.{called}") or PUBLIC[f"kernelcore.{called}"]
    return functools.reduce(getattr, method, made)


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_a_docstring_has_every_parameter_and_an_example(name):
    thing = DESCRIBED[name]
    told = set(described(thing))
    makes = maker(name, thing.__doc__) if isinstance(thing, type) else None
    if makes is None:
        assert [p for p in parameters(thing) if p not in told] == []
        assert ">>>" in thing.__doc__
    else:
        assert told, "the result has no attributes"
        assert ">>>" in makes.__doc__


@pytest.mark.slow
def test_the_manual_builds_without_a_warning_and_its_links_lead_somewhere(tmp_path):
    for package in BUILDERS:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install 'kernelcore[docs]'")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-n"]
    done = subprocess.run(
        [*command, DOCS, tmp_path], capture_output=True, text=True, timeout=900
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = (page for page in tmp_path.rglob("*.html") if "_static" not in page.parts)
    pages = {page: page.read_text() for page in found}
    assert len(pages) > 250
    ids = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    lost = []
    for page, text in pages.items():
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path.partition("?")[0]).resolve() if path else page
            if not target.exists() or (anchor and target in ids and anchor not in ids[target]):
                lost.append((page.name, link))
    assert lost == []
