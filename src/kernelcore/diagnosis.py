"""What a kernel can make of given data: spectrum, target, learning curve, and what to use.

::

    diagnose ──▶ some points, drawn: 4/5 to look at, 1/5 held out
                   ├─▶ K: eigenvalues, power of the target along them ──▶ predicted curve
                   ├─▶ fits to parts of them, tested on what is held out ──▶ measured curve
                   └─▶ leave-one-out: ridge, kernel; memory and cost: solver
                                  ──▶ Diagnosis: a value, printed; plot and tables, for a page

Nothing is chosen by what is held out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _check, presets, solvers, theory
from ._keywords import synonyms
from ._types import Array, ArrayLike
from .architecture import Sequential
from .engine.memory import budget
from .experiments import Picture, Table, _draw
from .experiments._words import scientific
from .kernels import Gaussian, Kernel, Laplacian
from .layers import Flatten
from .linalg import norm
from .scale.choose import Choice, choose
from .scale.client import get_client
from .scale.cost import SAMPLE, core_seconds
from .scale.source import Source
from .solvers import RidgePath

__all__ = ["Candidate", "Diagnosis", "diagnose"]

POINTS = 2000
"""The points that are drawn, at most, unless more are asked for."""
LEAST = 40
"""The points without which there is nothing to tell."""
HELD = 5
"""One in so many points is held out."""
ARRAYS = 6
"""The matrices that exist at a time: K, its part, and what an eigendecomposition works in."""
PARTS = 5
"""The parts of the points whose predictions differ by chance: their spread is the error bar."""
DRAWS = 6
"""The subsets of each size that are learned from."""
SIZES = 5
"""The sizes of the curve, each twice the one before."""
COMPARED = 1000
"""The points on which kernels are compared, at most."""
NEAR = 300
"""The points whose median distance is a lengthscale."""
GAIN = 0.01
"""The part of its error by which a kernel has to be outdone for another to be suggested."""
DEGREES = 9
"""The highest degree that is asked for."""
TASKS = (None, "regression", "classification")


class Candidate(NamedTuple):
    """A kernel that was compared, in ``Diagnosis.candidates``.

    ``error`` is its leave-one-out error at ``ridge``, which is best for it; ``behind`` is how much
    that is above the error of the kernel that was asked about, and ``behind_error`` the standard
    error of this difference, point by point.
    """

    kernel: Kernel
    ridge: float
    error: float
    behind: float
    behind_error: float


@dataclass(frozen=True)
class Diagnosis:
    """What a kernel can make of given data; made by ``diagnose``. ``print`` tells it in words.

    Attributes
    ----------
    kernel : Kernel
    task : {'regression', 'classification'}
    n, shape : int, tuple of int
        The number of inputs that were given, and the shape of one.
    points, held : int
        The points whose Gram matrix was looked at, and those held out.
    outputs : int
        Columns of the target; classes have one each.
    variance : float
        Of the target at the points, in the mean over outputs.
    ridge : float
        The ridge that was given, or the one that leave-one-out chose.
    eigenvalues, target_power : arrays of shape (points,)
        Those of K/points, largest first, zero where they are not resolved; and the power of the
        target along each eigenvector, in the mean over outputs.
    resolved : int
        The number of eigenvalues above the rounding errors of K.
    condition : float
        The condition number of ``K + ridge I``.
    effective_dimension : float
        ``sum mu/(mu + ridge/points)``.
    null_degrees : tuple of int, or None
        Degrees up to 9 that the kernel cannot learn on spheres around 0; None of kernels that the
        angle does not determine.
    sizes : array of shape (k,)
        Numbers of points that are learned from.
    predicted, predicted_error : arrays of shape (k,)
        The mean squared error that ``theory.subset_curve`` predicts, and how far it may be off.
    measured, measured_error : arrays of shape (k,)
        That of fits, on the points held out, in the mean over subsets; its standard error counts
        subsets and points.
    wrong : array of shape (k,), or None
        The share of wrong classes on the points held out.
    candidates : tuple of Candidate
        Kernels that leave-one-out compared, the best first.
    suggested, suggested_ridge : Kernel, float
        The first of them, if it is better than ``kernel`` by 1 % and by two standard errors, or
        else ``kernel``; and a ridge for it.
    solver : Choice
        What ``solver='auto'`` would use for all n inputs, here.
    """

    kernel: Kernel
    task: str
    n: int
    shape: tuple[int, ...]
    points: int
    held: int
    outputs: int
    variance: float
    ridge: float
    eigenvalues: Array
    target_power: Array
    resolved: int
    condition: float
    effective_dimension: float
    null_degrees: tuple[int, ...] | None
    sizes: Array
    predicted: Array
    predicted_error: Array
    measured: Array
    measured_error: Array
    wrong: Array | None
    candidates: tuple[Candidate, ...]
    suggested: Kernel
    suggested_ridge: float
    solver: Choice

    def along(self, share: float) -> int:
        """Return the number of first eigenvectors that hold a share of the power of the target."""
        sums = np.cumsum(self.target_power)
        return int(np.searchsorted(sums, share * sums[-1])) + 1 if sums[-1] else 0

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain numbers, text and lists: what JSON can hold."""
        found = dict(vars(self))
        found["candidates"] = [one._asdict() for one in self.candidates]
        found["solver"] = self.solver._asdict()
        return {name: _plain(value) for name, value in found.items()}

    def facts(self) -> dict[str, str]:
        """Return what is told in words, by subject."""
        N = self.points
        what = f"{self.n} inputs of shape {self.shape}"
        what += f", {self.outputs} classes" if self.task == "classification" else ""
        looked = f"{N} of them; {self.held} others are held out"
        found = {"kernel": repr(self.kernel), "data": what, "looked at": looked}
        lost = N - self.resolved
        told = f"condition number {self.condition:.2g} at ridge {self.ridge:.3g}"
        told += f"; {lost} of {N} eigenvalues are below rounding" if lost else ""
        found["spectrum"] = told
        dimension = f"{self.effective_dimension:.1f} of {N} at that ridge"
        found["effective dimension"] = dimension
        if self.null_degrees:
            degrees = ", ".join(map(str, self.null_degrees))
            found["cannot learn"] = f"degrees {degrees} (up to {DEGREES}), at any number of points"
        most, nearly = self.along(0.9), self.along(0.99)
        found["target"] = f"90 % of its power along {most} eigenvectors, 99 % along {nearly}"
        found["suggested kernel"] = self._suggestion()
        found["suggested ridge"] = f"{self.suggested_ridge:.3g}, by leave-one-out"
        found["suggested solver"] = str(self.solver)
        return found

    def _suggestion(self) -> str:
        best = self.candidates[0]
        if self.suggested != self.kernel:
            gain = f"{-best.behind:.3g} ± {best.behind_error:.2g}"
            return f"{self.suggested!r}, better by {gain} of squared error, left one out"
        others = len(self.candidates) - 1
        return "this one" + (f"; {others} others are not better beyond noise" if others else "")

    def rows(self) -> list[list[str]]:
        """Return the learning curve as text, a row for each size."""
        found = []
        for k, n in enumerate(self.sizes):
            predicted = f"{self.predicted[k]:.4g} ± {self.predicted_error[k]:.1g}"
            measured = f"{self.measured[k]:.4g} ± {self.measured_error[k]:.1g}"
            wrong = [] if self.wrong is None else [f"{100 * self.wrong[k]:.1f} %"]
            found.append([str(n), predicted, measured, *wrong])
        return found

    def __str__(self) -> str:
        facts = self.facts()
        width = max(map(len, facts))
        lines = [f"{name:<{width}}  {text}" for name, text in facts.items()]
        table = [self.head(), *self.rows()]
        widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
        lines += ["", f"mean squared error on new points, of a variance of {self.variance:.4g}"]
        lines += [
            "  ".join(f"{c:>{w}s}" for c, w in zip(row, widths, strict=True)) for row in table
        ]
        return "\n".join(lines)

    def head(self) -> list[str]:
        """Return the names of the columns of ``rows``."""
        return ["n", "predicted", "measured", *(["wrong"] if self.wrong is not None else [])]

    def tables(self) -> list[Table]:
        """Return the learning curve and the kernels that were compared, for a page."""
        curve = Table(
            self.head(), self.rows(),
            f"Mean squared errors on new points, with standard errors; the variance of the target "
            f"is {self.variance:.4g}.",
        )  # fmt: skip
        rows = [
            [f"{c.error:.4g}", _difference(c), f"{c.ridge:.3g}", repr(c.kernel)]
            for c in self.candidates
        ]
        head = ["leave-one-out error", "behind the kernel asked about", "ridge", "kernel"]
        told = "Kernels, each at the ridge that suits it best by leave-one-out."
        return [curve, Table(head, rows, told, labels=0)]

    def plot(self) -> list[Picture]:
        """Draw spectrum, target and learning curve."""
        titles = ("Eigenvalues of K/n", "Power of the target that is left", "Learning curve")
        fig = _draw.figure(4.0)
        one, two, three = fig.subplots(1, 3)
        for axes, title in zip((one, two, three), titles, strict=True):
            axes.set_title(title, loc="left")
            axes.set_xlabel("points learned from" if axes is three else "eigenvector")
            axes.set(xscale="log", yscale="log")
        index = np.arange(1, self.points + 1)
        there = self.eigenvalues > 0
        _draw.theory(one, index[there], self.eigenvalues[there], _draw.BLUE)
        if self.ridge:
            level = self.ridge / self.points
            one.axhline(level, color=_draw.GREY, ls="--", lw=1.2, label="ridge/n")
            one.legend(loc="upper right")
        left = np.maximum(self.target_power[::-1].cumsum()[::-1], 0.0)
        left = np.append(left[1:], 0.0) / (left[0] or 1.0)
        _draw.theory(two, index[left > 0], left[left > 0], _draw.VERMILLION)
        band = (self.predicted - self.predicted_error, self.predicted + self.predicted_error)
        low = np.maximum(band[0], 1e-3 * self.predicted)
        three.fill_between(self.sizes, low, band[1], color=_draw.PALE)
        _draw.theory(three, self.sizes, self.predicted, _draw.BLACK, "predicted")
        look = (_draw.BLUE, "o", "measured")
        _draw.measured(three, self.sizes, self.measured, self.measured_error, *look)
        _draw.ticks(three.xaxis, self.sizes.tolist())
        three.legend(loc="lower left")
        caption = (
            f"The spectrum of {self.points} points, the share of the target's power beyond the "
            "first eigenvectors, and mean squared errors on new points: predicted from the first "
            f"two, with a band of how far it may be off, and measured on {self.held} points held "
            "out."
        )
        alt = (
            f"Eigenvalues fall from {scientific(float(self.eigenvalues[0]))}; 90 % of the target "
            f"lies along {self.along(0.9)} eigenvectors; the measured error falls from "
            f"{self.measured[0]:.3g} at {self.sizes[0]} points to {self.measured[-1]:.3g} at "
            f"{self.sizes[-1]}, where {self.predicted[-1]:.3g} is predicted."
        )
        return [Picture("diagnosis", fig, caption, alt)]


