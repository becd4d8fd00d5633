"""Drivers of the device, compiled for the host and run there: see ``twin.h``.

    library = twin.build("ext/gpu/dense.cu")
    device = twin.Device()
    a, out = device.array(numbers), device.empty(64, "f4")
    device.launch(library, "dense_gram_f32", (2, 1, 1), (32, 1, 1), (a, out, ctypes.c_longlong(64)))
    out.get()

Arrays of a device lie next to inaccessible pages. What a kernel must not do raises ``Fault``.
"""

import ctypes
import functools
import hashlib
import mmap
import pathlib
import re
import subprocess
import tempfile
import threading
import weakref

import numpy as np

from kernelcore.engine.cpu import dispatch

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
INCLUDE = [ROOT / "ext/include", ROOT / "ext/gpu", HERE]
# As in setup.py, and what finds an index beyond an array; twin.h has the functions that this calls.
FLAGS = """-std=c++17 -O2 -g0 -fPIC -fvisibility=hidden -fno-gnu-unique -fno-math-errno
    -fno-trapping-math -ffp-contract=off -U_FORTIFY_SOURCE -Wall -Wextra -Wno-unknown-pragmas
    -fsanitize=bounds,object-size -fno-sanitize-recover=all""".split()
LEVEL = {"v3": ["-march=x86-64-v3"]}
GUARD, PAGE = 1 << 20, 1 << 16
POISONS = (0xFF, 0x7F)  # not a number, or -1; and a number that is large
ORDERS = {"ascending": 0, "descending": 1, "shuffled": 2}

_folder = tempfile.TemporaryDirectory(prefix="twin")
_one = threading.Lock()  # a launch at a time: signal handlers belong to the whole process
_libc = ctypes.CDLL(None, use_errno=True)


class Fault(Exception):
    """What a kernel has done that a device would not forgive, or not show."""


# ---- compiling


class Library:
    """A compiled driver; ``kernels`` has the parameters of each, such as ``["p8", "i4"]``."""

    def __init__(self, path, names):
        self._dll = ctypes.CDLL(str(path))
        self.kernels = {}
        for name in names:
            describe = self._dll[f"twin_parameters_{name}"]
            describe.restype = ctypes.c_char_p
            self.kernels[name] = describe().decode().split()

    def __getitem__(self, name):
        return self._dll[f"twin_launch_{name}"]


