"""Spectra on the sphere: their decay, and the eigenvalues of Gram matrices (M1, M2).

On the unit sphere of R^p all these kernels are functions of the cosine and share their
eigenfunctions, the spherical harmonics. The corners of the profile at ±1 leave powers of the
degree: k^(-p) for κ₀ and NTKs and k^(-p-2) for κ₁ (Bach 2017; Bietti and Mairal 2019; for deep
kernels Bietti and Bach 2021). How fast the eigenvalues of k(X)/n tend to them follows to second
order from perturbation theory, since by the addition theorem the mean of a level does not move
to first order.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import kernelcore as kc
from kernelcore.spectrum import Spectrum
from kernelcore.spectrum._gram import staircase

from .._types import Array
from ..linalg import norm
from ..linalg.blas import serial
from . import _base, _draw
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._draw import BLUE, GREEN, GREY, ORANGE, PURPLE, legend_below, panels
from ._words import listed, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Spectra on the sphere"
DEEP = 3  # hidden layers; with 4 the normalised curve would run with that of kappa0
PARITIES = ("even", "odd")
KERNELS: dict[str, tuple[kc.Kernel, int, str]] = {  # with the drop of the exponent and a colour
    "κ₀": (kc.ArcCosine(0), 0, ORANGE),
    "κ₁": (kc.ArcCosine(1), 2, GREEN),
    "NTK, 1 hidden layer": (kc.presets.mlp(1).ntk, 0, BLUE),
    f"NTK, {DEEP} hidden layers": (kc.presets.mlp(DEEP).ntk, 0, PURPLE),
}
DARKER = {"NTK, 1 hidden layer": "#00304d", f"NTK, {DEEP} hidden layers": "#6e2049"}
PART = 10  # levels count while they fill at most a tenth of the eigenvalues
BACH, BIETTI = "Bach 2017", "Bietti and Mairal 2019, Bietti and Bach 2021"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Dimensions and degrees of the decay, and Gram matrices of n points, some draws of them."""

    dims: tuple[int, ...] = (3, 4, 5, 6, 7, 8)
    degrees: int = 1000  # the exponents are fitted to the upper half
    gram_dims: tuple[int, ...] = (3, 10)
    n: int = 600
    draws: int = 6


PRESETS = {"small": Settings(), "paper": Settings(n=2000, draws=20)}
SECONDS = {"small": 2, "paper": 90}


def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    """Compute the decay of all kernels, and eigenvalues of the NTKs' Gram matrices."""
    cells = cells or Cells()
    names, grouped = list(KERNELS), list(itertools.product(settings.gram_dims, DARKER))

    def decay(word: str, name: str, p: int) -> dict[str, Any]:
        found = kc.spectrum.sphere(KERNELS[name][0], p, settings.degrees)
        first, last = settings.degrees // 2, settings.degrees
        there = np.isfinite(found.log_eigenvalues[[last - last % 2, last - 1 + last % 2]])
        fits = np.full((2, 2), np.nan)
        for parity in np.flatnonzero(there):
            fit = found.decay(first, last, int(parity))
            fits[parity] = fit.exponent, fit.intercept
        return {"log": found.log_eigenvalues - math.log(found.trace), "fit": fits,
                "trace": found.trace}  # fmt: skip

    def gram(word: str, p: int, name: str) -> dict[str, Any]:
        kernel = KERNELS[name][0]
        theory = kc.spectrum.sphere(kernel, p, 100)
        rng = np.random.default_rng([settings.seed, p])
        points = (math.sqrt(p) * _uniform(rng, settings.n, p) for _ in range(settings.draws))
        # With a few hundred unknowns more threads cost more than they gain.
        with serial():
            found = [kc.spectrum.empirical(kernel(x), vectors=False).eigenvalues for x in points]
        index, steps = staircase(theory, settings.n)
        return {"first": found[0], "levels": _levels(theory, np.array(found)), "index": index,
                "steps": steps}  # fmt: skip

    keys = [("decay", name, p) for name in names for p in settings.dims]
    decays = cells.map(decay, keys, share(progress, 0, 0.3))
    grams = cells.map(gram, [("gram", *group) for group in grouped], share(progress, 0.3, 1))
    by = (len(names), len(settings.dims))
    arrays = {
        key: np.reshape([d[key] for d in decays], (*by, *decays[0][key].shape)) for key in decays[0]
    }
    ends = [0, len(settings.dims) - 1]
    arrays["log"] = arrays["log"][:, ends]  # the smallest and the largest dimension are drawn
    for (p, name), one in zip(grouped, grams, strict=True):
        label = f"gram.{p}.{names.index(name)}"
        arrays |= {f"{label}.{key}": value for key, value in one.items()}
    return Result("spectrum", settings, arrays)


