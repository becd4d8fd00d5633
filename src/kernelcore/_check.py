"""Every argument rule and its message: ``<argument> must <rule>: <what came>[; <remedy>]``."""

from __future__ import annotations

import math
import numbers
import operator
import os
import re
import reprlib
import sys
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from ._types import Array

if TYPE_CHECKING:
    from pathlib import Path  # which takes long to import, and only files need it

T = TypeVar("T")
Shape = tuple[int, ...]
Names = tuple[str, ...]
BOOL = (bool, np.bool_)
NATIVE = {np.dtype(np.float32), np.dtype(np.float64)}
"""What the engine computes in, in the byte order of the machine."""


# ---- what most rules share


def kind_of(value: object) -> str:
    """Name the class of an object for a message; say of a class that it has to be called."""
    if isinstance(value, type):
        return f"{value.__name__}; call it"
    return _of_library(value) if on_a_device(value) else type(value).__name__


def must(fine: bool, name: str, rule: str, got: object) -> None:
    """Refuse a value; what ``got`` says is written out each time, so let it be short."""
    if not fine:
        raise ValueError(f"{name} must {rule}: got {got}")


def _kind(fine: bool, value: T, name: str, what: str, remedy: str = "") -> T:
    if not fine:
        raise TypeError(f"{name} must be {what}: got {kind_of(value)}{remedy}")
    return value


def shaped(fine: bool, a: Any, name: str, rule: str) -> Any:
    must(fine, name, rule, f"shape {tuple(a.shape)}")
    return a


def unless(wrong: bool, name: str, rule: str, got: object) -> None:
    must(not wrong, name, f"be {rule}", got)


def an_instance(value: Any, kind: type[T], name: str, what: str) -> T:
    return _kind(isinstance(value, kind), value, name, what)


def entries(a: Array, name: str, words: Callable[[float], str] = str, first: int = 0) -> Array:
    """Refuse what is not finite, naming its first entry; no mask of the whole array is made.

    ``first`` is the number of the first row, where ``a`` is a part.
    """
    xp = namespace(a)
    if xp is not np:
        fine = xp.isfinite(a)
        if not bool(xp.all(fine)):
            at = tuple(int(k[0]) for k in xp.nonzero(~fine))
            _not_finite(name, at, words(float(a[at])))
        return a
    step = 1 + 2**15 * len(a) // max(1, a.size)
    for start in range(0, len(a), step):
        fine = np.isfinite(a[start : start + step])
        if not fine.all():
            row, *rest = (int(k) for k in np.argwhere(~fine)[0])
            at = (start + row, *rest)
            _not_finite(name, (first + at[0], *rest), words(a[at]))
    return a


def _not_finite(name: str, at: tuple[int, ...], value: str) -> NoReturn:
    place = f"{name}[{', '.join(map(str, at))}]"
    raise ValueError(f"{name} must be finite: {place} is {value}")


# ---- optional packages

OPTIONAL = {
    "array_api_compat": ("array-api-compat", "gpu"),
    "cupy": ("CuPy", "gpu"),
    "distributed": ("Dask", "scale"),
    "matplotlib": ("matplotlib", "plot"),
    "sklearn": ("scikit-learn", "sklearn"),
    "torch": ("PyTorch", "torch"),
    "zarr": ("Zarr", "scale"),
}
"""Modules that some parts need: the package that has each, and the extra that installs it."""


def absent(module: str) -> str | None:
    """Return the command that installs an optional module, or None where it is installed."""
    from importlib.util import find_spec

    if find_spec(module) is not None:
        return None
    return f"pip install 'kernelcore[{OPTIONAL[module][1]}]'"


def installed(module: str, what: str) -> None:
    remedy = absent(module)
    if remedy is not None:
        raise ImportError(f"{what} needs {OPTIONAL[module][0]}; install it with: {remedy}")


# ---- numbers


def number(value: Any, name: str) -> float:
    """Return a finite real number as a float."""
    real = isinstance(value, numbers.Real) and not isinstance(value, BOOL)
    try:
        value = float(_kind(real, value, name, "a real number"))
    except OverflowError:  # an integer
        value = math.inf
    unless(not math.isfinite(value), name, "finite", value)
    return value


def positive(value: Any, name: str) -> float:
    value = number(value, name)
    unless(value <= 0, name, "positive", value)
    return value


def non_negative(value: Any, name: str) -> float:
    value = number(value, name)
    must(value >= 0, name, "not be negative", value)
    return value


def below_one(value: Any, name: str) -> float:
    value = number(value, name)
    unless(not 0 <= value < 1, name, "in [0, 1)", value)
    return value


def count(value: Any, name: str, least: int = 0, most: float = sys.maxsize) -> int:
    """Return an integer of at least ``least``, and no more than an index can be, or ``most``."""
    _kind(not isinstance(value, BOOL), value, name, "an integer")
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer: got {kind_of(value)}") from None
    unless(value < least, name, f"at least {least}", value)
    unless(value > most, name, f"at most {sys.maxsize}", "an integer of more than 63 bits")
    return value


def index(value: Any, n: int, name: str) -> int:
    """Return the place of one of n things; negative numbers count from the last."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name} must be integers: got {kind_of(value)}")
    if not -n <= value < n:
        raise ValueError(f"{name} must be from {-n} to {n - 1}: got {value}")
    return int(value) % n


def at_most(value: int, limit: int, name: str, what: str) -> int:
    unless(value > limit, name, f"at most {what}, {limit}", value)
    return value


def flag(value: Any, name: str) -> bool:
    return bool(_kind(isinstance(value, BOOL), value, name, "True or False"))


def coefficients(values: Any, name: str) -> tuple[float, ...]:
    """Return a non-empty sequence of finite numbers as a tuple."""
    on_the_host(values, name)
    try:
        values = tuple(values)
    except TypeError:
        raise TypeError(f"{name} must be a sequence of numbers: got {kind_of(values)}") from None
    must(len(values) > 0, name, "have at least one entry", "none")
    return tuple(number(v, f"{name}[{k}]") for k, v in enumerate(values))


def integers(values: Any, name: str) -> tuple[int, ...]:
    """Return a sequence of integers, none of them negative, as a tuple."""
    try:
        values = tuple(values)
    except TypeError:
        raise TypeError(f"{name} must be a sequence of integers: got {kind_of(values)}") from None
    return tuple(count(v, f"{name}[{k}]") for k, v in enumerate(values))


def choice(value: Any, name: str, allowed: Names) -> str:
    unless(value not in allowed, name, f"one of {', '.join(map(repr, allowed))}", repr(value))
    return value


def sizes(value: Any, name: str, like: Shape | None = None) -> Shape:
    """Return one positive integer per axis, as many as ``like`` has; one counts for all axes."""
    if isinstance(value, (tuple, list)):
        fine = len(value) in ((1, 2) if like is None else (len(like),))
        rule = "one or two entries" if like is None else f"as many entries as {like}"
        must(fine, name, f"have {rule}", len(value))
        return tuple(count(v, f"{name}[{k}]", least=1) for k, v in enumerate(value))
    return (count(value, name, least=1),) * (2 if like is None else len(like))


def generator(seed: Any, name: str) -> np.random.Generator:
    """Return a generator for None, an integer, or a generator."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    fine = hasattr(seed, "__index__") and not isinstance(seed, BOOL)
    _kind(fine, seed, name, "None, an integer or a numpy.random.Generator")
    return np.random.default_rng(count(seed, name, most=math.inf))


