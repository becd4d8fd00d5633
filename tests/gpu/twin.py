"""Drivers of the device, compiled for the host and run there: see ``twin.h``.

    library = twin.build("ext/gpu/dense.cu")
    device = twin.Device()
    a, out = device.array(numbers), device.empty(64, "f4")
    device.launch(library, "dense_gram_f32", (2, 1), 32, (a, out, ctypes.c_longlong(64)))
    out.get()

Memory of a device lies between inaccessible pages. What a kernel must not do raises ``Fault``.
"""

import ctypes
import fcntl
import functools
import hashlib
import mmap
import os
import pathlib
import re
import subprocess
import sysconfig
import tempfile
import threading
import weakref

import numpy as np

from kernelcore.engine.cpu import dispatch

HERE = pathlib.Path(__file__).parent
EXT = HERE.parents[1] / "ext"
# As in setup.py, and what finds an index beyond an array; twin.h has the functions that this calls.
# The macro makes config.h force no inlining: with -O2 and that, compilers take twice as long.
FLAGS = """-std=c++17 -O1 -finline-functions -finline-small-functions -D__SANITIZE_ADDRESS__ -g0
    -fPIC -fvisibility=hidden -fno-gnu-unique -fno-math-errno -fno-trapping-math -ffp-contract=off
    -fstack-clash-protection -Wno-attributes -fsanitize=bounds,object-size,alignment
    -fno-sanitize-recover=all""".split()
