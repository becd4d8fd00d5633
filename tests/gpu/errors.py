"""Compilers, caches and devices that are missing or wrong."""

import importlib.util
import os
import pathlib
import shutil
import tempfile
from unittest import mock

import numpy as np
import pytest
from gpu import standin, twin
from messages import Case

import kernelcore as kc
from kernelcore.engine import sources
from kernelcore.engine.gpu import compile as _compile
from kernelcore.engine.gpu import devices

HOME = pathlib.Path(tempfile.gettempdir(), f"kernelcore-errors-{os.getpid()}")
USER = os.geteuid()
COMPILER = _compile.compiler().name
KNOWN = ", ".join(_compile.architectures())
FLAGS = "-std=c++17 --fmad=false --ftz=false --prec-div=true --prec-sqrt=true"


def here(call, text="", mode=0o700, user=USER):
    """The call, where the one driver is ``one``, with that text, and the cache has that mode."""

    def refused():
        for folder in (HOME, HOME / "gpu", HOME / "cache"):
            folder.mkdir()
        (HOME / "gpu" / "one.cu").write_text(text)
        (HOME / "cache").chmod(mode)
        try:
            with (
                mock.patch.object(sources, "drivers", return_value=str(HOME / "gpu")),
                mock.patch.object(os, "geteuid", return_value=user),
                mock.patch.dict(os.environ, KERNELCORE_CACHE=str(HOME / "cache")),
            ):
                call()
        finally:
            shutil.rmtree(HOME)

    return refused


def installed(names, call):
    """The call, where of the packages of CuPy and the compiler only these are installed."""

    def distribution(name):
        return mock.Mock(files=[], version="1.0") if name in names else None

    def refused():
        _compile.compiler.cache_clear()
        try:
            with (
                mock.patch.object(_compile, "_distribution", distribution),
                mock.patch.dict(os.environ, CUDA_PATH="/nowhere"),
            ):
                call()
        finally:
            _compile.compiler.cache_clear()

    return refused


class CUDARuntimeError(Exception):
    """As CuPy has it."""


def cupy(driver=13000, count=1):
    """CuPy for CUDA 13.0, as far as it is asked, on a machine with this driver and devices."""
    runtime = mock.Mock(CUDARuntimeError=CUDARuntimeError)
    runtime.driverGetVersion.return_value = driver
    runtime.runtimeGetVersion.return_value = 13000
    failed = isinstance(count, Exception)
    runtime.getDeviceCount = mock.Mock(**{"side_effect" if failed else "return_value": count})
    return mock.Mock(**{"cuda.runtime": runtime})


def without_device(module, message):
    """What ``devices.cupy`` says where CuPy is ``module``, or is not installed."""
    find = importlib.util.find_spec

    def load(name):
        if isinstance(module, Exception):
            raise module
        return module

    def refused():
        spec = module and mock.Mock()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                importlib.util, "find_spec", lambda name, *_: spec if name == "cupy" else find(name)
            )
            patch.setattr(devices, "load", load)
            devices.cupy()

    return Case(RuntimeError, f"no GPU can be used: {message}", refused)


def on_device(call):
    """The call, where the stand-in is CuPy."""

    def refused():
        with standin.installed():
            call()

    return refused


def there(a, number=0):
    a = standin.asarray(np.asarray(a))
    a.number = number
    return a


def within(limit, call):
    """The call, on a device of so many bytes, where less than a kilobyte is taken."""
    with mock.patch.multiple(standin.State, limit=limit, devices=[twin.Device("ascending")]):
        call()


def devices_of(call):
    """The call, where there are two devices, and CuPy."""
    find, two = importlib.util.find_spec, [twin.Device("ascending")] * 2
    with (
        mock.patch.object(
            importlib.util,
            "find_spec",
            lambda name, *_: mock.Mock() if name == "cupy" else find(name),
        ),
        mock.patch.object(standin.State, "devices", two),
    ):
        call()


K = kc.Gaussian(1.0)
ROWS = np.ones((2, 3))
HOLE = np.array([[1.0, 2.0], [3.0, np.nan]])
PICTURES = np.full((3, 4, 4, 1), 1.0)
PICTURES[2, 1, 0, 0] = np.inf
POOLED = kc.Sequential(kc.Conv(3), kc.Relu(), kc.GlobalAvgPool(), kc.Dense())

