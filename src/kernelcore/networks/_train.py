"""Training: descent with momentum, Adam, and gradient flow, for networks and linearised ones."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..engine.progress import Progress
from ..linalg import namespace_of, norm
from ..linalg.arrays import copied, placed, take, zeros
from . import _losses
from ._network import Network

M = TypeVar("M", bound=Network)

METHODS = ("descent", "adam", "flow")
BENDS = {"square": 1.0, "logistic": 0.25, "softmax": 0.5, "hinge": 1.0, "squared_hinge": 1.0}
"""The largest second derivative of a loss by the outputs; the hinge counts as the squared one."""
SAMPLE = 512
"""The inputs from which the largest eigenvalue of the tangent kernel is estimated, at most."""
ROUNDS = 30
"""Of the power method, at most."""
WORSE = 1e3
"""A loss that is so many times that at the start diverges."""
ADAM = 0.9, 0.999, 1e-8


@dataclasses.dataclass(frozen=True)
class Training(Generic[M]):
    """How a training went; made by ``train``.

    Attributes
    ----------
    network : Network
        With the parameters at the end, or the best ones where there is a validation set.
    losses : array
        The mean loss of the training inputs before each step that is recorded, and at the end. With
        batches, that of the batch.
    steps : array of int
        The numbers of these steps.
    times : array
        The times of gradient flow; else the sums of the steps taken.
    validation : array or None
        The mean loss of the validation inputs, as often.
    step : float
        The size of a step, the last one of gradient flow.
    stopped : {'steps', 'time', 'tol', 'patience', 'callback'}
        Why it ended.
    """

    network: M
    losses: Array
    steps: Array
    times: Array
    validation: Array | None
    step: float
    stopped: str


def largest_step(network: Network, X: ArrayLike, *, loss: str = "square") -> float:
    """Return about the largest step of descent that is stable near theta: ``2 n/(c lambda)``.

    lambda is the largest eigenvalue of the tangent kernel's Gram matrix, by the power method on up
    to 512 inputs, and c the largest second derivative of the loss.

    Parameters
    ----------
    network : Network
    X : array
        Inputs.
    loss : str, default 'square'
        As in ``train``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> f = kc.presets.mlp(1).sample(100, seed=0)
    >>> X = np.eye(4)
    >>> top = np.linalg.eigvalsh(f.ntk(X))[-1]
    >>> bool(np.isclose(kc.networks.largest_step(f, X), 8 / top, rtol=0.01))
    True
    """
    _check.choice(loss, "loss", tuple(BENDS))
    h = network._inputs(X)
    every = max(1, -(-len(h) // SAMPLE))
    h = h[::every, ...]
    rng = np.random.default_rng(0)
    u = placed(rng.standard_normal((len(h), network.outputs)), network.theta)
    top = 0.0
    for _ in range(ROUNDS):
        u = u / float(norm(u))
        v = _pulled(network, h, u)
        found = float(v @ v)
        u = network._along(h, v)
        if found <= top * (1 + 1e-3):
            break
        top = found
    top = max(top, found)
    return 2 * len(h) / (BENDS[loss] * top) if top > 0 else math.inf


def _pulled(network: Network, h: Array, u: Array) -> Array:
    """Return ``J' u``."""
    return network._summed(h, lambda f, s: u[s, ...])[0]


class _Problem(NamedTuple):
    """A sample, as the steps of a network take it."""

    h: Array
    loss: _losses.Loss

    def _some(self, which: Any) -> tuple[Array, _losses.Loss]:
        """Return some inputs with their loss, or all."""
        if which is None:
            return self.h, self.loss
        return take(self.h, which), type(self.loss)(take(self.loss.y, which))

    def slope(self, network: Network, which: Any = None) -> tuple[float, Array]:
        """Return the mean loss and its gradient, of some inputs or of all."""
        h, loss = self._some(which)
        found, f = network._summed(h, lambda f, s: loss.slope(f, s) / len(h))
        return loss.mean(f), found

    def mean(self, network: Network, which: Any = None) -> float:
        h, loss = self._some(which)
        return loss.mean(network._values(h))