def _uniform(rng: np.random.Generator, n: int, dim: int) -> Array:
    x = rng.standard_normal((n, dim))
    return x / norm(x, axis=1, keepdims=True)


def _levels(theory: Spectrum, found: Array) -> Array:
    """Find levels of eigenvalues (draws, n), largest first, that fill at most 1/PART of n.

    A row has the degree, the size and the eigenvalue of a level, the relative shift of its mean
    that second-order perturbation theory predicts, the one measured, and its standard error.
    """
    mu, count = theory.eigenvalues, theory.multiplicities.astype(np.float64)
    there = np.flatnonzero(np.isfinite(theory.log_eigenvalues))
    n = found.shape[1]
    levels, first = [], 0
    for k in there[np.argsort(-mu[there], kind="stable")]:
        last = first + int(count[k])
        if last > n // PART:
            break
        others = there[there != k]
        pushed = (count[others] * mu[others] / (mu[k] - mu[others])).sum() + theory.tail / mu[k]
        mean = found[:, first:last].mean(axis=1) / mu[k] - 1
        error = mean.std(ddof=1) / math.sqrt(len(mean))
        levels.append((k, last - first, mu[k], pushed / n, mean.mean(), error))
        first = last
    return np.array(levels, float).reshape(-1, 6)


# ---- what it says


def _laws(result: Result) -> list[tuple[str, int, int, Array]]:
    """Return name, parity, drop and fitted exponents of what does not vanish."""
    found = []
    for name, (_, drop, _), fits in zip(KERNELS, KERNELS.values(), result["fit"], strict=True):
        for parity in (0, 1):
            if np.isfinite(fits[:, parity, 0]).all():
                found.append((name, parity, drop, fits[:, parity]))
    return found


def _grams(result: Result) -> dict[tuple[int, str], dict[str, Array]]:
    keys, names = ("first", "levels", "index", "steps"), list(KERNELS)
    return {
        (p, name): {key: result[f"gram.{p}.{names.index(name)}.{key}"] for key in keys}
        for p in result.settings["gram_dims"]
        for name in DARKER
    }


def claims(result: Result) -> list[Claim]:
    """Compare exponents, and means of levels with what perturbation theory says."""
    dims = np.array(result.settings["dims"])
    found = []
    for name, paper in zip(KERNELS, (BACH, BACH, BIETTI, BIETTI), strict=True):
        laws = [law for law in _laws(result) if law[0] == name]
        ratios = np.concatenate([fits[:, 0] / -(dims + drop) for _, _, drop, fits in laws])
        worst = ratios[np.abs(ratios - 1).argmax()]
        power = "−p − 2" if KERNELS[name][1] else "−p"
        text = f"Eigenvalues of {name} fall like degree^({power}): fitted over predicted exponent"
        found.append(Claim.near(text, paper, 1.0, float(worst), tolerance=0.01))
    levels = np.concatenate([group["levels"] for group in _grams(result).values()])
    apart, draws = levels[:, 4] - levels[:, 3], result.settings["draws"]
    found.append(
        Claim(
            f"Means of the {len(levels)} levels of Gram matrices lie where perturbation theory puts"
            " them: root mean square deviation in standard errors, or 0.2 % each",
            "second order, by the addition theorem", 1.0,
            float(np.sqrt(np.mean(np.square(apart / np.maximum(levels[:, 5], 0.002))))), 0.0, 0.0,
            # Over this many draws each deviation has Student's distribution.
            2 * math.sqrt((draws - 1) / max(1, draws - 3)),
        )
    )  # fmt: skip
    return found


