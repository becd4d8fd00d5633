"""Every argument rule and its message: ``<argument> must <rule>: <what came>[; <remedy>]``."""

from __future__ import annotations

import importlib.util
import math
import numbers
import operator
import os
import re
import reprlib
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from ._types import Array

T = TypeVar("T")


def kind_of(value: object) -> str:
    """What came, for a message: the class of an object, and of a class what to do with it."""
    return f"{value.__name__}; call it" if isinstance(value, type) else type(value).__name__


OPTIONAL = {
    "array_api_compat": ("array-api-compat", "gpu"),
    "matplotlib": ("matplotlib", "plot"),
    "sklearn": ("scikit-learn", "sklearn"),
}
"""Modules that some parts need: the package that has each, and the extra that installs it."""


def absent(module: str) -> str | None:
    """What installs an optional module; None where it is there."""
    if importlib.util.find_spec(module) is not None:
        return None
    return f"pip install 'kernelcore[{OPTIONAL[module][1]}]'"


def installed(module: str, what: str) -> None:
    """Refuse ``what``, which needs a module that is not there."""
    remedy = absent(module)
    if remedy is not None:
        raise ImportError(f"{what} needs {OPTIONAL[module][0]}; install it with: {remedy}")


def number(value: Any, name: str) -> float:
    """A finite real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number: got {type(value).__name__}")
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite: got {value}")
    return value


def positive(value: Any, name: str) -> float:
    value = number(value, name)
    if value <= 0:
        raise ValueError(f"{name} must be positive: got {value}")
    return value


def non_negative(value: Any, name: str) -> float:
    value = number(value, name)
    if value < 0:
        raise ValueError(f"{name} must not be negative: got {value}")
    return value


def count(value: Any, name: str, least: int = 0) -> int:
    """An integer of at least ``least``."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer: got bool")
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer: got {type(value).__name__}") from None
    if value < least:
        raise ValueError(f"{name} must be at least {least}: got {value}")
    return value


def flag(value: Any, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False: got {type(value).__name__}")
    return bool(value)


def coefficients(values: Any, name: str) -> tuple[float, ...]:
    """A non-empty sequence of finite numbers."""
    try:
        values = tuple(values)
    except TypeError:
        raise TypeError(
            f"{name} must be a sequence of numbers: got {type(values).__name__}"
        ) from None
    if not values:
        raise ValueError(f"{name} must have at least one entry: got none")
    return tuple(number(v, f"{name}[{k}]") for k, v in enumerate(values))


def on_a_device(x: Any) -> bool:
    """Whether an array lies in memory that this process cannot read, such as that of a GPU."""
    if isinstance(x, (np.ndarray, list, tuple)) or not hasattr(x, "__dlpack_device__"):
        return hasattr(x, "__cuda_array_interface__")
    return x.__dlpack_device__()[0] not in (1, 3)  # kDLCPU, kDLCUDAHost


def on_the_host(x: Any, name: str) -> None:
    """Refuse arrays of other machines, before NumPy or they do so in their own words."""
    if on_a_device(x):
        kind = f"{type(x).__module__.partition('.')[0]}.{type(x).__name__}"
        raise TypeError(
            f"{name} must be in the memory of the host: got {kind} on a device; copy it to a "
            "NumPy array"
        )


def real_array(x: Any, name: str) -> Array:
    """float32 and float64 as they are, integers and booleans as float64, nothing else."""
    on_the_host(x, name)
    # Who has a masked array has imported its module; asking NumPy for it would import it here, in
    # the middle of a call, while another thread may fork.
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(x, masked.MaskedArray):
        raise TypeError(f"{name} must not be masked: got a masked array; pass {name}.filled(value)")
    try:
        a = np.asarray(x)
    except ValueError:
        raise ValueError(
            f"{name} must be rectangular: got a ragged sequence of {len(x)} entries"
        ) from None
    if a.dtype.kind in "OUS":
        _not_numbers(x, a, name)
    if a.dtype.kind == "c":
        raise TypeError(f"{name} must be real, got {a.dtype}; pass {name}.real or its magnitude")
    if a.dtype.kind in "biu":
        return a.astype(np.float64)
    native = a.dtype.newbyteorder("=")
    if native not in (np.float32, np.float64):
        raise TypeError(
            f"{name} must be float32 or float64, got {a.dtype}; convert it with {name}.astype"
        )
    return a.astype(native, copy=False)


def _not_numbers(x: Any, a: Array, name: str) -> NoReturn:
    """Refuse what NumPy made objects or strings of, naming what it is."""
    if hasattr(x, "toarray"):
        remedy = f"; pass {name}.toarray()"
        raise TypeError(f"{name} must be a dense array: got {type(x).__name__}{remedy}")
    if a.ndim == 0:
        got = "None" if x is None else kind_of(x)
        remedy = f"; pass list({name}.values())" if isinstance(x, dict) else ""
        if callable(x) and not isinstance(x, type):
            remedy = "; pass the values of the function"
        raise TypeError(f"{name} must be an array of numbers: got {got}{remedy}")
    at = next((k for k, v in np.ndenumerate(a) if not isinstance(v, numbers.Real)), None)
    if at is not None:
        place = f"{name}[{', '.join(map(str, at))}]"
        what = "None" if a[at] is None else type(a[at]).__name__.removesuffix("_")
        raise TypeError(f"{name} must hold numbers: {place} is {what}; leave out what is not")
    raise TypeError(f"{name} must be real, got an array of objects; pass {name}.astype(float)")


def finite_array(x: Any, name: str) -> Array:
    """Finite numbers of any shape, as float64."""
    a = np.asarray(real_array(x, name), np.float64)
    if not np.isfinite(a).all():
        raise ValueError(f"{name} must be finite: got {a[~np.isfinite(a)].flat[0]}")
    return a


ULPS = 16
"""Units in the last place of its dtype by which a cosine may pass 1: products of unit rows do, by
up to 7 in 100,000 dimensions."""


def cosines(x: Any, name: str) -> Array:
    """Numbers in [-1, 1] of any shape, as float64; what rounding left outside is put on the end."""
    a = real_array(x, name)
    slack = ULPS * float(np.finfo(a.dtype).eps)
    a = np.asarray(a, np.float64)
    size = np.abs(a)
    inside = size <= 1 + slack
    if not inside.all():
        raise ValueError(f"{name} must be in [-1, 1]: got {a[~inside].flat[0]}")
    return a if (size <= 1).all() else np.clip(a, -1.0, 1.0)


def rows(x: Any, name: str) -> Array:
    """A C-contiguous (n, d) array of a dtype the engine has, d >= 1."""
    a = real_array(x, name)
    if a.ndim != 2:
        hint = f"; pass {name}.reshape(len({name}), -1)" if a.ndim > 2 else ""
        hint = (
            f"; pass {name}[:, None] if its entries are one-dimensional points"
            if a.ndim == 1
            else hint
        )
        raise ValueError(f"{name} must have shape (n, d): got shape {a.shape}{hint}")
    if a.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column: got shape {a.shape}")
    return np.require(a, requirements=["C", "A", "E"])


def points(x: Any, y: Any) -> tuple[Array, Array | None]:
    """Rows of X and Y with equal columns and one dtype; Y stays None."""
    a = rows(x, "X")
    if y is None:
        return a, None
    b = rows(y, "Y")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"Y must have as many columns as X: X has shape {a.shape}, Y has shape {b.shape}"
        )
    same_dtype(a, b)
    return a, b