def _problem(network: Network, X: ArrayLike, y: ArrayLike, loss: str) -> _Problem:
    h = network._inputs(X)
    _check.some_rows(h, "X")
    return _Problem(h, _losses.named(loss, y, len(h), network))


def train(
    network: M, X: ArrayLike, y: ArrayLike, *, loss: str = "square", method: str = "descent",
    step: float | None = None, steps: int = 1000, time: float | None = None,
    momentum: float = 0.0, batch: int | None = None, decay: float = 0.0, tol: float = 0.0,
    validation: tuple[ArrayLike, ArrayLike] | None = None, patience: int = 100,
    seed: Any = None, every: int = 1, rtol: float = 1e-6,
    callback: Callable[[int, Network, float], object] | None = None,
    progress: bool | None = None,
) -> Training[M]:  # fmt: skip
    """Train a network, or a linearised one, on the mean loss of a sample.

    Parameters
    ----------
    network : Network
        It is left as it is; ``result.network`` is the trained one. Frozen layers stay
        (``network.training(...)``).
    X, y : arrays
        Inputs, and targets of the shape of the outputs; classes 0 to k - 1 for the softmax loss,
        -1 and 1 for the logistic and the hinge losses.
    loss : {'square', 'logistic', 'softmax', 'hinge', 'squared_hinge'}
        The square losses are half of the squares.
    method : {'descent', 'adam', 'flow'}
        Steps along the gradient, those of Adam, or the flow ``dtheta/dt = -gradient`` by an
        embedded Runge-Kutta method (Dormand and Prince) with relative tolerance ``rtol``.
    step : float, optional
        By default half of ``largest_step``, and 1e-3 for Adam; gradient flow finds its own.
    steps : int
        How many, at most.
    time : float, optional
        Where gradient flow ends; it is needed there.
    momentum : float
        Of descent: the part of a step that is added to the next.
    batch : int, optional
        The inputs of a step, drawn without replacement in each pass; all by default.
    decay : float
        Adds ``decay |theta|^2 / 2`` to the loss that is descended.
    tol : float
        Training ends when the loss is at most that.
    validation : (X, y), optional
        Other inputs: parameters with the least loss on them are returned, and training ends
        after ``patience`` records without a smaller one.
    patience : int
    seed : int, numpy.random.Generator or None
        Of the batches.
    every : int
        The steps between records.
    callback : callable, optional
        ``callback(k, network, loss)`` at every record; True ends the training.
    progress : bool, optional
        Whether to write lines to stderr; by default if it is a terminal.
    rtol : float
        Of gradient flow.

    Returns
    -------
    Training

    Notes
    -----
    No result depends on the number of threads. A loss that is not finite, or a thousand times that
    at the start, is a ``FloatingPointError``, which names the largest stable step.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> net = kc.Sequential(kc.Dense(1.5, b_std=1.0), kc.Tanh(), kc.Dense(1.5))
    >>> result = kc.networks.train(net.sample(200, seed=0), X, X[:, 0] ** 2, steps=2000)
    >>> bool(result.losses[-1] < 1e-2 * result.losses[0])
    True
    """
    _check.an_instance(network, Network, "network", "a Network")
    _check.choice(method, "method", METHODS)
    problem = _problem(network, X, y, loss)
    other = None
    if validation is not None:
        held_x, held_y = _check.pair(validation, "validation")
        other = _problem(network, held_x, held_y, loss)
    n, steps = len(problem.h), _check.count(steps, "steps")
    every, patience = _check.count(every, "every", 1), _check.count(patience, "patience", 1)
    decay, tol = _check.non_negative(decay, "decay"), _check.non_negative(tol, "tol")
    momentum = _check.below_one(momentum, "momentum")
    size = n if batch is None else _check.at_most(_check.count(batch, "batch", 1), n, "batch", "n")
    if method == "flow":
        _check.given(time, "time", "method='flow'")
        _check.must(size == n, "batch", "be left out for gradient flow", size)
    if step is not None:
        step = _check.positive(step, "step")
    elif method == "adam":
        step = 1e-3
    elif method == "descent":
        largest = largest_step(network, X, loss=loss)
        step = 0.5 * largest if math.isfinite(largest) else 1.0
    shown = sys.stderr.isatty() if progress is None else _check.flag(progress, "progress")
    told = Progress("training, steps", steps, shown)

    def slope(theta: Array, which: Any = None, last: bool = False) -> tuple[float, Array]:
        if last:  # nobody takes a step from here
            return problem.mean(network._moved(theta), which), theta
        value, found = problem.slope(network._moved(theta), which)
        if decay:
            found += decay * theta
        return value, found

    if method == "flow":
        _check.on_the_host(network.theta, "theta")  # where SciPy's integrators are
        path = _flow(slope, network.theta, _check.positive(time, "time"), rtol)
    else:
        rng = _check.generator(seed, "seed")
        batches = _batches(rng, n, size)
        path = _descent(slope, network.theta, batches, step, steps, method, momentum)
    records: list[tuple[int, float, float, float]] = []
    best, waited, stopped = (math.inf, network.theta), 0, "time"

    def record(k: int, state: State) -> None:
        nonlocal best, waited
        left = math.nan
        if other is not None:
            left = other.mean(network._moved(copied(state.theta)))
            waited = 0 if left < best[0] else waited + 1
            best = (left, copied(state.theta)) if left < best[0] else best
        records.append((k, state.loss, state.time, left))
        told.at(k, f"loss {state.loss:.4g}")

    for k, state in enumerate(path):
        first = records[0][1] if records else state.loss
        if not math.isfinite(state.loss) or state.loss > WORSE * max(first, 1e-300):
            _diverged(state.loss, k, state.step, network, X, loss)
        small, last = state.loss <= tol, k >= steps
        if k % every == 0 or small or last:
            record(k, state)
            now = network._moved(copied(state.theta))
            if callback is not None and callback(k, now, state.loss) is True:
                stopped = "callback"
                break
        if small or last or waited >= patience:
            stopped = "tol" if small else "steps" if last else "patience"
            break
    if records[-1][0] != k:
        record(k, state)
    end = state.theta if other is None else best[1]
    numbers, losses, times, held = (np.array(column) for column in zip(*records, strict=True))
    return Training(
        network._moved(copied(end)), losses, numbers.astype(int), times,
        None if other is None else held, state.step if step is None else step, stopped,
    )  # fmt: skip