def _compile(*arguments):
    level = LEVEL.get(dispatch.machine_levels()[0], [])
    command = ["g++", *FLAGS, *level, *(f"-I{path}" for path in INCLUDE), *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode or run.stderr:
        raise Fault(run.stderr)
    return run.stdout


@functools.cache
def build(source):
    """Return the ``Library`` of a ``.cu`` file: every ``extern "C" __global__`` function of it."""
    source = pathlib.Path(source).resolve()
    text = f'#include "twin.h"\n#include "{source}"\n'
    stem = pathlib.Path(_folder.name) / hashlib.sha256(text.encode()).hexdigest()[:16]
    main, built = stem.with_suffix(".cpp"), stem.with_suffix(".so")
    main.write_text(text)
    # Macros may have made the names, so the compiler's own reading of the source is what has them.
    mark = re.escape('extern "C" __attribute__((visibility("default")))')
    names = re.findall(mark + r"\s+void\s+(\w+)\s*\(", _compile("-E", "-P", main))
    main.write_text(text + "".join(f"TWIN_KERNEL({name})\n" for name in names))
    _compile("-c", main, "-o", stem.with_suffix(".o"))
    # Without the sanitizers' library, whose part twin.h plays.
    link = ["g++", "-shared", "-Wl,-z,defs", stem.with_suffix(".o"), "-o", built]
    subprocess.run(link, check=True)
    return Library(built, names)


# ---- memory


class Buffer:
    """Memory of a device: ``ptr``, and the same numbers as the NumPy array ``view``."""

    def __init__(self, shape, dtype, at_start, poison):
        self.view = np.empty(shape, dtype)  # what it will be, for its size
        self.nbytes = self.view.nbytes
        room = -(-self.nbytes // PAGE) * PAGE
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        whole = np.frombuffer(mmap.mmap(-1, room + 2 * GUARD, private), np.uint8)
        for guard in (whole.ctypes.data, whole.ctypes.data + GUARD + room):
            if _libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(GUARD), 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        whole = whole[GUARD : GUARD + room]
        whole[:] = poison
        start = 0 if at_start else room - self.nbytes
        self.bytes = whole[start : start + self.nbytes]
        self.slack = whole[self.nbytes :] if at_start else whole[:start]
        self.view = self.bytes.view(self.view.dtype).reshape(self.view.shape)
        self.ptr = self.bytes.ctypes.data

    def get(self):
        """Return a copy."""
        return self.view.copy()


class _Launch(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint64),
        ("order", ctypes.c_int32),
        ("poison", ctypes.c_int32),
        ("at_start", ctypes.c_int32),
        ("fault", ctypes.c_void_p),
        ("message", ctypes.c_char * 1024),
    ]


class Device:
    """Arrays and launches.

    Parameters
    ----------
    order : the order of threads, "ascending", "descending" or "shuffled"; "every" runs each launch
        in all three, on other poisons of shared memory, and raises if a bit depends on either.
    at_start : the end of an array that is exact, where the first byte outside is inaccessible.
        Beyond the other end there are up to 64 KiB, where only a write is seen.
    poison : what every byte of ``empty`` is.
    """

    def __init__(self, order="every", at_start=False, poison=POISONS[0]):
        self.order, self.at_start, self.poison = order, at_start, poison
        self.buffers = weakref.WeakSet()

    def empty(self, shape, dtype):
        """Return a ``Buffer`` that nobody has written to."""
        buffer = Buffer(shape, dtype, self.at_start, self.poison)
        self.buffers.add(buffer)
        return buffer

    def array(self, values):
        """Return a ``Buffer`` with a copy of an array."""
        values = np.asarray(values)
        buffer = self.empty(values.shape, values.dtype)
        buffer.view[...] = values
        return buffer

    def launch(self, library, name, grid, block, args, shared_bytes=0, order=None):
        """Run a kernel. ``args`` are buffers, NumPy arrays (copied to the device and back), and
        what is passed by value: scalars of ctypes or NumPy, Structures, records (``np.void``).
        """
        copies = {i: self.array(a) for i, a in enumerate(args) if isinstance(a, np.ndarray)}
        values = [_value(copies.get(i, a)) for i, a in enumerate(args)]
        expected = library.kernels[name]
        given = [kind + str(ctypes.sizeof(value)) for kind, value in values]
        if given != expected:
            raise TypeError(f"{name} takes {' '.join(expected)}, not {' '.join(given)}")
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(v) for _, v in values))
        dims = [(*(d if isinstance(d, tuple) else (d,)), 1, 1)[:3] for d in (grid, block)]
        run = functools.partial(self._run, library, name, dims, pointers, shared_bytes)
        order = order or self.order
        if order == "every":
            self._run_every(name, run)
        else:
            run(order, POISONS[0], self.at_start)
        for i, copy in copies.items():
            args[i][...] = copy.view

    def _run(self, library, name, dims, pointers, shared_bytes, order, poison, at_start):
        launch = _Launch(
            dims[0], dims[1], shared_bytes, ORDERS[order], poison, at_start, None, b""
        )
        for buffer in self.buffers:
            buffer.slack[:] = poison
        with _one:
            library[name](ctypes.byref(launch), pointers)
        message = launch.message.decode()
        if message:
            raise Fault(message + self._place(launch.fault))
        for buffer in self.buffers:
            if (buffer.slack != poison).any():
                side = "after the end" if self.at_start else "before the start"
                raise Fault(f"{name}: write {side} of a buffer of {buffer.nbytes} bytes")

    def _run_every(self, name, run):
        """Run three times from the same memory, which must become the same memory."""
        buffers = sorted(self.buffers, key=lambda buffer: buffer.ptr)
        before = [buffer.bytes.copy() for buffer in buffers]

        def outcome(*setting):
            for buffer, old in zip(buffers, before, strict=True):
                buffer.bytes[:] = old
            run(*setting)
            return [buffer.bytes.copy() for buffer in buffers]

        def differ(a, b):
            for buffer, one, other in zip(buffers, a, b, strict=True):
                where = np.flatnonzero(one != other)
                if where.size:
                    view = buffer.view
                    return f"element {where[0] // view.itemsize} of a buffer of {view.size}"
            return None

        end, start = self.at_start, not self.at_start
        first = outcome("ascending", POISONS[0], end)
        if place := differ(first, outcome("descending", POISONS[1], start)):
            if differ(first, outcome("ascending", POISONS[1], end)):
                raise Fault(f"{name}: {place} depends on shared memory that nobody has written to")
            raise Fault(f"{name}: {place} depends on the order of threads: a missing barrier")
        if place := differ(first, outcome("shuffled", POISONS[0], end)):
            raise Fault(f"{name}: {place} depends on the order of threads: a missing barrier")

    def _place(self, address):
        """Say where an address lies, by the buffer that is nearest to it."""
        if not address or not self.buffers:
            return ""
        def distance(buffer):
            return max(buffer.ptr - address, address - buffer.ptr - buffer.nbytes)
        near = min(self.buffers, key=distance)
        return f": byte {address - near.ptr} of a buffer of {near.nbytes} bytes"


def _value(a):
    """Return one letter for what an argument is, as in ``twin.h``, and its bytes."""
    if isinstance(a, Buffer):
        return "p", ctypes.c_void_p(a.ptr)
    if isinstance(a, np.generic):
        return {"f": "f", "V": "s"}.get(a.dtype.kind, "i"), (ctypes.c_char * a.nbytes)(*a.tobytes())
    if isinstance(a, ctypes.c_void_p):
        return "p", a
    if isinstance(a, ctypes.Structure):
        return "s", a
    return "f" if isinstance(a, (ctypes.c_float, ctypes.c_double)) else "i", a


def launch(library, name, grid, block, args, shared_bytes=0, order="every"):
    """Run a kernel on NumPy arrays, which are copied to a device and back."""
    Device(order).launch(library, name, grid, block, args, shared_bytes)