def same_dtype(a: Array, b: Array) -> None:
    if a.dtype != b.dtype:
        raise TypeError(
            f"Y must have the dtype of X: X is {a.dtype}, Y is {b.dtype}; convert one of them"
        )


def _positions(ndim: int, layer: Any, name: str) -> str:
    """What to do with so many axes where a layer wants others."""
    single = f"pass {name}[..., None] for signals of one channel"
    reshape = f"{name}.reshape(len({name}), H, W, C)"
    if layer._axes is None:
        return f"; {single}, {reshape} for images" if ndim == 2 else ""
    if layer._axes == 1:
        return {2: f"; {single}", 4: f"; write {layer._for_axes(2)} for images"}.get(ndim, "")
    if ndim == 3:
        return (
            f"; write {layer._for_axes(1)} for signals (n, L, C), or pass {name}[..., None] for "
            "grey images (n, H, W)"
        )
    return f"; pass {reshape}" if ndim == 2 else ""


def images(x: Any, layer: Any, name: str) -> Array:
    """A C-contiguous (n, L, C) or (n, H, W, C) array, nothing but n of length zero.

    As many axes of positions as ``layer`` is for; where it is for any, one or two.
    """
    a = real_array(x, name)
    axes = layer._axes
    kinds = {
        1: "signals (n, L, C)",
        2: "images (n, H, W, C)",
        None: "signals (n, L, C) or images (n, H, W, C)",
    }
    if a.ndim not in ((3, 4) if axes is None else (axes + 2,)):
        hint = _positions(a.ndim, layer, name)
        raise ValueError(f"{name} must be {kinds[axes]} for {layer!r}: got shape {a.shape}{hint}")
    if 0 in a.shape[1:]:
        raise ValueError(f"{name} must have at least one position and channel: got shape {a.shape}")
    return np.require(a, requirements=["C", "A", "E"])


def image_pair(x: Any, y: Any, layer: Any) -> tuple[Array, Array | None]:
    """Images X and Y of one size and dtype, for a layer; Y stays None."""
    a = images(x, layer, "X")
    if y is None:
        return a, None
    b = images(y, layer, "Y")
    if a.shape[1:] != b.shape[1:]:
        raise ValueError(
            f"Y must have the positions and channels of X: X has shape {a.shape}, "
            f"Y has shape {b.shape}"
        )
    same_dtype(a, b)
    return a, b


def finite_images(a: Array, name: str) -> None:
    # Image by image: a mask of them all would take a quarter of their memory.
    bad = next((k for k, image in enumerate(a) if not np.isfinite(image).all()), None)
    if bad is None:
        return
    at = (bad, *(int(k) for k in np.argwhere(~np.isfinite(a[bad]))[0]))
    raise ValueError(f"{name} must be finite: {name}[{', '.join(map(str, at))}] is {a[at]}")


def finite(a: Array, norms: Array, name: str) -> None:
    """Refuse rows whose norm came out non-finite, naming the first bad entry."""
    if np.isfinite(norms).all():
        return
    bad = np.argwhere(~np.isfinite(a))
    if len(bad):
        i, j = bad[0]
        raise ValueError(f"{name} must be finite: {name}[{i}, {j}] is {a[i, j]}")
    i = int(np.flatnonzero(~np.isfinite(norms))[0])
    raise ValueError(f"{name} must have rows of finite norm: row {i} overflows; scale {name} down")


def resolved(lost: bool, dtype: np.dtype[Any]) -> None:
    """Refuse inputs that are not zero and whose kernel is, or has lost digits to the dtype."""
    if lost:
        raise FloatingPointError(
            f"X must keep the kernel within {dtype}: the variance underflows; scale X up"
        )


def within(
    values: Array, dtype: np.dtype[Any], what: str, name: object = "", scale: float = 1
) -> None:
    """Refuse values beyond ``scale`` times the largest of the dtype; ``what`` overflows then.

    ``name`` is written into ``what``, but only into an error: a long network takes long to print.
    """
    if not values.max(initial=0.0) <= scale * float(np.finfo(dtype).max):  # NaN is not, either
        raise OverflowError(
            f"X must keep the kernel within {dtype}: {what.format(name)}; scale X down"
        )


def kernel(values: Array, tangent: bool) -> None:
    """Refuse what came out beyond the dtype."""
    if not np.isfinite(values).all():
        which = "tangent kernel" if tangent else "kernel"
        within(np.array(math.inf), values.dtype, f"the {which} overflows")


def no_profile(kernel: object, why: str) -> NoReturn:
    """Refuse to make a function of the cosine of what is none."""
    raise ValueError(f"{kernel!r} must not be asked for a profile: it {why}")


def without_derivative(activation: object) -> NoReturn:
    """Refuse an activation of which nothing but its values is known."""
    raise TypeError(
        f"activation must have a derivative that is known: got {activation!r}; pass derivative="
    )