class State(NamedTuple):
    """A point of a path: parameters, their loss, the time, and the size of steps."""

    theta: Array
    loss: float
    time: float
    step: float


def _batches(rng: np.random.Generator, n: int, size: int) -> Iterator[Any]:
    while True:
        if size == n:
            yield None
            continue
        order = rng.permutation(n)
        for start in range(0, n - size + 1, size):
            yield order[start : start + size]


def _descent(
    slope: Callable[..., tuple[float, Array]], theta: Array, batches: Iterator[Any],
    step: Any, steps: int, method: str, momentum: float,
) -> Iterator[State]:  # fmt: skip
    """Yield parameters with the loss that they have, and take a step; behind the last, none."""
    theta, last = copied(theta), zeros(theta.shape, theta)
    square = zeros(theta.shape, theta) if method == "adam" else None
    for k, which in enumerate(batches):
        value, found = slope(theta, which, k == steps)
        yield State(theta, value, k * step, step)
        if square is None:
            last *= momentum
            last -= found * step
            theta = theta + last
            continue
        a, b, tiny = ADAM
        last += (1 - a) * (found - last)
        square += (1 - b) * (found * found - square)
        rate = step * math.sqrt(1 - b ** (k + 1)) / (1 - a ** (k + 1))
        theta = theta - rate * last / (namespace_of(theta).sqrt(square) + tiny)