def setting(value: Any, like: Any, name: str) -> Any:
    """Return a plain value of the kind of ``like``; entries of tuples are of the kind of theirs."""
    if isinstance(like, bool):
        return flag(value, name)
    if isinstance(like, int):
        return count(value, name, least=-sys.maxsize)
    if isinstance(like, float):
        return number(value, name)
    if isinstance(like, str):
        return str(_kind(isinstance(value, str), value, name, "a string"))
    value = _kind(isinstance(value, (tuple, list)), value, name, "a sequence")
    return tuple(setting(v, _entry_like(like), f"{name}[{k}]") for k, v in enumerate(value))


def _entry_like(like: tuple[Any, ...]) -> Any:
    """Return an entry that stands for all: a float where there is one, else the first, or text."""
    return next((v for v in like if isinstance(v, float)), like[0] if like else "")


def setting_text(text: str, like: Any, name: str) -> Any:
    """Return the value that a text on a command line stands for; commas separate entries."""
    if isinstance(like, tuple):
        return tuple(setting_text(t, _entry_like(like), name) for t in text.split(",") if t)
    if isinstance(like, bool):
        return choice(text, name, ("true", "false")) == "true"
    try:
        return type(like)(text)
    except ValueError:
        what = "a whole number" if isinstance(like, int) else "a number"
        raise ValueError(f"{name} must be {what}: got {text!r}") from None


def given(value: T | None, name: str, beside: str) -> T:
    must(value is not None, name, f"be given with {beside}", None)
    return value  # type: ignore[return-value]  # which is not None


def not_beside(value: Any, name: str, beside: str) -> None:
    must(value is None, name, f"not be given with {beside}", type(value).__name__)


def optional_callable(value: Any, name: str) -> Any:
    return _kind(value is None or callable(value), value, name, "callable or None")


def either(**flags: Any) -> None:
    both = all([flag(value, name) for name, value in flags.items()])
    must(not both, " and ".join(flags), "not both be True", "both")


# ---- arrays


def on_a_device(x: Any) -> bool:
    """Return whether an array lies in memory that this process cannot read, such as a GPU's."""
    if type(x) is np.ndarray:
        return False
    if isinstance(x, (np.ndarray, list, tuple)) or not hasattr(x, "__dlpack_device__"):
        return hasattr(x, "__cuda_array_interface__")
    return x.__dlpack_device__()[0] not in (1, 3)  # kDLCPU, kDLCUDAHost


def _of_library(x: object) -> str:
    return f"{type(x).__module__.partition('.')[0]}.{type(x).__name__}"


def on_the_host(x: Any, name: str) -> None:
    """Refuse arrays in the memory of a device, before NumPy or their library does."""
    if on_a_device(x):
        raise TypeError(
            f"{name} must be in the memory of the host: got {_of_library(x)} on a device; copy it "
            "to a NumPy array"
        )


def namespace(x: Any) -> Any:
    """Return the functions that go with an array: its library's, or NumPy for what NumPy reads.

    Another library's are as ``array_api_compat`` gives them, so that they have the names and
    arguments of the Python array API standard. NumPy also stands for JAX, whose arrays cannot be
    written to, and for what has no namespace: ``real_array`` reads it, or refuses what is on a
    device.
    """
    if x is None or isinstance(x, (np.ndarray, np.generic)):
        return np
    if not (hasattr(x, "__array_namespace__") or on_a_device(x)):
        return np
    if type(x).__module__.partition(".")[0] in ("jax", "jaxlib"):
        return np
    installed("array_api_compat", "linear algebra with arrays that are not NumPy's")
    from array_api_compat import array_namespace

    try:
        return array_namespace(x)
    except TypeError:
        return np


def dtype_name(dtype: object) -> str:
    """Return the name of a dtype of any library, such as float64."""
    return str(dtype).rpartition(".")[2]


def array(x: Any, name: str) -> Array:
    """Return what ``real_array`` does in the array's own library; for NumPy it is the same."""
    xp = namespace(x)
    if xp is np:
        return real_array(x, name)
    if xp.isdtype(x.dtype, "complex floating"):
        rule = f"{name} must be real, got {dtype_name(x.dtype)}"
        raise TypeError(f"{rule}; pass {name}.real or its magnitude")
    if xp.isdtype(x.dtype, ("bool", "integral")):
        return xp.astype(x, xp.float64)
    if x.dtype not in (xp.float32, xp.float64):
        rule = f"{name} must be float32 or float64, got {dtype_name(x.dtype)}"
        raise TypeError(f"{rule}; convert it with {name}.astype")
    return x


def _place(x: Any) -> str:
    where = "a device" if on_a_device(x) else "the host"
    where = where if isinstance(x, np.ndarray) else getattr(x, "device", where)
    return f"{_of_library(x)} on {where}"


def beside(x: Any, name: str, like: Any, of: str, *, any_dtype: bool = False) -> Array:
    """Return an array that is where ``like`` is; or numbers, put there.

    Nothing else is copied from one memory to another: that is for the caller to do. It is as
    ``array`` returns it, unless it may have any dtype, as labels may. Where ``like`` is NumPy's, or
    None, it is what ``real_array`` makes of anything that NumPy can read.
    """
    xp = namespace(like)
    if xp is np:
        return real_array(x, name)
    if isinstance(x, (list, tuple, int, float)):
        return xp.asarray(real_array(x, name), device=like.device)
    if namespace(x) is not xp or x.device != like.device:
        elsewhere(x, name, like, of)
    return x if any_dtype else array(x, name)


def as_given(x: Any, name: str, like: Any, of: str) -> Any:
    """Return an array, in any dtype, that is where ``like`` is: NumPy's as NumPy reads it."""
    if namespace(like) is not np:
        return beside(x, name, like, of, any_dtype=True)
    on_the_host(x, name)
    return np.asarray(x)


def elsewhere(x: Any, name: str, like: Any, of: str) -> NoReturn:
    rule = f"{name} must be where {of} is, {_place(like)}"
    raise TypeError(f"{rule}: got {_place(x)}; move one of them")


def offered(function: T | None, x: Any, name: str) -> T:
    """Return a function for an array of another library, or refuse the array without it."""
    if function is None:
        raise TypeError(f"x must be of a library with {name}: got {_place(x)}; copy it to NumPy")
    return function


