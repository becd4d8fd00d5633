"""What arrays of CuPy do, as far as solvers, features and estimators ask: NumPy behind a wall.

An array refuses to become NumPy's unless it is asked to, and so do functions; what asks is counted,
by number and by bytes. Names, keywords and what happens where CuPy differs from NumPy are those of
CuPy 14: results are arrays even of one number, nothing is an index, and linear algebra that fails
returns what it has unless ``cupyx.errstate(linalg="raise")`` says otherwise.
"""

import contextlib
import sys
import types

import numpy as np
import pytest
import scipy.linalg
import scipy.special

# ---- what travels to the host


class Copies:
    """The copies to the host: how many, their bytes, and the bytes that one may have.

    Those of the backend, which it asks for by name, have a sum of their own and no limit.
    """

    now = None  # those that are counted

    def __init__(self, largest=None):
        self.count = self.total = self.of_backend = 0
        self.largest = largest

    def add(self, nbytes):
        self.count, self.total = self.count + 1, self.total + nbytes
        if self.largest is not None and nbytes > self.largest:
            raise AssertionError(f"{nbytes} bytes came to the host, of {self.largest} at most")


Copies.now = Copies()


@contextlib.contextmanager
def copies(largest=None):
    """Count copies within, and refuse one of more bytes than ``largest``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Copies, "now", Copies(largest))
        yield Copies.now


# ---- arrays


def inside(a):
    """The NumPy arrays in an argument; those of a user are refused, as CuPy does."""
    if isinstance(a, Array):
        return a._view
    if isinstance(a, np.ndarray):
        raise TypeError(f"Unsupported type {type(a)}")
    return type(a)(map(inside, a)) if type(a) in (list, tuple) else a


def outside(found):
    """What NumPy has returned, as arrays of the current device; tuples stay tuples."""
    if isinstance(found, (np.ndarray, np.generic)):
        return Array._kind(np.asarray(found), None)
    return tuple(map(outside, found)) if isinstance(found, tuple) else found


class Array:
    """What an array does with its numbers, ``_view``; where they lie is for its subclass."""

    _kind: type
    __hash__ = None
    __array_ufunc__ = None  # stricter than CuPy, which takes some functions of NumPy for its own

    def __init_subclass__(cls):
        Array._kind = cls

    ndim = property(lambda self: self._view.ndim)
    itemsize = property(lambda self: self._view.itemsize)
    T = property(lambda self: self._part(self._view.T))
    mT = property(lambda self: self._part(self._view.mT))
    flags = property(
        lambda self: types.SimpleNamespace(
            c_contiguous=self._view.flags.c_contiguous, f_contiguous=self._view.flags.f_contiguous
        )
    )

    def __array__(self, *args, **kwargs):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_function__(self, function, *args):
        raise TypeError(f"numpy.{function.__name__} was called with an array of the device")

    def __len__(self):
        return len(self._view)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def _key(self, key):
        """An index; what a mask selects is counted on the host."""
        keys = key if isinstance(key, tuple) else (key,)
        for k in keys:
            if isinstance(k, Array) and k.dtype == bool:
                Copies.now.add(8)
        return tuple(k._view if isinstance(k, Array) else k for k in keys)

    def __getitem__(self, key):
        keys = self._key(key)
        found = self._view[keys]
        if isinstance(found, np.generic):  # a number, of which CuPy makes a view
            found = self._view[(*keys, ...)]
        # A part of the same memory, or a copy, which drivers may read: that is guarded, too.
        return self._put(found) if found.base is None else self._part(found)

    def __setitem__(self, key, value):
        self._view[self._key(key)] = inside(value)

    # What waits for the device, and copies.

    def get(self):
        Copies.now.add(self._view.nbytes)
        return self._view.copy()

    def item(self):
        return self.get().item()

    def tolist(self):
        return self.get().tolist()

    def __float__(self):
        return float(self.get())

    def __int__(self):
        return int(self.get())

    def __bool__(self):
        return bool(self.get())

    def __repr__(self):
        return repr(self.get())

    def __str__(self):
        return str(self.get())

    def __format__(self, spec):
        return format(self.get(), spec)

    def __deepcopy__(self, memo):
        return self.copy()

    __copy__ = __deepcopy__


def _operator(name):
    def run(self, other):
        found = getattr(self._view, name)(inside(other))
        return self if name.startswith("__i") else outside(found)

    return run


def _method(name):
    def run(self, *args, **more):
        given = {k: inside(v) for k, v in more.items()}
        found = getattr(self._view, name)(*map(inside, args), **given)
        shares = isinstance(found, np.ndarray) and found.base is not None
        return self._part(found) if shares else outside(found)

    return run


_two = "add sub mul truediv floordiv mod pow matmul and or xor".split()
for _name in [*_two, *(f"r{n}" for n in _two), *(f"i{n}" for n in _two if n != "matmul")]:
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))
for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))
METHODS = """
    __neg__ __pos__ __abs__ __invert__ all any argmax argmin astype copy cumsum diagonal max mean
    min nonzero ravel repeat reshape round squeeze std sum swapaxes take trace transpose var