ON_DEVICE = [
    Case(kind, message, on_device(call))
    for kind, message, call in (
        (
            TypeError,
            "X must be float32 or float64 on a device: got int64; pass X.astype('float32')",
            lambda: K(there(ROWS.astype(int))),
        ),
        (
            TypeError,
            "Y must be where X is, cupy.ndarray on <CUDA Device 0>: got numpy.ndarray on the host; "
            "move one of them",
            lambda: K(there(ROWS), ROWS),
        ),
        (
            TypeError,
            "X must be where Y is, cupy.ndarray on <CUDA Device 0>: got numpy.ndarray on the host; "
            "move one of them",
            lambda: K(ROWS, there(ROWS)),
        ),
        (
            TypeError,
            "Y must be where X is, cupy.ndarray on <CUDA Device 0>: got cupy.ndarray on "
            "<CUDA Device 1>; move one of them",
            lambda: K(there(ROWS), there(ROWS, 1)),
        ),
        (
            TypeError,
            "Y must be where X is, cupy.ndarray on <CUDA Device 0>: got cupy.ndarray on "
            "<CUDA Device 1>; move one of them",
            lambda: POOLED.ntk(there(PICTURES[:1]), there(PICTURES[:1], 1)),
        ),
        (
            TypeError,
            "out must be an array of the library of X: got ndarray",
            lambda: K(there(ROWS), out=np.empty((2, 2))),
        ),
        (
            ValueError,
            "out must have shape (2, 2): got shape (2, 3)",
            lambda: K(there(ROWS), out=there(ROWS)),
        ),
        (
            TypeError,
            "out must have dtype float64: got float32",
            lambda: K(there(ROWS), out=there(np.ones((2, 2), np.float32))),
        ),
        (
            ValueError,
            "out must be C-contiguous: got strides (32, 16)",
            lambda: K(there(ROWS), out=there(np.ones((2, 4)))[:, ::2]),
        ),
        (
            ValueError,
            "X must be finite: X[1, 1] is nan",
            lambda: K(there(HOLE)),
        ),
        (
            ValueError,
            "Y must be finite: Y[2, 1, 0, 0] is inf",
            lambda: POOLED.ntk(there(PICTURES[:1]), there(PICTURES)),
        ),
        (
            OverflowError,
            "X must keep the kernel within float32: the variance overflows in Relu(); scale X down",
            lambda: POOLED.nngp(there(np.full((1, 4, 4, 1), 1e19, np.float32))),
        ),
        (
            MemoryError,
            "K of 200 x 200 float64 must fit into the memory of the device: 320.0 kB are needed, "
            "1.8 kB are free; use GramOperator or fewer points",
            lambda: within(5000, lambda: K(there(np.ones((200, 2))))),
        ),
        (
            MemoryError,
            "the tables of an image must fit into the memory of the device: 1.1 MB are needed, "
            "46.3 kB are free; free some, or use smaller inputs",
            lambda: within(50_000, lambda: POOLED.ntk(there(np.ones((2, 4, 4, 1))))),
        ),
        *(
            (
                ValueError,
                'numbers must be None, "all" or a list of numbers from 0 to 1, each once: '
                f"got {numbers!r}",
                lambda numbers=numbers: devices_of(lambda: kc.set_devices(numbers)),
            )
            for numbers in ([2], [-1], [0, 0], [], 0, "both", [True], [1.0])
        ),
    )
]

PLACE, NUMPY = "cupy.ndarray on <CUDA Device 0>", "numpy.ndarray on the host"
HOST = "must be in the memory of the host: got cupy.ndarray on a device; copy it to a NumPy array"
SQUARE, ONES = 2 * np.eye(3), np.ones(3)
POINTS = np.arange(6.0).reshape(3, 2)
solvers, features = kc.solvers, kc.features


def fitted(X):
    return solvers.nystrom_ridge(K, X, X[:, 0], 0.1, centres=2, seed=0)


def pivots(a):
    return solvers.nystrom_preconditioner(a, rank=2, ridge=0.1, seed=0)


def deflated(a):
    return solvers.eigenpro_preconditioner(a, rank=1, ridge=0.1, seed=0)


def blocks(a):
    return solvers.block_jacobi(a, ridge=0.1)


def waves(X):
    return features.FourierFeatures(n_features=4, seed=0).fit(X)