def _difference(candidate: Candidate) -> str:
    if not candidate.behind_error:
        return ""
    return f"{candidate.behind:.2g} ± {candidate.behind_error:.1g}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Kernel):
        return repr(value)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


class _Data(NamedTuple):
    """Some points in random order, and their targets with one column for each output or class."""

    X: Array
    y: Array
    labels: Array | None

    def first(self, n: int) -> _Data:
        return _Data(self.X[:n], self.y[:n], None if self.labels is None else self.labels[:n])


@synonyms(rng="seed")
def diagnose(
    kernel: Kernel, X: Any, y: ArrayLike, *, ridge: float | None = None, task: str | None = None,
    candidates: Iterable[Kernel] | None = None, points: int | None = None, seed: Any = 0,
) -> Diagnosis:  # fmt: skip
    """Tell what a kernel can make of given data, before anything is learned from all of them.

    Some points are drawn. On four fifths of them the Gram matrix is decomposed: its condition, the
    power of the target along eigenvectors, and the learning curve that follows. The others are held
    out, and the curve is measured on them. Leave-one-out errors suggest a kernel and a ridge.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d), (n, L, C) or (n, H, W, C)
        At least 40 inputs, in memory or in a file; only those that are drawn are read.
    y : array of shape (n,) or (n, r)
        Numbers are a target for regression, with r outputs; integers, truth values and text in one
        column are classes, for which each has an output of 1 or 0, less one over their number.
    ridge : float, optional
        What is added to K; by default leave-one-out chooses it.
    task : {None, 'regression', 'classification'}
        What y is, where its dtype does not tell.
    candidates : iterable of Kernel, optional
        Kernels that ``kernel`` is compared with. By default those of networks of one to three
        layers with biases, and for rows a Gaussian and a Laplacian whose lengthscale is the median
        distance of points.
    points : int, optional
        The number of points that are drawn; by default 2000, or fewer if memory demands it.
    seed : int, Generator or None
        Of what is drawn; also called ``rng``.

    Returns
    -------
    Diagnosis
        ``print`` it; ``kc.report.write(diagnosis, "page.html")`` draws it.

    Notes
    -----
    The work is that of an eigendecomposition of the points, about 9 points^3 flops, and of one for
    each candidate on 1000 of them. Errors are in the mean over outputs. The bars of the prediction
    have two parts: the spread over five parts of the points, and n/points of the difference between
    leave-one-out and what is predicted at all points, which is not small where few points have most
    of the leverage. Those of the measurement are from subsets and from points held out; at the
    largest size all points are learned from, once.

    Examples
    --------
    >>> import kernelcore as kc
    >>> X, y = kc.data.digits()
    >>> found = kc.diagnose(kc.presets.mlp(1).ntk, X, y, points=300)
    >>> found.null_degrees  # without biases
    (3, 5, 7, 9)
    >>> bool(found.measured[-1] < found.measured[0] < found.variance)
    True
    >>> print(found.solver.solver, found.sizes)
    direct [ 15  30  60 120 240]
    """
    _check.an_instance(kernel, Kernel, "kernel", "a kernel")
    task = _check.choice(task, "task", TASKS)  # type: ignore[arg-type]  # None is allowed
    source, rng = Source(X, "X"), _check.generator(seed, "seed")
    _check.must(len(source) >= LEAST, "X", f"have at least {LEAST} inputs", len(source))
    ridge = None if ridge is None else _check.non_negative(ridge, "ridge")
    m = _drawn(points, len(source), source.dtype)
    order = rng.permutation(len(source))[:m]
    data = _read(source, order, *_targets(y, len(source), task))
    N = m - m // HELD
    learned = data.first(N)
    others = _others(kernel, learned) if candidates is None else list(candidates)
    for k, other in enumerate(others):
        _check.an_instance(other, Kernel, f"candidates[{k}]", "a kernel")
    _check.room("K", (m, m), source.dtype, ARRAYS, ("fewer points",))
    K = kernel(data.X)
    path = RidgePath(K[:N, :N], learned.y)
    best = path.best("loo")
    used = best if ridge is None else ridge
    compared = _compare([kernel, *others], learned.first(min(N, COMPARED)))
    suggested = _suggested(kernel, compared)
    chosen = next(one.ridge for one in compared if one.kernel == suggested)
    values, power = path.eigenvalues / N, _power(path, learned.y)
    sizes = np.unique([max(2, round(N / 2**k)) for k in range(SIZES)])
    predicted = theory.subset_curve(values, power, sizes, used)
    # At n = N the prediction is gcv, which stands for leave-one-out. Where points differ in
    # leverage the two do; the share n/N of points taken out is what carries this to smaller n.
    off = sizes / N * abs(float(path.loo_error(used)) / (float(predicted[-1]) or 1.0) - 1)
    low, high = float(path.eigenvalues[-1]), float(path.eigenvalues[0])
    return Diagnosis(
        kernel=kernel,
        task="regression" if data.labels is None else "classification",
        n=len(source),
        shape=source.shape[1:],
        points=N,
        held=m - N,
        outputs=data.y.shape[1],
        variance=float(learned.y.var(axis=0).mean()),
        ridge=used,
        eigenvalues=values,
        target_power=power,
        resolved=int((values > 0).sum()),
        condition=(high + used) / (low + used) if low + used > 0 else math.inf,
        effective_dimension=float(path.degrees_of_freedom(used)),
        null_degrees=_null_degrees(kernel),
        sizes=sizes,
        predicted=predicted,
        predicted_error=predicted * np.hypot(_spread(K, learned.y, sizes, used), off),
        **_measured(K, data, N, sizes, used, rng),
        candidates=tuple(sorted(compared, key=lambda one: one.error)),
        suggested=suggested,
        suggested_ridge=best if suggested == kernel else chosen,
        solver=choose(
            len(source), source.dtype.itemsize, arrays=1, budget=budget(),
            entry=lambda: core_seconds(kernel, learned.X[:SAMPLE]),
            remote=get_client() is not None,
        ),
    )  # fmt: skip


