"""What ``kernelcore info`` tells about GPUs, here and where there are some."""

import importlib.util
from unittest import mock

import pytest

import kernelcore as kc
from kernelcore.engine import sources
from kernelcore.engine.gpu import compile as _compile
from kernelcore.engine.gpu import devices

A100 = {"name": b"NVIDIA A100-SXM4-80GB", "major": 8, "minor": 0, "totalGlobalMem": 85_000_000_000}
H100 = {"name": b"NVIDIA H100", "major": 9, "minor": 0, "totalGlobalMem": 80_000_000_000}


@pytest.fixture
def gpus(monkeypatch, tmp_path):
    """A machine with these, two drivers, and an empty cache."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: mock.Mock() if name == "cupy" else find(name, *rest),
    )
    for name in ("cyclic", "dense"):
        (tmp_path / f"{name}.cu").write_text(f'extern "C" __global__ void {name}_f32() {{}}\n')
    monkeypatch.setattr(sources, "drivers", lambda: str(tmp_path))
    monkeypatch.setenv("KERNELCORE_CACHE", str(tmp_path / "cache"))

    def install(*found):
        cupy = mock.Mock(__version__="14.2.0")
        runtime = cupy.cuda.runtime
        runtime.CUDARuntimeError = OSError
        runtime.driverGetVersion.return_value = 13010
        runtime.runtimeGetVersion.return_value = 13000
        runtime.getDeviceCount.return_value = len(found)
        runtime.getDeviceProperties.side_effect = found.__getitem__
        monkeypatch.setattr(devices, "load", lambda name: {"cupy": cupy}[name])
        return cupy

    return install


def test_info_names_devices_versions_and_what_would_be_compiled(gpus, tmp_path):
    cupy = gpus(A100, H100)
    assert devices.cupy() is cupy
    assert devices.devices() == [
        (0, "NVIDIA A100-SXM4-80GB", "sm_80", 85_000_000_000),
        (1, "NVIDIA H100", "sm_90", 80_000_000_000),
    ]
    told = f"cyclic, dense; compiled on first use, into {tmp_path}/cache"
    facts = {
        "gpu": "0: NVIDIA A100-SXM4-80GB, sm_80, 85.0 GB; 1: NVIDIA H100, sm_90, 80.0 GB",
        "cuda": "driver 13.1, runtime 13.0, CuPy 14.2.0",
        "gpu compiler": _compile.compiler().name,
        "gpu drivers": told,
    }
    assert kc.info() | facts == kc.info()
    assert not (tmp_path / "cache").exists()
    for driver, arch in (("dense", "sm_90"), ("cyclic", "sm_90"), ("cyclic", "sm_75")):
        _compile.cubin(driver, arch)
    _compile.cubin("dense", "sm_90", ("KC_REALS=1",))
    ready = "there already: 1 of cyclic for sm_90, 2 of dense for sm_90"
    assert kc.info()["gpu drivers"] == f"{told}; {ready}"


def test_info_gives_the_reason_where_there_is_no_device(gpus):
    gpus()
    facts = kc.info()
    assert facts["gpu"] == "none; there is no device"
    assert "cuda" not in facts
    assert devices.devices() == []


def test_info_says_what_is_missing(monkeypatch):
    """Without CuPy, or without a compiler, in one line and without an error."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "cupy" else find(name)
    )
    assert kc.info()["gpu"] == "none; CuPy is not installed: pip install 'kernelcore[gpu]'"
    monkeypatch.setattr(_compile, "_distribution", lambda name: None)
    monkeypatch.setenv("CUDA_PATH", "/nowhere")
    _compile.compiler.cache_clear()
    try:
        facts = kc.info()
    finally:
        _compile.compiler.cache_clear()
    assert facts["gpu compiler"] == (
        "none; drivers for GPUs need NVRTC; install it with: pip install 'kernelcore[gpu]'"
    )
    assert "gpu drivers" not in facts


def test_a_compiler_of_a_toolkit_is_found(monkeypatch, tmp_path):
    """Where PyPI's package is missing; its name has the version that the link leads to."""
    link = tmp_path / "lib64" / "libnvrtc.so.13"
    link.parent.mkdir()
    (tmp_path / "lib64" / "libnvrtc.so.13.0.88").touch()
    link.symlink_to("libnvrtc.so.13.0.88")
    monkeypatch.setattr(_compile, "_distribution", lambda name: None)
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert list(_compile._candidates()) == [(link, "libnvrtc.so.13.0.88")]


@pytest.mark.parametrize(
    ("installed", "majors"),
    [("", [13, 12]), ("cupy-cuda12x", [12]), ("cupy-cuda13x", [13])],
)
def test_the_compiler_is_of_the_version_of_cupy(monkeypatch, tmp_path, installed, majors):
    def distribution(name):
        """All packages of the compiler, and one of CuPy at most."""
        major = 12 if name.endswith("cu12") else 13
        file = mock.Mock(**{"locate.return_value": tmp_path})
        file.name = f"libnvrtc.so.{major}"
        there = name == installed or name.startswith("nvidia-cuda-nvrtc")
        return mock.Mock(files=[file], version=f"{major}.4.5") if there else None

    monkeypatch.setattr(_compile, "_distribution", distribution)
    monkeypatch.setenv("CUDA_PATH", "/nowhere")
    names = {13: "nvidia-cuda-nvrtc 13.4.5", 12: "nvidia-cuda-nvrtc-cu12 12.4.5"}
    assert [found.name for found in _compile._candidates()] == [names[m] for m in majors]