"""
for _name in METHODS.split():
    setattr(Array, _name, _method(_name))


# ---- functions, with the keywords that CuPy's have

FUNCTIONS = """
    all(axis,out,keepdims) any(axis,out,keepdims) argmax(axis,dtype,out,keepdims)
    argmin(axis,dtype,out,keepdims) argsort(axis,kind) broadcast_arrays() broadcast_to()
    can_cast() clip() concatenate(axis,out,dtype,casting) copy(order) count_nonzero(axis)
    cross(axis) cumprod(axis,dtype,out) cumsum(axis,dtype,out) diag(k) diagonal(offset,axis1,axis2)
    dot(out) einsum(optimize) empty_like(dtype,order) expand_dims(axis) flip(axis) full_like(dtype)
    isin(invert) matrix_transpose() max(axis,out,keepdims) mean(axis,dtype,out,keepdims)
    meshgrid(indexing,sparse,copy) min(axis,out,keepdims) moveaxis() nonzero() ones_like(dtype)
    outer(out) permute_dims(axes) prod(axis,dtype,out,keepdims) ravel(order) repeat(axis)
    reshape(order) roll(axis) round(decimals,out) searchsorted(side,sorter) sort(axis,kind)
    split(axis) squeeze(axis) stack(axis,out,dtype,casting) std(axis,dtype,out,ddof,keepdims)
    sum(axis,dtype,out,keepdims) swapaxes() take(axis,out) take_along_axis(axis) tensordot(axes)
    tile() trace(offset,axis1,axis2,dtype,out) transpose(axes) tril(k) triu(k)
    unique(return_index,return_inverse,return_counts,axis,equal_nan)
    var(axis,dtype,out,ddof,keepdims) where() zeros_like(dtype,order)
"""
UFUNCS = """
    abs add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and ceil cos cosh divide
    equal exp expm1 fabs floor floor_divide fmax fmin greater greater_equal hypot invert isfinite
    isinf isnan left_shift less less_equal log log1p log2 logaddexp logical_and logical_not
    logical_or matmul maximum minimum multiply negative not_equal power reciprocal remainder rint
    right_shift sign sin sinh sqrt square subtract tan tanh true_divide trunc
"""
LINALG = """
    det() eigh(UPLO) eigvalsh(UPLO) lstsq(rcond) norm(ord,axis,keepdims) pinv(rcond) qr(mode)
    slogdet() svd(full_matrices,compute_uv)
"""
SAME = """
    bool_ complex64 complex128 complexfloating dtype e finfo float32 float64 floating iinfo inf int8
    int16 int32 int64 integer intp isdtype issubdtype nan newaxis pi promote_types signedinteger
    uint8 uint16 uint32 uint64 unsignedinteger
"""
CREATED = "arange empty eye full identity linspace ones zeros"
COUNTED = ("nonzero", "unique")


def _function(name, function, keywords):
    def run(*args, **more):
        unknown = set(more) - set(keywords)
        if unknown:
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown.pop()!r}")
        if name in COUNTED:  # results have a size that the host has to know
            Copies.now.add(8)
        return outside(function(*map(inside, args), **{k: inside(v) for k, v in more.items()}))

    run.__name__ = name
    return run


def _table(text, module):
    found = {}
    for word in text.split():
        name, _, keywords = word.rstrip(")").partition("(")
        found[name] = _function(name, getattr(module, name), keywords.split(","))
    return found


def result_type(*args):
    return np.result_type(*map(inside, args))


def array(values, dtype=None, copy=True, order="K"):
    """An array of the device, from the host or from the device; lists of either are joined."""
    if isinstance(values, (list, tuple)):
        values = np.array([v._view if isinstance(v, Array) else v for v in values], dtype)
    if isinstance(values, Array) and not values._here:
        values = values._view
    if not isinstance(values, Array):
        values = np.asarray(values, dtype)
        if values.dtype.kind not in "biufc":
            raise ValueError(f"Unsupported dtype {values.dtype}")
        return Array._kind._put(values)
    if copy or values.dtype != (dtype or values.dtype):
        return outside(values._view.astype(dtype or values.dtype, order=order))
    return values


def asarray(values, dtype=None, order=None):
    return array(values, dtype, copy=False)


def ascontiguousarray(values, dtype=None):
    """An array in C order: itself, wherever it is, if it has that already."""
    if isinstance(values, Array) and values.flags.c_contiguous and dtype in (None, values.dtype):
        return values
    return array(np.ascontiguousarray(asarray(values, dtype)._view))


def asnumpy(a):
    """A copy that is asked for by this name, which is the backend's."""
    Copies.now.of_backend += a._view.nbytes
    return a._view.copy()