def _drawn(points: int | None, n: int, dtype: np.dtype[Any]) -> int:
    """Return the number of points that are drawn."""
    if points is None:
        fits = int(math.sqrt(budget() / (ARRAYS * dtype.itemsize)))
        return min(n, max(LEAST, min(POINTS, fits)))
    return min(n, _check.count(points, "points", least=LEAST))


def _targets(y: ArrayLike, n: int, task: str | None) -> tuple[Array, Array | None]:
    """Return outputs as columns, and the numbers of classes or None."""
    found = _check.as_given(y, "y", None, "X")
    classes = found.ndim == 1 and (found.dtype.kind in "biuUSO" or task == "classification")
    if task == "regression" or not classes:
        _check.must(task != "classification", "y", "have shape (n,)", f"shape {found.shape}")
        whole = _check.targets(found, "y", n, np.float64, least=1, of="X")
        return whole.reshape(n, -1), None
    _check.shaped(len(found) == n, found, "y", f"have one entry per input of X, {n}")
    if found.dtype.kind == "f":
        _check.entries(found, "y")
    if found.dtype.kind == "O":
        found = found.astype(str)
    names, labels = np.unique(found, return_inverse=True)
    _check.must(len(names) > 1, "y", "have at least two classes", f"one class, {names[0]}")
    return np.eye(len(names))[labels] - 1 / len(names), labels