def patches_within(a: Array, patch: int, profile: object, name: str) -> None:
    """Refuse cyclic patches of which a profile on [-1, 1] says nothing."""
    index = np.arange(a.shape[1] + patch - 1) % a.shape[1]
    with np.errstate(over="ignore"):
        square = np.square(a, dtype=np.float64)[:, index]
        sums = np.lib.stride_tricks.sliding_window_view(square, patch, axis=1).sum(-1)
    slack = (patch + 8) * float(np.finfo(a.dtype).eps)
    bad = np.argwhere(sums > patch * (1 + slack))
    if len(bad):
        i, k = bad[0]
        raise ValueError(
            f"{name} must have patches of norm at most sqrt({patch}) for {profile!r}: the one of "
            f"row {i} at {k} has norm {np.sqrt(sums[i, k]):.6g}; scale {name} down, or pass a "
            "power series or a kernel"
        )


SMALL = 10_000_000
"""Bytes below which nothing is asked: filling them takes a thousand times as long as the asking."""
MATRIX = ("GramOperator", "float32")
"""What to use where a Gram matrix is too large."""
UNITS = {unit: 1000**k for k, unit in enumerate(("b", "kb", "mb", "gb", "tb"))}
UNITS |= {unit: 1024**k for k, unit in enumerate(("kib", "mib", "gib", "tib"), 1)}


def budget() -> int:
    """Bytes that large arrays are held to; ``engine.memory`` puts its own function here."""
    return sys.maxsize


def byte_count(value: Any, name: str) -> int:
    """Bytes as a number, or as text that may have a unit."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([\d.]+(?:e[+-]?\d+)?)\s*([a-z]*)\s*", value, re.ASCII | re.I)
        try:
            value = float(found[1]) * UNITS[found[2].lower() or "b"]  # type: ignore[index]  # caught
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"{name} must be a number of bytes, or have a unit as in 8GB or 512MiB: "
                f"got {value!r}"
            ) from None
    return math.ceil(positive(value, name))


def in_bytes(amount: float) -> str:
    """An amount of memory in words."""
    power = min(5, max(1, int(math.log10(amount)) // 3))
    return f"{amount / 1000**power:.1f} {' kMGTP'[power]}B"


def room(
    what: str,
    shape: tuple[int, ...],
    dtype: Any,
    arrays: int = 1,
    remedies: tuple[str, ...] = MATRIX,
) -> None:
    """Refuse so many arrays at a time that are past the memory budget; before any work is done."""
    need = arrays * math.prod(shape) * np.dtype(dtype).itemsize
    if need < SMALL:
        return
    if need > (most := budget()):
        remedies = (*remedies, "kernelcore.set_memory")
        _no_room(what, shape, dtype, arrays, remedies, f"the budget is {in_bytes(most)}")


def _no_room(
    what: str, shape: tuple[int, ...], dtype: Any, arrays: int, remedies: tuple[str, ...], why: str
) -> NoReturn:
    dtype = np.dtype(dtype)
    need = in_bytes(arrays * math.prod(shape) * dtype.itemsize)
    each = f"{' x '.join(map(str, shape))} {dtype}"
    each = each if arrays == 1 else f"{arrays} arrays of {each}"
    *most, last = (r for r in remedies if r != "float32" or dtype == np.float64)
    use = f"{', '.join(most)} or {last}" if most else last
    raise MemoryError(
        f"{what} must fit into memory: {need} are needed for {each}, {why}; use {use}"
    ) from None


def fresh(
    shape: tuple[int, ...],
    dtype: Any,
    what: str = "K",
    remedies: tuple[str, ...] = MATRIX,
    beside: int = 0,
) -> Array:
    """A new array, ``beside`` others of its size that are there already; within the budget."""
    room(what, shape, dtype, 1 + beside, remedies)
    try:
        return np.empty(shape, dtype)
    except MemoryError:
        _no_room(what, shape, dtype, 1, (*remedies, "fewer points"), "and the system gives no more")


def out(
    value: Any,
    shape: tuple[int, ...],
    dtype: Any,
    what: str = "K",
    remedies: tuple[str, ...] = MATRIX,
) -> Array:
    """A writable C-contiguous array of that shape and dtype: the user's, or a new one."""
    if value is None:
        return fresh(shape, dtype, what, remedies)
    name = "out"
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array: got {type(value).__name__}")
    if value.shape != shape:
        raise ValueError(f"{name} must have shape {shape}: got shape {value.shape}")
    if value.dtype != dtype:
        raise TypeError(f"{name} must have dtype {dtype}: got {value.dtype}")
    if not value.flags.c_contiguous:
        raise ValueError(f"{name} must be C-contiguous: got strides {value.strides}")
    if not value.flags.writeable:
        raise ValueError(f"{name} must be writable: got a read-only array")
    return value


def apart(value: Array, inputs: dict[str, Array | None], name: str = "out") -> None:
    """Refuse an output that shares memory with an input."""
    for other, a in inputs.items():
        if a is not None and np.may_share_memory(value, a):
            raise ValueError(f"{name} must not overlap {other}: they share memory; pass a copy")


