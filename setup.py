"""The extension table (module x CPU level) and the compiler flags, nothing else."""

import glob
import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
import tempfile

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command import build_ext as command

X86 = platform.machine().lower() in ("x86_64", "amd64")
LEVELS = ["v1", "v3"] if X86 else ["v1"]


def asked(name: str, default: str) -> bool:
    """Whether a variable of the environment says so."""
    return os.environ.get(name, default) not in ("", "0")


# One variable makes the build for finding bugs: bounds checks, AddressSanitizer and UBSan. It has
# a folder of its own, so that neither build picks up objects of the other.
DEBUG = asked("KERNELCORE_DEBUG", "0")
# Another makes modules for CPython 3.11 and later, for wheels, instead of for this Python alone.
ABI3 = asked("KERNELCORE_ABI3", "0")
BUILD = "build/debug" if DEBUG else "build/abi3" if ABI3 else "build"
# Vectors of 64 bytes, for the drivers where most time is spent: 1.5 times as fast where a machine
# has them, for 40 % more time to build. Another variable leaves them out.
WIDE = ["v4"] if X86 and asked("KERNELCORE_AVX512", "0" if DEBUG else "1") else []
DRIVERS = {
    "dense": [*LEVELS, *WIDE], "spatial": [*LEVELS, *WIDE], "cyclic": LEVELS,
    "gegenbauer": LEVELS, "waves": LEVELS, "thin": LEVELS, "slopes": LEVELS,
}  # fmt: skip
# What a level adds to the flags of all, for a compiler of that type.
LEVEL_FLAGS = {
    "v3": {"msvc": ["/arch:AVX2"], "unix": ["-march=x86-64-v3"]},
    "v4": {"msvc": ["/arch:AVX512"], "unix": ["-march=x86-64-v4"]},
}

if X86 and not DEBUG:  # v1 is for old machines alone there, and compiles in two thirds of the time
    LEVEL_FLAGS["v1"] = {"unix": ["-O2"]}

UNIX = "-std=c++17 -fvisibility=hidden -fno-math-errno -fno-trapping-math -ffp-contract=off"
OPTIMISED = "-O3 -g0"
SANITIZERS = "-fsanitize=address,undefined"
SANITIZED = f"-O1 -g -fno-omit-frame-pointer {SANITIZERS} -fno-sanitize-recover=undefined"


def openmp_flags(compiler: list[str]) -> list[str]:
    """Flags that make OpenMP work with this compiler, or none, with a warning."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "probe.cpp")
        with open(source, "w") as file:
            file.write("#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }\n")
        command = [*compiler, source, "-fopenmp", "-o", os.path.join(folder, "probe")]
        found = shutil.which(compiler[0])
        if found and subprocess.run(command, capture_output=True).returncode == 0:
            return ["-fopenmp"]
    print("kernelcore: this compiler has no OpenMP; building for one thread", file=sys.stderr)
    return []


class build_ext(command.build_ext):
    """Adds the flags that depend on the compiler found."""

    def build_extensions(self) -> None:
        kind = "msvc" if self.compiler.compiler_type == "msvc" else "unix"
        if kind == "msvc":
            common, link = ["/O2", "/std:c++17", "/openmp"], []
        else:
            openmp = openmp_flags(list(self.compiler.compiler_cxx))
            common = [*UNIX.split(), *(SANITIZED if DEBUG else OPTIMISED).split(), *openmp]
            link = [*openmp, *([SANITIZERS] if DEBUG else [])]
        for extension in self.extensions:
            level = LEVEL_FLAGS.get(extension.name.rpartition("_")[2], {})
            extension.extra_compile_args = common + level.get(kind, [])
            extension.extra_link_args = link
        super().build_extensions()


headers = sorted([*glob.glob("ext/include/**/*.h", recursive=True), *glob.glob("ext/cpu/*.h")])
extensions = [
    Extension(
        f"kernelcore._cpu.{driver}_{level}",
        [f"ext/cpu/{driver}_{level}.pyx"],
        include_dirs=["ext/include", "ext/cpu"],
        depends=[f"ext/cpu/{name}.pxi" for name in (driver, "types", "watch", "records")] + headers,
        language="c++",
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if ABI3 else [],
        py_limited_api=ABI3,
    )
    for driver, levels in DRIVERS.items()
    for level in levels
]
# Of Cython; those that are not forked would begin with this file.
PROCESSES = (os.cpu_count() or 0) if multiprocessing.get_start_method() == "fork" else 0
directives = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "warn.multiple_declarators": False,  # T *a, *b as in the headers
}
setup(
    # The headers, and the drivers that are compiled on first use, lie outside of src.
    packages=[*find_packages("src"), "kernelcore.include", "kernelcore._gpu"],
    ext_modules=cythonize(
        extensions,
        nthreads=PROCESSES,
        compiler_directives=directives,
        build_dir=f"{BUILD}/cython",
    ),
    cmdclass={"build_ext": build_ext},
    options={
        "build": {"build_base": BUILD},
        "build_ext": {"parallel": True},
        "bdist_wheel": {"py_limited_api": "cp311"} if ABI3 else {},
    },
)
