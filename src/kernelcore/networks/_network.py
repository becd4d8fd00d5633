"""Networks of finite width: outputs, and derivatives by their parameters."""

from __future__ import annotations

import copy
import functools
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _check, program
from .._types import Array, ArrayLike, Self
from ..engine import threads as _threads
from ..linalg import namespace_of
from ..linalg.arrays import cast, copied, joined, numbers, placed, reshaped, zeros
from ..linalg.blas import share
from ..program import Program
from . import _losses
from ._steps import Sized, Tape, Weigh, Weights, backward, forward, sized

if TYPE_CHECKING:
    from ._empirical import EmpiricalConjugate, EmpiricalNtk
    from ._linear import Linearized

NTK, STANDARD, XAVIER = PARAMETERIZATIONS = ("ntk", "standard", "xavier")
BLOCK = 2**22
"""The numbers that a pass through a block of inputs keeps, about: 16 or 32 MB."""
PARTS = 8
"""Blocks come in multiples of this, so that a few threads are busy to the end."""
LEAST = 64
"""The inputs of a block, at least, as far as memory allows."""
SMALL = 2**16
"""The numbers of a pass that is done before a second thread would have started."""
ANY = _check.Arrays(_check.array, lambda a: a)
"""Inputs of another library than NumPy, which stay where they are."""


class Drawn(NamedTuple):
    """A network of inputs of one shape: its steps, and its parameters."""

    made: Sized
    theta: Array
    frozen: list[list[Weights | None]]  # of each part; None where they are trained
    shape: tuple[int, ...]
    single: bool  # outputs have no axis of their own

    @property
    def outputs(self) -> int:
        return self.made.width


class Loss(NamedTuple):
    """The mean loss over a sample, its gradient by theta, and the outputs."""

    value: float
    gradient: Array
    outputs: Array