def paragraph(result: Result) -> str:
    """Say how fast eigenvalues fall, and how well Gram matrices have them."""
    dims, s = result.settings["dims"], result.settings
    worst = max(
        float(np.abs(fits[:, 0] / -(np.array(dims) + drop) - 1).max())
        for _, _, drop, fits in _laws(result)
    )
    levels = np.concatenate([group["levels"] for group in _grams(result).values()])
    plain, left = np.abs(levels[:, 4]).max(), np.abs(levels[:, 4] - levels[:, 3]).max()
    return f"""
    On the unit sphere of Rᵖ a kernel κ(t) of the cosine has the spherical harmonics as
    eigenfunctions: N(p, k) of them in degree k share the eigenvalue μₖ = E κ(t) Pₖ(t), with t the
    cosine of two random points and Pₖ Legendre's polynomial in p dimensions. How fast μₖ falls says
    what a kernel learns. Straight lines fitted to log μₖ against log(k + (p − 2)/2), k from
    {s["degrees"] // 2} to {s["degrees"]}, have the exponents −p for κ₀ and the NTKs and −p − 2 for
    κ₁, off by at most {_percent(worst)} in p = {dims[0]} to {dims[-1]} dimensions.

    In Gram matrices of n = {s["n"]} points, over {s["draws"]} draws, the means of {len(levels)}
    levels are off by at most {_percent(float(plain))} from the eigenvalues, and by
    {_percent(float(left))} from μₖ (1 + Σⱼ N(p, j) μⱼ / (μₖ − μⱼ) / n), which is what second-order
    perturbation theory predicts of them.
    """


def _percent(value: float) -> str:
    """Write a fraction that is not negative with two digits."""
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"


def tables(result: Result) -> list[Table]:
    """Return exponents by dimension, and the shifts of levels."""
    dims, s = result.settings["dims"], result.settings
    rows = []
    for name, parity, drop, fits in _laws(result):
        off = float(np.abs(fits[:, 0] / -(np.array(dims) + drop) - 1).max())
        shown = (signed(x, 3) for x in fits[:, 0])
        rows.append((name, PARITIES[parity], "−p − 2" if drop else "−p", *shown, _percent(off)))
    deep = list(DARKER)[-1]
    shifts = [
        (
            str(p), f"{k:.0f}", f"{size:.0f}", f"{mu:.4g}", signed(100 * predicted, 2),
            f"{signed(100 * mean, 2)} ± {100 * error:.2f}",
        )
        for (p, name), group in _grams(result).items() if name == deep
        for k, size, mu, predicted, mean, error in group["levels"].tolist()
    ]  # fmt: skip
    return [
        Table(
            ("kernel", "degrees", "theory", *(f"p = {p}" for p in dims), "off by"), rows,
            f"Fitted exponents, degrees {s['degrees'] // 2} to {s['degrees']}; the last column is "
            "the largest difference from theory, relative.", labels=3,
        ),
        Table(
            ("p", "degree k", "N(p, k)", "μₖ", "shift of the mean in %, predicted",
             f"measured, {s['draws']} draws"), shifts,
            f"{deep}: mean of the eigenvalues of a level over μₖ, less 1; mean ± standard error "
            f"over {s['draws']} draws of {s['n']} points.", labels=0,
        ),
    ]  # fmt: skip


def plot(result: Result) -> list[Picture]:
    """Draw the decay in two dimensions, and eigenvalues of Gram matrices."""
    n, first = result.settings["n"], next(iter(KERNELS))
    laws = {(name, parity) for name, parity, *_ in _laws(result)}
    silent = [f"{name}, {PARITIES[k]}" for name in KERNELS for k in (0, 1) if (name, k) not in laws]
    return [
        Picture(
            "decay", _decay(result),
            "Above: eigenvalues over κ(1), with their fitted slopes; grey: slopes −p and −p − 2. "
            f"Below: the same over the line fitted to {first}, so that k⁻ᵖ is level and constants "
            f"can be seen. Exactly zero from some degree on: {listed(silent)} degrees. Circles are "
            "even degrees, squares odd ones; not all degrees are drawn.",
            f"Eigenvalues of {len(KERNELS)} kernels against degree in the smallest and the largest "
            "dimension, on straight lines of the predicted slopes",
        ),
        Picture(
            "gram", _gram_figure(result),
            f"Eigenvalues of k(X)/n for one draw of n = {n} uniform points, and as lines those of "
            "the kernel, repeated by their multiplicities. Large levels are resolved; where "
            "N(p, k) approaches n they smear, and the levels that are too small for n points to "
            "see lift all of the others.",
            "Eigenvalues of Gram matrices against index follow the staircase of theory",
        ),
    ]  # fmt: skip


