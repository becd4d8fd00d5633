"""From a driver in ``ext/gpu`` to a cubin, with options and a cache of our own.

``cupy.RawModule(code=...)`` needs a device even to compile, does not see in its cache that a header
has changed, and puts ``-ftz=true`` behind our options. So NVRTC is called here, which works without
a GPU as well, and ``cupy.RawModule(path=...)`` loads the file that comes out.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from ... import _check
from .. import sources
from ..cpu.dispatch import load

OPTIONS = (
    "-std=c++17",
    # The arithmetic of the CPU: kc::fma alone fuses, small numbers stay, and quotients and roots
    # are rounded correctly. --use_fast_math would undo all four.
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
)
"""What every driver is compiled with."""
OLD = ("--device-as-default-execution-space",)
"""For CUDA 12, which takes lambdas in device code for host functions.

Otherwise left out: it would hide a missing ``KC_HD``.
"""
VERBOSE = ("--ptxas-options=--verbose", "--no-cache")
"""Makes the log tell what kernels use; NVRTC's own cache would leave it empty."""

PACKAGES = {13: "nvidia-cuda-nvrtc", 12: "nvidia-cuda-nvrtc-cu12"}
"""The compiler on PyPI, by version of CUDA, the one to prefer first."""


# ---- the compiler


class Compiler(NamedTuple):
    """A library of NVRTC, and a name that no other version has."""

    path: Path
    name: str


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _majors() -> list[int]:
    """Return the version of CUDA that CuPy is installed for, or all that would do."""
    return [m for m in PACKAGES if _distribution(f"cupy-cuda{m}x")] or list(PACKAGES)


def _candidates() -> Iterator[Compiler]:
    """Yield what is installed and fits CuPy: a GPU driver of CUDA 12 loads no cubin of CUDA 13."""
    majors = _majors()
    for major in majors:
        package = _distribution(PACKAGES[major])
        for file in (package and package.files) or ():
            if package and file.name == f"libnvrtc.so.{major}":
                name = f"{PACKAGES[major]} {package.version}"
                yield Compiler(Path(os.fspath(file.locate())), name)
    toolkit = os.environ.get("CUDA_PATH") or _toolkit()
    for major in majors if toolkit else ():
        for path in sorted(Path(toolkit).glob(f"lib*/libnvrtc.so.{major}")):
            yield Compiler(path, path.resolve().name)


def _toolkit() -> str:
    """Return the CUDA toolkit that CuPy would use, or nothing."""
    try:
        return load("cupy").cuda.get_cuda_path() or ""
    except ImportError:
        return ""


@functools.cache
def compiler() -> Compiler:
    """Return NVRTC from its package on PyPI, or from the CUDA toolkit that CuPy uses."""
    for found in _candidates():
        return found
    extra = "gpu12" if _majors() == [12] else "gpu"
    raise ImportError(
        f"drivers for GPUs need NVRTC; install it with: pip install 'kernelcore[{extra}]'"
    )


def _options() -> tuple[str, ...]:
    return (*OPTIONS, *(OLD if compiler().path.name == "libnvrtc.so.12" else ()))


@functools.cache
def _library(path: Path) -> ctypes.CDLL:
    # The builtins first: under AddressSanitizer the compiler does not find them by itself.
    for other in path.parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(other))
    return ctypes.CDLL(str(path))


def _ask(function: str, *arguments: Any) -> None:
    library = _library(compiler().path)
    code = getattr(library, f"nvrtc{function}")(*arguments)
    if code:
        raise RuntimeError(f"nvrtc{function} of {compiler().name} failed: {_meaning(code)}")


def _meaning(code: int) -> str:
    meaning = _library(compiler().path).nvrtcGetErrorString
    meaning.restype = ctypes.c_char_p
    return meaning(code).decode()