def real_array(x: Any, name: str) -> Array:
    """Return float32 and float64 as they are, and integers and booleans as float64."""
    if type(x) is np.ndarray and x.dtype in NATIVE:
        return x
    on_the_host(x, name)
    # A caller with a masked array has imported its module. Asking NumPy for it would import it
    # here, in the middle of a call, while another thread may fork.
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(x, masked.MaskedArray):
        raise TypeError(f"{name} must not be masked: got a masked array; pass {name}.filled(value)")
    try:
        a = np.asarray(x)
    except ValueError:
        rule = "must be rectangular: got a ragged sequence of"
        raise ValueError(f"{name} {rule} {len(x)} entries") from None
    if a.dtype.kind in "OUS":
        _not_numbers(x, a, name)
    if a.dtype.kind == "c":
        raise TypeError(f"{name} must be real, got {a.dtype}; pass {name}.real or its magnitude")
    if a.dtype.kind in "biu":
        return a.astype(np.float64)
    native = a.dtype.newbyteorder("=")
    if native not in (np.float32, np.float64):
        remedy = f"convert it with {name}.astype"
        raise TypeError(f"{name} must be float32 or float64, got {a.dtype}; {remedy}")
    return a.astype(native, copy=False)


def of_any_backend(x: Any, name: str) -> Any:
    """Return an array on a device as it is, and anything else as ``real_array`` does."""
    return x if on_a_device(x) else real_array(x, name)


def _not_numbers(x: Any, a: Array, name: str) -> NoReturn:
    """Refuse what NumPy turned into objects or strings, and name it."""
    _kind(not hasattr(x, "toarray"), x, name, "a dense array", f"; pass {name}.toarray()")
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


def every(fine: Array, a: Array, name: str, rule: str) -> Array:
    xp = namespace(a)
    if xp is not np:
        if not bool(xp.all(fine)):
            raise ValueError(f"{name} must {rule}: got {float(a[~fine][0])}")
        return a
    if not fine.all():
        raise ValueError(f"{name} must {rule}: got {a[~fine].flat[0]}")
    return a


def finite_array(x: Any, name: str, like: Any = None, of: str = "K") -> Array:
    """Return finite numbers of any shape as float64; or, beside an array ``like``, in their dtype.

    That array, whose name is ``of``, is another library's; beside NumPy's it makes no difference.
    """
    xp = namespace(like)
    if xp is not np:
        a = beside(x, name, like, of)
        return every(xp.isfinite(a), a, name, "be finite")
    a = np.asarray(real_array(x, name), np.float64)
    return every(np.isfinite(a), a, name, "be finite")


def above_one(x: Any, name: str) -> Array:
    """Return finite numbers above 1, of any shape, as float64."""
    a = finite_array(x, name)
    return every(a > 1, a, name, "be above 1")


ULPS = 16
"""Units in the last place of its dtype by which a cosine may pass 1: products of unit rows do, by
up to 7 in 100,000 dimensions."""


def cosines(x: Any, name: str) -> Array:
    """Return numbers in [-1, 1] of any shape as float64; those outside by rounding become +-1."""
    a = real_array(x, name)
    slack = ULPS * float(np.finfo(a.dtype).eps)
    a = np.asarray(a, np.float64)
    size = np.abs(a)
    every(size <= 1 + slack, a, name, "be in [-1, 1]")
    return a if (size <= 1).all() else np.clip(a, -1.0, 1.0)


def amounts(
    x: Any, name: str, *, zero: bool = True, infinite: bool = False, like: Any = None, of: str = "K"
) -> Array:
    """Return numbers of any shape that are not negative as float64; zero and inf by permission.

    They are where ``like`` is, the array of name ``of``.
    """
    xp = namespace(like)
    a = cast(beside(x, name, like, of), np.float64)
    fine = (a >= 0 if zero else a > 0) & (xp.isfinite(a) | (a == np.inf) & infinite)
    if not (fine.all() if xp is np else bool(xp.all(fine))):
        bad = float(xp.reshape(a, (-1,))[xp.reshape(~fine, (-1,))][0])
        sign = "not be negative" if zero else "be positive"
        rule = sign if bad <= 0 else "be a number" if math.isnan(bad) else "be finite"
        raise ValueError(f"{name} must {rule}: got {bad}")
    return a