# Arguments that are on the host, beside others that are on the device.
APART = [
    Case(
        TypeError,
        f"{name} must be where {of} is, {PLACE}: got {NUMPY}; move one of them",
        on_device(call),
    )
    for name, of, call in (
        ("y", "K", lambda: solvers.ridge(there(SQUARE), ONES)),
        ("y", "K", lambda: solvers.conjugate_gradients(there(SQUARE), ONES)),
        ("y", "X", lambda: solvers.eigenpro(K, there(POINTS), ONES)),
        (
            "K_test",
            "K",
            lambda: solvers.gradient_flow(there(SQUARE), there(ONES), 1, K_test=SQUARE),
        ),
        ("alpha", "K", lambda: solvers.rkhs_inner(ONES, there(SQUARE))),
        ("x", "K", lambda: kc.GramOperator(K, there(POINTS)) @ ONES),
        ("X", "centres", lambda: fitted(there(POINTS)).predict(POINTS)),
        ("X", "weights_", lambda: waves(there(POINTS)).transform(POINTS)),
        *(
            ("r", "the preconditioner", lambda make=make: make(there(SQUARE)).solve(ONES))
            for make in (pivots, deflated, blocks)
        ),
    )
]
# Arguments that are on the device, beside others that are on the host, or for the host alone.
APART += [
    Case(TypeError, f"{name} {HOST}", on_device(call))
    for name, call in (
        ("y", lambda: solvers.ridge(SQUARE, there(ONES))),
        ("y", lambda: solvers.eigenpro(K, POINTS, there(ONES))),
        ("x", lambda: kc.GramOperator(K, POINTS) @ there(ONES)),
        ("X", lambda: fitted(POINTS).predict(there(POINTS))),
        ("X", lambda: waves(POINTS).transform(there(POINTS))),
        *(
            ("r", lambda make=make: make(SQUARE).solve(there(ONES)))
            for make in (pivots, deflated, blocks)
        ),
        ("columns", lambda: kc.GramOperator(K, there(POINTS)).columns(there(np.arange(2)))),
        ("times", lambda: solvers.gradient_flow(there(SQUARE), there(ONES), there(ONES))),
        ("ridge", lambda: solvers.RidgePath(there(SQUARE), there(ONES)).alpha(there(ONES))),
    )
]
APART += [
    Case(kind, message, on_device(call))
    for kind, message, call in (
        (
            TypeError,
            "out must be a NumPy array: got cupy.ndarray",
            lambda: K(POINTS, out=there(SQUARE)),
        ),
        (
            TypeError,
            "ridge must be a real number: got cupy.ndarray",
            lambda: solvers.ridge(there(SQUARE), there(ONES), there(1.0)),
        ),
        (
            np.linalg.LinAlgError,
            "K + ridge I must be positive definite: its first 2 rows and columns are not, and its "
            "smallest eigenvalue is -1; a ridge larger by 1.1 would do and damp what lies along "
            "eigenvalues below it, on_singular='pinv' leaves that out",
            lambda: solvers.ridge(there(np.array([[1.0, 2.0], [2.0, 1.0]])), there(np.ones(2))),
        ),
    )
]

BROKEN = ImportError("Failed to import CuPy.\n\nOriginal error: ...")
BROKEN.__cause__ = ImportError("libcudart.so.13: cannot open shared object file")

CASES = [
    *ON_DEVICE,
    *APART,
    Case(
        ValueError, "driver must be one of one: got 'dense'", here(lambda: _compile.cubin("dense"))
    ),
    *(
        Case(
            ValueError,
            f"arch must be one of {KNOWN}, which {COMPILER} knows: got {arch!r}; "
            "kernelcore[gpu] has CUDA 13, and kernelcore[gpu12] has CUDA 12",
            here(lambda arch=arch: _compile.cubin("one", arch)),
        )
        for arch in ("sm_70", "80", "compute_80", 80)
    ),
    Case(
        RuntimeError,
        f"{HOME}/gpu/one.cu must compile with {COMPILER}: NVRTC_ERROR_COMPILATION with {FLAGS} "
        f"--gpu-architecture=sm_80 -I{sources.headers()}\n"
        f'{HOME}/gpu/one.cu(2): error: identifier "oops" is undefined\n'
        "  __device__ int f() { return oops; }\n"
        "                              ^\n\n"
        f'1 error detected in the compilation of "{HOME}/gpu/one.cu".',
        here(lambda: _compile.cubin("one"), "\n__device__ int f() { return oops; }\n"),
    ),
    Case(
        RuntimeError,
        f"nvrtcGetCUBINSize of {COMPILER} failed: NVRTC_ERROR_INVALID_PROGRAM",
        lambda: _compile._read(None, "CUBIN"),
    ),
    *(
        Case(
            ImportError,
            f"drivers for GPUs need NVRTC; install it with: pip install 'kernelcore[{extra}]'",
            installed(names, here(lambda: _compile.cubin("one"))),
        )
        for names, extra in (
            ((), "gpu"),
            (("cupy-cuda13x",), "gpu"),
            (("cupy-cuda12x",), "gpu12"),
            (("cupy-cuda12x", "nvidia-cuda-nvrtc"), "gpu12"),
        )
    ),
    *(
        Case(
            PermissionError,
            f"the cache folder must be closed to others: {HOME}/cache has mode {mode:03o}; "
            f"chmod 700 {HOME}/cache, or set KERNELCORE_CACHE to another",
            here(lambda: _compile.cubin("one"), mode=mode),
        )
        for mode in (0o777, 0o770, 0o755, 0o701)
    ),
    Case(
        PermissionError,
        f"the cache folder must be yours: {HOME}/cache belongs to user {USER}; "
        "set KERNELCORE_CACHE to another",
        here(lambda: _compile.cubin("one"), user=USER + 1),
    ),
    without_device(None, "CuPy is not installed: pip install 'kernelcore[gpu]'"),
    without_device(BROKEN, "CuPy does not load: libcudart.so.13: cannot open shared object file"),
    without_device(cupy(driver=0), "no NVIDIA driver is installed"),
    without_device(
        cupy(driver=12040),
        "the NVIDIA driver is for CUDA 12.4, CuPy for CUDA 13.0: update the driver, or "
        "pip install 'kernelcore[gpu12]' instead of kernelcore[gpu]",
    ),
    without_device(cupy(count=0), "there is no device"),
    without_device(
        cupy(count=CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")),
        "no device answers: cudaErrorNoDevice: no CUDA-capable device is detected",
    ),
]