def _decay(result: Result) -> Figure:
    dims, degrees, names = result.settings["dims"], result.settings["degrees"], list(KERNELS)
    fig = _draw.figure(8.2)
    grid = fig.subplots(2, 2, sharex="col", height_ratios=(1.25, 1))
    laws = _laws(result)
    for column, (above, below) in enumerate(grid.T):
        at = (0, len(dims) - 1)[column]
        p, half = dims[at], (dims[at] - 2) / 2
        highest: dict[int, float] = {}
        for i, (name, parity, drop, fits) in enumerate(laws):
            row = names.index(name)
            k = _few(parity, i / len(laws), degrees)
            log = result["log"][row, column][k]
            nu, log = k[np.isfinite(log)] + half, log[np.isfinite(log)]
            color = KERNELS[name][2]
            look: dict[str, Any] = {"color": color, "marker": "os"[parity], "ms": 4}
            look["mfc"] = "white" if parity else color
            look["label"] = f"{name}, {PARITIES[parity]}: {signed(fits[at, 0], 3)}"
            above.loglog(nu, np.exp(log), ls="", **look)
            level = fits[at, 1] - math.log(result["trace"][row, at])
            highest.setdefault(drop, float(level))
            below.semilogx(nu, np.exp(log - highest[0] + p * np.log(nu)), ls="-", lw=0.9, **look)
        line = np.geomspace(degrees / 10, degrees, 2)
        for drop, level in highest.items():
            guide = 10 * np.exp(level - (p + drop) * np.log(line))
            above.loglog(line, guide, color=GREY, lw=1.1, ls=(0, (4, 3)))
            right = {"textcoords": "offset points", "va": "center", "color": GREY}
            above.annotate(f"−{p + drop}", (line[-1], guide[-1]), (4, 0), **right)
        above.set_title(f"p = {p}", loc="left")
        title = {"title": "kernel, degrees: fitted slope", "title_fontsize": 10}
        above.legend(loc="lower left", handlelength=1.2, labelspacing=0.3, **title)
        below.set_xlabel(f"k + (p − 2)/2 = k + {half:g}")
        below.set(xlim=(1, 2 * degrees), ylim=(0, 1.6))
    grid[0, 0].set_ylabel("μₖ / κ(1)")
    grid[1, 0].set_ylabel(f"μₖ / κ(1), over the line of {names[0]}")
    return fig


def _few(parity: int, phase: float, degrees: int) -> Array:
    """Return degrees of a parity, even in logarithms, with all of the small ones."""
    even = np.geomspace(1, degrees, 40) * 10 ** (phase * 3 / 40)
    k = np.unique(2 * np.rint((even - parity) / 2).astype(np.int64) + parity)
    return k[(k > 0) & (k <= degrees)]


def _gram_figure(result: Result) -> Figure:
    n, dims = result.settings["n"], result.settings["gram_dims"]
    fig, row = panels(4.5, [f"p = {p}" for p in dims], "index", "eigenvalue")
    shown = np.unique(np.geomspace(1, n, 150).astype(int))
    grams = _grams(result)
    for axes, p in zip(row, dims, strict=True):
        lowest = np.inf
        for name, dark in DARKER.items():
            group, color = grams[p, name], KERNELS[name][2]
            axes.loglog(shown, group["first"][shown - 1], ".", ms=4, color=color, label=name)
            corners, steps = group["index"], group["steps"]
            corners = corners + np.tile([-0.5, 0.5], len(corners) // 2)  # upright between levels
            axes.loglog(corners, steps, color=dark, lw=1.2, label=f"{name}, theory")
            lowest = min(lowest, steps[-1])
        axes.set(xlim=(0.8, 1.2 * n), ylim=(lowest / 3, None))
    legend_below(fig, 4, handlelength=1.8)
    return fig