def together(**arrays: Array) -> tuple[Array, ...]:
    """Broadcast arrays against each other."""
    try:
        return tuple(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        *most, last = arrays
        names, shapes = f"{', '.join(most)} and {last}", [str(a.shape) for a in arrays.values()]
        got = f"got shapes {', '.join(shapes)}"
        raise ValueError(f"{names} must broadcast together: {got}") from None


def vector(x: Any, name: str, length: int, of: str, like: Any = None) -> Array:
    """Return ``length`` finite numbers, one per ``of``, as float64; where X is, if that is like."""
    a = finite_array(x, name, like, "X")
    return shaped(a.shape == (length,), a, name, f"have one entry per {of}, {length}")


def dtype_in(xp: Any, dtype: Any) -> Any:
    """Return a dtype, NumPy's or another library's, as a namespace has it."""
    dtype = np.dtype(dtype) if isinstance(dtype, type) else dtype
    return dtype if xp is np else getattr(xp, dtype_name(dtype))


def cast(a: Array, dtype: Any) -> Array:
    """Return an array in another dtype, of NumPy or of its own library, and itself if it has it."""
    if isinstance(a, np.ndarray):
        return a.astype(dtype, copy=False)
    xp = namespace(a)
    return xp.astype(a, dtype_in(xp, dtype), copy=False)


def alike(
    x: Any, name: str, shape: Shape, beside: str, dtype: Any, like: Any = None, of: str = "K"
) -> Array:
    """Return finite values of the shape of ``beside``, where ``like`` is."""
    a = finite_array(x, name, like, of)
    shaped(a.shape == shape, a, name, f"have the shape of {beside}, {shape}")
    return cast(a, dtype)


def some(a: Array, name: str) -> Array:
    return shaped(a.size > 0, a, name, "not be empty")


def some_rows(a: Array, name: str) -> Array:
    return shaped(a.shape[0] > 0, a, name, "have at least one row")


def indices(which: Any, n: int, name: str) -> Array | slice:
    """Return integers below n for integers, a slice or a mask; the slice of all stays as it is."""
    if isinstance(which, slice):
        return which if which == slice(None) else np.arange(n)[which]
    on_the_host(which, name)
    a = np.atleast_1d(np.asarray(which))
    if a.dtype == bool and a.shape == (n,):
        return np.flatnonzero(a)
    if a.ndim != 1 or (a.size and a.dtype.kind not in "iu"):
        rule = f"integers, a slice or a mask of length {n}"
        raise TypeError(f"{name} must be {rule}: got {a.dtype} of shape {a.shape}")
    bad = (a < -n) | (a >= n)
    if bad.any():
        raise IndexError(f"{name} must be from {-n} to {n - 1}: got {a[bad][0]}")
    return np.where(a < 0, a + n, a).astype(np.intp)


# ---- rows, signals and images


def _plain(a: Array) -> Array:
    """Return an array as compiled loops read it: C-contiguous, aligned and of no subclass."""
    flags = a.flags  # NumPy takes microseconds to find out the same
    if type(a) is np.ndarray and flags.c_contiguous and flags.aligned:
        return a
    return np.require(a, requirements=["C", "A", "E"])


class Arrays(NamedTuple):
    """How the arrays of a backend are read, and made as its loops want them."""

    read: Callable[[Any, str], Any]
    plain: Callable[[Any], Any]


def device_array(x: Any, name: str) -> Any:
    """Return float32 and float64 on a device as they are."""
    if x.dtype not in NATIVE:
        rule = f"{name} must be float32 or float64 on a device"
        raise TypeError(f"{rule}: got {x.dtype}; pass {name}.astype('float32')")
    return x


HOST = Arrays(real_array, _plain)


def rows(x: Any, name: str, of: Arrays = HOST) -> Array:
    """Return a C-contiguous (n, d) array of a dtype the engine has, d >= 1."""
    a = of.read(x, name)
    if a.ndim != 2 or a.shape[1] == 0:
        column = f"; pass {name}[:, None] if its entries are one-dimensional points"
        hint = {0: "", 1: column}.get(a.ndim, f"; pass {name}.reshape(len({name}), -1)")
        must(a.ndim == 2, name, "have shape (n, d)", f"shape {a.shape}{hint}")
        shaped(False, a, name, "have at least one column")
    return of.plain(a)


def _inputs(
    x: Any, y: Any, check: Callable[[Any, str], Array], rule: str
) -> tuple[Array, Array | None]:
    """Return X and Y, checked and alike but for their lengths; Y stays None."""
    a = check(x, "X")
    if y is None:
        return a, None
    b = check(y, "Y")
    if a.shape[1:] != b.shape[1:]:
        raise ValueError(f"Y must have {rule} X: X has shape {a.shape}, Y has shape {b.shape}")
    same_dtype(a, b)
    return a, b


def points(x: Any, y: Any, of: Arrays = HOST) -> tuple[Array, Array | None]:
    """Return rows of X and Y with equal columns and one dtype; Y stays None."""
    return _inputs(x, y, lambda a, name: rows(a, name, of), "as many columns as")


def image_pair(x: Any, y: Any, layer: Any, of: Arrays = HOST) -> tuple[Array, Array | None]:
    """Return images X and Y of one size and dtype, for a layer; Y stays None."""
    same = "the positions and channels of"
    return _inputs(x, y, lambda a, name: images(a, layer, name, of), same)


def same_device(a: Any, b: Any) -> None:
    if a.device != b.device:
        elsewhere(b, "Y", a, "X")


def same_dtype(a: Array, b: Array) -> None:
    if a.dtype != b.dtype:
        got = f"X is {a.dtype}, Y is {b.dtype}"
        raise TypeError(f"Y must have the dtype of X: {got}; convert one of them")


def _positions(ndim: int, layer: Any, name: str) -> str:
    """Return the remedy for an array of ``ndim`` axes where a layer needs another number."""
    single = f"pass {name}[..., None] for signals of one channel"
    reshape = f"{name}.reshape(len({name}), H, W, C)"
    if layer._axes is None:
        return f"; {single}, {reshape} for images" if ndim == 2 else ""
    if layer._axes == 1:
        return {2: f"; {single}", 4: f"; write {layer._for_axes(2)} for images"}.get(ndim, "")
    signals = f"; write {layer._for_axes(1)} for signals (n, L, C), or pass {name}[..., None] for"
    return {2: f"; pass {reshape}", 3: f"{signals} grey images (n, H, W)"}.get(ndim, "")


def images(x: Any, layer: Any, name: str, of: Arrays = HOST) -> Array:
    """Return a C-contiguous (n, L, C) or (n, H, W, C) array in which only n may be zero.

    It has as many axes of positions as ``layer`` is for: one or two where it is for any.
    """
    a = of.read(x, name)
    kinds = {1: "signals (n, L, C)", 2: "images (n, H, W, C)"}
    if a.ndim not in ((3, 4) if layer._axes is None else (layer._axes + 2,)):
        what = kinds.get(layer._axes, " or ".join(kinds.values()))
        hint = _positions(a.ndim, layer, name)
        raise ValueError(f"{name} must be {what} for {layer!r}: got shape {a.shape}{hint}")
    if 0 in a.shape[1:]:
        shaped(False, a, name, "have at least one position and channel")
    return of.plain(a)


finite_images = entries


def finite(a: Array, norms: Array, name: str, first: int = 0) -> None:
    """Refuse rows whose norm came out non-finite, naming the first bad entry."""
    if not np.isfinite(norms).all():
        entries(a, name, first=first)
        i = first + int(np.flatnonzero(~np.isfinite(norms))[0])
        rule = f"{name} must have rows of finite norm"
        raise ValueError(f"{rule}: row {i} overflows; scale {name} down")


def resolved(lost: bool, dtype: np.dtype[Any]) -> None:
    if lost:
        rule = f"X must keep the kernel within {dtype}"
        raise FloatingPointError(f"{rule}: the variance underflows; scale X up")


def within(
    values: Array, dtype: np.dtype[Any], what: str, name: object = "", scale: float = 1
) -> None:
    """Refuse values beyond ``scale`` times the largest of the dtype, at which ``what`` overflows.

    ``name`` is written into ``what``, but only for an error: a long network takes long to print.
    """
    if not values.max(initial=0.0) <= scale * float(np.finfo(dtype).max):  # NaN is not, either
        beyond(dtype, what, name)


def beyond(dtype: np.dtype[Any], what: str, name: object = "") -> NoReturn:
    """Refuse inputs for which ``what`` overflows."""
    rule = f"X must keep the kernel within {dtype}"
    raise OverflowError(f"{rule}: {what.format(name)}; scale X down")


def kernel(values: Array, tangent: bool) -> None:
    if not np.isfinite(values).all():
        which = "tangent kernel" if tangent else "kernel"
        within(np.array(math.inf), values.dtype, f"the {which} overflows")


def no_profile(kernel: object, why: str) -> NoReturn:
    raise ValueError(f"{kernel!r} must not be asked for a profile: it {why}")


def no_gradient(what: object, why: str = "has no derivative here that is known") -> NoReturn:
    raise TypeError(f"{what!r} must not be asked for a gradient: it {why}")


def without_derivative(activation: object) -> NoReturn:
    rule = "activation must have a derivative that is known"
    raise TypeError(f"{rule}: got {activation!r}; pass derivative=")


def patches_within(a: Array, patch: int, profile: object, name: str) -> None:
    """Refuse cyclic patches for which a profile on [-1, 1] is not defined."""
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


def converges(beyond: Array, sd: Array, reach: float) -> None:
    """Refuse a function whose square lies mostly beyond the reach of a quadrature."""
    bad = ~(beyond < 1)
    if bad.any():
        raise ValueError(
            f"fn must grow slower than the normal density falls: at variance {sd[bad][0] ** 2:.6g} "
            f"E[fn(x)^2] is infinite, or most of it beyond {reach:.0f} standard deviations; "
            "scale X or w_std down"
        )


def one_per_entry(values: Array, shape: Shape) -> Array:
    got = f"shape {values.shape} for input of shape {shape}"
    must(values.shape == shape, "fn", "return one value per entry", got)
    return values


# ---- memory

SMALL = 10_000_000
"""Bytes below which the budget is not asked: to fill them takes a thousand times as long."""
MATRIX = ("GramOperator", "float32")
"""What to use where a Gram matrix is too large."""
UNITS = {unit: 1000**k for k, unit in enumerate(("b", "kb", "mb", "gb", "tb"))}
UNITS |= {unit: 1024**k for k, unit in enumerate(("kib", "mib", "gib", "tib"), 1)}


def budget() -> int:
    """Return the bytes that large arrays may take; ``engine.memory`` puts its own function here."""
    return sys.maxsize


def byte_count(value: Any, name: str) -> int:
    """Return bytes, given as a number or as text that may have a unit."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([\d.]+(?:e[+-]?\d+)?)\s*([a-z]*)\s*", value, re.ASCII | re.I)
        try:
            value = float(found[1]) * UNITS[found[2].lower() or "b"]  # type: ignore[index]  # caught
        except (KeyError, TypeError, ValueError):
            rule = "must be a number of bytes, or have a unit as in 8GB or 512MiB"
            raise ValueError(f"{name} {rule}: got {value!r}") from None
    return math.ceil(positive(value, name))


def in_bytes(amount: float) -> str:
    """Return an amount of memory in words."""
    power = min(5, max(1, int(math.log10(amount)) // 3))
    return f"{amount / 1000**power:.1f} {' kMGTP'[power]}B"


def room(what: str, shape: Shape, dtype: Any, arrays: int = 1, remedies: Names = MATRIX) -> None:
    """Refuse ``arrays`` arrays that exist at a time and exceed the budget, before any work."""
    need = arrays * math.prod(shape) * np.dtype(dtype).itemsize
    if need >= SMALL and need > (most := budget()):
        remedies = (*remedies, "kernelcore.set_memory")
        _no_room(what, shape, dtype, arrays, remedies, f"the budget is {in_bytes(most)}")


def _no_room(
    what: str, shape: Shape, dtype: Any, arrays: int, remedies: Names, why: str
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


def device_room(what: str, need: int, free: int, remedy: str) -> NoReturn:
    """Refuse what a device has no memory for."""
    sizes = f"{in_bytes(need)} are needed, {in_bytes(max(free, 1))} are free"
    raise MemoryError(f"{what} must fit into the memory of the device: {sizes}; {remedy}") from None


def fresh(
    shape: Shape, dtype: Any, what: str = "K", remedies: Names = MATRIX, beside: int = 0
) -> Array:
    """Return a new array if the budget holds it and ``beside`` others of its size."""
    room(what, shape, dtype, 1 + beside, remedies)
    try:
        return np.empty(shape, dtype)
    except MemoryError:
        _no_room(what, shape, dtype, 1, (*remedies, "fewer points"), "and the system gives no more")


def out(
    value: Any, shape: Shape, dtype: Any, what: str = "K", remedies: Names = MATRIX, beside: int = 0
) -> Array:
    """Return a writable C-contiguous array of that shape and dtype: the user's, or a new one.

    The budget has to hold it and ``beside`` others of its size; the user's alone it need not.
    """
    if value is None:
        return fresh(shape, dtype, what, remedies, beside)
    _kind(isinstance(value, np.ndarray), value, "out", "a NumPy array")
    if value.shape != shape:
        shaped(False, value, "out", f"have shape {shape}")
    if value.dtype != dtype:
        raise TypeError(f"out must have dtype {dtype}: got {value.dtype}")
    flags = value.flags
    if not (flags.c_contiguous and flags.writeable):
        unless(not flags.c_contiguous, "out", "C-contiguous", f"strides {value.strides}")
        unless(not flags.writeable, "out", "writable", "a read-only array")
    if beside:
        room(what, shape, dtype, 1 + beside, remedies)
    return value


def device_numbers(values: Any, found: int) -> tuple[int, ...]:
    """Return numbers of devices, of which there are so many, each once."""
    numbers = tuple(values) if isinstance(values, (list, tuple, range)) else ()
    known = all(type(v) is int and 0 <= v < found for v in numbers)
    fine = len(numbers) > 0 and known and len(set(numbers)) == len(numbers)
    rule = f'be None, "all" or a list of numbers from 0 to {found - 1}, each once'
    must(fine, "numbers", rule, reprlib.repr(values))
    return numbers


def device_out(value: Any, x: Any, shape: Shape) -> Any:
    """Return the user's array for a result on the device of x."""
    _kind(type(value) is type(x), value, "out", "an array of the library of X")
    shaped(value.shape == shape, value, "out", f"have shape {shape}")
    if value.dtype != x.dtype:
        raise TypeError(f"out must have dtype {x.dtype}: got {value.dtype}")
    unless(not value.flags.c_contiguous, "out", "C-contiguous", f"strides {value.strides}")
    return value


def apart(out: Array, inputs: dict[str, Array | None]) -> None:
    for other, a in inputs.items():
        if a is not None and np.may_share_memory(out, a):
            raise ValueError(f"out must not overlap {other}: they share memory; pass a copy")


# ---- values


def unchanged(value: object, name: str, how: str) -> NoReturn:
    remedy = f"build another, or call replace({name}=...)" if how == "set" else "build another"
    rule = f"{type(value).__name__} must not change after construction"
    raise AttributeError(f"{rule}: {name} was {how}; {remedy}")


def sequence(value: Any, name: str) -> tuple[Any, ...]:
    """Return a list or a tuple of layers, which are not checked, as a tuple."""
    fine = isinstance(value, (tuple, list))
    return tuple(_kind(fine, value, name, "a layer or a sequence of layers"))


def named(name: str, names: Collection[str], of: str) -> None:
    known = f"it has {', '.join(names) or 'none'}"
    must(name in names, "changes", f"name parameters of {of}", f"{name!r}; {known}")


# ---- files


def a_path(value: Any, name: str) -> Path:
    from pathlib import Path

    try:
        return Path(value)
    except TypeError:
        raise TypeError(f"{name} must be a path: got {kind_of(value)}") from None


def destination(value: Any, name: str) -> Path:
    """Return a file that can be written as an absolute path; its contents and date stay."""
    path = a_path(value, name).absolute()
    must(str(value) != "-", name, "name a file", "'-'; ./- is a file of that name")
    try:
        if path.is_dir() or not path.parent.is_dir():
            raise ValueError(f"{name} must name a file in an existing folder: {path}")
        if path.exists() and not path.is_file():
            return path  # A device or a pipe, which to open may mean to wait for its reader.
        # Only opening it tells: some users pass all permissions, some file systems have none. If
        # the path is a link whose target is missing, the target is made and has to go again.
        real = os.path.realpath(path)
        missing = not os.path.exists(real)
        with open(real, "ab"):
            pass
        if missing:
            os.unlink(real)
    except OSError as error:
        rule = f"{name} must name a file that can be written"
        raise ValueError(f"{rule}: {path}: {error.strerror}") from None
    return path


def a_folder(value: Any, name: str) -> Path:
    path = a_path(value, name)
    if not path.is_dir():
        raise ValueError(f"{name} must be an existing folder: {path}")
    return path


def unwritten(path: Path, name: str, remedy: str) -> None:
    if path.is_file() and path.stat().st_size:
        raise ValueError(f"{name} must be a new file: {path} has results; {remedy}")


def damaged(path: Path, what: str, got: str) -> NoReturn:
    raise ValueError(f"{path} must be {what}: got {got}") from None


class MissingData(ValueError):
    """There is nothing to read: an experiment is left out, and nothing has failed."""


def data_given(there: bool, what: str) -> None:
    if not there:
        raise MissingData(f"data must name {what}: got none; pass --data DIR")


def entry(facts: dict[str, str], key: str, where: object) -> str:
    must(bool(facts.get(key)), str(where), f"have a line '{key}= ...'", "none")
    return facts[key]


def number_table(text: str, where: object) -> Array:
    """Return finite numbers below a head line, in three or more columns, the last one integers."""
    lines = [line for line in text.splitlines()[1:] if line.strip()]
    try:
        table = np.loadtxt(lines, ndmin=2) if lines else np.empty((0, 0))
    except ValueError as error:
        reason = str(error).rstrip(".").partition(";")[0]
        raise ValueError(f"{where} must be a table of numbers: {reason}") from None
    fine, name = len(table) > 0 and table.shape[1] >= 3, str(where)
    shaped(fine, table, name, "have rows of a number, features and a class")
    every(np.isfinite(table), table, name, "be finite")
    last = table[:, -1]
    every(last == np.rint(last), last, name, "have whole numbers in its last column")
    return table


def divisions(text: str, pairs: int, rows: int, where: object) -> list[tuple[Array, Array]]:
    """Return pairs of lines of row numbers from 0: rows to learn from, and rows to test on."""
    lines = [(k, line) for k, line in enumerate(text.splitlines(), 1) if line.strip()]
    must(len(lines) == 2 * pairs, str(where), f"have {2 * pairs} lines", len(lines))
    parts = []
    for k, line in lines:
        for word in line.split():
            # Longer words are no row numbers either, and int() refuses the longest.
            if not word.isdecimal() or len(word) > 18 or int(word) >= rows:
                rule = f"{where} must have row numbers from 0 to {rows - 1}"
                raise ValueError(f"{rule}: got {reprlib.repr(word)} in line {k}")
        parts.append(np.array(line.split(), int))
    found = list(zip(parts[::2], parts[1::2], strict=True))
    for (train, test), (k, _) in zip(found, lines[::2], strict=True):
        both = np.intersect1d(train, test)
        if both.size:
            rule = f"{where} must not test on rows that were learned from"
            raise ValueError(f"{rule}: got row {both[0]} in line {k} and in the next")
    return found


# ---- spectra of matrices, and theory


def square(shape: Shape, name: str) -> int:
    """Return the number of rows of a square matrix, at least one."""
    must(len(shape) == 2 and shape[0] == shape[1], name, "be square", f"shape {shape}")
    must(shape[0] > 0, name, "have at least one row", f"shape {shape}")
    return shape[0]


TILE = 128
"""Rows and columns that are compared with their mirror image at a time; both fit into a cache."""
ROWS = 1024
"""The same for rows of another library's array: few calls, and little memory beside the array."""


def gram(
    x: Any, name: str, beside: Callable[[int], int] = lambda n: 0, remedies: Names = ("float32",)
) -> Array:
    """Return a finite matrix that is symmetric but for rounding.

    It is refused before its entries are read where the budget does not hold it and ``beside(n)``
    arrays of its size that are yet to be made. Of other libraries' memory nothing is known.
    """
    a = array(x, name)
    n = square(a.shape, name)
    xp = namespace(a)
    if xp is not np:
        return _gram_there(xp, a, n, name)
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
                    entries(a, name)
                size = max(size, largest)
                if most > apart:
                    r, c = np.unravel_index(off.argmax(), off.shape)
                    apart, at = most, (i + int(r), j + int(c))
    _symmetric(apart <= math.sqrt(np.finfo(a.dtype).eps) * size, apart, at, name)
    return a


def _gram_there(xp: Any, a: Array, n: int, name: str) -> Array:
    """Do the same where the array is, a block of rows at a time: two numbers of each come here."""
    entries(a, name)
    size, apart, at = 0.0, 0.0, (0, 0)
    for i in range(0, n, ROWS):
        rows = slice(i, min(i + ROWS, n))
        part, mirror = a[rows, :], xp.matrix_transpose(a[:, rows])
        off = xp.abs(part - mirror)
        size = max(size, float(xp.max(xp.abs(part))))
        if (most := float(xp.max(off))) > apart:
            r, c = divmod(int(xp.argmax(xp.reshape(off, (-1,)))), n)
            apart, at = most, (i + r, c)
    _symmetric(apart <= math.sqrt(xp.finfo(a.dtype).eps) * size, apart, at, name)
    return a


def _symmetric(fine: bool, apart: float, at: tuple[int, int], name: str) -> None:
    if not fine:
        i, j = at
        raise ValueError(
            f"{name} must be symmetric: {name}[{i}, {j}] and {name}[{j}, {i}] differ by "
            f"{apart:.3g}; pass ({name} + {name}.T) / 2 if that is rounding"
        )


def eigenvalue_list(x: Any, name: str) -> Array:
    """Return a non-empty one-dimensional array of eigenvalues that are not negative."""
    a = amounts(x, name)
    got = f"shape {a.shape}; pass spectrum.gram(K) for a Gram matrix"
    must(a.ndim == 1 and a.size > 0, name, "be a Spectrum or have shape (levels,)", got)
    return a


def power(x: Any, name: str, levels: int) -> Array:
    """Return ``levels`` + 1 amounts; the last one, of everything else, is 0 where not given."""
    a = amounts(x, name)
    rule = f"have one entry per level, {levels}, and may have one more for the rest"
    shaped(a.ndim == 1 and len(a) in (levels, levels + 1), a, name, rule)
    return a if len(a) > levels else np.append(a, 0.0)


def power_by_degree(x: Any, name: str) -> Array:
    """Return one amount per degree, from 0."""
    a = amounts(x, name)
    return shaped(a.ndim == 1, a, name, "have one entry per degree")


def _no_kernel(value: object) -> str:
    """Name what is no kernel itself, and say how it becomes one."""
    network = hasattr(value, "nngp") and not isinstance(value, type)
    return kind_of(value) + ("; pass its ntk or nngp" if network else "")


def of_cosine(kernel: object) -> None:
    if isinstance(kernel, type) or hasattr(kernel, "nngp"):
        rule = "kernel must be a kernel, a profile, a callable or a sequence of coefficients"
        raise TypeError(f"{rule}: got {_no_kernel(kernel)}")


def a_spectrum(x: object, name: str) -> None:
    fine = isinstance(x, (np.ndarray, list, tuple)) or hasattr(x, "__array__")
    what, remedy = "a Spectrum or an array of eigenvalues", "; kc.spectrum makes one of a kernel"
    _kind(fine, x, name, what, remedy)


def levels(log_eigenvalues: Array, multiplicities: Any) -> None:
    wrong = log_eigenvalues.ndim != 1 or (log_eigenvalues == np.inf).any()
    rule = "a sequence of logarithms, none of them inf"
    unless(wrong, "log_eigenvalues", rule, log_eigenvalues if wrong else "")
    if multiplicities is not None:
        n, count = len(log_eigenvalues), len(multiplicities)
        must(count == n, "multiplicities", f"have one entry per level, {n}", count)


def sets(value: Any, n: int) -> list[list[Any]]:
    """Return as many sets of coordinates as there are coefficients."""
    try:
        value = [list(members) for members in value]
    except TypeError:
        rule = "sets must be a sequence of sequences of coordinates, as [[0, 1], [2]]"
        raise TypeError(f"{rule}: got {value!r}") from None
    must(len(value) == n, "sets", "have as many entries as coefficients", f"{len(value)} and {n}")
    return value


def pair(value: Any, name: str) -> tuple[Any, ...]:
    if not (isinstance(value, (tuple, list)) and len(value) == 2):
        unless(True, name, "a pair (first, last)", repr(value))  # arrays take long to write
    return tuple(value)


def known(log_mu: Array, there: Array, power: Array) -> None:
    lost = np.flatnonzero(np.isnan(log_mu) & there)
    if len(lost):
        rule = "target_power must be zero on levels whose eigenvalue is not resolved"
        raise ValueError(f"{rule}: got {power[lost[0]]:.6g} on level {lost[0]}")


def has(value: T | None, name: str, remedy: str) -> T:
    if value is None:
        raise ValueError(f"{name} must be computed first: {remedy}")
    return value


def of_sphere(spectrum: object, name: str, other: type) -> Any:
    """Return a spectrum with the degrees of a sphere; ``other`` spectra have other degrees."""
    fine = hasattr(spectrum, "degrees") and hasattr(spectrum, "dim")
    fine = fine and not isinstance(spectrum, other)
    return _kind(fine, spectrum, name, "of a sphere, with degrees and dim")


def range_of_degrees(log_mu: Array, low: int, high: int) -> Array:
    rule = "hold at least two eigenvalues that are neither zero nor equal"
    found = len(np.unique(log_mu))
    must(found >= 2, "degrees", rule, f"{found} from {low} to {high}")
    return log_mu


# ---- linear algebra


def one_library(arrays: Iterable[object]) -> NoReturn:
    rule = "arrays must be of one library that follows the array API standard"
    raise TypeError(f"{rule}: got {' and '.join(sorted(set(map(_of_library, arrays))))}")


# ---- solvers with the whole matrix


def overwritable(x: Any, name: str) -> Array:
    """Return the array itself, for LAPACK to write into."""
    _kind(isinstance(x, np.ndarray), x, name, "a NumPy array to be overwritten")
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} must be float32 or float64 to be overwritten: got {x.dtype}")
    contiguous = (x.flags.c_contiguous or x.flags.f_contiguous) and x.flags.aligned
    unless(not contiguous, name, "contiguous to be overwritten", f"strides {x.strides}")
    unless(not x.flags.writeable, name, "writable to be overwritten", "a read-only array")
    return x