def _read(source: Source, order: Array, y: Array, labels: Array | None) -> _Data:
    """Read the points of ``order``, one after the other, so that files of any kind will do."""
    X = np.stack([source.read(slice(int(i), int(i) + 1))[0] for i in order])
    y = y[order].astype(X.dtype)
    return _Data(X, y, None if labels is None else labels[order])


def _others(kernel: Kernel, data: _Data) -> list[Kernel]:
    """Return kernels to compare with: the same for all data of a kind, but for a lengthscale."""
    nets = [presets.mlp(depth, b_std=0.1) for depth in (1, 2, 3)]
    if kernel._images:
        nets = [Sequential(Flatten(), *net.layers) for net in nets]
    found: list[Kernel] = [net.ntk for net in nets]
    x = data.X[:NEAR].reshape(min(NEAR, len(data.X)), -1).astype(np.float64)
    apart = norm(x[: len(x) // 2] - x[len(x) // 2 :][: len(x) // 2], axis=1)
    median = float(f"{np.median(apart):.2g}")
    if not kernel._images and median > 0:
        found += [Gaussian(median), Laplacian(median)]
    return [one for one in found if one != kernel]


def _compare(kernels: list[Kernel], data: _Data) -> list[Candidate]:
    """Return leave-one-out errors, each at its best ridge, beside those of the first kernel."""
    found: list[Candidate] = []
    first = np.zeros(len(data.X))
    for kernel in kernels:
        path = RidgePath(kernel(data.X), data.y, overwrite_K=True)
        ridge = path.best("loo")
        squares = np.square(path.loo(ridge), dtype=np.float64).mean(axis=1)
        first = squares if not found else first
        behind = squares - first
        error = float(behind.std(ddof=1) / math.sqrt(len(behind)))
        found.append(Candidate(kernel, ridge, float(squares.mean()), float(behind.mean()), error))
    return found


def _suggested(kernel: Kernel, compared: list[Candidate]) -> Kernel:
    best = min(compared, key=lambda one: one.error)
    beyond = max(2 * best.behind_error, GAIN * compared[0].error)
    return best.kernel if best.behind < -beyond else kernel


def _power(path: RidgePath, y: Array) -> Array:
    """Return the power along eigenvectors in the mean over outputs; it sums to that of y."""
    along = path.eigenvectors.T.astype(np.float64) @ y.astype(np.float64)
    return np.square(along).mean(axis=1) / len(y)


def _spread(K: Array, y: Array, sizes: Array, ridge: float) -> Array:
    """Return the relative standard error of predictions, from parts of the points.

    A part predicts up to its own size; what is beyond is taken to have the error of that.
    """
    found = []
    for part in np.array_split(np.arange(len(y)), PARTS):
        path = RidgePath(K[np.ix_(part, part)], y[part])
        at = np.minimum(sizes, len(part))
        values, power = path.eigenvalues / len(part), _power(path, y[part])
        found.append(theory.subset_curve(values, power, at, ridge))
    curves = np.array(found)
    mean = curves.mean(axis=0)
    return curves.std(axis=0, ddof=1) / math.sqrt(PARTS) / np.where(mean > 0, mean, 1.0)


def _measured(
    K: Array, data: _Data, N: int, sizes: Array, ridge: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Learn from subsets of the first N points, and test on the others."""
    held, labels = data.y[N:], None if data.labels is None else data.labels[N:]
    mean, error, wrong = [], [], []
    for n in sizes.tolist():
        squares, misses = [], []
        for _ in range(DRAWS if n < N else 1):
            part = rng.permutation(N)[:n]
            alpha = solvers.ridge(
                K[np.ix_(part, part)], data.y[part], ridge, overwrite_K=True, on_singular="pinv"
            )
            f = K[N:, part] @ alpha
            squares.append(np.square(f - held, dtype=np.float64).mean(axis=1))
            misses.append(0.0 if labels is None else float((f.argmax(axis=1) != labels).mean()))
        by_draw, by_point = np.mean(squares, axis=1), np.mean(squares, axis=0)
        draws = by_draw.var(ddof=1) / len(by_draw) if len(by_draw) > 1 else 0.0
        mean.append(by_draw.mean())
        error.append(math.sqrt(draws + by_point.var(ddof=1) / len(by_point)))
        wrong.append(np.mean(misses))
    return {
        "measured": np.array(mean),
        "measured_error": np.array(error),
        "wrong": None if labels is None else np.array(wrong),
    }


def _null_degrees(kernel: Kernel) -> tuple[int, ...] | None:
    try:
        return tuple(map(int, kernel.null_degrees(DEGREES)))
    except ValueError:  # the angle does not determine it
        return None