def _read(program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _ask(f"Get{what}Size", program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    _ask(f"Get{what}", program, buffer)
    return buffer.raw


@functools.cache
def architectures() -> tuple[str, ...]:
    """Return what the compiler knows, such as sm_80."""
    size = ctypes.c_int()
    _ask("GetNumSupportedArchs", ctypes.byref(size))
    numbers = (ctypes.c_int * size.value)()
    _ask("GetSupportedArchs", numbers)
    return tuple(f"sm_{number}" for number in numbers)


# ---- drivers


def drivers() -> tuple[str, ...]:
    """Return the names of the drivers: the files ``.cu`` in ``ext/gpu``."""
    return tuple(sorted(path.stem for path in Path(sources.drivers()).glob("*.cu")))


def _source(driver: str) -> Path:
    there = drivers()
    _check.must(driver in there, "driver", f"be one of {', '.join(there) or 'none'}", repr(driver))
    return Path(sources.drivers(), f"{driver}.cu")


class Resources(NamedTuple):
    """What a kernel uses: registers and stack of a thread, spilled bytes, shared memory of a block.

    The shared memory is the part that the source fixes; a launch can add to it.
    """

    registers: int
    stack: int
    spilled: int
    shared: int


class Build(NamedTuple):
    """What the compiler made of a driver, and what it said."""

    cubin: bytes
    ptx: str
    log: str

    def kernels(self) -> dict[str, Resources]:
        """Return what every kernel uses, of a verbose build."""
        found = {}
        name, stack, spilled = "", 0, 0
        for line in self.log.splitlines():
            if entry := re.search(r"Compiling entry function '(\w+)'", line):
                name, stack, spilled = entry[1], 0, 0
            elif numbers := re.search(r"(\d+) bytes stack frame, (\d+) .* (\d+) bytes spill", line):
                # One such line for the kernel, and one for each function that was not inlined.
                stack += int(numbers[1])
                spilled += int(numbers[2]) + int(numbers[3])
            elif used := re.search(r"Used (\d+) registers", line):
                shared = re.search(r"(\d+) bytes smem", line)
                found[name] = Resources(
                    int(used[1]), stack, spilled, int(shared[1]) if shared else 0
                )
        return dict(sorted(found.items()))

    def messages(self) -> list[str]:
        """Return the lines of the log that are no such numbers: warnings, for example."""
        numbers = r"Compiling entry|Function properties|bytes (gmem|stack)|Used \d+|Compile time"
        return [line for line in self.log.splitlines() if line and not re.search(numbers, line)]


def build(driver: str, arch: str, defines: tuple[str, ...] = (), *, verbose: bool = False) -> Build:
    """Compile a driver with some macros, whatever the cache has.

    That happens in a thread, so that Ctrl-C is seen at once. The compiler then stops when it next
    asks, which it does all along but for parsing and the last stage.
    """
    path, known = _source(driver), architectures()
    rule = f"be one of {', '.join(known)}, which {compiler().name} knows"
    remedy = "kernelcore[gpu] has CUDA 13, and kernelcore[gpu12] has CUDA 12"
    _check.must(arch in known, "arch", rule, f"{arch!r}; {remedy}")
    options = [*_options(), *(VERBOSE if verbose else ())]
    options += [f"--gpu-architecture={arch}", f"-I{sources.headers()}"]
    options += [f"-D{macro}" for macro in defines]
    stop = threading.Event()
    pool = ThreadPoolExecutor(1)
    result = pool.submit(_run, path, options, stop)
    pool.shutdown(wait=False)
    try:
        return result.result()
    finally:
        stop.set()


def _run(path: Path, options: list[str], stop: threading.Event) -> Build:
    library, program = _library(compiler().path), ctypes.c_void_p()
    array = (ctypes.c_char_p * len(options))(*map(os.fsencode, options))
    asked = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
        lambda *_: int(stop.is_set())
    )
    # The whole path: by a bare name, NVRTC looks for headers in the working directory first.
    text = (path.read_bytes(), os.fsencode(path))
    _ask("CreateProgram", ctypes.byref(program), *text, 0, None, None)
    try:
        if hasattr(library, "nvrtcSetFlowCallback"):
            _ask("SetFlowCallback", program, asked, None)
        code = library.nvrtcCompileProgram(program, len(options), array)
        log = _read(program, "ProgramLog").rstrip(b"\0\n").decode(errors="replace")
        if code:
            raise RuntimeError(
                f"{path} must compile with {compiler().name}: {_meaning(code)} with "
                f"{' '.join(options)}\n{log}"
            )
        return Build(_read(program, "CUBIN"), _read(program, "PTX").rstrip(b"\0").decode(), log)
    finally:
        _ask("DestroyProgram", ctypes.byref(program))


# ---- the cache

_compiling = threading.Lock()  # the second of two threads finds what the first has compiled


def _after_fork() -> None:
    global _compiling
    _compiling = threading.Lock()  # the thread that held it is not in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def folder() -> Path:
    """Return where cubins are kept: ``KERNELCORE_CACHE``, or a part of the user's cache folder."""
    given, base = (os.environ.get(name, "") for name in ("KERNELCORE_CACHE", "XDG_CACHE_HOME"))
    if given:
        return Path(given).expanduser().absolute()
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "kernelcore"


def _private(place: Path) -> None:
    """Make a folder, or refuse one that others could put something into: a GPU will run it."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = place.stat()
    remedy = "set KERNELCORE_CACHE to another"
    if about.st_uid != os.geteuid():
        raise PermissionError(
            f"the cache folder must be yours: {place} belongs to user {about.st_uid}; {remedy}"
        )
    if about.st_mode & 0o077:
        raise PermissionError(
            f"the cache folder must be closed to others: {place} has mode "
            f"{about.st_mode & 0o777:03o}; chmod 700 {place}, or {remedy}"
        )


def _digest(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _key(driver: str, arch: str, defines: tuple[str, ...]) -> str:
    """Name a driver, the architecture, and all that the result depends on."""
    parts = [text.encode() for text in (compiler().name, *_options(), *defines)]
    parts.append(_source(driver).read_bytes())
    for folder in (sources.headers(), sources.drivers()):
        for file in sorted(Path(folder).rglob("*.h")):
            parts += [os.fsencode(file.relative_to(folder)), file.read_bytes()]
    return f"{driver}-{arch}-{_digest(*parts)}"


def _kept(key: str) -> Path | None:
    """Return the file in the cache whose content is the one that its name ends in."""
    for file in sorted(folder().glob(f"{key}-*.cubin")):
        if file.stem == f"{key}-{_digest(file.read_bytes())}":
            return file
    return None


def count_compiled(driver: str, arch: str) -> int:
    """Return how many cubins of a driver the cache has: one for all programs of a kind."""
    return len(list(folder().glob(f"{driver}-{arch}-*.cubin")))


def cubin(driver: str, arch: str = "sm_80", defines: tuple[str, ...] = ()) -> Path:
    """Return the file to load with ``cupy.RawModule(path=...)``, compiled on first use.

    Its name has a digest of the driver, all headers, the options and the compiler, and one of its
    own content, so that a file that was cut or changed is compiled once more. It is renamed into
    place: processes that compile at the same time see all of it or nothing.
    """
    key, place = _key(driver, arch, defines), folder()
    with _compiling:
        _private(place)
        found = _kept(key)
        if found is None:
            content = build(driver, arch, defines).cubin
            found = place / f"{key}-{_digest(content)}.cubin"
            with tempfile.NamedTemporaryFile(dir=place, prefix=".", delete=False) as file:
                file.write(content)
            os.replace(file.name, found)
    return found


def resources(
    driver: str, arch: str = "sm_80", defines: tuple[str, ...] = ()
) -> dict[str, Resources]:
    """Return what every kernel of a driver uses; compiles, since no cubin tells what is spilled."""
    return build(driver, arch, defines, verbose=True).kernels()