def targets(
    y: Any, name: str, n: int, dtype: Any, *, least: int = 0, of: str = "K", like: Any = None
) -> Array:
    """Return finite values of shape (n,) or (n, r) and of that dtype: a row per row of ``of``.

    They are where ``like`` is, which is what ``of`` stands for.
    """
    a = finite_array(y, name, like, of)
    rule = f"have one row per row of {of}, {n}, and shape (n,) or (n, r)"
    shaped(a.ndim in (1, 2) and a.shape[0] == n, a, name, rule)
    shaped(a.ndim == 1 or a.shape[1] >= least, a, name, "have at least one column")
    return cast(a, dtype)


def semidefinite(least: float, most: float, eps: float, name: str) -> None:
    if least < -math.sqrt(eps) * abs(most):
        raise np.linalg.LinAlgError(
            f"{name} must be positive semi-definite: its smallest eigenvalue is {least:.3g}, its "
            f"largest {most:.3g}"
        )


def indefinite(
    order: int, least: str, more: float, certain: bool, remedy: str = "on_singular='pinv'"
) -> NoReturn:
    """Refuse a matrix without a Cholesky factor; its first minor to fail has order ``order``."""
    would = "would" if certain else "might"
    raise np.linalg.LinAlgError(
        f"K + ridge I must be positive definite: its first {order} rows and columns are not, and "
        f"its smallest eigenvalue is {least}; a ridge larger by {more:.2g} {would} do and damp "
        f"what lies along eigenvalues below it, {remedy} leaves that out"
    )


