"""Section: spectra on the sphere, of Gram matrices, and the learning curves they predict."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import kernelcore as kc
from kernelcore.spectrum import Decay, Spectrum, SphereSpectrum
from kernelcore.spectrum._gram import staircase

from .._types import Array, ArrayLike
from ..linalg import cholesky, norm
from ..linalg.blas import serial
from . import _draw
from ._draw import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION, legend_below, panels, ticks
from ._page import Part, Picture, Section, Table, plus_minus, power_of_ten, signed

DIMS, DRAWN = range(3, 9), (3, 8)
DEGREES = 1000  # the exponents are fitted to the upper half
DEEP = 3  # hidden layers; with 4 the normalised curve would run with that of kappa0
EVEN_ODD = ("even", "odd")
CLOSE = 0.01  # relative: an exponent so near to theory follows it

GRAM_DIMS = (3, 10)
SHARE = 10  # levels count while they fill at most a tenth of the eigenvalues

DIM, RIDGE = 30, 1e-3
TARGETS = (2, 3)  # degrees
ENOUGH = 0.05  # relative; or two standard errors


def section(quick: bool) -> Section:
    """Compute decay, Gram matrices, learning curves; ``quick`` takes smaller sizes, fewer draws."""
    decay, falls = _decay()
    # With a few hundred unknowns more threads cost more than they gain.
    with serial():
        matrices, meets = _matrices(*((400, 4) if quick else (1000, 6)))
        curves, learns = _curves(quick)
    parts = [DEFINITION, *decay, *matrices, *curves]
    return Section("Spectra and learning curves", f"{falls} {meets} {learns}", parts)


DEFINITION = f"""
<p>On the unit sphere of R<sup>p</sup> all kernels of this page are functions κ(t) of the cosine,
and have the same eigenfunctions, the spherical harmonics. There are N(p, k) of them in degree k,
with one eigenvalue μ<sub>k</sub>,</p>
<p class="formula">μ<sub>k</sub> = E κ(t) P<sub>k</sub>(t), &emsp;
Σ<sub>k</sub> N(p, k) μ<sub>k</sub> = κ(1),</p>
<p>with t the cosine of two random points and P<sub>k</sub> Legendre's polynomial in p dimensions,
P<sub>k</sub>(1) = 1. <code>kc.spectrum.sphere(kernel, p, max_degree)</code> computes them to ten
digits or more, however small they are. How fast they fall says what a kernel learns: the corners of
the profile at t = ±1 leave powers of k, <b>k<sup>−p</sup></b> where the kernel falls like the
distance r (κ₀ and the NTKs) and <b>k<sup>−p−2</sup></b> where the first odd power is r³ (κ₁).
Straight lines were fitted to log μ<sub>k</sub> against log(k + (p − 2)/2), k from {DEGREES // 2} to
{DEGREES}.</p>
"""


def _percent(value: float) -> str:
    """Write a fraction that is not negative with two digits."""
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"


# ---- decay


class Law(NamedTuple):
    """A kernel, degrees of one parity, and the exponent that theory gives them."""

    name: str
    parity: int
    drop: int  # the exponent is -p - drop
    color: str
    spectra: dict[int, SphereSpectrum]  # by dimension p

    def __str__(self) -> str:
        return f"{self.name}, {EVEN_ODD[self.parity]}"

    def fit(self, p: int) -> Decay:
        return self.spectra[p].decay(DEGREES // 2, DEGREES, self.parity)


KERNELS: dict[str, tuple[kc.Kernel, int, str]] = {  # with the drop of the exponent and a colour
    "κ₀": (kc.ArcCosine(0), 0, ORANGE),
    "κ₁": (kc.ArcCosine(1), 2, GREEN),
    "NTK, 1 hidden layer": (kc.presets.mlp(1).ntk, 0, BLUE),
    f"NTK, {DEEP} hidden layers": (kc.presets.mlp(DEEP).ntk, 0, PURPLE),
}


def _decay() -> tuple[list[Part], str]:
    laws: list[Law] = []
    zero: list[Law] = []  # those that vanish in high degrees
    for name, (kernel, drop, color) in KERNELS.items():
        spectra = {p: kc.spectrum.sphere(kernel, p, DEGREES) for p in DIMS}
        for parity in (0, 1):
            there = np.isfinite(spectra[DRAWN[0]].log_eigenvalues[DEGREES - parity])
            (laws if there else zero).append(Law(name, parity, drop, color, spectra))
    worst = [max(abs(law.fit(p).exponent / -(p + law.drop) - 1) for p in DIMS) for law in laws]
    silent = "; ".join(f"{law} degrees" for law in zero)
    parts: list[Part] = [
        Picture(
            _drawn(laws),
            "Above: eigenvalues over κ(1), with their fitted slopes; grey: slopes −p and −p − 2. "
            f"Below: the same over the line fitted to {laws[0].name}, so that k<sup>−p</sup> is "
            "level and constants can be seen."
            + (f" Exactly zero from some degree on: {silent}." if zero else "")
            + " Circles are even degrees, squares odd ones; not all degrees are drawn.",
            "Eigenvalues of four kernels against degree in 3 and 8 dimensions, with power laws",
        ),
        Table(
            ("kernel", "degrees", "theory", *(f"p = {p}" for p in DIMS), "off by"),
            [
                (
                    law.name, EVEN_ODD[law.parity], "−p − 2" if law.drop else "−p",
                    *(signed(law.fit(p).exponent, 3) for p in DIMS), _percent(off),
                )
                for law, off in zip(laws, worst, strict=True)
            ],
            f"Fitted exponents, degrees {DEGREES // 2} to {DEGREES}; the last column is the "
            "largest difference from theory, relative (Bach 2017; Bietti and Mairal 2019; for deep "
            "kernels Bietti and Bach 2021).",
            labels=3,
        ),
    ]  # fmt: skip
    return parts, _falls(max(worst))


def _falls(worst: float) -> str:
    follow = "follow" if worst <= CLOSE else "do not follow"
    return (
        f"Eigenvalues on the sphere {follow} the powers of theory, k<sup>−p</sup> for κ₀ and NTKs "
        f"and k<sup>−p−2</sup> for κ₁, for p = {DIMS[0]} to {DIMS[-1]}: fitted exponents are off "
        f"by at most {_percent(worst)}."
    )


def _drawn(laws: Sequence[Law]) -> Figure:
    fig = _draw.figure(8.6)
    grid = fig.subplots(2, len(DRAWN), sharex="col", height_ratios=(1.25, 1))
    for (above, below), p in zip(grid.T, DRAWN, strict=True):
        half = (p - 2) / 2
        highest: dict[int, float] = {}
        for i, law in enumerate(laws):
            s, fit = law.spectra[p], law.fit(p)
            k = _few(law.parity, i / len(laws))
            log = s.log_eigenvalues[k] - math.log(s.trace)
            there = np.isfinite(log)
            nu, log = k[there] + half, log[there]
            look: dict[str, Any] = {"color": law.color, "marker": "os"[law.parity], "ms": 4}
            look["mfc"] = "white" if law.parity else law.color
            look["label"] = f"{law}: {signed(fit.exponent, 3)}"
            above.loglog(nu, np.exp(log), ls="", **look)
            highest.setdefault(law.drop, fit.intercept - math.log(s.trace))
            below.semilogx(nu, np.exp(log - highest[0] + p * np.log(nu)), ls="-", lw=0.9, **look)
        line = np.geomspace(DEGREES / 10, DEGREES, 2)
        for drop, level in highest.items():
            guide = 10 * np.exp(level - (p + drop) * np.log(line))
            above.loglog(line, guide, color=GREY, lw=1.1, ls=(0, (4, 3)))
            right = {"textcoords": "offset points", "va": "center", "color": GREY}
            above.annotate(f"−{p + drop}", (line[-1], guide[-1]), (4, 0), **right)
        above.set_title(f"p = {p}", loc="left")
        title = {"title": "kernel, degrees: fitted slope", "title_fontsize": 10}
        above.legend(loc="lower left", handlelength=1.2, labelspacing=0.3, **title)
        above.get_legend()._legend_box.align = "left"
        below.set_xlabel(f"k + (p − 2)/2 = k + {half:g}")
        below.set(xlim=(1, 2 * DEGREES), ylim=(0, 1.6))
    grid[0, 0].set_ylabel("μₖ / κ(1)")
    grid[1, 0].set_ylabel(f"μₖ / κ(1), over the line of {laws[0].name}")
    return fig


def _few(parity: int, phase: float) -> Array:
    """Return degrees of a parity up to DEGREES, even in logarithms, with all of the small ones."""
    even = np.geomspace(1, DEGREES, 40) * 10 ** (phase * 3 / 40)
    k = np.unique(2 * np.rint((even - parity) / 2).astype(np.int64) + parity)
    return k[(k > 0) & (k <= DEGREES)]


# ---- Gram matrices


class Level(NamedTuple):
    """A level of a Gram matrix, and the relative shift of its mean from the eigenvalue."""

    degree: int
    size: int
    eigenvalue: float
    shift: float  # predicted
    mean: float  # measured
    error: float  # the standard error of the measured mean


DARKER = {"NTK, 1 hidden layer": "#00304d", f"NTK, {DEEP} hidden layers": "#6e2049"}
Group = tuple[int, str]  # a dimension and the name of a kernel


def _uniform(rng: np.random.Generator, n: int, dim: int) -> Array:
    x = rng.standard_normal((n, dim))
    return x / norm(x, axis=1, keepdims=True)


def _matrices(n: int, n_draws: int) -> tuple[list[Part], str]:
    rng = np.random.default_rng(0)
    points = {p: [math.sqrt(p) * _uniform(rng, n, p) for _ in range(n_draws)] for p in GRAM_DIMS}
    theory, found, levels = {}, {}, {}
    for p, name in itertools.product(GRAM_DIMS, DARKER):
        kernel, *_ = KERNELS[name]
        theory[p, name] = kc.spectrum.sphere(kernel, p, 100)
        values = [kc.spectrum.empirical(kernel(x), vectors=False).eigenvalues for x in points[p]]
        found[p, name] = values[0]
        levels[p, name] = _levels(theory[p, name], np.array(values))
    everything = [level for group in levels.values() for level in group]
    worst = max(abs(level.mean - level.shift) for level in everything)
    plain = max(abs(level.mean) for level in everything)
    parts: list[Part] = [
        MATRICES.format(n=n, draws=n_draws, share=n // SHARE),
        Picture(
            _gram_figure(theory, found, n),
            f"Eigenvalues of k(X)/n for one draw of n = {n} uniform points, and as lines those of "
            "the kernel, repeated by their multiplicities. Large levels are resolved; where "
            "N(p, k) approaches n they smear, and the levels that are too small for n points to "
            "see lift all of the others.",
            "Eigenvalues of Gram matrices against index with a staircase of theory, two panels",
        ),
        Table(
            (
                "p", "degree k", "N(p, k)", "μₖ", "shift of the mean in %, predicted",
                f"measured, {n_draws} draws",
            ),
            [
                (
                    str(p), str(level.degree), str(level.size), f"{level.eigenvalue:.4g}",
                    signed(100 * level.shift, 2),
                    f"{signed(100 * level.mean, 2)} ± {100 * level.error:.2f}",
                )
                for p in GRAM_DIMS
                for level in levels[p, name]
            ],
            f"{name}: mean of the eigenvalues of a level over μ<sub>k</sub>, less 1; "
            f"mean ± standard error over {n_draws} draws.",
            labels=0,
        ),
    ]  # fmt: skip
    meets = (
        f"In Gram matrices of {n} points the means of {len(everything)} levels are off by at most "
        f"{_percent(plain)} from the eigenvalues, and by {_percent(worst)} from the means that "
        "second-order perturbation theory predicts."
    )
    return parts, meets


MATRICES = """
<p>How fast do the eigenvalues of k(X)/n tend to those of the kernel? By the addition theorem the
squares of the harmonics of a degree sum to N(p, k) at every point, so that to first order the
<i>mean</i> of a level does not move at all, and to second order</p>
<p class="formula">mean of level k = μ<sub>k</sub> (1 + (1/n) Σ<sub>j ≠ k</sub> N(p, j)
μ<sub>j</sub> / (μ<sub>k</sub> − μ<sub>j</sub>)).</p>
<p>This was measured over {draws} draws of n = {n} points, for levels within the first {share}
eigenvalues.</p>
"""


def _levels(theory: Spectrum, found: Array) -> list[Level]:
    """Find levels of eigenvalues (draws, n), largest first, that fill at most 1/SHARE of n."""
    mu, count = theory.eigenvalues, theory.multiplicities.astype(np.float64)
    listed = np.flatnonzero(np.isfinite(theory.log_eigenvalues))
    n = found.shape[1]
    levels, first = [], 0
    for k in listed[np.argsort(-mu[listed], kind="stable")]:
        last = first + int(count[k])
        if last > n // SHARE:
            break
        others = listed[listed != k]
        pushed = (count[others] * mu[others] / (mu[k] - mu[others])).sum() + theory.tail / mu[k]
        mean = found[:, first:last].mean(axis=1) / mu[k] - 1
        error = mean.std(ddof=1) / math.sqrt(len(mean))
        shift = float(pushed / n)
        levels.append(Level(int(k), last - first, float(mu[k]), shift, float(mean.mean()), error))
        first = last
    return levels


def _gram_figure(theory: dict[Group, SphereSpectrum], found: dict[Group, Array], n: int) -> Figure:
    fig, row = panels(4.5, [f"p = {p}" for p in GRAM_DIMS], "index", "eigenvalue")
    for axes, p in zip(row, GRAM_DIMS, strict=True):
        lowest = np.inf
        for name, dark in DARKER.items():
            color = KERNELS[name][2]
            axes.loglog(np.arange(1, n + 1), found[p, name], ".", ms=4, color=color, label=name)
            corners, steps = staircase(theory[p, name], n)
            corners = corners + np.tile([-0.5, 0.5], len(corners) // 2)  # upright between levels
            axes.loglog(corners, steps, color=dark, lw=1.2, label=f"{name}, theory")
            lowest = min(lowest, steps[-1])
        axes.set(xlim=(0.8, 1.2 * n), ylim=(lowest / 3, None))
    legend_below(fig, 4, handlelength=1.8)
    return fig


# ---- learning curves


class Curve(NamedTuple):
    """Predicted and measured errors by size; ``measured`` has shape (draws, sizes)."""

    sizes: Sequence[int]
    theory: Callable[[ArrayLike], Array]
    measured: Array

    @property
    def predicted(self) -> Array:
        return self.theory(self.sizes)

    @property
    def mean(self) -> Array:
        return self.measured.mean(axis=0)

    @property
    def error(self) -> Array:
        return self.measured.std(axis=0, ddof=1) / math.sqrt(len(self.measured))

    def cells(self, i: int) -> tuple[str, str]:
        """Return the predicted and the measured error at the i-th size."""
        return f"{self.predicted[i]:.3f}", plus_minus(self.mean[i], self.error[i], 3)

    @property
    def agrees(self) -> Array:
        """Say where the mean is within ENOUGH of the prediction, or two standard errors."""
        near = np.maximum(ENOUGH * self.predicted, 2 * self.error)
        return np.abs(self.mean - self.predicted) <= near


def _curves(quick: bool) -> tuple[list[Part], str]:
    sizes = (30, 60, 120, 250, 500) if quick else (30, 60, 120, 250, 500, 1000, 2000)
    n_draws, test = (10, 400) if quick else (16, 1000)
    features = 100 if quick else 200
    shares = (0.15, 0.3, 0.5, 0.75, 0.9, 1, 1.1, 1.3, 2, *(() if quick else (3, 5)))
    around = [round(features * x) for x in shares]
    krr = _kernel_curves(sizes, n_draws, test)
    wide, limit = _feature_curve(around, features, 2 * n_draws, test)
    kernel = limit(around)
    counts = (f"N({DIM}, {k}) = {kc.spectrum.multiplicity(DIM, k):,}" for k in TARGETS)
    parts: list[Part] = [
        LEARNING.format(
            dim=DIM, ridge=power_of_ten(RIDGE), draws=n_draws, test=test, twice=2 * n_draws,
            features=features,
        ),
        Picture(
            _curve_figure(krr, wide, limit, features),
            f"Test error (the target has mean square 1): theory as lines, measured means with two "
            f"standard errors. Left: kernel ridge regression, {n_draws} draws; there are "
            f"{' and '.join(counts)} harmonics. Right: {features} random features, {2 * n_draws} "
            "draws, and in grey the kernel that they tend to.",
            "Predicted and measured test errors against training size, two panels",
        ),
        Table(
            ("n", *(f"degree {k}, {what}" for k in TARGETS for what in ("predicted", "measured"))),
            [(str(n), *krr[0].cells(i), *krr[1].cells(i)) for i, n in enumerate(sizes)],
            "Test errors of kernel ridge regression; measured: mean ± standard error.",
        ),
        Table(
            ("n", "predicted", "measured", "kernel, predicted"),
            [(str(n), *wide.cells(i), f"{kernel[i]:.3f}") for i, n in enumerate(around)],
            f"Test errors of ridge regression on {features} random features, and of their kernel.",
        ),
    ]  # fmt: skip
    return parts, _learns([*krr, wide], wide, features)


def _learns(everything: Sequence[Curve], wide: Curve, features: int) -> str:
    good = np.concatenate([curve.agrees for curve in everything])
    where = [wide.sizes[int(errors.argmax())] for errors in (wide.predicted, wide.mean)]
    return (
        f"Predicted and measured learning curves agree within {100 * ENOUGH:.0f} % or two standard "
        f"errors at {good.sum()} of {len(good)} sizes; with {features} random features the error "
        f"is largest at n = {where[0]} in theory and n = {where[1]} as measured."
    )


LEARNING = """
<p>A spectrum predicts the test error of kernel ridge regression: degrees with eigenvalues above a
resolution c are learned, and the others act as noise (<code>kc.theory.learning_curve</code>;
Bordelon et al. 2020, Simon et al. 2021). Here p = {dim}, the targets are random functions of a
single degree, and the kernel is the NTK of two hidden layers, whose odd degrees do not vanish; the
system that is solved is K + {ridge} I. Each of {draws} draws has its own target, points and {test}
test points. The right panel shows ridge regression, with the same ridge, on N = {features} random
features √(2/N) max(0, ⟨w, x⟩), w normal, whose kernel tends to κ₁. Its target has half of its power
in degree 1 and half in degree 2, and there are {twice} draws
(<code>kc.theory.random_features_curve</code>).</p>
"""


def _kernel_curves(sizes: Sequence[int], n_draws: int, test: int) -> list[Curve]:
    kernel = kc.presets.mlp(2).ntk
    spectrum = kc.spectrum.sphere(kernel, DIM, 60)
    rng = np.random.default_rng(1)
    most = max(sizes)
    errors = np.empty((len(TARGETS), n_draws, len(sizes)))
    for r in range(n_draws):
        x = math.sqrt(DIM) * _uniform(rng, most + test, DIM)
        powers = [np.eye(k + 1)[k] for k in TARGETS]
        draws = [kc.spectrum.RandomFunction(DIM, power, rng, centres=500) for power in powers]
        y = np.stack([f(x) for f in draws], axis=1)
        gram, cross = kernel(x[:most]), kernel(x[most:], x[:most])
        for s, n in enumerate(sizes):
            missed = cross[:, :n] @ cholesky(gram[:n, :n], RIDGE).solve(y[:n]) - y[most:]
            errors[:, r, s] = np.square(missed).mean(axis=0)

    def theory(power: Array, n: ArrayLike) -> Array:
        return kc.theory.learning_curve(spectrum, power, n, RIDGE)

    powers = [np.eye(len(spectrum))[k] for k in TARGETS]
    return [Curve(sizes, partial(theory, *one), e) for *one, e in zip(powers, errors, strict=True)]


def _feature_curve(
    sizes: Sequence[int], features: int, n_draws: int, test: int
) -> tuple[Curve, Callable[[ArrayLike], Array]]:
    """Return the curve of random features, and what theory says of their kernel."""
    spectrum = kc.spectrum.sphere(kc.ArcCosine(1), DIM, 60)
    power = np.zeros(len(spectrum))
    power[1:3] = 0.5
    rng = np.random.default_rng(2)
    most = max(sizes)
    errors = np.empty((n_draws, len(sizes)))
    for r in range(n_draws):
        x = _uniform(rng, most + test, DIM)
        y = kc.spectrum.RandomFunction(DIM, power[:3], seed=rng)(x)
        phi = np.maximum(0, x @ rng.standard_normal((DIM, features))) * math.sqrt(2 / features)
        for s, n in enumerate(sizes):
            weights = cholesky(phi[:n].T @ phi[:n], RIDGE).solve(phi[:n].T @ y[:n])
            errors[r, s] = np.square(phi[most:] @ weights - y[most:]).mean()

    def theory(features: float, n: ArrayLike) -> Array:
        return kc.theory.random_features_curve(spectrum, power, n, features, RIDGE)

    return Curve(sizes, partial(theory, features), errors), partial(theory, np.inf)


def _curve_figure(
    krr: Sequence[Curve], wide: Curve, limit: Callable[[ArrayLike], Array], features: int
) -> Figure:
    titles = ("NTK, 2 hidden layers", "random features of κ₁")
    fig, (left, right) = panels(4.6, titles, "training points n", "mean squared test error")
    spots = [np.geomspace(curve.sizes[0], curve.sizes[-1], 200) for curve in (krr[0], wide)]
    fine = {left: spots[0], right: np.unique(np.append(spots[1], features))}

    def draw(axes: Axes, curve: Curve, name: str, color: str, marker: str) -> None:
        axes.plot(fine[axes], curve.theory(fine[axes]), color=color, label=f"{name}, theory")
        axes.errorbar(
            curve.sizes, curve.mean, 2 * curve.error, ls="", ms=5, capsize=2.5, elinewidth=1.2,
            color=color, marker=marker, label=f"{name}, measured",
        )  # fmt: skip

    for curve, degree, color, marker in zip(krr, TARGETS, (BLUE, VERMILLION), "os", strict=True):
        draw(left, curve, f"degree {degree}", color, marker)
    draw(right, wide, f"N = {features}", BLUE, "o")
    right.plot(fine[right], limit(fine[right]), color=GREY, ls=(0, (5, 2)), label="N = ∞, theory")
    right.axvline(features, color=GREY, lw=0.8, ls=":", zorder=0)
    # There is no room for marks next to that of n = features.
    apart = [n for n in wide.sizes if n == features or not 0.6 < n / features < 1.8]
    for axes, marks in ((left, krr[0].sizes), (right, apart)):
        axes.set(xscale="log", ylim=(0, 1.12 * axes.get_ylim()[1]))
        ticks(axes.xaxis, marks)
        axes.legend(loc="lower left" if axes is left else "upper left")
    return fig
