"""Which GPUs there are, or why none can be used."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from ... import _check
from ..cpu.dispatch import load
from . import compile as _compile


class Device(NamedTuple):
    """A GPU: its number, name, architecture as in sm_80, and bytes of memory."""

    number: int
    name: str
    arch: str
    memory: int


def _release(version: int) -> str:
    """Write a version of CUDA as people do: 13000 is 13.0."""
    return f"{version // 1000}.{version % 1000 // 10}"


def missing() -> str | None:
    """Return why no GPU can be used, in one line, or None where one can."""
    remedy = _check.absent("cupy")
    if remedy:
        return f"CuPy is not installed: {remedy}"
    try:
        runtime = load("cupy").cuda.runtime
    except ImportError as error:
        return f"CuPy does not load: {' '.join(str(error.__cause__ or error).split())}"
    driver, needed = runtime.driverGetVersion(), runtime.runtimeGetVersion()
    if not driver:
        return "no NVIDIA driver is installed"
    if driver // 1000 < needed // 1000:
        return (
            f"the NVIDIA driver is for CUDA {_release(driver)}, CuPy for CUDA {_release(needed)}: "
            "update the driver, or pip install 'kernelcore[gpu12]' instead of kernelcore[gpu]"
        )
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        return f"no device answers: {error}"
    return None if count else "there is no device"


def cupy() -> ModuleType:
    """Return CuPy, where there is a GPU to use it on."""
    reason = missing()
    if reason:
        raise RuntimeError(f"no GPU can be used: {reason}")
    return load("cupy")


def devices() -> list[Device]:
    """Return the GPUs that CuPy sees; none where it cannot be used."""
    if missing():
        return []
    runtime, found = load("cupy").cuda.runtime, []
    for number in range(runtime.getDeviceCount()):
        about = runtime.getDeviceProperties(number)
        name, arch = about["name"].decode(), f"sm_{about['major']}{about['minor']}"
        found.append(Device(number, name, arch, about["totalGlobalMem"]))
    return found


def _plan(found: list[Device]) -> str:
    """Say which drivers there are, and which of them the first call on a device compiles."""
    drivers, place = _compile.drivers(), _compile.folder()
    pairs = [(driver, arch) for arch in sorted({d.arch for d in found}) for driver in drivers]
    kept = {pair: _compile.count_compiled(*pair) for pair in pairs}
    ready = [f"{n} of {driver} for {arch}" for (driver, arch), n in kept.items() if n]
    told = f"{', '.join(drivers) or 'none'}; compiled on first use, into {place}"
    return f"{told}; there already: {', '.join(ready)}" if ready else told


def facts() -> dict[str, str]:
    """Return what ``kernelcore info`` prints about GPUs."""
    found = devices()
    names = (f"{d.number}: {d.name}, {d.arch}, {_check.in_bytes(d.memory)}" for d in found)
    told = {"gpu": "; ".join(names) or f"none; {missing()}"}
    if found:
        module = load("cupy")
        runtime = module.cuda.runtime
        driver, own = (_release(v()) for v in (runtime.driverGetVersion, runtime.runtimeGetVersion))
        told["cuda"] = f"driver {driver}, runtime {own}, CuPy {module.__version__}"
    try:
        told["gpu compiler"] = _compile.compiler().name
        told["gpu drivers"] = _plan(found)
    except ImportError as error:
        told["gpu compiler"] = f"none; {error}"
    return told
