"""Arrows point down only: which room may import which, read off the imports and includes."""

import ast
import pathlib
import re
from typing import NamedTuple

import pytest

import kernelcore as kc

PACKAGE = pathlib.Path(kc.__file__).parent
EXT = pathlib.Path(__file__).parents[1] / "ext"

# The lowest room first. A room imports from itself and from the lines before its own; rooms of one
# line do not see each other.
ORDER = """
    _version _types
    _check                  every argument rule and its message
    _files                  arrays in files that others may have written
    _value _keywords        what values have in common; second names of keywords
    program                 a lowered network, as a value
    engine                  the door to compiled code; threads, memory, progress, accuracy
    linalg                  every call of BLAS and LAPACK
    _info                   what an installation is made of
    series                  power series of kernels on the sphere
    layers                  layers, activations, maps, profiles
    kernels                 kernels and their algebra
    architecture            Sequential, Residual
    presets                 networks by name
    scale                   matrices that are not held
    networks                networks of finite width
    spectrum
    theory
    solvers
    features
    estimators
    adaptive                kernels that learn their metric
    data
    kernelcore              the public names; loads the rooms around it when they are named
    experiments             the papers', written as a user would
    diagnosis               what a kernel can make of given data
    report                  draws them
    cli
    __main__
"""
LEVEL = {
    room: level
    for level, line in enumerate(ORDER.strip().splitlines())
    for room in re.split(r"\s{2,}", line.strip())[0].split()
}

# What only some rooms may name, and which.
OUTSIDE = {
    "matplotlib": ("report", "experiments._draw"),  # and what is called plot
    "scipy.linalg": ("linalg",),
    "numpy.linalg": ("linalg",),
    "cupy": ("engine.gpu",),
    "torch": ("networks",),
    "zarr": ("scale",),
    "dask": ("scale",),
    "distributed": ("scale.cluster",),
    "a compiled module": ("engine",),
    "engine.cpu": ("engine", "_info"),  # other rooms ask the door
    "engine.gpu": ("engine", "_info"),
}
NO_LAPACK = {"LinAlgError", "norm"}  # of numpy.linalg

# What still points up, with its reason. A pair that is no longer there fails, so that this list can
# only become shorter.
KNOWN = {
    ("architecture", "networks"): "what sample returns, for type checkers; it loads when called",
    ("_info", "scipy.linalg"): "loads SciPy's BLAS, for threadpoolctl to find",
    ("engine.cpu.kinks", "numpy.linalg"): "makes a table once, and linalg lies above",
}


class Use(NamedTuple):
    """A module that names another, and where."""

    module: str
    line: int
    target: str


def name_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__" or len(parts) == 1)


MODULES = {name_of(path).replace("__init__", "kernelcore"): path for path in PACKAGE.rglob("*.py")}


def room_of(module):
    return module.split(".")[0]


class Reader(ast.NodeVisitor):
    """Collects what a module imports, wherever in it, and what else of ``OUTSIDE`` it names."""

    def __init__(self, module):
        self.module = module
        path = MODULES[module]
        package = path.parent.relative_to(PACKAGE).parts
        self.package = ("kernelcore", *package)
        self.uses = []
        self.functions = []
        self.checking = False  # inside "if TYPE_CHECKING:"
        self.visit(ast.parse(path.read_text()))

    def use(self, node, target):
        drawn = room_of(target) == "matplotlib" and (
            self.checking or "plot" in self.functions or self.module.endswith("._plot")
        )
        if not drawn:
            self.uses.append(Use(self.module, node.lineno, target))

    def imported(self, node, base, name=None):
        """Record the module ``base.name``, or ``base`` where the name is no module."""
        whole = f"{base}.{name}" if name else base
        if base.split(".")[0] != "kernelcore":
            self.use(node, whole)
            return
        inner = whole.partition(".")[2] or "kernelcore"
        if inner.startswith("_cpu"):
            self.use(node, "a compiled module")
        else:
            self.use(node, inner if inner in MODULES else base.partition(".")[2] or "kernelcore")

    def visit_Import(self, node):
        for alias in node.names:
            self.imported(node, alias.name)

    def visit_ImportFrom(self, node):
        package = self.package[: len(self.package) - node.level + 1] if node.level else ()
        base = ".".join([*package, *([node.module] if node.module else [])])
        for alias in node.names:
            self.imported(node, base, alias.name)

    def visit_If(self, node):
        before = self.checking
        self.checking |= "TYPE_CHECKING" in ast.dump(node.test)
        self.generic_visit(node)
        self.checking = before

    def visit_FunctionDef(self, node):
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()

    def visit_Attribute(self, node):
        if ast.unparse(node.value) in ("np.linalg", "numpy.linalg") and node.attr not in NO_LAPACK:
            self.use(node, "numpy.linalg")
        self.generic_visit(node)

    def visit_Call(self, node):
        function = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if function == "driver":
            self.use(node, "a compiled module")
        elif (
            function in ("load", "import_module")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            self.imported(node, node.args[0].value)
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, str) and node.value.startswith("kernelcore._cpu."):
            self.use(node, "a compiled module")


