"""The installed package: what it needs, what it carries, and what importing it costs."""

import importlib.metadata
import pathlib
import platform
import re
import subprocess
import sys
import sysconfig

import pytest

import kernelcore as kc
from kernelcore import _check, cli
from kernelcore.engine import sources
from kernelcore.engine.cpu import dispatch as _dispatch

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = pathlib.Path(kc.__file__).parent


@pytest.fixture(scope="module")
def metadata():
    try:
        return importlib.metadata.metadata("kernelcore")
    except importlib.metadata.PackageNotFoundError:
        pytest.fail("kernelcore must be installed: pip install '.[test]'")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_three_dependencies(metadata):
    needed = [r for r in metadata.get_all("Requires-Dist") if "extra ==" not in r]
    names = {re.match(r"[\w-]+", r)[0] for r in needed}
    assert names == {"numpy", "scipy", "threadpoolctl"}


def test_extras(metadata):
    extras = {"all", "bench", "docs", "gpu", "gpu12", "plot", "scale", "sklearn", "test", "torch"}
    assert set(metadata.get_all("Provides-Extra")) == extras
    needed = [re.search(r"extra == .(\w+)", r) for r in metadata.get_all("Requires-Dist")]
    assert {match[1] for match in needed if match} == extras, "an extra installs nothing"
    assert {extra for _, extra in _check.OPTIONAL.values()} <= extras


def test_version(metadata):
    assert metadata["Version"] == kc.__version__
    assert run(sys.executable, "-m", "kernelcore.cli", "--version") == (
        f"kernelcore {kc.__version__}\n"
    )
    newest = re.search(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest[1] == kc.__version__


def test_console_script(metadata):
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="kernelcore")
    assert entry.load() is cli.main
    script = pathlib.Path(sysconfig.get_path("scripts"), "kernelcore")
    facts = run(script, "info")
    assert re.match(rf"version +{re.escape(kc.__version__)}\n", facts)
    assert re.search(rf"^headers +{re.escape(kc.get_include())}$", facts, re.M)


def test_what_the_package_carries():
    assert (PACKAGE / "py.typed").is_file()
    assert (PACKAGE / "api.pxd").is_file()
    assert (PACKAGE / "data" / "digits.npz").is_file()
    for folder, kinds in (("include", ("*.h", "*.cmake", "*.pc")), ("gpu", ("*.cu", "*.h"))):
        source = ROOT / "ext" / folder
        there = pathlib.Path(kc.get_include() if folder == "include" else sources.drivers())
        files = {p.relative_to(there).as_posix() for kind in kinds for p in there.rglob(kind)}
        assert files == {p.relative_to(source).as_posix() for k in kinds for p in source.rglob(k)}
        for name in files:
            assert (there / name).read_bytes() == (source / name).read_bytes(), f"{name} is stale"


def test_every_level_is_built():
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    assert _dispatch.built_levels("cyclic") == (("v3", "v1") if x86 else ("v1",))
    wide = tuple(level for level in _dispatch.built_levels() if level == "v4")  # can be left out
    for driver in ("dense", "spatial"):
        assert _dispatch.built_levels(driver) == (*wide, *_dispatch.built_levels("cyclic"))


def test_import_loads_numpy_and_nothing_heavy():
    code = "import sys, kernelcore; print(*sys.modules)"
    loaded = run(sys.executable, "-c", code).split()
    assert "numpy" in loaded
    heavy = (
        "scipy",
        "sklearn",
        "threadpoolctl",
        "matplotlib",
        "cupy",
        "kernelcore._cpu",
        "kernelcore.engine.gpu.",
        "kernelcore.estimators",
        "kernelcore.report",
        "kernelcore.spectrum",
    )
    assert [m for m in loaded if m.startswith(heavy)] == []