def astype(x, dtype, copy=True):
    return x.astype(dtype, copy=copy)


# ---- linear algebra that does not tell


class Config:
    linalg = "ignore"


@contextlib.contextmanager
def errstate(linalg=None):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Config, "linalg", linalg)
        yield


def _status(failed):
    if Config.linalg == "raise":
        Copies.now.add(4)
        if failed:
            raise np.linalg.LinAlgError("Error reported by cuSOLVER.")


def cholesky(a):
    """The lower factor; behind a minor that fails, what LAPACK leaves there."""
    view = inside(a)
    if view.ndim > 2:
        return outside(np.linalg.cholesky(view))
    potrf = scipy.linalg.get_lapack_funcs("potrf", (view,))
    found, info = potrf(view, lower=True, clean=True) if view.size else (view.copy(), 0)
    _status(info)
    return outside(np.ascontiguousarray(found))


def solve(a, b):
    """The solution; not finite where a is singular."""
    a, b = inside(a), inside(b)
    try:
        found, failed = np.linalg.solve(a, b), False
    except np.linalg.LinAlgError:
        found, failed = np.full(b.shape, np.nan, np.result_type(a, b)), True
    _status(failed)
    return outside(found)


def inv(a):
    return solve(a, outside(np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)))


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False):
    """Substitution; what is divided by zero is not finite."""
    a, b = inside(a), inside(b)
    with np.errstate(all="ignore"):
        half = np.tril(a) if lower else np.triu(a)
        zero = half.diagonal() == 0
        if zero.any():
            return outside(np.full(b.shape, np.nan, b.dtype))
        return outside(scipy.linalg.solve_triangular(half, b, trans=trans, lower=lower))


# ---- modules


def _module(name, **names):
    made = types.ModuleType(name)
    made.__dict__.update(names)
    return made


linalg = _module(
    "cupy.linalg", **_table(LINALG, np.linalg), cholesky=cholesky, solve=solve, inv=inv,
    LinAlgError=np.linalg.LinAlgError,
)  # fmt: skip
fft = _module("cupy.fft", **_table("fft() ifft()", np.fft))
special = _module("cupyx.scipy.special", **_table("erf() ndtr()", scipy.special))
cupyx = _module(
    "cupyx",
    errstate=errstate,
    scipy=_module(
        "cupyx.scipy",
        special=special,
        linalg=_module("cupyx.scipy.linalg", solve_triangular=solve_triangular),
    ),
)
names = {
    **_table(FUNCTIONS, np),
    **{n: _function(n, getattr(np, n), ("out", "dtype")) for n in UFUNCS.split()},
    **{n: getattr(np, n) for n in SAME.split()},
    **{
        n: _function(n, getattr(np, n), "M dtype endpoint k order step stop".split())
        for n in CREATED.split()
    },
    **{f.__name__: f for f in (result_type, array, asarray, ascontiguousarray, asnumpy, astype)},
    "fft": fft,
    "linalg": linalg,
}


def compat(name):
    """Whether a module is that of ``array_api_compat`` for CuPy, or a copy of it."""
    return ".array_api_compat.cupy" in f".{name}"


@contextlib.contextmanager
def installed(cupy):
    """Let a module be CuPy, for ``array_api_compat``, too."""
    parts = {
        "cupy": cupy, "cupy.cuda": cupy.cuda, "cupy.cuda.device": cupy.cuda, "cupy.fft": fft,
        "cupy.linalg": linalg, "cupyx": cupyx, "cupyx.scipy": cupyx.scipy,
        "cupyx.scipy.linalg": cupyx.scipy.linalg, "cupyx.scipy.special": special,
    }  # fmt: skip

    def clear(delete, forget):
        for name in [n for n in sys.modules if compat(n)]:
            delete(sys.modules, name)
            package, _, last = name.rpartition(".")
            if last == "cupy":
                forget(sys.modules[package], "cupy")

    with pytest.MonkeyPatch.context() as patch:
        clear(patch.delitem, patch.delattr)
        for name, module in parts.items():
            patch.setitem(sys.modules, name, module)
        try:
            yield
        finally:
            clear(dict.pop, delattr)