def coefficients_within(alpha: Array) -> Array:
    fine = namespace(alpha).isfinite(alpha)
    if not (fine.all() if isinstance(fine, np.ndarray) else bool(namespace(alpha).all(fine))):
        rule = f"K must keep coefficients within {dtype_name(alpha.dtype)}"
        raise OverflowError(f"{rule}: (K + ridge I)^-1 y overflows; scale K up or y down")
    return alpha


def regular(null: int, ridge: Array) -> None:
    wrong = null > 0 and not (ridge > 0).all()
    unless(wrong, "ridge", "positive where K is singular", f"0.0, and {null} eigenvalues are zero")


def classes(y: Array, name: str, least: int = 2) -> Array:
    """Return labels 0, 1, ... as rows of zeros and a one; rows of probabilities as they are."""
    xp = namespace(y)
    if y.ndim == 2:
        wrong = xp.any(y < 0, axis=1) | (xp.abs(xp.sum(y, axis=1) - 1) > 1e-5)
        if bool(xp.any(wrong)):
            bad = int(xp.nonzero(wrong)[0][0])
            raise ValueError(f"{name} must have rows of probabilities: row {bad} is {y[bad, ...]}")
        return y
    every((y >= 0) & (y == xp.floor(y)), y, name, "be classes 0, 1, ...")
    many = max(least, int(xp.max(y)) + 1)
    there = {} if xp is np else {"device": y.device}
    return cast(y[:, None] == xp.arange(many, dtype=y.dtype, **there), y.dtype)


