"""Two packages that build on the headers: one in C++ through CMake, one in Cython through pip."""

import importlib.machinery
import importlib.util
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import numpy as np
import pytest

import kernelcore as kc

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "cpp.md"
INCLUDE = pathlib.Path(kc.get_include())
SCRIPTS = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
# Sums of 400 pairs of positions, each after two layers of nine terms and a formula of some twenty
# operations: no value is the result of more roundings in a row.
ROUNDINGS = 900
NETWORK = {"w_std": 1.5, "b_std": 0.25}


def inputs(dtype=np.float64):
    """Rows, of which the last is next to the first; images; a power series."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3, 5))
    rows[2] = rows[0] + 1e-6 * rows[1]
    images, series = rng.standard_normal((2, 5, 4, 2)), rng.random(40)
    return [a.astype(dtype).astype(np.float64) for a in (rows, images, series)]


def convolutional(pool):
    layer = kc.Conv(3, **NETWORK)
    end = kc.GlobalAvgPool() if pool else kc.Flatten()
    return kc.Sequential(layer, kc.Relu(), layer, kc.Relu(), end, kc.Dense(**NETWORK))


def expected(rows, images, series):
    """All that the programs print, from Python: pairs of numbers, the last a logarithm."""
    deep = kc.presets.mlp(3, **NETWORK).kernels(rows)
    pairs = [*zip(deep.nngp[0], deep.ntk[0], strict=True)]
    for pool in (False, True):
        both = convolutional(pool).kernels(images)
        pairs += zip(both.nngp[0], both.ntk[0], strict=True)
    pairs.append(tuple(map(float, kc.Relu().dual(2.0, 3.0, -1.0))))
    levels = kc.spectrum.sphere(kc.profiles.PowerSeries(series), dim=1000, max_degree=30)
    return pairs, levels.log_eigenvalues[30]


def agree(found, dtype):
    """Compare; an eigenvalue is a number and a power of two, and its logarithm a sum of theirs."""
    *pairs, (value, exponent) = found
    values, level = expected(*inputs(dtype))
    rounding = ROUNDINGS * np.finfo(dtype).eps / 2
    np.testing.assert_allclose(pairs, values, rtol=rounding)
    assert abs(math.log(value) + exponent * math.log(2) - level) < rounding


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_cpp_through_cmake(tmp_path):
    cmake = shutil.which("cmake", path=SCRIPTS)
    if cmake is None:
        pytest.skip("needs CMake: pip install cmake")
    run(cmake, "-S", HERE / "cmake", "-B", tmp_path, f"-DPython_EXECUTABLE={sys.executable}")
    run(cmake, "--build", tmp_path)
    prints_what_python_says(tmp_path / "downstream")


def prints_what_python_says(program, *emulator):
    numbers = np.concatenate([a.ravel() for a in inputs()])
    given = program.with_name("inputs")
    given.write_text("\n".join(map(repr, numbers.tolist())))
    lines = run(*emulator, program, given).splitlines()
    found = [tuple(map(float, line.split())) for line in lines]
    agree(found[:9], np.float64)
    agree(found[9:], np.float32)


@pytest.mark.slow
def test_cpp_on_aarch64(tmp_path):
    """A processor with other instructions and roundings, and fused multiply-adds at every level."""
    compiler, emulator = "aarch64-linux-gnu-g++", "qemu-aarch64"
    for tool, package in ((compiler, "g++-aarch64-linux-gnu"), (emulator, "qemu-user")):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}: apt-get install {package}")
    flags = ("-std=c++17", "-O2", "-Wall", "-Werror", "-static", f"-I{INCLUDE}")
    run(compiler, *flags, HERE / "cmake" / "main.cpp", "-o", tmp_path / "main")
    prints_what_python_says(tmp_path / "main", emulator)


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_cython_through_pip(tmp_path):
    for package in ("Cython", "setuptools", "pip"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install {package}")
    shutil.copytree(HERE / "cython", tmp_path / "package")
    pip = (sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps")
    folder = pathlib.Path(kc.__file__).parents[1]  # of this kernelcore, installed or not
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    run(
        *pip, "--no-index", "--target", tmp_path / "there", tmp_path / "package",
        env={**os.environ, "PYTHONPATH": path, "CXXFLAGS": "-O1"},
    )  # fmt: skip
    (file,) = (tmp_path / "there").glob("downstream.*")
    loader = importlib.machinery.ExtensionFileLoader("downstream", str(file))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("downstream", loader))
    loader.exec_module(module)

    assert module.VERSION == version()
    rows, images, series = inputs()
    found = [module.rows(rows[0], row, 3, 1.5, 0.25) for row in rows]
    room = np.empty(8 * 5 * 4)
    for pool in (False, True):
        found += [module.images(images[0], x, 2, 1.5, 0.25, pool, room) for x in images]
    found += [module.dual(2.0, 3.0, -1.0), module.level(series, 1000, 30)]
    agree(found, np.float64)


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_the_program_of_the_manual_prints_what_it_says(tmp_path):
    (program,) = re.findall(r"```cpp\n(.*?)```", PAGE.read_text(), re.S)
    (tmp_path / "main.cpp").write_text(program)
    run("c++", "-std=c++17", f"-I{INCLUDE}", "main.cpp", "-o", "main", cwd=tmp_path)
    assert run(tmp_path / "main") == re.search(r"// ([\d. ]+)\n", program)[1] + "\n"


def version():
    text = (INCLUDE / "kernelcore" / "host" / "api.h").read_text()
    return tuple(int(n) for n in re.findall(r"#define KC_API_(?:MAJOR|MINOR) (\d+)", text))


def test_versions_agree():
    cmake = (INCLUDE / "kernelcore-config-version.cmake").read_text()
    assert re.search(r"set\(PACKAGE_VERSION (.*)\)", cmake)[1] == kc.__version__
    config = (INCLUDE / "kernelcore.pc").read_text()
    assert re.search(r"^Version: (.*)$", config, re.M)[1] == kc.__version__
    assert "version {}.{} of the API".format(*version()) in PAGE.read_text()


def test_pkg_config():
    if shutil.which("pkg-config") is None:
        pytest.skip("needs pkg-config")
    found = run(
        "pkg-config", "--cflags", "kernelcore", env={**os.environ, "PKG_CONFIG_PATH": str(INCLUDE)}
    )
    assert found.split() == [f"-I{INCLUDE}"]


def test_the_manual_shows_these_packages():
    page = PAGE.read_text()
    lines = (HERE / "cmake" / "CMakeLists.txt").read_text().split("adds.\n")[1]
    assert lines in page
    assert (HERE / "cython" / "setup.py").read_text().split('"""\n\n')[1] in page