def _flow(
    slope: Callable[..., tuple[float, Array]], theta: Array, end: float, rtol: float
) -> Iterator[State]:
    from scipy.integrate import RK45

    losses: list[float] = []

    def velocity(_: float, at: Array) -> Array:
        value, found = slope(at.astype(theta.dtype))
        losses.append(value)
        return -found.astype(np.float64)

    scale = float(np.sqrt(np.mean(np.square(theta, dtype=np.float64)))) if theta.size else 1.0
    solver = RK45(
        velocity, 0.0, theta.astype(np.float64), end, rtol=rtol, atol=rtol * max(scale, 1e-300)
    )
    yield State(theta.copy(), losses[0], 0.0, 0.0)
    while solver.status == "running":
        solver.step()
        if solver.status == "failed":
            break
        # The last stage of an accepted step is evaluated at its end.
        yield State(solver.y.astype(theta.dtype), losses[-1], solver.t, float(solver.step_size))


def _diverged(value: float, k: int, step: float, network: Network, X: ArrayLike, loss: str) -> None:
    largest = largest_step(network, X, loss=loss)
    raise FloatingPointError(
        f"training must descend: the loss is {value:.3g} at step {k} with steps of {step:.3g}; "
        f"the largest stable one is about {largest:.3g}"
    )


class Coupled(NamedTuple):
    """A network and its linearisation, trained with the same steps; made by ``coupled``.

    Attributes
    ----------
    network, linear : Training
    steps : array of int
        Those at which the two were compared.
    distance : array
        The largest difference of their outputs, over the points they were compared at.
    apart : array
        ``|theta - theta_linear|``.
    moved : array
        ``|theta - theta_0|``.
    """

    network: Training[Network]
    linear: Training[Any]
    steps: Array
    distance: Array
    apart: Array
    moved: Array


def coupled(
    network: Network, X: ArrayLike, y: ArrayLike, *, points: ArrayLike | None = None,
    step: float | None = None, **options: Any,
) -> Coupled:  # fmt: skip
    """Train a network and its linearisation at theta_0 with the same steps, and compare them.

    ``points`` are where outputs are compared, X by default; other options are those of ``train``.

    Parameters
    ----------
    network : Network
    X, y : arrays
        Inputs, and targets of the shape of the outputs.
    points : array, optional
    step : float, optional
        Half of ``largest_step`` by default.
    **options
        Of ``train``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(-1, 1, 8)[:, None]
    >>> net = kc.Sequential(kc.Dense(b_std=1.0), kc.Tanh(), kc.Dense())
    >>> wide = kc.networks.coupled(net.sample(3000, seed=0), X, X[:, 0], steps=20)
    >>> narrow = kc.networks.coupled(net.sample(30, seed=0), X, X[:, 0], steps=20)
    >>> bool(wide.distance.max() < narrow.distance.max())
    True
    """
    _check.an_instance(network, Network, "network", "a Network")
    network(X)  # its weights are drawn, if they were not
    if step is None and options.get("method", "descent") == "descent":
        step = 0.5 * largest_step(network, X, loss=options.get("loss", "square"))
    seed = options.pop("seed", None)
    seeds = np.random.SeedSequence(seed) if seed is None else seed
    at = X if points is None else points
    paths: list[dict[int, tuple[Array, Array]]] = []
    ends = []
    for model in (network, network.linearize()):
        path: dict[int, tuple[Array, Array]] = {}

        def keep(k: int, now: Network, value: float, path: Any = path) -> None:
            path[k] = now(at), now.theta

        rng = np.random.default_rng(seeds)
        ends.append(train(model, X, y, step=step, seed=rng, callback=keep, **options))
        paths.append(path)
    both = sorted(paths[0].keys() & paths[1].keys())
    xp = namespace_of(network.theta)
    rows = [
        (
            float(xp.max(xp.abs(paths[0][k][0] - paths[1][k][0]))),
            float(norm(paths[0][k][1] - paths[1][k][1])),
            float(norm(paths[0][k][1] - network.theta)),
        )
        for k in both
    ]
    distance, apart, moved = np.array(rows).T
    return Coupled(ends[0], ends[1], np.array(both), distance, apart, moved)