def descending(loss: float, iteration: int, step: float) -> None:
    """Refuse to go on once the loss is not finite."""
    if not math.isfinite(loss):
        raise ValueError(
            f"step must keep descent from diverging: with {step:.3g} the loss is {loss} after "
            f"{iteration} iterations; leave it out for one that the spectrum allows"
        )


# ---- random features


def table(x: Any, name: str) -> Array:
    """Return finite rows of numbers; messages hold the words that scikit-learn's checks expect."""
    if hasattr(x, "toarray"):
        got = f"got a sparse {type(x).__name__}"
        raise TypeError(f"{name} must be dense: {got}; pass {name}.toarray()")
    if not isinstance(x, (np.ndarray, list, tuple)):
        on_the_host(x, name)
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
        got = f"Complex data not supported, got {x.dtype}"
        raise ValueError(f"{name} must be real: {got}; pass {name}.real or its magnitude")
    a = real_array(x, name)
    hint = f"{name}[:, None] if its entries are points, {name}[None, :] if it is one point"
    must(a.ndim != 1, name, "have shape (n, d)", f"shape {a.shape}; Reshape your data to {hint}")
    if a.ndim == 2 and a.shape[1] == 0:
        got = f"0 feature(s) (shape={a.shape}) while a minimum of 1 is required."
        raise ValueError(f"{name} must have at least one column: {got}")
    return entries(rows(a, name), name, lambda bad: "NaN" if math.isnan(bad) else "infinity")