def sizes(value: Any, name: str, like: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """One positive integer per axis, as many as ``like`` has; a single one counts for all."""
    if isinstance(value, (tuple, list)):
        if len(value) not in ((1, 2) if like is None else (len(like),)):
            rule = "one or two entries" if like is None else f"as many entries as {like}"
            raise ValueError(f"{name} must have {rule}: got {len(value)}")
        return tuple(count(v, f"{name}[{k}]", least=1) for k, v in enumerate(value))
    return (count(value, name, least=1),) * (2 if like is None else len(like))


def choice(value: Any, name: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        names = ", ".join(repr(a) for a in allowed)
        raise ValueError(f"{name} must be one of {names}: got {value!r}")
    return value


# ---- values


def unchanged(value: object, name: str, how: str) -> NoReturn:
    """Refuse to set or delete an attribute of what is finished."""
    remedy = f"build another, or call replace({name}=...)" if how == "set" else "build another"
    raise AttributeError(
        f"{type(value).__name__} must not change after construction: {name} was {how}; {remedy}"
    )


def sequence(value: Any, name: str) -> tuple[Any, ...]:
    """Layers in a tuple or a list, whatever they are."""
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name} must be a layer or a sequence of layers: got {kind_of(value)}")
    return tuple(value)


def converges(beyond: Array, sd: Array, reach: float) -> None:
    """Refuse a function whose square has more beyond the reach of a quadrature than within."""
    bad = ~(beyond < 1)
    if bad.any():
        raise ValueError(
            f"fn must grow slower than the normal density falls: at variance {sd[bad][0] ** 2:.6g} "
            f"E[fn(x)^2] is infinite, or most of it beyond {reach:.0f} standard deviations; "
            "scale X or w_std down"
        )


def named(name: str, names: Collection[str], of: str) -> None:
    """Refuse a parameter that there is not."""
    if name not in names:
        known = f"it has {', '.join(names)}" if names else "it has none"
        raise ValueError(f"changes must name parameters of {of}: got {name!r}; {known}")


# ---- files


def a_path(value: Any, name: str) -> Path:
    try:
        return Path(value)
    except TypeError:
        raise TypeError(f"{name} must be a path: got {type(value).__name__}") from None


def destination(value: Any, name: str) -> Path:
    """A file that can be written, as an absolute path; what it holds and its date stay."""
    path = a_path(value, name).absolute()
    if str(value) == "-":
        raise ValueError(f"{name} must name a file: got '-'; ./- is a file of that name")
    try:
        if path.is_dir() or not path.parent.is_dir():
            raise ValueError(f"{name} must name a file in an existing folder: {path}")
        if path.exists() and not path.is_file():
            return path  # A device or a pipe, which to open may mean to wait for its reader.
        # Only opening tells: permissions are not asked of some users, nor by some file systems.
        # Behind a link whose target is missing it is the target that is made, and has to go again.
        real = Path(os.path.realpath(path))
        missing = not real.exists()
        with open(real, "ab"):
            pass
        if missing:
            real.unlink()
    except OSError as error:
        raise ValueError(
            f"{name} must name a file that can be written: {path}: {error.strerror}"
        ) from None
    return path


def a_folder(value: Any, name: str) -> Path:
    path = a_path(value, name)
    if not path.is_dir():
        raise ValueError(f"{name} must be an existing folder: {path}")
    return path


def unwritten(path: Path, name: str, remedy: str) -> None:
    """Refuse a file that has something in it."""
    if path.is_file() and path.stat().st_size:
        raise ValueError(f"{name} must be a new file: {path} has results; {remedy}")


def entry(facts: dict[str, str], key: str, where: object) -> str:
    """What a file says about a key."""
    if not facts.get(key):
        raise ValueError(f"{where} must have a line '{key}= ...': got none")
    return facts[key]


def number_table(text: str, where: object) -> Array:
    """Finite numbers below a head line, in at least three columns, the last one whole numbers."""
    lines = [line for line in text.splitlines()[1:] if line.strip()]
    try:
        table = np.loadtxt(lines, ndmin=2) if lines else np.empty((0, 0))
    except ValueError as error:
        reason = str(error).rstrip(".").partition(";")[0]
        raise ValueError(f"{where} must be a table of numbers: {reason}") from None
    if len(table) == 0 or table.shape[1] < 3:
        raise ValueError(
            f"{where} must have rows of a number, features and a class: got shape {table.shape}"
        )
    if not np.isfinite(table).all():
        raise ValueError(f"{where} must be finite: got {table[~np.isfinite(table)][0]}")
    broken = table[:, -1] != np.rint(table[:, -1])
    if broken.any():
        raise ValueError(
            f"{where} must have whole numbers in its last column: got {table[broken, -1][0]}"
        )
    return table


def divisions(text: str, pairs: int, rows: int, where: object) -> list[tuple[Array, Array]]:
    """Pairs of lines of row numbers from 0: rows to learn from, and others to be tested on."""
    lines = [(k, line) for k, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) != 2 * pairs:
        raise ValueError(f"{where} must have {2 * pairs} lines: got {len(lines)}")
    parts = []
    for k, line in lines:
        for word in line.split():
            # Longer words are no row numbers either, and int() refuses the longest.
            if not word.isdecimal() or len(word) > 18 or int(word) >= rows:
                raise ValueError(
                    f"{where} must have row numbers from 0 to {rows - 1}: got "
                    f"{reprlib.repr(word)} in line {k}"
                )
        parts.append(np.array(line.split(), int))
    found = list(zip(parts[::2], parts[1::2], strict=True))
    for (train, test), (k, _) in zip(found, lines[::2], strict=True):
        both = np.intersect1d(train, test)
        if both.size:
            raise ValueError(
                f"{where} must not test on rows that were learned from: got row {both[0]} in line "
                f"{k} and in the next"
            )
    return found


# ---- spectra of matrices, and theory


def square(shape: tuple[int, ...], name: str) -> int:
    """How many rows a square matrix has, at least one."""
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name} must be square: got shape {shape}")
    if not shape[0]:
        raise ValueError(f"{name} must have at least one row: got shape {shape}")
    return shape[0]


TILE = 128
"""Rows and columns of what is compared with its mirror at a time: both parts stay in a cache."""