USES = [use for module in sorted(MODULES) for use in Reader(module).uses]


def inside(module, rooms):
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def broken():
    """What breaks a rule: ``{(module, target): (line, rule)}``."""
    found = {}
    for module, line, target in USES:
        here, there = room_of(module), room_of(target)
        if there in LEVEL and here != there and LEVEL[there] >= LEVEL[here]:
            found.setdefault((module, target), (line, f"{there} is not below {here}"))
        for name, rooms in OUTSIDE.items():
            if inside(target, [name]) and not inside(module, rooms):
                found.setdefault((module, name), (line, f"only {' and '.join(rooms)} may name it"))
    return found


def test_every_room_has_a_place():
    rooms = {room_of(module) for module in MODULES} - {"_cpu", "_gpu", "include"}
    assert rooms - LEVEL.keys() == set()


def test_arrows_point_down():
    wrong = [
        f"{MODULES[module].relative_to(PACKAGE)}:{line} names {target}, but {rule}"
        for (module, target), (line, rule) in sorted(broken().items())
        if (module, target) not in KNOWN
    ]
    assert not wrong, "\n".join(["arrows point up:", *wrong])


def test_what_is_known_to_point_up_still_does():
    gone = [f"{module} no longer names {target}" for module, target in KNOWN.keys() - broken()]
    assert not gone, "\n".join(["take these out of KNOWN:", *sorted(gone)])


# ---- what a compiler reads

INCLUDE = EXT / "include"
FILES = sorted(
    path for path in EXT.rglob("*") if path.suffix in (".h", ".cu", ".pxi", ".pxd", ".pyx", ".py")
)
NAMED = re.compile(r"""^\s*(?:\#\s*include|include|cdef\s+extern\s+from)\s*["<]([^">]+)""", re.M)
PYTHON = re.compile(r"^\s*(?:from|import|cimport)\s+kernelcore\b.*", re.M)


def height(path):
    """Formulas at the bottom, then what is written for a host, then the drivers."""
    if not path.is_relative_to(INCLUDE):
        return 2
    return int("host" in path.relative_to(INCLUDE).parts)


def included(path):
    """The files of ours that a file includes."""
    for name in NAMED.findall(path.read_text()):
        for folder in (path.parent, INCLUDE):
            if (folder / name).is_file():
                yield (folder / name).resolve()
                break


def test_includes_point_down():
    assert any(height(path) == 0 and list(included(path)) for path in FILES)
    assert any(height(path) == 2 and list(included(path)) for path in FILES)
    wrong = [
        f"{path.relative_to(EXT)} includes {target.relative_to(EXT)}"
        for path in FILES
        for target in included(path)
        if height(target) > height(path)
    ]
    assert not wrong, "\n".join(["includes point up:", *wrong])


def test_drivers_for_gpus_include_nothing_of_the_host():
    wrong = [
        f"{path.relative_to(EXT)} includes {target.relative_to(EXT)}"
        for path in FILES
        if path.is_relative_to(EXT / "gpu")
        for target in included(path)
        if height(target) == 1 or target.is_relative_to(EXT / "cpu")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(EXT).as_posix())
def test_nothing_that_a_compiler_reads_imports_the_package(path):
    assert not PYTHON.findall(path.read_text())