class Network:
    """A network of finite width with parameters theta; ``Sequential.sample`` draws one.

    Called with inputs it returns outputs of shape (n,), or (n, k) if it has k outputs. Weights have
    the parameterisation of the infinite network unless it was drawn otherwise:
    ``z = w_std/sqrt(fan-in) W h + b_std b`` with standard normal W and b at the start.

    Parameters are where the first inputs are, if no shape was given before, and ``at`` takes them
    to another library. Inputs, directions and targets have to be where they are; results are there.

    Attributes
    ----------
    program : Program
        What is interpreted.
    theta : array of shape (p,)
        The parameters that are trained, all in one vector; read-only.
    weights : list of (w, b)
        The same and those that are frozen, layer by layer: matrices of shape (fan-in, units), and
        biases or None.
    shape : tuple of int
        The shape of an input.
    widths : tuple of int
        The units of every layer of weights.
    alpha : float
        What outputs are multiplied by.
    doubled : bool
        Whether it is the difference of two networks over sqrt 2, which are equal at the start, so
        that its output is zero then. Both have their parameters in theta.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> net = kc.presets.mlp(2)
    >>> f = net.sample(100, seed=0, shape=5)
    >>> X = np.ones((3, 5))
    >>> f(X).shape, f.theta.shape
    ((3,), (10600,))
    >>> bool(np.allclose(f.jvp(X, f.theta), f.jacobian(X) @ f.theta))
    True
    """

    def __init__(
        self, lowered: Program, drawn: Drawn | Callable[[Any, Any], Drawn], *,
        alpha: float, doubled: bool,
    ) -> None:  # fmt: skip
        self.program, self.alpha, self.doubled = lowered, alpha, doubled
        self._draw = None if isinstance(drawn, Drawn) else drawn
        if isinstance(drawn, Drawn):
            self._take(drawn)

    def _take(self, drawn: Drawn) -> None:
        self._drawn, self._draw = drawn, None
        if isinstance(drawn.theta, np.ndarray):
            drawn.theta.flags.writeable = False
        self._at = self._split(self._point())

    def _point(self) -> Array:
        """Return the parameters at which derivatives are taken."""
        return self.theta

    @functools.cached_property
    def _drawn(self) -> Drawn:
        raise ValueError(
            "network must know the shape of its inputs: call it with some, or pass shape= to sample"
        )

    @property
    def theta(self) -> Array:
        return self._drawn.theta

    @property
    def shape(self) -> tuple[int, ...]:
        return self._drawn.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        found: Any = self._drawn.theta.dtype
        return found if isinstance(found, np.dtype) else np.dtype(_check.dtype_name(found))

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(units for _, units in self._made.sizes)

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return self._drawn.outputs

    @property
    def weights(self) -> list[Weights]:
        """All weights; those of the second network, where it is doubled, behind the first."""
        return [at for part in self._split(self.theta) for at in part]

    @property
    def _made(self) -> Sized:
        return self._drawn.made

    @property
    def _single(self) -> bool:
        return self._drawn.single

    def __repr__(self) -> str:
        if "_drawn" not in self.__dict__:
            return "<Network of inputs that it has not seen>"
        inputs, units = " x ".join(map(str, self.shape)), ", ".join(map(str, self.widths))
        if isinstance(self.theta, np.ndarray):
            which = hashlib.blake2b(self.theta.tobytes(), digest_size=4).hexdigest()
        else:
            which = f"of {type(self.theta).__module__.partition('.')[0]}"
        return (
            f"<{type(self).__name__} of {inputs} inputs with {units} units, "
            f"{self.theta.size} parameters {which}>"
        )

    def at(self, theta: ArrayLike) -> Self:
        """Return the network with other parameters, where these are.

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> f = kc.presets.mlp(1).sample(10, seed=0, shape=2)
        >>> f.at(np.zeros_like(f.theta))([[1.0, 2.0]])
        array([0.])
        """
        there = theta if _check.on_a_device(theta) else None
        found = copied(self._direction(theta, "theta", there))
        return self._moved(found, self._frozen(found))

    def _moved(self, theta: Array, frozen: list[list[Weights | None]] | None = None) -> Self:
        """Return the network with parameters that nobody else has."""
        other = copy.copy(self)
        frozen = self._drawn.frozen if frozen is None else frozen
        other._take(self._drawn._replace(theta=theta, frozen=frozen))
        return other

    def _cast(self, dtype: np.dtype[Any]) -> Network:
        """Return the network in a dtype."""
        if dtype == self.dtype:
            return self
        theta = self.theta.astype(dtype)
        drawn = self._drawn._replace(theta=theta, frozen=self._frozen(theta))
        return Network(self.program, drawn, alpha=self.alpha, doubled=self.doubled)

    def _frozen(self, theta: Array) -> list[list[Weights | None]]:
        """Return the weights that are frozen, where parameters are, and in their dtype."""

        def moved(w: Weights | None) -> Weights | None:
            if w is None:
                return None
            return Weights(beside(w.w, theta), None if w.b is None else beside(w.b, theta))

        return [list(map(moved, part)) for part in self._drawn.frozen]

    def scaled(self, alpha: float) -> Self:
        """Return the network whose outputs are ``alpha`` times as large as without a factor."""
        other = copy.copy(self)
        other.alpha = _check.positive(alpha, "alpha")
        return other

    def training(self, *layers: int) -> Network:
        """Return the network of which some layers of weights are trained, and the others frozen.

        Layers are counted from 0; negative numbers count from the last.

        Examples
        --------
        >>> import kernelcore as kc
        >>> f = kc.presets.mlp(2).sample(10, seed=0, shape=3)
        >>> f.theta.size, f.training(-1).theta.size
        (140, 10)
        """
        count = len(self._made.sizes)
        places = {_check.index(k, count, "layers") for k in layers}
        frozen, flat = [], []
        for part in self._split(self.theta):
            frozen.append([None if k in places else w for k, w in enumerate(part)])
            flat += [w for k, w in enumerate(part) if k in places]
        theta = _flat(flat) if flat else copied(self.theta[:0])
        drawn = self._drawn._replace(frozen=frozen, theta=theta)
        return Network(self.program, drawn, alpha=self.alpha, doubled=self.doubled)

    # ---- parameters

    def _split(self, theta: Array, zero: bool = False) -> list[list[Any]]:
        """Return a vector as weights, for each part; frozen ones are added, or zero."""
        parts, start = [], 0
        for frozen in self._drawn.frozen:
            part: list[Any] = []
            for step, fixed in zip(self._weighs(), frozen, strict=True):
                if fixed is not None:
                    part.append(_zeros(fixed) if zero else fixed)
                    continue
                n, m = step.sizes
                w = reshaped(theta[start : start + n * m], (n, m))
                start += n * m
                b = theta[start : start + m] if step.shift else None
                start += m if step.shift else 0
                part.append(Weights(w, b))
            parts.append(part)
        return parts

    def _weighs(self) -> list[Weigh]:
        return [step for step in self._made.steps if isinstance(step, Weigh)]

    def _direction(self, v: ArrayLike, name: str, like: Any) -> Array:
        return cast(_check.vector(v, name, self.theta.size, "parameter", like), self.dtype)

    # ---- inputs and blocks of them

    def _inputs(self, X: ArrayLike) -> Array:
        """Return inputs as the steps take them: of shape (n, P, C)."""
        there = self.__dict__["_drawn"].theta if "_drawn" in self.__dict__ else None
        host = isinstance(there, np.ndarray)
        if there is not None and not host:
            X = _check.beside(X, "X", there, "theta")
        away = _check.on_a_device(X) and not host
        x = checked(self.program, X, of=ANY if away else _check.HOST)
        if "_drawn" not in self.__dict__:
            assert self._draw is not None
            drawn = self._draw(x.shape[1:], np.dtype(_check.dtype_name(x.dtype)))
            if not isinstance(x, np.ndarray):
                self._drawn = drawn
                theta = placed(drawn.theta, x, drawn.theta.dtype)
                drawn = drawn._replace(theta=theta, frozen=self._frozen(theta))
            self._take(drawn)
        _check.must(
            x.shape[1:] == self.shape, "X", f"have inputs of shape {self.shape}", x.shape[1:]
        )
        shape = (len(x), math.prod(self.shape[:-1]), self.shape[-1])
        h = reshaped(cast(x, self.dtype), shape)
        return h if self._made.entry == 1 else h * self._made.entry

    def _blocks(self, n: int, times: int = 1) -> list[slice]:
        """Cut inputs into blocks, by their number alone, so that sums do not depend on threads."""
        each = max(1, times * self._made.cost)
        count = -(-n * each // BLOCK)
        if n * each > SMALL:
            count = -(-count // PARTS) * PARTS
        rows = -(-n // max(1, count))
        # Every block reads all weights, which few inputs do not pay for.
        rows = max(1, rows, min(LEAST, BLOCK // each))
        return [slice(k, min(k + rows, n)) for k in range(0, n, rows)]

    def _each(self, blocks: list[slice], work: Callable[[slice], Any]) -> Iterator[Any]:
        """Yield what ``work`` returns for blocks, in their order; threads share them."""
        ready: dict[int, Any] = {}
        here = isinstance(self.theta, np.ndarray)
        n_threads = max(1, min(_threads.resolve(None), len(blocks))) if here else 1
        # A thread that is far ahead would fill memory with what waits for the slowest.
        for start in range(0, len(blocks), 2 * n_threads):
            some = range(start, min(start + 2 * n_threads, len(blocks)))

            def one(k: int) -> None:
                ready[k] = work(blocks[k])

            share(one, some, n_threads)
            for k in some:
                yield ready.pop(k)

    def _passes(self, h: Array, along: Any = None) -> list[Tape]:
        """Go through the steps, for each part."""
        steps = self._made.steps
        ways = [None] * len(self._at) if along is None else along
        return [forward(steps, h, at, way) for at, way in zip(self._at, ways, strict=True)]

    def _signs(self) -> tuple[float, ...]:
        """Return what the outputs of each part are multiplied by."""
        return (self.alpha / math.sqrt(2), -self.alpha / math.sqrt(2)) if self.doubled else (
            self.alpha,
        )  # fmt: skip

    def _joined(self, tapes: list[Tape], which: int = 0) -> Array:
        """Return outputs of all parts together, or their derivatives, of shape (n, k)."""
        total: Any = 0.0
        for tape, sign in zip(tapes, self._signs(), strict=True):
            found = tape.out[which]
            if found is not None:
                total = total + found[:, 0, :] * sign
        if isinstance(total, float):  # nothing that is trained matters
            n, _, k = tapes[0].out[0].shape
            total = zeros((n, k), self.theta)
        return total

    def _shaped(self, f: Array) -> Array:
        return f[:, 0] if self._single else f

    def _cotangent(self, u: ArrayLike, n: int, name: str = "cotangent") -> Array:
        u = _check.finite_array(u, name, self.theta, "theta")
        shape = (n,) if self._single else (n, self.outputs)
        _check.must(u.shape == shape, name, f"have the shape of the outputs, {shape}", u.shape)
        return reshaped(cast(u, self.dtype), (n, self.outputs))

    # ---- derivatives

    def __call__(self, X: ArrayLike) -> Array:
        """Return the outputs, of shape (n,) or (n, k)."""
        return self._shaped(self._values(self._inputs(X)))

    def _values(self, h: Array) -> Array:
        return self._stacked(h, 1, lambda s: self._evaluated(h[s, ...])[0])

    def _stacked(self, h: Array, times: int, work: Callable[[slice], Array]) -> Array:
        """Return what ``work`` makes of blocks, one below the other, of shape (n, k)."""
        return self._below(list(self._each(self._blocks(len(h), times), work)))

    def _below(self, outputs: list[Array]) -> Array:
        return joined(outputs) if outputs else zeros((0, self.outputs), self.theta)

    def _evaluated(self, h: Array) -> tuple[Array, list[Tape]]:
        """Return outputs, and the tapes of the way back."""
        tapes = self._passes(h)
        return self._joined(tapes), tapes

    def jvp(self, X: ArrayLike, direction: ArrayLike) -> Array:
        """Return the derivative of the outputs along a direction of theta: ``J v``."""
        h = self._inputs(X)
        return self._shaped(self._along(h, self._direction(direction, "direction", self.theta)))

    def _along(self, h: Array, v: Array) -> Array:
        way = self._split(v, zero=True)
        return self._stacked(h, 2, lambda s: self._joined(self._passes(h[s, ...], way), 1))

    def vjp(self, X: ArrayLike, cotangent: ArrayLike) -> Array:
        """Return the gradient by theta of the outputs times ``cotangent``: ``J' u``."""
        h = self._inputs(X)
        u = self._cotangent(cotangent, len(h))
        return self._summed(h, lambda f, s: u[s, ...])[0]

    def _summed(self, h: Array, slope: Callable[[Array, slice], Array]) -> tuple[Array, Array]:
        """Return the gradient by theta where ``slope`` is that by outputs; and the outputs."""

        def work(s: slice) -> tuple[Array, Array]:
            f, tapes = self._evaluated(h[s, ...])
            return f, self._back(tapes, (slope(f, s), None))[0]

        outputs, total = [], None
        for f, found in self._each(self._blocks(len(h)), work):
            outputs.append(f)
            if total is None:
                total = found
            else:
                total += found
        return self._nothing() if total is None else total, self._below(outputs)

    def _nothing(self) -> Array:
        """Return zeros like theta."""
        return zeros(self.theta.shape, self.theta)

    def _back(self, tapes: list[Tape], g: Any, along: Any = None) -> tuple[Array, Array | None]:
        """Return the gradient by theta, and its derivative in the direction of the tapes."""
        found: list[Weights] = []
        changes: list[Weights] = []
        ways = [None] * len(self._at) if along is None else along
        parts = zip(tapes, self._at, ways, self._signs(), self._drawn.frozen, strict=True)
        for tape, at, way, sign, frozen in parts:
            told: dict[int, Any] = {}

            def tell(step: Any, g: Any, kept: Any, slopes: Any, told: Any = told) -> None:
                told[step.place] = slopes

            value, bend = (None if x is None else (x * sign)[:, None, :] for x in g)
            assert value is not None
            backward(self._made.steps, tape, (value, bend), at, way, tell)
            for place, fixed in enumerate(frozen):
                if fixed is None:
                    slope, change = told[place]
                    found.append(slope)
                    if along is not None:
                        changes.append(_whole(change, slope))
        if not found:
            return self._nothing(), None if along is None else self._nothing()
        return _flat(found), None if along is None else _flat(changes)

    def jacobian(self, X: ArrayLike) -> Array:
        """Return all derivatives of outputs by theta, of shape (n, p) or (n, k, p).

        The matrix is held whole; ``ntk``, ``jvp`` and ``vjp`` need no such thing.
        """
        h, p = self._inputs(X), self.theta.size
        outputs = self.outputs
        _check.room("the Jacobian", (len(h), outputs, p), self.dtype, 1, ("jvp", "vjp", "ntk"))
        out = zeros((len(h), outputs, p), self.theta)
        for i in range(len(h)):
            tapes = self._passes(h[i : i + 1, ...])
            for j in range(outputs):
                u = zeros((1, outputs), self.theta)
                u[0, j] = 1.0
                out[i, j, :] = self._back(tapes, (u, None))[0]
        return out[:, 0, :] if self._single else out

    def gradient(self, X: ArrayLike, y: ArrayLike, *, loss: str = "square") -> Loss:
        """Return the mean loss, its gradient by theta, and the outputs.

        ``loss`` is one of square (half of it), logistic, softmax, hinge, squared_hinge.

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> f = kc.presets.mlp(1).sample(10, seed=0, shape=2, doubled=True)
        >>> f.gradient([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]).value  # half of the mean square of y
        1.25
        """
        h = self._inputs(X)
        of = _losses.named(loss, y, len(h), self)
        total, f = self._summed(h, lambda f, s: of.slope(f, s) / len(h))
        return Loss(of.mean(f), total, self._shaped(f))

    def hessian_product(self, X: ArrayLike, cotangent: ArrayLike, direction: ArrayLike) -> Array:
        """Return the second derivative by theta of the outputs times ``cotangent``, times v.

        Outputs are ``f(x_i; theta)``, and the result is ``sum_i u_i f''(x_i; theta) v``.
        """
        h = self._inputs(X)
        u = self._cotangent(cotangent, len(h))
        return self._second(h, direction, lambda f, df, s: (u[s, ...], None))

    def loss_hessian_product(
        self, X: ArrayLike, y: ArrayLike, direction: ArrayLike, *, loss: str = "square"
    ) -> Array:
        """Return the Hessian by theta of the mean loss times a direction."""
        h = self._inputs(X)
        of = _losses.named(loss, y, len(h), self)
        n = len(h)
        return self._second(
            h, direction, lambda f, df, s: (of.slope(f, s) / n, of.bend(f, df, s) / n)
        )

    def _second(self, h: Array, direction: ArrayLike, slopes: Callable[..., Any]) -> Array:
        along = self._split(self._direction(direction, "direction", self.theta), zero=True)

        def work(s: slice) -> Array:
            tapes = self._passes(h[s, ...], along)
            f, df = self._joined(tapes), self._joined(tapes, 1)
            change = self._back(tapes, slopes(f, df, s), along)[1]
            assert change is not None
            return change

        total = self._nothing()
        for found in self._each(self._blocks(len(h), 3), work):
            total += found
        return total

    # ---- what follows from them

    @property
    def ntk(self) -> EmpiricalNtk:
        """The empirical neural tangent kernel at theta: ``<df(x)/dtheta, df(x')/dtheta>``.

        It is a kernel as any other: solvers, spectra, estimators and ``GramOperator`` take it.
        """
        from ._empirical import EmpiricalNtk

        return EmpiricalNtk(self)

    def conjugate(self, layer: int = -1) -> EmpiricalConjugate:
        """Return the kernel of hidden units: ``<h(x), h(x')>/width``, of one layer.

        Layers are counted by activations; the last is that before the output.
        """
        from ._empirical import EmpiricalConjugate

        return EmpiricalConjugate(self, layer)

    def linearize(self) -> Linearized:
        """Return the network that is linear in its parameters, with the same slope at theta."""
        from ._linear import Linearized

        return Linearized(self)


def beside(a: Array, like: Array) -> Array:
    """Return parameters where others are, and in their dtype."""
    same = namespace_of(a) is namespace_of(like)
    return cast(a, like.dtype) if same else placed(numbers(a), like)


def _zeros(weights: Weights) -> Weights:
    return Weights(*(None if a is None else zeros(a.shape, a) for a in weights))  # type: ignore[arg-type]


def _whole(change: Weights | None, like: Weights) -> Weights:
    """Return changes with zeros for what does not change."""
    if change is None:
        return _zeros(like)
    if change.b is None and like.b is not None:
        return Weights(change.w, zeros(like.b.shape, like.b))
    return change


def _flat(weights: list[Weights]) -> Array:
    """Return the numbers of weights, all in one vector."""
    return joined([reshaped(a, (-1,)) for w in weights for a in w if a is not None])


def checked(
    lowered: Program, X: ArrayLike, name: str = "X", of: _check.Arrays = _check.HOST
) -> Array:
    """Return inputs that are finite, of the shape that a program is for."""
    if lowered.decisive is None:
        x = _check.rows(X, name, of)
    else:
        x = _check.images(X, lowered.decisive.layer, name, of)
    xp = namespace_of(x)
    if not bool(xp.all(xp.isfinite(x))):
        _check.finite_array(x, name, x)  # says where
    return x


# ---- drawing


class Linked(NamedTuple):
    """Which widths are one: that of each layer of weights, by the number of the first it is of."""

    root: list[int]
    last: set[int]  # those of the outputs
    fed: int | None  # that of what the last weights multiply; None for inputs

    @property
    def hidden(self) -> list[int]:
        return [k for k in sorted(set(self.root)) if k not in self.last]


def linked(lowered: Program) -> Linked:
    """Return which widths are one: where a branch and a shortcut are added, both have as many."""
    root: list[int] = []
    here: set[int] = set()
    fed: set[int] = set()
    stack: list[tuple[set[int], bool]] = []
    ends = False  # whether what is here are outputs of weights, and not of an activation
    for node in lowered:
        match node:
            case program.Weights():
                fed, here, ends = here, {len(root)}, True
                root.append(len(root))
            case program.Apply():
                ends = False
            case program.Save():
                stack.append((here, ends))
            case program.Swap():
                other, stack[-1] = stack[-1], (here, ends)
                here, ends = other
            case program.Merge():
                other = stack.pop()
                here, ends = here | other[0], ends and other[1]
                first = min(root[k] for k in here)
                for k in here:
                    old = root[k]
                    root = [first if r == old else r for r in root]
    before = min((root[k] for k in fed), default=None)
    return Linked(root, {root[k] for k in here} if ends else set(), before)


def widths_of(lowered: Program, width: Any, outputs: int) -> list[int]:
    """Return the units of every layer of weights."""
    found = linked(lowered)
    root, hidden = found.root, found.hidden
    _check.must(bool(root), "network", "have weights", "none")
    if isinstance(width, Sequence) or (isinstance(width, np.ndarray) and width.ndim):
        given = [_check.count(k, "width", least=1) for k in width]
        _check.must(
            len(given) == len(hidden), "width",
            f"have one entry for each of the {len(hidden)} hidden layers", f"{len(given)}",
        )  # fmt: skip
    else:
        given = [_check.count(width, "width", least=1)] * len(hidden)
    units = dict(zip(hidden, given, strict=True)) | {k: outputs for k in found.last}
    return [units[k] for k in root]


def sample(
    lowered: Program, width: Any, seed: Any, *, shape: Any, outputs: int | None,
    parameterization: str, doubled: bool, alpha: float, dtype: Any,
) -> Network:  # fmt: skip
    """Draw a network; see ``Sequential.sample``."""
    _check.choice(parameterization, "parameterization", PARAMETERIZATIONS)
    doubled = _check.flag(doubled, "doubled")
    real = None if dtype is None else np.dtype(dtype)
    _check.must(real in (None, np.float32, np.float64), "dtype", "be float32 or float64", real)
    size = 1 if outputs is None else _check.count(outputs, "outputs", least=1)
    rng = _check.generator(seed, "seed")
    units = widths_of(lowered, width, size)

    alpha = _check.positive(alpha, "alpha")
    drawn = functools.partial(
        _drawn, lowered, units, rng, parameterization, 2 if doubled else 1, outputs is None, real
    )
    if shape is None:
        return Network(lowered, drawn, alpha=alpha, doubled=doubled)
    sides = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    sides = tuple(_check.count(k, "shape", least=1) for k in sides)
    ndim = 1 if lowered.decisive is None else 1 + (lowered.decisive.axes or max(1, len(sides) - 1))
    _check.must(
        len(sides) == ndim, "shape", f"have {ndim} entries for a {str(lowered).splitlines()[0]}",
        f"{sides}",
    )  # fmt: skip
    first = drawn(sides, np.dtype(np.float64))
    return Network(lowered, first, alpha=alpha, doubled=doubled)


def _drawn(
    lowered: Program, units: list[int], rng: np.random.Generator, parameterization: str,
    parts: int, single: bool, asked: np.dtype[Any] | None, sides: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Drawn:  # fmt: skip
    """Draw weights for inputs of a shape, in the dtype that was asked for or in that of inputs."""
    made = sized(lowered, sides, units, parameterization == NTK)
    found = [
        _draw(rng, node, sizes, taps, parameterization, dtype if asked is None else asked)
        for node, sizes, taps in zip(made.weights, made.sizes, made.taps, strict=True)
    ]
    trained = [node.trained for node in made.weights]
    frozen = [None if t else w for t, w in zip(trained, found, strict=True)]
    flat = [a.ravel() for t, w in zip(trained, found, strict=True) if t for a in w if a is not None]
    theta = np.concatenate(flat * parts) if flat else np.zeros(0, found[0].w.dtype)
    return Drawn(made, theta, [frozen] * parts, sides, single and made.width == 1)


def _draw(
    rng: np.random.Generator, node: program.Weights, sizes: tuple[int, int], taps: int, how: str,
    dtype: np.dtype[Any],
) -> Weights:  # fmt: skip
    """Draw the weights of a layer."""
    w = rng.standard_normal(sizes)
    b = rng.standard_normal(sizes[1]) if node.b_std else None
    if how != NTK:
        fan_in, fan_out = sizes[0], taps * sizes[1]
        w *= node.w_std * math.sqrt(1 / fan_in if how == STANDARD else 2 / (fan_in + fan_out))
        b = None if b is None else b * node.b_std
    return Weights(w.astype(dtype), None if b is None else b.astype(dtype))
