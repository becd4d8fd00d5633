"""What is built and which of it a machine runs: flags by compiler and level, features by level."""

import pathlib
import platform
import runpy
import sys
import types

import pytest

from kernelcore.engine.cpu import dispatch as _dispatch

ROOT = pathlib.Path(__file__).parents[1]


class Extension(types.SimpleNamespace):
    def __init__(self, name, sources, **options):
        super().__init__(name=name, sources=sources, **options)


class Command:
    """Stands in for the command of setuptools, which would compile now."""

    def build_extensions(self):
        pass


@pytest.fixture
def extensions(monkeypatch):
    """The extensions of setup.py as a compiler of some type gets them: ``extensions("msvc")``."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for name in ("KERNELCORE_AVX512", "KERNELCORE_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    given = {}
    stand_ins = {
        "setuptools": {
            "Extension": Extension,
            "find_packages": lambda where: [],
            "setup": lambda **options: given.update(options),
        },
        "setuptools.command": {"build_ext": types.SimpleNamespace(build_ext=Command)},
        "Cython": {},
        "Cython.Build": {"cythonize": lambda extensions, **options: extensions},
    }
    for name, members in stand_ins.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)

    def built(compiler_type):
        runpy.run_path(str(ROOT / "setup.py"))
        command = given["cmdclass"]["build_ext"]()
        command.compiler = types.SimpleNamespace(
            compiler_type=compiler_type, compiler_cxx=["no-such-compiler"]
        )
        command.extensions = given["ext_modules"]
        command.build_extensions()
        return {e.name.removeprefix("kernelcore._cpu."): e for e in command.extensions}

    return built


def test_every_driver_is_built_at_every_level(extensions):
    sources = {path.stem for path in (ROOT / "ext" / "cpu").glob("*.pyx")}
    assert extensions("unix").keys() == sources


@pytest.mark.parametrize(("name", "value"), [("AVX512", "0"), ("DEBUG", "1")])
def test_long_vectors_can_be_left_out(extensions, monkeypatch, name, value):
    monkeypatch.setenv(f"KERNELCORE_{name}", value)
    levels = {name.rpartition("_")[2] for name in extensions("unix")}
    assert levels == {"v1", "v3"}


@pytest.mark.parametrize(
    ("compiler", "flags", "style"),
    [
        ("unix", {"v3": "-march=x86-64-v3", "v4": "-march=x86-64-v4"}, "-"),
        ("msvc", {"v3": "/arch:AVX2", "v4": "/arch:AVX512"}, "/"),
    ],
)
def test_a_compiler_gets_flags_of_its_own_kind(extensions, compiler, flags, style):
    for name, extension in extensions(compiler).items():
        assert all(arg.startswith(style) for arg in extension.extra_compile_args)
        for level, flag in flags.items():
            assert (flag in extension.extra_compile_args) == name.endswith(f"_{level}")


V3 = {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "lzcnt"}
V4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


def test_a_machine_needs_every_feature_of_a_level():
    assert _dispatch.levels_of(V3) == _dispatch.levels_of(V3 | {"sse2"}) == ("v3", "v1")
    for feature in V3:
        assert _dispatch.levels_of(V3 - {feature}) == ("v1",)
        assert _dispatch.levels_of(V3 | V4 - {feature}) == ("v4", "v3", "v1")
        assert _dispatch.levels_of((V3 | V4) - {feature}) == ("v1",)
    for feature in V4:
        assert _dispatch.levels_of((V3 | V4) - {feature}) == ("v3", "v1")


def test_linux_calls_one_of_them_by_another_name():
    assert _dispatch.levels_of(V3 - {"lzcnt"} | {"abm"}) == ("v3", "v1")