def any_table(x: Any, name: str) -> Array:
    """Do the same, or check rows of another library's array where they are."""
    if namespace(x) is np:
        return table(x, name)
    a = array(x, name)
    must(a.ndim == 2, name, "have shape (n, d)", f"shape {a.shape}")
    shaped(a.shape[1] > 0, a, name, "have at least one column")
    return entries(a, name)


def columns(a: Array, d: int, name: str, whose: str) -> Array:
    if a.shape[1] != d:
        raise ValueError(
            f"{name} must have {d} columns: X has {a.shape[1]} features, but {whose} is expecting "
            f"{d} features as input"
        )
    return a


# ---- estimators


def a_kernel(value: Any, name: str, fine: bool, others: str = "") -> Any:
    if not fine:
        got = repr(value) if isinstance(value, str) else _no_kernel(value)
        raise TypeError(f"{name} must be a kernel{others} or None: got {got}")
    return value


def dispatched(fine: bool, x: Any, name: str) -> None:
    if not fine:
        rule = "be in the memory of the host, or scikit-learn dispatch arrays"
        raise TypeError(
            f"{name} must {rule}: got {_place(x)}; call sklearn.set_config(array_api_dispatch=True)"
        )


def class_weight(value: Any, found: Array) -> None:
    if isinstance(value, str):
        choice(value, "class_weight", ("balanced",))
        return
    _kind(isinstance(value, dict), value, "class_weight", "a dict, 'balanced' or None")
    for label, weight in value.items():
        labels = found.tolist()
        got = f"{label!r}, not in {labels}"
        must(label in labels, "class_weight", "have labels of y", got)
        non_negative(weight, f"class_weight[{label!r}]")


def not_precomputed(is_precomputed: bool, rule: str) -> None:
    if is_precomputed:
        raise ValueError(
            f"{rule} with kernel 'precomputed': it has no values beyond those of X; "
            "pass the kernel itself"
        )


def weights(K: Array, name: str) -> Array:
    least = float(namespace(K).min(K)) if 0 not in K.shape else 0.0
    must(least >= 0, name, "not be negative on X", f"{least:.3g}; try kc.Gaussian")
    return K


def connected(sums: Array) -> Array:
    alone = int(namespace(sums).count_nonzero(~(sums > 0)))
    if alone:
        rule = "X must have rows with affinity to some of the fit"
        raise ValueError(f"{rule}: {alone} have none; pass a wider kernel")
    return sums


# ---- iterative solvers


def multiplies(K: Any, name: str) -> Array:
    """Return an array; say what an object without shape and @ lacks."""
    fine = isinstance(K, (list, tuple)) or hasattr(K, "__array__") or namespace(K) is not np
    return array(_kind(fine, K, name, "an array, or have a shape and multiply with @"), name)


def offers(K: object, name: str, needs: Names) -> None:
    missing = [f"{need}()" for need in needs if not callable(getattr(K, need, None))]
    if missing:
        rule = f"{name} must have {' and '.join(missing)} besides @"
        raise TypeError(f"{rule}: got {type(K).__name__}; pass a GramOperator or an array")


def multiplied(x: Any, n: int, of: str) -> Any:
    """Return what K multiplies, of any array library: shape (n,) or (n, r)."""
    if not hasattr(x, "__array_namespace__") and namespace(x) is np:
        given, x = x, np.asarray(x)
        if x.dtype.hasobject:
            x = real_array(given, "x")
    rule = f"have one row per {of} of K, {n}, and shape (n,) or (n, r)"
    return shaped(x.ndim in (1, 2) and x.shape[0] == n, x, "x", rule)


def product(a: Any, shape: Shape, name: str) -> Array:
    """Return ``K @ x`` as an array."""
    xp = namespace(a)
    a = np.asarray(a) if xp is np else a
    shaped(a.shape == shape, a, f"{name} @ x", f"have the shape of x, {shape}")
    return every(xp.isfinite(a), a, f"{name} @ x", "be finite")


def not_zero_matrix(largest: float) -> float:
    """Refuse a matrix whose largest eigenvalue is zero, for which there is no step."""
    if not largest > 0:
        raise ValueError(
            "K + ridge I must not be zero: its largest eigenvalue is 0.0; pass a ridge, or a step"
        )
    return largest


def preconditioner(value: Any, name: str) -> Any:
    if value is not None and not callable(getattr(value, "solve", None)):
        raise TypeError(f"{name} must have a method solve: got {type(value).__name__}")
    return value


def positive_weights(weights: Any, name: str, n: int, like: Any = None) -> Array | None:
    """Return one positive number per row of K, or None; where K is, if that is ``like``."""
    if weights is None:
        return None
    a = amounts(weights, name, zero=False, like=like)
    return shaped(a.shape == (n,), a, name, f"have one entry per row of K, {n}")


def sample_weights(weights: Any, n: int, like: Any = None) -> Array:
    """Return weights that are not negative nor all zero, one per row of X; one number for all."""
    a = amounts(weights, "sample_weight", like=like, of="X")
    xp = namespace(a)
    shaped(a.shape in ((), (n,)), a, "sample_weight", f"have one entry per row of X, {n}")
    must(bool(xp.any(a > 0)), "sample_weight", "not be zero everywhere", "no positive weight")
    if xp is np:
        return a if a.ndim else np.full(n, float(a))
    return xp.broadcast_to(a, (n,))


def root_weights(weights: Any, n: int, dtype: Any, like: Any = None) -> Array | None:
    """Return the square roots of the weights of points, or None; where X is, if that is like."""
    if weights is None:
        return None
    a = sample_weights(weights, n, like)
    return cast(namespace(a).sqrt(a), dtype)


def definite_block(info: int, rows: slice, name: str) -> None:
    if info:
        raise np.linalg.LinAlgError(
            f"{name} + ridge I must be positive definite: its block of rows {rows.start} to "
            f"{rows.stop - 1} is not; pass a larger ridge"
        )


def diagonal(d: Array, name: str) -> Array:
    xp = namespace(d)
    if bool(xp.any(d < 0)) or not bool(xp.any(d > 0)):
        i = int(xp.argmin(d))
        rule = f"{name} must be positive semi-definite and not zero"
        raise ValueError(f"{rule}: its diagonal entry {i} is {float(d[i])}")
    return d
