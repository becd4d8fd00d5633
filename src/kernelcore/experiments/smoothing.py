"""Nadaraya-Watson regression, kernel PCA beside PCA, and clusters by kernels (L6, L10).

Nadaraya (1964) and Watson (1964): a mean weighted by a kernel. Its squared bias grows with the
bandwidth h as h^4 and its variance falls as 1/(n h), so that with the best h the error falls as
n^(-4/5). Schölkopf, Smola and Müller (1998): principal components in the RKHS separate what linear
ones cannot; kernel k-means and spectral clustering do the same for clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import kernelcore as kc

from .. import _check
from .._types import Array
from ..linalg import eigh
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import grown, many_small, mean_and_error, seeds, slope
from ._words import plus_minus, signed

TITLE = "Smoothing, components and clusters"
WATSON, PCA = "Nadaraya 1964, Watson 1964", "Schölkopf, Smola and Müller 1998"
METHODS = ("k-means", "kernel k-means", "spectral clustering")


@dataclass(frozen=True)
class Settings(_base.Settings):
    """``bandwidths`` are how many are tried at each n; rings have radii 1 and ``radius``."""

    smallest: int = 50
    largest: int = 800
    sizes: int = 5
    bandwidths: int = 10
    draws: int = 8
    noise: float = 0.3
    test: int = 300
    ring: int = 150
    radius: float = 3.0
    spread: float = 0.15
    width: float = 0.5
    ring_draws: int = 4


PRESETS = {
    "small": Settings(),
    "paper": Settings(largest=12_800, sizes=9, bandwidths=25, draws=40, ring=400, ring_draws=20),
}
SECONDS = {"small": 18.0, "paper": 300.0}


def _curve(x: Array) -> Array:
    return np.sin(2 * math.pi * x)


def _smooth(s: Settings, n: int, draw: int) -> dict[str, Array]:
    """Return the test errors at all bandwidths, and at the one that leaving one out chooses.

    Inputs are uniform on [0, 1], on a circle of length 1, so that there is no edge.
    """
    rng = seeds(s.seed, n, draw)
    x = rng.random(n)
    y = _curve(x) + s.noise * rng.standard_normal(n)
    z = (np.arange(s.test) + 0.5) / s.test
    errors, left = [], []
    for h in _bandwidths(s, n):
        # Three windings of the circle are enough: h is small.
        whole = np.concatenate([x - 1, x, x + 1])[:, None]
        model = kc.KernelSmoother(kc.Gaussian(h)).fit(whole, np.tile(y, 3))
        errors.append(np.square(model.predict(z[:, None]) - _curve(z)).mean())
        K = kc.Gaussian(h)(x[:, None], whole).reshape(n, 3, n).sum(1)
        sums, own = K.sum(1), K.diagonal()
        with np.errstate(invalid="ignore", divide="ignore"):
            residual = (y - (K @ y - own * y) / (sums - own))[sums - own > 1e-12]
        left.append(np.square(residual).mean())
    return {"errors": np.array(errors), "chosen": np.array(errors[int(np.argmin(left))])}


def _bandwidths(s: Settings, n: int) -> Array:
    return np.geomspace(0.2, 3.0, s.bandwidths) * 0.06 * (n / 100) ** -0.2


def _theory(s: Settings, n: float, h: Array) -> Array:
    """Return h^4/4 mean(f''^2) + noise^2 / (2 sqrt(pi) n h), for a Gaussian and a uniform law."""
    curvature = (2 * math.pi) ** 4 / 2
    return h**4 / 4 * curvature + s.noise**2 / (2 * math.sqrt(math.pi) * n * h)


def _rings(s: Settings, draw: int) -> tuple[Array, Array]:
    rng = seeds(s.seed, 5, draw)
    label = np.repeat([0, 1], s.ring)
    size = np.where(label == 0, 1.0, s.radius) + s.spread * rng.standard_normal(2 * s.ring)
    angle = rng.uniform(0, 2 * math.pi, 2 * s.ring)
    return np.stack([size * np.cos(angle), size * np.sin(angle)], axis=1), label


def _right(found: Array, label: Array) -> float:
    """Return the share of points in their cluster, whatever clusters are called."""
    share = float(np.mean(found == label))
    return max(share, 1 - share)


def _split(values: Array, label: Array) -> float:
    """Return the share that the best threshold on a coordinate tells apart."""
    order = label[np.argsort(values)]
    below = np.cumsum(order == 0) + (order == 1).sum() - np.cumsum(order == 1)
    found = np.append(below, (order == 1).sum()) / len(order)
    return float(max(found.max(), 1 - found.min()))


def _shapes(s: Settings, draw: int) -> dict[str, Array]:
    x, label = _rings(s, draw)
    kernel = kc.Gaussian(s.width)
    centred = x - x.mean(0)
    vectors = eigh(centred.T @ centred)[1]
    linear = centred @ vectors[:, ::-1]
    curved = kc.KernelPCA(2, kc.Gaussian(2 * s.width)).fit(x)
    parts = curved.transform(x)
    labels = [
        kc.KernelKMeans(2, kc.Polynomial(1, offset=0.0), random_state=draw).fit(x).labels_,
        kc.KernelKMeans(2, kc.Gaussian(4 * s.width), random_state=draw).fit(x).labels_,
        kc.SpectralClustering(2, kernel, random_state=draw).fit(x).labels_,
    ]
    return {
        "points": x, "label": label, "linear": linear, "curved": parts,
        "split": np.array([max(_split(a[:, k], label) for k in range(2)) for a in (linear, parts)]),
        "right": np.array([_right(found, label) for found in labels]),
    }  # fmt: skip


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    _check.installed("sklearn", "kernelcore.experiments.smoothing")
    s, cells = settings, Cells() if cells is None else cells
    ns = grown(s.smallest, s.largest, s.sizes)
    keys = [("smooth", n, draw) for n in ns for draw in range(s.draws)]
    found = cells.map(lambda _, n, k: _smooth(s, n, k), keys, share(progress, 0.0, 0.8))
    rings = [("rings", draw) for draw in range(s.ring_draws)]
    shapes = cells.map(lambda _, k: _shapes(s, k), rings, share(progress, 0.8, 1.0))
    errors = np.array([one["errors"] for one in found]).reshape(len(ns), s.draws, s.bandwidths)
    chosen = np.array([one["chosen"] for one in found]).reshape(len(ns), s.draws)
    first = {name: shapes[0][name] for name in ("points", "label", "linear", "curved")}
    return Result("smoothing", s, {
        "n": ns, "errors": np.moveaxis(errors, 1, 2), "chosen": chosen,
        "h": np.array([_bandwidths(s, n) for n in ns]),
        "split": np.array([one["split"] for one in shapes]),
        "right": np.array([one["right"] for one in shapes]), **first,
    })  # fmt: skip


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    n = result["n"]
    best = result["errors"].mean(-1).min(1)
    power = slope(n, best)
    draws = [slope(n, result["errors"][:, :, k].min(1)) for k in range(s.draws)]
    error = float(np.std(draws, ddof=1) / math.sqrt(s.draws))
    text = "exponent in n of the error at the best bandwidth"
    found = [Claim.near(text, WATSON, -0.8, power, error, 0.1)]
    text = "exponent in n of the error at the bandwidth that leaving one out chooses"
    chosen = [slope(n, result["chosen"][:, k]) for k in range(s.draws)]
    error = float(np.std(chosen, ddof=1) / math.sqrt(s.draws))
    found.append(Claim.near(text, WATSON, -0.8, float(np.mean(chosen)), error, 0.15))
    middle = len(n) - 1
    h = result["h"][middle]
    mean, bars = mean_and_error(result["errors"][middle])
    text = "error against the bandwidth, on bias plus variance, at the largest n"
    small = h < 0.06  # higher orders of h are left out
    theory = _theory(s, float(n[middle]), h)[small]
    found.append(Claim.curve(text, WATSON, theory, mean[small], bars[small], 0.1))
    linear, curved = result["split"].mean(0)
    text = "a threshold on kernel components tells the rings apart better than one on linear ones"
    found.append(Claim.order(text, PCA, int(curved <= linear)))
    right = result["right"].mean(0)
    text = "share of points in their ring, by spectral clustering"
    found.append(Claim(text, "Ng, Jordan and Weiss 2002", 1.0, right[2], 0.0, 0.98, 1.0))
    text = "share of points in their ring, by k-means, which can only cut with a line"
    found.append(Claim(text, "Ng, Jordan and Weiss 2002", 0.5, right[0], 0.0, 0.5, 0.7))
    return found


def tables(result: Result) -> list[Table]:
    mean, spread = result["right"].mean(0), result["right"].std(0, ddof=1)
    rows = [(name, plus_minus(m, e, 3)) for name, m, e in zip(METHODS, mean, spread, strict=True)]
    told = "Share of points of two rings in their cluster, mean ± deviation over draws."
    return [Table(("method", "share"), rows, told)]


def paragraph(result: Result) -> str:
    n, best = result["n"], result["errors"].mean(-1).min(1)
    linear, curved = result["split"].mean(0)
    right = result["right"].mean(0)
    return (
        "Nadaraya-Watson regression has a bandwidth to choose: a small one follows the noise, a "
        f"large one flattens the curve. At the best one the error falls as the power "
        f"{signed(slope(n, best), 2)} of n (theory: −4/5). On two rings, a threshold on a linear "
        f"principal component tells {100 * linear:.0f} % of the points apart, one on a kernel "
        f"component {100 * curved:.0f} %; k-means puts {100 * right[0]:.0f} % into their ring, "
        f"kernel k-means {100 * right[1]:.0f} % and spectral clustering {100 * right[2]:.0f} %."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    s = Settings(**result.settings)
    with draw.style():
        fig = draw.figure(3.9)
        left, right = fig.subplots(1, 2)
        left.set(xscale="log", yscale="log", xlabel="bandwidth h", ylabel="mean squared error")
        for k, i in enumerate(range(0, len(result["n"]), 2)):
            color, h = draw.STEPS[k % 4], result["h"][i]
            mean, error = mean_and_error(result["errors"][i])
            size = int(result["n"][i])
            draw.measured(left, h, mean, error, color, "os^D"[k % 4], f"n = {size:,}")
            draw.theory(left, h, _theory(s, size, h), color)
        left.set_title("Nadaraya-Watson", loc="left")
        draw.ticks(left.xaxis, (0.01, 0.02, 0.05, 0.1, 0.2))
        left.legend()
        n = result["n"]
        right.set(xscale="log", yscale="log", xlabel="n", ylabel="mean squared error")
        best = result["errors"].mean(-1).min(1)
        right.plot(n, best, ls="", marker="o", color=draw.BLUE, label="best bandwidth")
        mean, error = mean_and_error(result["chosen"])
        draw.measured(right, draw.aside(n, 1, 2, 1.05), mean, error, draw.VERMILLION, "s",
                      "leave-one-out")  # fmt: skip
        guide = best[-1] * (n / n[-1]) ** -0.8
        right.plot(n, guide, color=draw.BLACK, ls="--", lw=1.2, label="slope −4/5")
        right.set_title("Against n", loc="left")
        right.legend()
        draw.plain_powers(fig)
        rings, row = draw.panels(3.3, ("Two rings", "Linear PCA", "Kernel PCA"), "", "")
        for axes, name in zip(row, ("points", "linear", "curved"), strict=True):
            for value, color, mark in ((0, draw.BLUE, "o"), (1, draw.ORANGE, "^")):
                part = result[name][result["label"] == value]
                axes.plot(part[:, 0], part[:, 1], ls="", marker=mark, ms=3, color=color)
            axes.set(xlabel="first coordinate", ylabel="second" if name == "points" else "")
    return [
        Picture(
            "smoother", fig,
            f"Left: error of Nadaraya-Watson regression against the bandwidth, points measured "
            f"(standard errors over {s.draws} draws), lines squared bias plus variance to leading "
            "order. Right: against n, with the best bandwidth and with the one chosen by leaving "
            "one out.",
            "Curves with a minimum that moves to smaller bandwidths as n grows, and a power law",
        ),
        Picture(
            "components", rings,
            "Two rings, and their first two principal components, linear and in the RKHS of a "
            "Gaussian.",
            "Three clouds: rings stay rings under linear PCA and come apart under kernel PCA",
        ),
    ]  # fmt: skip