CXX = (os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++").split()
LEVEL = {level: ["-march=x86-64-v3"] for level in ("v3", "v4")}  # with fused multiply-adds
PAGE = mmap.PAGESIZE
GUARD = 256 * PAGE  # more than one, because a stride may step over it
POISONS = (0xFF, 0x7F)  # not a number, or -1; and a number that is large
ORDERS = {"ascending": 0, "descending": 1, "shuffled": 2}


_own = tempfile.TemporaryDirectory(prefix="twin")
_folder = pathlib.Path(os.environ.get("TWIN_FOLDER") or _own.name)  # or that of all processes
_one = threading.Lock()  # a launch at a time: signal handlers belong to the whole process
_libc = ctypes.CDLL(None, use_errno=True)


class Fault(Exception):
    """What a kernel has done that a device would not forgive, or not show."""


# ---- libraries


class Kernel:
    """What a launch calls, its parameters (``["p8", "i4"]``), and how many threads it takes."""

    def __init__(self, dll, name):
        self.name = name
        self.run = dll[f"twin_launch_{name}"]
        self.threads = dll[f"twin_threads_{name}"]()
        describe = dll[f"twin_parameters_{name}"]
        describe.restype = ctypes.c_char_p
        self.parameters = describe().decode().split()


def _compile(*arguments):
    level = LEVEL.get(dispatch.level(), [])
    folders = (EXT / "include", EXT / "gpu", HERE)
    command = [*CXX, *FLAGS, *level, *(f"-I{path}" for path in folders), *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise Fault(run.stderr)
    return run.stdout


@functools.cache
def build(source, *options):
    """Return the kernels of a ``.cu`` file by name: its ``extern "C" __global__`` functions."""
    text = f'#include "twin.h"\n#include "{pathlib.Path(source).resolve()}"\n'
    stem = _folder / hashlib.sha256(repr((text, options)).encode()).hexdigest()[:16]
    names = stem.with_suffix(".names")
    with open(stem.with_suffix(".lock"), "w") as lock:  # one of several processes compiles it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not names.exists():
            _library(text, options, stem)
    dll = ctypes.CDLL(str(stem.with_suffix(".so")))
    return {name: Kernel(dll, name) for name in names.read_text().split()}


def _library(text, options, stem):
    """Compile a library of kernels, and write down their names."""
    main, built, library, names = (stem.with_suffix(s) for s in (".cpp", ".o", ".so", ".names"))
    main.write_text(text)
    # Macros may have made the names, so that they are taken from what the compiler reads.
    bounds = r'(?:__attribute__\(\(twin_bounds\("(.*?)"\)\)\)\s*)?'
    mark = rf"__attribute__\(\(twin_kernel\)\)\s+{bounds}void\s+{bounds}(\w+)"
    found = re.findall(mark, _compile(*options, "-E", "-P", main))
    calls = [f"TWIN_KERNEL({name}, {before}{after})\n" for before, after, name in found]
    main.write_text(text + "".join(calls))
    _compile(*options, "-c", main, "-o", built)
    # Not with the flags above: they would add the sanitizers' own library.
    subprocess.run([*CXX, "-shared", "-Wl,-z,defs", built, "-o", library], check=True)
    names.write_text(" ".join(name for *_, name in found))


# ---- memory


class Buffer:
    """Memory of a device: its address ``ptr``, and its numbers as the NumPy array ``view``."""

    def __init__(self, shape, dtype, at_start, name="a buffer of {} bytes", align=1):
        like = np.empty(shape, dtype)
        self.nbytes, self.name = like.nbytes, name.format(like.nbytes)
        room = -(-like.nbytes // PAGE) * PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        whole = np.frombuffer(mmap.mmap(-1, room + 2 * GUARD, flags), np.uint8)
        for guard in (whole.ctypes.data, whole.ctypes.data + GUARD + room):
            if _libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(GUARD), 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        whole = whole[GUARD : GUARD + room]
        start = 0 if at_start else (room - like.nbytes) // align * align
        # What is neither part of it nor inaccessible lies on both sides of it.
        self.before, self.bytes, self.after = np.split(whole, [start, start + like.nbytes])
        self.view = self.bytes.view(like.dtype).reshape(like.shape)
        self.ptr = self.bytes.ctypes.data

    def get(self):
        """Return a copy."""
        return self.view.copy()


class _Launch(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_void_p),
        ("shared_bytes", ctypes.c_uint64),
        ("order", ctypes.c_int32),
        ("poison", ctypes.c_int32),
        ("turned", ctypes.c_uint64),
        ("phases", ctypes.c_uint64),
        ("fault", ctypes.c_void_p),
        ("last", ctypes.c_char * 256),
        ("message", ctypes.c_char * 1024),
    ]


def _value(a):
    """Return a letter for what an argument is, as in ``twin.h``, and its bytes."""
    if hasattr(a, "ptr"):  # a buffer, or a part of one
        return "p", ctypes.c_void_p(a.ptr)
    if isinstance(a, np.generic):
        kind = {"f": "f", "V": "s"}.get(a.dtype.kind, "i")
        return kind, ctypes.create_string_buffer(a.tobytes(), a.nbytes)
    kinds = {ctypes.c_void_p: "p", ctypes.c_float: "f", ctypes.c_double: "f"}
    return "s" if isinstance(a, ctypes.Structure) else kinds.get(type(a), "i"), a


class Device:
    """Memory and launches.

    Parameters
    ----------
    order : the order of threads and of blocks, "ascending", "descending", "shuffled", or a seed
        (from 2 on). With "every" each launch runs in the three that have names, on two poisons of
        shared memory, and no bit may depend on either.
    at_start : which end of a buffer is exact, so that the first byte beyond is inaccessible.
        Beyond the other there is less than a page, where a write is found afterwards, and "every"
        finds a read that matters. Dynamic shared memory has either end exact in "every".
    poison : what every byte of ``empty`` is.
    """

    def __init__(self, order="every", at_start=False, poison=POISONS[0]):
        self.order, self.at_start, self.poison = order, at_start, poison
        self._alive = weakref.WeakValueDictionary()  # buffers by identity

    def empty(self, shape, dtype):
        """Return a ``Buffer`` that nobody has written to."""
        buffer = Buffer(shape, dtype, self.at_start)
        buffer.bytes[:] = self.poison
        self._alive[id(buffer)] = buffer
        return buffer

    @property
    def buffers(self):
        """The buffers that are in use. Other threads may make and drop some meanwhile."""
        found = (ref() for ref in self._alive.valuerefs())  # a list, which is made in one step
        return [buffer for buffer in found if buffer is not None]

    def array(self, values):
        """Return a ``Buffer`` with a copy of an array."""
        values = np.asarray(values)
        buffer = self.empty(values.shape, values.dtype)
        buffer.view[...] = values
        return buffer

    def launch(self, library, name, grid, block, args, shared_bytes=0, order=None):
        """Run a kernel. Arguments are buffers, NumPy arrays (copied to the device and back),
        and values: scalars of ctypes or NumPy, a ``ctypes.Structure``, a record (``np.void``).
        """
        kernel = library[name]
        copies = {i: self.array(a) for i, a in enumerate(args) if isinstance(a, np.ndarray)}
        values = [_value(copies.get(i, a)) for i, a in enumerate(args)]
        given = [kind + str(ctypes.sizeof(value)) for kind, value in values]
        if given != kernel.parameters:
            takes = " ".join(kernel.parameters)
            raise Fault(f"{name} takes {takes}, not {' '.join(given)}")
        grid, block = [(*np.atleast_1d(d).tolist(), 1, 1)[:3] for d in (grid, block)]
        limits = (2**31 - 1, 65535, 65535, 1024, 1024, 64, kernel.threads)
        sizes = (*grid, *block, int(np.prod(block)))
        if not all(0 < size <= limit for size, limit in zip(sizes, limits, strict=True)):
            raise Fault(f"{name} takes at most {limits[-1]} threads, not {grid} x {block}")
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(v) for _, v in values))
        run = functools.partial(self._run, kernel, grid, block, pointers, shared_bytes)
        if (order or self.order) == "every":
            self._run_every(name, run)
        else:
            run(order or self.order, POISONS[0], False)
        for i, copy in copies.items():
            args[i][...] = copy.view

    def _run(self, kernel, grid, block, pointers, shared_bytes, order, poison, at_start, turned=-1):
        shared = Buffer(shared_bytes, "u1", at_start, "the {} bytes of dynamic shared memory", 16)
        buffers = [shared, *self.buffers]
        for buffer in buffers:
            buffer.before[:] = buffer.after[:] = poison
        order = ORDERS.get(order, order)
        run = _Launch(grid, block, shared.ptr, shared_bytes, order, poison, turned)
        with _one:
            kernel.run(ctypes.byref(run), pointers)
        message = run.message.decode()
        if run.fault is not None:
            near = min(buffers, key=lambda b: max(b.ptr - run.fault, run.fault - b.ptr - b.nbytes))
            message += f": byte {run.fault - near.ptr} of {near.name}"
        if message:
            raise Fault(message)
        for buffer in buffers:
            if (buffer.before != poison).any():
                raise Fault(f"{kernel.name}: write before the start of {buffer.name}")
            if (buffer.after != poison).any():
                raise Fault(f"{kernel.name}: write after the end of {buffer.name}")
        return run

    def _run_every(self, name, run):
        """Run three times from the same memory, which must become the same memory."""
        buffers = sorted(self.buffers, key=lambda buffer: buffer.ptr)
        before = [buffer.bytes.copy() for buffer in buffers]

        def restart(*setting):
            for buffer, old in zip(buffers, before, strict=True):
                buffer.bytes[:] = old
            return run(*setting)

        phases = restart("ascending", POISONS[0], False).phases
        first = [buffer.bytes.copy() for buffer in buffers]

        def differs():
            """Say which element is not what it was at first."""
            for buffer, one in zip(buffers, first, strict=True):
                where = np.flatnonzero(buffer.bytes != one)
                if where.size:
                    return f"element {where[0] // buffer.view.itemsize} of {buffer.name}"
            return ""

        for order, poison in zip(("descending", "shuffled"), reversed(POISONS), strict=True):
            at_start = order == "descending"
            restart(order, poison, at_start)
            if not (what := differs()):
                continue
            restart("ascending", poison, at_start)
            if differs():
                raise Fault(f"{name}: {what} depends on memory that nobody has written to")
            # Between which barriers: threads take the other order up to there, and no further.
            low, high = 0, phases + 1
            while high - low > 1:
                middle = (low + high) // 2
                restart(order, POISONS[0], False, middle)
                low, high = (low, middle) if differs() else (middle, high)
            if high > phases:
                raise Fault(f"{name}: {what} depends on the order of blocks")
            place = restart(order, POISONS[0], False, high).last.decode()
            raise Fault(f"{name}{place}: {what} depends on the order of threads: missing barrier")


def launch(library, name, grid, block, args, shared_bytes=0, order="every"):
    """Run a kernel on NumPy arrays, which are copied to a device and back."""
    Device(order).launch(library, name, grid, block, args, shared_bytes)
