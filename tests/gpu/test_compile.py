"""From a driver to a cubin: the compiler's options, the cache, and that every driver compiles."""

import concurrent.futures
import functools
import multiprocessing
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import kernelcore as kc
from kernelcore.engine import sources
from kernelcore.engine.gpu import compile as _compile
from kernelcore.engine.gpu import devices, drivers
from kernelcore.program import Code

ROOT = pathlib.Path(__file__).parents[2]
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
OTHERS = tuple(arch for arch in ARCHITECTURES if arch != "sm_80")
STAND_IN = """
#include "kernelcore/elementary.h"
#include "beside.h"
template <class T>
KC_HD void turn(T* x, T* s) {
    s[threadIdx.x] = kc::exp(x[threadIdx.x]);
    __syncthreads();
    x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x] * T(FACTOR) + x[threadIdx.x];
}
extern "C" __global__ void turn_f32(float* x) {
    __shared__ float s[64];
    turn(x, s);
}
extern "C" __global__ void turn_f64(double* x) {
    __shared__ double s[64];
    turn(x, s);
}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a driver, headers to change, and an empty cache."""
    shutil.copytree(kc.get_include(), tmp_path / "include")
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "turn.cu").write_text(STAND_IN)
    (tmp_path / "gpu" / "beside.h").write_text("#define FACTOR 3\n")
    monkeypatch.setattr(sources, "headers", lambda: str(tmp_path / "include"))
    monkeypatch.setattr(sources, "drivers", lambda: str(tmp_path / "gpu"))
    monkeypatch.setenv("KERNELCORE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def compiled(monkeypatch):
    """The drivers that were compiled, not found."""
    build, done = _compile.build, []

    def counted(driver, arch, defines=()):
        done.append(driver)
        return build(driver, arch, defines)

    monkeypatch.setattr(_compile, "build", counted)
    return done


# ---- what comes out


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_cubin_is_machine_code_for_its_architecture(place, arch):
    content = _compile.cubin("turn", arch).read_bytes()
    assert content[:4] == b"\x7fELF"
    machine, flags = struct.unpack_from("<H", content, 18)[0], struct.unpack_from("<I", content, 48)
    assert machine == 190  # EM_CUDA
    assert flags[0] >> 8 & 0xFF == int(arch[3:])
    for name in (b"turn_f32", b"turn_f64"):
        assert b".text." + name in content


def test_the_arithmetic_is_that_of_the_cpu(place):
    (place / "gpu" / "turn.cu").write_text(
        'extern "C" __global__ void f(float* x) {\n'
        "    x[0] = x[1] * x[2] + x[3];\n"
        "    x[4] = x[5] / x[6];\n"
        "    x[7] = sqrtf(x[8]);\n"
        "}\n"
    )
    ptx = _compile.build("turn", "sm_80").ptx
    found = re.findall(r"\b(?:mul|add|fma|mad|div|sqrt)\.\S*f32\b", ptx)
    assert found == ["mul.rn.f32", "add.rn.f32", "div.rn.f32", "sqrt.rn.f32"]


def test_resources_are_those_of_every_kernel(place):
    found = _compile.resources("turn")
    assert list(found) == ["turn_f32", "turn_f64"]
    assert [kernel.shared for kernel in found.values()] == [64 * 4, 64 * 8]
    for kernel in found.values():
        assert 8 <= kernel.registers <= 64
        assert (kernel.stack, kernel.spilled) == (0, 0)


def test_resources_tell_what_is_spilled(place):
    """Sixty sums that are all alive, in thirty-two registers."""
    (place / "gpu" / "turn.cu").write_text(
        'extern "C" __global__ void __launch_bounds__(1024, 2) full(double* x, int n) {\n'
        "    double s[60];\n"
        "#pragma unroll\n"
        "    for (int k = 0; k < 60; k++) s[k] = x[k];\n"
        "    for (int i = 0; i < n; i++) {\n"
        "#pragma unroll\n"
        "        for (int k = 0; k < 60; k++) s[k] += s[(k + 7) % 60] * x[i];\n"
        "    }\n"
        "#pragma unroll\n"
        "    for (int k = 0; k < 60; k++) x[k] = s[k];\n"
        "}\n"
    )
    full = _compile.resources("turn")["full"]
    assert full.registers <= 65536 // 2048
    # What does not fit is written and read once at least.
    assert full.spilled >= 2 * (60 * 8 - 4 * full.registers)
    assert full.stack >= 60 * 8 - 4 * full.registers


def test_warnings_are_messages(place):
    assert _compile.build("turn", "sm_80", verbose=True).messages() == []
    with open(place / "gpu" / "turn.cu", "a") as file:
        file.write("__global__ void idle() {\n    int spare = 3;\n}\n")
    messages = _compile.build("turn", "sm_80", verbose=True).messages()
    assert re.search(r'turn\.cu\(\d+\): warning .* variable "spare" was declared', messages[0])


def test_headers_of_the_working_directory_are_not_read(place, monkeypatch):
    there = place / "elsewhere"
    (there / "kernelcore").mkdir(parents=True)
    for name in ("beside.h", "kernelcore/elementary.h", "config.h"):
        (there / name).write_text("#error from elsewhere\n")
    monkeypatch.chdir(there)
    assert _compile.build("turn", "sm_80").log == ""


@pytest.mark.gpu
def test_a_device_runs_what_was_compiled(place):
    cupy, device = devices.cupy(), devices.devices()[0]
    module = cupy.RawModule(path=str(_compile.cubin("turn", device.arch)))
    for dtype, name in ((np.float32, "turn_f32"), (np.float64, "turn_f64")):
        x = np.linspace(-3, 3, 64, dtype=dtype)
        y = cupy.asarray(x)
        module.get_function(name)((1,), (64,), (y,))
        want = np.exp(x[::-1].astype(np.longdouble)) * 3 + x
        # The exponential is within 2 units of the last place, and product and sum round once each.
        bound = 2 * np.finfo(dtype).eps * (3 * np.exp(x[::-1]) + abs(want))
        assert (abs(y.get() - want) <= bound).all()


# ---- the cache


def test_a_cubin_is_compiled_once(place, compiled):
    first = _compile.cubin("turn")
    assert first.parent == place / "cache"
    content = first.read_bytes()
    assert content == _compile.build("turn", "sm_80").cubin
    compiled.clear()
    assert _compile.cubin("turn") == first
    assert compiled == []
    assert _compile.cubin("turn", "sm_90") != first
    assert compiled == ["turn"]
    assert _compile.cubin("turn", "sm_80", ("ONE",)) != first
    assert compiled == ["turn"] * 2
    assert first.read_bytes() == content
    assert len(list((place / "cache").iterdir())) == 3  # and nothing that is half written


def change(path, text):
    path.write_text(path.read_text() + text)


CHANGES = {
    "driver": lambda place, patch: change(place / "gpu" / "turn.cu", "\n"),
    "header beside it": lambda place, patch: change(place / "gpu" / "beside.h", "\n"),
    "header": lambda place, patch: change(place / "include" / "kernelcore" / "config.h", "\n"),
    "header in a folder": lambda place, patch: change(
        place / "include" / "kernelcore" / "duals" / "erf.h", "\n"
    ),
    "new header": lambda place, patch: (place / "include" / "kernelcore" / "new.h").touch(),
    "options": lambda place, patch: patch.setattr(
        _compile, "OPTIONS", (*_compile.OPTIONS, "--maxrregcount=64")
    ),
    "compiler": lambda place, patch: patch.setattr(
        _compile, "compiler", lambda: _compile.Compiler(COMPILER.path, "another")
    ),
}
COMPILER = _compile.compiler()


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_changes_is_compiled_again(place, compiled, monkeypatch, what):
    first = _compile.cubin("turn")
    CHANGES[what](place, monkeypatch)
    second = _compile.cubin("turn")
    assert second != first
    assert compiled == ["turn"] * 2
    assert _compile.cubin("turn") == second
    assert compiled == ["turn"] * 2


def test_the_place_of_an_installation_does_not_matter(place, compiled, monkeypatch):
    first = _compile.cubin("turn")
    for name in ("include", "gpu"):
        shutil.copytree(place / name, place / "moved" / name)
    monkeypatch.setattr(sources, "headers", lambda: str(place / "moved" / "include"))
    monkeypatch.setattr(sources, "drivers", lambda: str(place / "moved" / "gpu"))
    assert _compile.cubin("turn") == first
    assert compiled == ["turn"]
    assert _compile.build("turn", "sm_80").cubin == first.read_bytes()


@pytest.mark.parametrize(
    "spoil",
    [lambda data: data[:-1], lambda data: b"", lambda data: data[:99] + b"?" + data[100:]],
    ids=["cut", "empty", "changed"],
)
def test_a_damaged_file_is_compiled_again(place, compiled, spoil):
    path = _compile.cubin("turn")
    whole = path.read_bytes()
    path.write_bytes(spoil(whole))
    assert _compile.cubin("turn").read_bytes() == whole
    assert compiled == ["turn"] * 2


def test_two_threads_compile_once(place, compiled):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first, second = pool.map(_compile.cubin, ["turn"] * 2)
    assert first == second
    assert compiled == ["turn"]


def test_two_processes_do_not_disturb_each_other(place):
    code = (
        "import sys; from kernelcore.engine import sources\n"
        "place = sys.argv[1]\n"
        "sources.headers, sources.drivers = lambda: place + '/include', lambda: place + '/gpu'\n"
        "from kernelcore.engine.gpu import compile\n"
        "print('ready', flush=True); input()\n"
        "print(compile.cubin('turn').read_bytes().hex())"
    )
    path = os.pathsep.join([str(pathlib.Path(kc.__file__).parents[1]), *sys.path])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(place)], env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=60)[0] for process in processes]
    (file,) = (place / "cache").iterdir()
    assert told == [file.read_bytes().hex() + "\n"] * 2