def gram(
    x: Any,
    name: str,
    beside: Callable[[int], int] = lambda n: 0,
    remedies: tuple[str, ...] = ("float32",),
) -> Array:
    """A finite symmetric matrix; rounding may have made it differ from its mirror.

    Refused before that is looked at where the budget does not hold it and ``beside(n)`` more arrays
    of its size, which are to come.
    """
    a = real_array(x, name)
    n = square(a.shape, name)
    if more := beside(n):
        room(name, a.shape, a.dtype, 1 + more, remedies)
    # sqrt(u) of the largest entry: above what sums of any length round off, below any real mistake
    size, apart, at = 0.0, 0.0, (0, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(0, n, TILE):
            for j in range(i, n, TILE):
                part, mirror = a[i : i + TILE, j : j + TILE], a[j : j + TILE, i : i + TILE].T
                off = np.abs(part - mirror)
                most, largest = float(off.max()), float(max(part.max(), -part.min()))
                if not (math.isfinite(most) and math.isfinite(largest)):
                    finite_matrix(a, name)
                size = max(size, largest)
                if most > apart:
                    r, c = np.unravel_index(off.argmax(), off.shape)
                    apart, at = most, (i + int(r), j + int(c))
    if apart > math.sqrt(np.finfo(a.dtype).eps) * size:
        i, j = at
        raise ValueError(
            f"{name} must be symmetric: {name}[{i}, {j}] and {name}[{j}, {i}] differ by "
            f"{apart:.3g}; pass ({name} + {name}.T) / 2 if that is rounding"
        )
    return a


def symmetric(
    x: Any,
    name: str,
    beside: Callable[[int], int] = lambda n: 0,
    remedies: tuple[str, ...] = (),
) -> Array:
    """The same as float64, as which the arrays beside it count; one more where it is float32."""
    a = real_array(x, name)
    narrow = a.dtype != np.float64
    a = gram(a, name, lambda n: (1 + narrow) * (beside(n) + narrow), remedies)
    return a.astype(np.float64, copy=False)


def finite_matrix(a: Array, name: str) -> Array:
    """Refuse what is not finite, naming the first of its entries; no mask of them all is made."""
    for i, row in enumerate(a):
        if not np.isfinite(row).all():
            j = int(np.flatnonzero(~np.isfinite(row))[0])
            raise ValueError(f"{name} must be finite: {name}[{i}, {j}] is {row[j]}")
    return a


def vector(x: Any, name: str, length: int, of: str) -> Array:
    """``length`` finite numbers, one per ``of``, as float64."""
    a = finite_array(x, name)
    if a.shape != (length,):
        raise ValueError(f"{name} must have one entry per {of}, {length}: got shape {a.shape}")
    return a


def amounts(x: Any, name: str, *, zero: bool = True, infinite: bool = False) -> Array:
    """Numbers of any shape that are not negative, as float64; zero and infinity by permission."""
    a = np.asarray(real_array(x, name), np.float64)
    fine = (a >= 0 if zero else a > 0) & (np.isfinite(a) | (a == np.inf) & infinite)
    if not fine.all():
        bad = a[~fine].flat[0]
        sign = "not be negative" if zero else "be positive"
        rule = sign if bad <= 0 else "be a number" if math.isnan(bad) else "be finite"
        raise ValueError(f"{name} must {rule}: got {bad}")
    return a


def together(**arrays: Array) -> tuple[Array, ...]:
    """Arrays, broadcast against each other."""
    try:
        return tuple(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        *most, last = arrays
        shapes = ", ".join(str(a.shape) for a in arrays.values())
        raise ValueError(
            f"{', '.join(most)} and {last} must broadcast together: got shapes {shapes}"
        ) from None


def eigenvalue_list(x: Any, name: str) -> Array:
    """A non-empty one-dimensional array of eigenvalues that are not negative."""
    a = amounts(x, name)
    if a.ndim != 1 or not a.size:
        raise ValueError(
            f"{name} must be a Spectrum or have shape (levels,): got shape {a.shape}; "
            "pass spectrum.gram(K) for a Gram matrix"
        )
    return a


def power(x: Any, name: str, levels: int) -> Array:
    """``levels`` + 1 amounts, the last that of everything else: 0 where it is not given."""
    a = amounts(x, name)
    if a.ndim != 1 or len(a) not in (levels, levels + 1):
        raise ValueError(
            f"{name} must have one entry per level, {levels}, and may have one more for the rest: "
            f"got shape {a.shape}"
        )
    return a if len(a) > levels else np.append(a, 0.0)


def of_cosine(kernel: object) -> None:
    """Refuse what is callable, or has a kernel, but is none itself."""
    name = type(kernel).__name__
    hint = "; pass its ntk or nngp" if hasattr(kernel, "nngp") else ""
    if isinstance(kernel, type):
        name, hint = kernel.__name__, "; call it"
    if hint:
        raise TypeError(
            "kernel must be a kernel, a profile, a callable or a sequence of coefficients: got "
            f"{name}{hint}"
        )


def a_spectrum(x: object, name: str) -> None:
    """Refuse what is neither a spectrum nor an array."""
    if not isinstance(x, (np.ndarray, list, tuple)) and not hasattr(x, "__array__"):
        raise TypeError(
            f"{name} must be a Spectrum or an array of eigenvalues: got {type(x).__name__}; "
            "kc.spectrum makes one of a kernel"
        )


def levels(log_eigenvalues: Array, multiplicities: Any) -> None:
    """Refuse levels that are no spectrum."""
    if log_eigenvalues.ndim != 1 or (log_eigenvalues == np.inf).any():
        raise ValueError(
            "log_eigenvalues must be a sequence of logarithms, none of them inf: got "
            f"{log_eigenvalues}"
        )
    if multiplicities is not None and len(multiplicities) != len(log_eigenvalues):
        raise ValueError(
            f"multiplicities must have one entry per level, {len(log_eigenvalues)}: got "
            f"{len(multiplicities)}"
        )


def sets(value: Any, n: int) -> list[list[Any]]:
    """As many sets of coordinates as there are coefficients."""
    try:
        value = [list(members) for members in value]
    except TypeError:
        raise TypeError(
            f"sets must be a sequence of sequences of coordinates, as [[0, 1], [2]]: got {value!r}"
        ) from None
    if len(value) != n:
        raise ValueError(
            f"sets must have as many entries as coefficients: got {len(value)} and {n}"
        )
    return value


def pair(value: Any, name: str) -> tuple[Any, ...]:
    """Two things."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{name} must be a pair (first, last): got {value!r}")
    return tuple(value)


def known(log_mu: Array, there: Array, power: Array) -> None:
    """Refuse power on a level whose eigenvalue is NaN."""
    lost = np.flatnonzero(np.isnan(log_mu) & there)
    if len(lost):
        raise ValueError(
            "target_power must be zero on levels whose eigenvalue is not resolved: got "
            f"{power[lost[0]]:.6g} on level {lost[0]}"
        )


def power_by_degree(x: Any, name: str) -> Array:
    """One amount per degree, from 0."""
    a = amounts(x, name)
    if a.ndim != 1:
        raise ValueError(f"{name} must have one entry per degree: got shape {a.shape}")
    return a


def one_per_entry(values: Array, shape: tuple[int, ...]) -> Array:
    """Refuse what a function of the user returned in another shape than it was asked for."""
    if values.shape != shape:
        raise ValueError(
            f"fn must return one value per entry: got shape {values.shape} for input of shape "
            f"{shape}"
        )
    return values


def at_most(value: int, limit: int, name: str, what: str) -> int:
    if value > limit:
        raise ValueError(f"{name} must be at most {what}, {limit}: got {value}")
    return value


def given(value: T | None, name: str, beside: str) -> T:
    if value is None:
        raise ValueError(f"{name} must be given beside {beside}: got None")
    return value


def has(value: T | None, name: str, remedy: str) -> T:
    """Refuse to go on without what was not computed."""
    if value is None:
        raise ValueError(f"{name} must be computed first: {remedy}")
    return value


def above_one(x: Any, name: str) -> Array:
    """Finite numbers above 1, of any shape, as float64."""
    a = finite_array(x, name)
    if not (a > 1).all():
        raise ValueError(f"{name} must be above 1: got {a[~(a > 1)].flat[0]}")
    return a


def of_sphere(spectrum: object, name: str, other: type) -> Any:
    """What has degrees of a sphere; ``other`` are spectra with degrees of something else."""
    fine = hasattr(spectrum, "degrees") and hasattr(spectrum, "dim")
    if not fine or isinstance(spectrum, other):
        raise TypeError(
            f"{name} must be of a sphere, with degrees and dim: got {type(spectrum).__name__}"
        )
    return spectrum


def range_of_degrees(log_mu: Array, low: int, high: int) -> Array:
    """Refuse a range over which no slope can be told."""
    if len(np.unique(log_mu)) < 2:
        raise ValueError(
            "degrees must hold at least two eigenvalues that are neither zero nor equal: "
            f"got {len(np.unique(log_mu))} from {low} to {high}"
        )
    return log_mu


# ---- linear algebra


def one_library(arrays: Iterable[object]) -> NoReturn:
    """Refuse arrays of different libraries, and what is no array."""
    kinds = {f"{type(a).__module__.partition('.')[0]}.{type(a).__name__}" for a in arrays}
    raise TypeError(
        "arrays must be of one library that follows the array API standard: got "
        f"{' and '.join(sorted(kinds))}"
    )


def positive_diagonal(mean: float) -> float:
    """Refuse a matrix to which no jitter can be fitted; ``mean`` is that of its diagonal."""
    if not 0 < mean < math.inf:
        raise ValueError(
            f"K must have a diagonal of positive, finite mean to be factored: got {mean}"
        )
    return mean


# ---- solvers with the whole matrix


def overwritable(x: Any, name: str) -> Array:
    """The array itself, to be written into by LAPACK."""
    if not isinstance(x, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array to be overwritten: got {type(x).__name__}")
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} must be float32 or float64 to be overwritten: got {x.dtype}")
    if not (x.flags.c_contiguous or x.flags.f_contiguous) or not x.flags.aligned:
        raise ValueError(f"{name} must be contiguous to be overwritten: got strides {x.strides}")
    if not x.flags.writeable:
        raise ValueError(f"{name} must be writable to be overwritten: got a read-only array")
    return x


def targets(y: Any, name: str, n: int, dtype: Any, *, least: int = 0, of: str = "K") -> Array:
    """Finite values of shape (n,) or (n, r), of that dtype: one row per row of ``of``."""
    a = finite_array(y, name)
    if a.ndim not in (1, 2) or len(a) != n:
        raise ValueError(
            f"{name} must have one row per row of {of}, {n}, and shape (n,) or (n, r): "
            f"got shape {a.shape}"
        )
    if a.shape[1:] and a.shape[1] < least:
        raise ValueError(f"{name} must have at least one column: got shape {a.shape}")
    return a.astype(dtype, copy=False)


def alike(x: Any, name: str, shape: tuple[int, ...], beside: str, dtype: Any) -> Array:
    """Finite values of a shape that something else sets."""
    a = finite_array(x, name)
    if a.shape != shape:
        raise ValueError(f"{name} must have the shape of {beside}, {shape}: got shape {a.shape}")
    return a.astype(dtype, copy=False)


def cross(x: Any, name: str, n: int, dtype: Any, of: str = "K") -> Array:
    """A finite matrix of kernel values, one column per row of ``of``, of that dtype."""
    a = real_array(x, name)
    if a.ndim != 2 or a.shape[1] != n:
        raise ValueError(f"{name} must have one column per row of {of}, {n}: got shape {a.shape}")
    return finite_matrix(a, name).astype(dtype, copy=False)


def semidefinite(least: float, most: float, dtype: Any, name: str) -> None:
    """Refuse eigenvalues below zero by more than rounding of the entries explains."""
    if least < -math.sqrt(np.finfo(dtype).eps) * abs(most):
        raise np.linalg.LinAlgError(
            f"{name} must be positive semi-definite: its smallest eigenvalue is {least:.3g}, its "
            f"largest {most:.3g}"
        )


def indefinite(
    order: int, least: str, more: float, certain: bool, remedy: str = "on_singular='pinv'"
) -> NoReturn:
    """Refuse what has no Cholesky factor; ``order`` is that of the first minor that fails."""
    would = "would" if certain else "might"
    raise np.linalg.LinAlgError(
        f"K + ridge I must be positive definite: its first {order} rows and columns are not, and "
        f"its smallest eigenvalue is {least}; a ridge larger by {more:.2g} {would} do and damp "
        f"what lies along eigenvalues below it, {remedy} leaves that out"
    )


def coefficients_within(alpha: Array) -> Array:
    """Refuse coefficients beyond the dtype, which a matrix of tiny numbers leads to."""
    if not np.isfinite(alpha).all():
        raise OverflowError(
            f"K must keep coefficients within {alpha.dtype}: (K + ridge I)^-1 y overflows; "
            "scale K up or y down"
        )
    return alpha


def some(a: Array, name: str) -> Array:
    if not a.size:
        raise ValueError(f"{name} must not be empty: got shape {a.shape}")
    return a


def below_one(value: Any, name: str) -> float:
    value = number(value, name)
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be in [0, 1): got {value}")
    return value


def variances(x: Any, name: str, m: int, dtype: Any) -> Array:
    """A variance for each of m points, or their covariances."""
    a = finite_array(x, name)
    if a.shape not in ((m,), (m, m)):
        raise ValueError(f"{name} must have shape ({m},) or ({m}, {m}): got shape {a.shape}")
    return a.astype(dtype, copy=False)


def regular(null: int, ridge: Array) -> None:
    """Refuse a density without width."""
    if null and not (ridge > 0).all():
        raise ValueError(
            f"ridge must be positive where K is singular: got 0.0, and {null} eigenvalues are zero"
        )


def signs(y: Array, name: str, loss: str) -> Array:
    """Labels of two classes."""
    fine = np.abs(y) == 1
    if not fine.all():
        raise ValueError(f"{name} must be -1 or 1 for loss {loss!r}: got {y[~fine].flat[0]}")
    return y


def classes(y: Array, name: str, least: int = 2) -> Array:
    """Labels 0, 1, ... as rows of zeros and a one; rows of probabilities as they are."""
    if y.ndim == 2:
        off = np.abs(y.sum(1) - 1) > 1e-5
        if (y < 0).any() or off.any():
            bad = int(np.flatnonzero((y < 0).any(1) | off)[0])
            raise ValueError(f"{name} must have rows of probabilities: row {bad} is {y[bad]}")
        return y
    fine = (y >= 0) & (y == np.floor(y))
    if not fine.all():
        raise ValueError(f"{name} must be classes 0, 1, ...: got {y[~fine].flat[0]}")
    labels = y.astype(np.intp)
    return np.eye(max(least, labels.max() + 1), dtype=y.dtype)[labels]


def descending(loss: float, iteration: int, step: float) -> None:
    """Refuse to go on with values that have left the numbers."""
    if not math.isfinite(loss):
        raise ValueError(
            f"step must keep descent from diverging: with {step:.3g} the loss is {loss} after "
            f"{iteration} iterations; leave it out for one that the spectrum allows"
        )


# ---- random features


def table(x: Any, name: str) -> Array:
    """Finite rows of numbers; what is wrong is also said in the words of scikit-learn's checks."""
    if hasattr(x, "toarray"):
        raise TypeError(
            f"{name} must be dense: got a sparse {type(x).__name__}; pass {name}.toarray()"
        )
    if not isinstance(x, (np.ndarray, list, tuple)):
        x = np.asarray(x)  # a table of another library
    if isinstance(x, np.ndarray) and x.dtype.hasobject:
        try:
            x = np.asarray(x, np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name} must hold numbers: an array of objects holds something else; "
                "argument must be a string or a real number"
            ) from None
    elif np.iscomplexobj(x):
        raise ValueError(
            f"{name} must be real: Complex data not supported, got {x.dtype}; "
            f"pass {name}.real or its magnitude"
        )
    a = real_array(x, name)
    if a.ndim == 1:
        raise ValueError(
            f"{name} must have shape (n, d): got shape {a.shape}; Reshape your data to "
            f"{name}[:, None] if its entries are points, {name}[None, :] if it is one point"
        )
    if a.ndim == 2 and a.shape[1] == 0:
        raise ValueError(
            f"{name} must have at least one column: 0 feature(s) (shape={a.shape}) while a minimum "
            "of 1 is required."
        )
    a = rows(a, name)
    for start in range(0, len(a), 1024):
        part = np.isfinite(a[start : start + 1024])
        if not part.all():
            i, j = np.argwhere(~part)[0]
            value = a[start + i, j]
            words = "NaN" if np.isnan(value) else "infinity"
            raise ValueError(f"{name} must be finite: {name}[{start + i}, {j}] is {words}")
    return a


def some_rows(a: Array, name: str) -> Array:
    if not len(a):
        raise ValueError(f"{name} must have at least one row: got shape {a.shape}")
    return a


def columns(a: Array, d: int, name: str, whose: str) -> Array:
    if a.shape[1] != d:
        raise ValueError(
            f"{name} must have {d} columns: X has {a.shape[1]} features, but {whose} is expecting "
            f"{d} features as input"
        )
    return a


def generator(seed: Any, name: str) -> np.random.Generator:
    """None, an integer or a generator as a generator."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    if isinstance(seed, (bool, np.bool_)) or not hasattr(seed, "__index__"):
        raise TypeError(
            f"{name} must be None, an integer or a numpy.random.Generator: "
            f"got {type(seed).__name__}"
        )
    return np.random.default_rng(count(seed, name))


def values_per_row(y: Any, n: int, name: str = "y") -> Array:
    """One finite number, or row of them, per row of X, as float64."""
    a = finite_array(y, name)
    if a.ndim not in (1, 2) or len(a) != n:
        raise ValueError(
            f"{name} must have one value or row per row of X, {n}: got shape {a.shape}"
        )
    return a


def even(value: int, name: str, when: str) -> int:
    if value % 2:
        raise ValueError(f"{name} must be even {when}: got {value}")
    return value


def an_instance(value: Any, kind: type[T], name: str, what: str) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {what}: got {kind_of(value)}")
    return value


def unless(wrong: bool, name: str, rule: str, got: str) -> None:
    if wrong:
        raise ValueError(f"{name} must be {rule}: got {got}")


# ---- estimators


def a_kernel(value: Any, name: str, fine: bool, others: str = "") -> Any:
    if not fine:
        what = repr(value) if isinstance(value, str) else type(value).__name__
        hint = "; pass its ntk or nngp" if hasattr(value, "nngp") else ""
        if isinstance(value, type):
            what, hint = value.__name__, "; call it"
        raise TypeError(f"{name} must be a kernel{others} or None: got {what}{hint}")
    return value


def like_fitted(x: Array, shape: tuple[int, ...]) -> Array:
    """Images of the size of those that were fitted."""
    if x.shape[1:] != shape[1:]:
        raise ValueError(
            f"X must have the positions and channels of the fit, {shape[1:]}: got shape {x.shape}"
        )
    return x


def several_classes(found: Array) -> None:
    if len(found) < 2:
        raise ValueError(f"y must have at least two classes: got one class, {found.tolist()[0]!r}")


def class_weight(value: Any, found: Array) -> None:
    """'balanced', or weights by labels that are there."""
    if isinstance(value, str):
        choice(value, "class_weight", ("balanced",))
    elif not isinstance(value, dict):
        raise TypeError(
            f"class_weight must be a dict, 'balanced' or None: got {type(value).__name__}"
        )
    else:
        for label, weight in value.items():
            if label not in found.tolist():
                raise ValueError(
                    f"class_weight must have labels of y: got {label!r}, not in {found.tolist()}"
                )
            non_negative(weight, f"class_weight[{label!r}]")


def one_or_each(a: Array, name: str, n: int) -> float | Array:
    """One number, or one per row of X."""
    if a.ndim and a.shape != (n,):
        raise ValueError(f"{name} must be a number or one per row of X, {n}: got shape {a.shape}")
    return a if a.ndim else float(a)


def not_precomputed(is_precomputed: bool, rule: str) -> None:
    if is_precomputed:
        raise ValueError(
            f"{rule} with kernel 'precomputed': it has no values beyond those of X; "
            "pass the kernel itself"
        )


def either(**flags: Any) -> None:
    """Refuse two of them at once."""
    if all([flag(value, name) for name, value in flags.items()]):
        raise ValueError(f"{' and '.join(flags)} must not both be True: got both")


def weights(K: Array, name: str) -> Array:
    """Refuse values that are no weights of a mean."""
    least = K.min(initial=0.0)
    if least < 0:
        raise ValueError(f"{name} must not be negative on X: got {least:.3g}; try kc.Gaussian")
    return K


def connected(sums: Array) -> Array:
    """Refuse points without affinity to any."""
    if not (sums > 0).all():
        raise ValueError(
            f"X must have rows with affinity to some of the fit: "
            f"{np.count_nonzero(sums <= 0)} have none; pass a wider kernel"
        )
    return sums


# ---- iterative solvers


def multiplies(K: Any, name: str) -> Array:
    """An array; what has no shape and no @ is told that it could have them."""
    if not isinstance(K, (list, tuple)) and not hasattr(K, "__array__"):
        raise TypeError(
            f"{name} must be an array, or have a shape and multiply with @: got {type(K).__name__}"
        )
    return real_array(K, name)


def offers(K: object, name: str, needs: tuple[str, ...]) -> None:
    """Refuse an operator that lacks a method."""
    missing = [f"{need}()" for need in needs if not callable(getattr(K, need, None))]
    if missing:
        raise TypeError(
            f"{name} must have {' and '.join(missing)} beside @: got {type(K).__name__}; pass a "
            "GramOperator or an array"
        )


def multiplied(x: Any, n: int, of: str) -> Any:
    """What K multiplies, of any array library: shape (n,) or (n, r)."""
    if not hasattr(x, "__array_namespace__"):
        given, x = x, np.asarray(x)
        if x.dtype.hasobject:
            x = real_array(given, "x")
    if x.ndim not in (1, 2) or x.shape[0] != n:
        raise ValueError(
            f"x must have one row per {of} of K, {n}, and shape (n,) or (n, r): "
            f"got shape {tuple(x.shape)}"
        )
    return x


def indices(which: Any, n: int, name: str) -> Array | slice:
    """Integers below n, those of a slice or a mask; the slice of all stays as it is."""
    if isinstance(which, slice):
        return which if which == slice(None) else np.arange(n)[which]
    a = np.atleast_1d(np.asarray(which))
    if a.dtype == bool and a.shape == (n,):
        return np.flatnonzero(a)
    if a.ndim != 1 or (a.size and a.dtype.kind not in "iu"):
        raise TypeError(
            f"{name} must be integers, a slice or a mask of length {n}: got {a.dtype} of shape "
            f"{a.shape}"
        )
    bad = (a < -n) | (a >= n)
    if bad.any():
        raise IndexError(f"{name} must be from {-n} to {n - 1}: got {a[bad][0]}")
    return np.where(a < 0, a + n, a).astype(np.intp)


def product(a: Any, shape: tuple[int, ...], name: str) -> Array:
    """What K @ x gave."""
    a = np.asarray(a)
    if a.shape != shape:
        raise ValueError(f"{name} @ x must have the shape of x, {shape}: got shape {a.shape}")
    if not np.isfinite(a).all():
        raise ValueError(f"{name} @ x must be finite: got {a[~np.isfinite(a)].flat[0]}")
    return a


def not_zero_matrix(largest: float) -> float:
    """Refuse a matrix without a step: its largest eigenvalue is zero."""
    if not largest > 0:
        raise ValueError(
            "K + ridge I must not be zero: its largest eigenvalue is 0.0; pass a ridge, or a step"
        )
    return largest


def preconditioner(value: Any, name: str) -> Any:
    if value is not None and not callable(getattr(value, "solve", None)):
        raise TypeError(f"{name} must have a method solve: got {type(value).__name__}")
    return value


def optional_callable(value: Any, name: str) -> Any:
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None: got {type(value).__name__}")
    return value


def not_beside(value: Any, name: str, beside: str) -> None:
    if value is not None:
        raise ValueError(f"{name} must not be given beside {beside}: got {type(value).__name__}")


def like_rows(a: Array, X: Array, name: str) -> Array:
    if a.shape[1:] != X.shape[1:]:
        raise ValueError(
            f"{name} must be of one kind with the rows of X, of shape {X.shape[1:]}: "
            f"got shape {a.shape}"
        )
    return a


def some_points(a: Array, name: str) -> Array:
    if not len(a):
        raise ValueError(f"{name} must have at least one row: got shape {a.shape}")
    return a


def entries(a: Array, name: str) -> Array:
    """Finite kernel values, or where the first is that is not."""
    if not np.isfinite(a).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(a))[0])
        raise ValueError(f"{name} must be finite: {name}[{', '.join(map(str, at))}] is {a[at]}")
    return a


def positive_weights(weights: Any, name: str, n: int) -> Array | None:
    """One positive number per row of K, or None."""
    if weights is None:
        return None
    a = amounts(weights, name, zero=False)
    if a.shape != (n,):
        raise ValueError(f"{name} must have one entry per row of K, {n}: got shape {a.shape}")
    return a


def enough_rows(n: int, least: int, name: str, what: str) -> None:
    if n < least:
        raise ValueError(f"{name} must have at least {least} rows for {what}: got {n}")


def sample_weights(weights: Any, n: int) -> Array:
    """Weights that are not negative and not all zero, one per row of X; one number for all."""
    a = amounts(weights, "sample_weight")
    if a.ndim == 0:
        a = np.full(n, float(a))
    if a.shape != (n,):
        raise ValueError(
            f"sample_weight must have one entry per row of X, {n}: got shape {a.shape}"
        )
    if not a.any():
        raise ValueError("sample_weight must not be zero everywhere: got no positive weight")
    return a


def root_weights(weights: Any, n: int, dtype: Any) -> Array | None:
    """The roots of weights of points, or None."""
    return None if weights is None else np.sqrt(sample_weights(weights, n)).astype(dtype)


def definite_block(info: int, rows: slice, name: str) -> None:
    """Refuse a block that has no Cholesky factor."""
    if info:
        raise np.linalg.LinAlgError(
            f"{name} + ridge I must be positive definite: its block of rows {rows.start} to "
            f"{rows.stop - 1} is not; pass a larger ridge"
        )


def diagonal(d: Array, name: str) -> Array:
    """The diagonal of a positive semi-definite matrix that is not zero."""
    if (d < 0).any() or not d.any():
        i = int(np.argmin(d))
        raise ValueError(
            f"{name} must be positive semi-definite and not zero: its diagonal entry {i} is {d[i]}"
        )
    return d
