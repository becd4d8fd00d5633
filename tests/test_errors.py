"""Every message, whole: ``<argument> must <rule>: <what came>[; <remedy>]``.

The cases stand beside the tests of their room, in files ``errors.py``; every ``raise`` of the
package has one.
"""

import ast
import importlib.util
import os
import pathlib
import re
import traceback

import pytest
from messages import stable

import kernelcore as kc

TESTS = pathlib.Path(__file__).parent
PACKAGE = pathlib.Path(kc.__file__).parent
FILES = sorted([*TESTS.rglob("errors.py"), *TESTS.glob("messages/[!_]*.py")])

# What no user meets: it marks what a subclass defines, asks for another size of images, or becomes
# the reason in a message that names a file.
INSIDE = {"NotImplementedError", "_Refused", "_Small"}
# What rules of _check share to refuse: each of its calls there needs a case, like a raise.
SHARED = {"_kind", "every", "must", "shaped", "unless"}
# And what single rules of other rooms call.
OUTSIDE = {"every", "must", "shaped"}


def cases(path):
    """The list of a file, imported under a name of its own."""
    name = "_".join(["errors", *path.relative_to(TESTS).with_suffix("").parts])
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CASES


CASES = [case for path in FILES for case in cases(path)]


@pytest.mark.parametrize("case", CASES, ids=stable)
def test_message(case):
    with pytest.raises(case.kind, match=f"^{re.escape(case.message)}$"):
        case.call()


def raised():
    """Path and line of every ``raise`` of the package that a user can meet."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            function = node.func if isinstance(node, ast.Call) else None
            name, outside = getattr(function, "id", None), getattr(function, "attr", None)
            if name in SHARED or outside in OUTSIDE:
                yield path.relative_to(PACKAGE).as_posix(), node.lineno
            if isinstance(node, ast.Raise) and node.exc is not None:
                error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                if getattr(error, "id", None) not in INSIDE:
                    yield path.relative_to(PACKAGE).as_posix(), node.lineno


def places(call):
    """Path and line of the statement that raised, and of all calls that led to it."""
    try:
        call()
    except Exception as error:
        return {
            (os.path.relpath(frame.f_code.co_filename, PACKAGE), line)
            for frame, line in traceback.walk_tb(error.__traceback__)
        }
    return set()


def test_every_raise_has_a_case():
    missing = sorted(set(raised()).difference(*(places(case.call) for case in CASES)))
    assert not missing, "no case raises at " + ", ".join(f"{p}:{line}" for p, line in missing)


def test_compiled_code_raises_nothing():
    """But for what a watch or a signal has raised, which watch.pxi hands on."""
    ext = TESTS.parent / "ext"
    found = [
        f"{path.relative_to(ext)}:{k}"
        for path in sorted([*ext.rglob("*.pxi"), *ext.rglob("*.pyx")])
        for k, line in enumerate(path.read_text().splitlines(), 1)
        if re.match(r"\s*raise\b(?! self\.error$)", line)
    ]
    assert not found, f"only Python validates, but {', '.join(found)} raise"