def test_the_cache_is_the_users_alone(place):
    os.umask(before := os.umask(0))
    try:
        os.umask(0)
        path = _compile.cubin("turn")
    finally:
        os.umask(before)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o077 == 0


def test_where_the_cache_is(monkeypatch, tmp_path):
    for name in ("KERNELCORE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _compile.folder() == tmp_path / ".cache" / "kernelcore"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the standard says to ignore it
    assert _compile.folder() == tmp_path / ".cache" / "kernelcore"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _compile.folder() == tmp_path / "xdg" / "kernelcore"
    monkeypatch.setenv("KERNELCORE_CACHE", "~/mine")
    assert _compile.folder() == tmp_path / "mine"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNELCORE_CACHE", "here")
    assert _compile.folder() == tmp_path / "here"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have(place):
    with _compile._compiling:
        child = os.fork()
        if child == 0:
            os._exit(0 if _compile._compiling.acquire(blocking=False) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture
def interruptible():
    """Have SIGINT raise, as it does not in a process that a shell has started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_seen_while_a_driver_is_compiled(place, interruptible):
    """At once; and of the nine seconds that the source takes, the compiler is spared most."""
    (place / "gpu" / "turn.cu").write_text(
        "template <int n, int k>\n"
        "__device__ __forceinline__ double f(double x) {\n"
        "    if constexpr (n == 0) return x;\n"
        "    else return f<n - 1, k>(x * x + k) / (x + n) + sqrt(x * n);\n"
        "}\n"
        "template <int k>\n"
        "__global__ void g(double* x) { x[k] = f<150, k>(x[k]); }\n"
        + "".join(f"template __global__ void g<{k}>(double*);\n" for k in range(4))
    )
    before = threading.active_count()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        _compile.cubin("turn")
    assert time.perf_counter() - start < 1.3
    while threading.active_count() > before:
        time.sleep(0.01)
    assert time.perf_counter() - start < 5
    assert list((place / "cache").iterdir()) == []


# ---- every driver

DRIVERS = _compile.drivers()
RELU = drivers.Needs(drivers.mask([Code.TRAINED, Code.RELU]), wants=3, kinds=1).defines(32 + 64)
"""Networks with ReLU, both kernels in both precisions: the kernels that are hot."""
EVERYTHING = ()
DOUBLE = {"gegenbauer"}
"""Drivers that have no single precision, on the CPU neither."""


@functools.cache
def built(driver, arch):
    """By a process of its own: in one that has compiled with --Ofast-compile, NVRTC keeps that."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_compile.build, driver, arch, RELU, verbose=True).result()


def on(archs, *few):
    """All drivers on these architectures, of which only some take part in every run."""
    return [
        pytest.param(driver, arch, marks=[] if arch in few else pytest.mark.slow)
        for arch in archs
        for driver in DRIVERS
    ]


def test_every_driver_is_there():
    names = {path.stem for path in (ROOT / "ext" / "gpu").glob("*.cu")}
    assert set(DRIVERS) == names
    assert names <= {path.stem for path in (ROOT / "ext" / "cpu").glob("*.h")}


@pytest.mark.parametrize(("driver", "arch"), on(ARCHITECTURES, "sm_80"))
def test_all_of_a_driver_compiles_without_a_warning(driver, arch, monkeypatch):
    """Every operation and precision, to machine code, but hardly optimised: that takes minutes."""
    monkeypatch.setattr(_compile, "OPTIONS", (*_compile.OPTIONS, "--Ofast-compile=max"))
    build = _compile.build(driver, arch, EVERYTHING)
    assert build.log == ""
    assert build.cubin
    kernels = re.findall(r"\.entry (\w+)", build.ptx)
    kinds = ("f64",) if driver in DOUBLE else ("f32", "f64")
    stems = {name[:-4] for name in kernels}
    assert sorted(kernels) == sorted(f"{stem}_{kind}" for stem in stems for kind in kinds)
    assert {stem.partition("_")[0] for stem in stems} == {driver}


@pytest.mark.parametrize(("driver", "arch"), on(OTHERS, *OTHERS))
def test_every_driver_compiles_for_every_architecture(driver, arch, monkeypatch):
    monkeypatch.setattr(_compile, "OPTIONS", (*_compile.OPTIONS, "--Ofast-compile=max"))
    assert _compile.build(driver, arch, RELU).log == ""


@pytest.mark.parametrize(("driver", "arch"), on(ARCHITECTURES, "sm_80"))
def test_every_driver_compiles_as_it_will_run(driver, arch):
    assert built(driver, arch).messages() == []


@pytest.fixture
def cuda_12(monkeypatch):
    """The compiler of CUDA 12, as if CuPy were installed for it."""
    monkeypatch.setattr(_compile, "_majors", lambda: [12])
    for function in (_compile.compiler, _compile.architectures):
        function.cache_clear()
    yield
    for function in (_compile.compiler, _compile.architectures):
        function.cache_clear()


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_driver_compiles_with_cuda_12(cuda_12, driver, monkeypatch):
    assert _compile.compiler().name.startswith("nvidia-cuda-nvrtc-cu12 12.")
    monkeypatch.setattr(_compile, "OPTIONS", (*_compile.OPTIONS, "--Ofast-compile=max"))
    assert _compile.build(driver, "sm_80", RELU).cubin[:4] == b"\x7fELF"


# ---- what the documentation says of them


@functools.cache
def table():
    """The rows of GPU.md, and its compiler: ``{(driver, kernel): {arch: "registers / ..."}}``."""
    text = (ROOT / "GPU.md").read_text()
    part = re.search(r"<!-- resources -->\n(.*?)<!-- end -->", text, re.S)[1]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines()[2:]]
    named = {(row[0], row[1]): dict(zip(rows[0][2:], row[2:], strict=True)) for row in rows[2:]}
    return named, part.splitlines()[0]


@pytest.mark.parametrize(("driver", "arch"), on(ARCHITECTURES, "sm_80"))
def test_the_table_has_what_the_compiler_says(driver, arch, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import gpu_resources

    rows, told = table()
    assert told == f"Compiler: {_compile.compiler().name}."
    cell = gpu_resources.cell
    said = {kernel: cell(arch, kernel, k) for kernel, k in built(driver, arch).kernels().items()}
    assert said == {kernel: row[arch] for (its, kernel), row in rows.items() if its == driver}


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "blocks"),
    [
        ("sm_80", 32, 0, 8),  # 64 warps
        ("sm_80", 128, 27136, 2),  # 65,536 registers
        ("sm_80", 129, 27136, 1),  # given by eight for each thread
        ("sm_80", 32, 54 * 1024, 2),  # 164 kB, of which every block takes one more
        ("sm_120", 32, 0, 6),  # 48 warps
    ],
)
def test_occupancy_is_what_fits(monkeypatch, arch, registers, shared, blocks):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import gpu_resources

    assert gpu_resources.blocks_on(arch, registers, shared) == blocks


def test_the_table_has_every_driver_and_architecture():
    rows, _ = table()
    assert {driver for driver, _ in rows} == set(DRIVERS)
    assert all(tuple(row) == ARCHITECTURES for row in rows.values())


SPILLING = {}
"""Kernels that may spill, with the reason."""


def test_no_kernel_spills():
    rows, _ = table()
    found = {
        name for (_, name), row in rows.items() for cell in row.values() if "/ 0 /" not in cell
    }
    assert found == set(SPILLING)
