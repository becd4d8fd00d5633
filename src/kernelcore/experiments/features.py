"""How many random features a fit needs, and kitchen sinks beside boosting (L7, E14).

Rahimi and Recht (2008, 2009); Rudi and Rosasco (2017). Ridge regression on N random Fourier
features reaches the error of kernel ridge regression at N of the order sqrt(n) log n, and the norm
of its coefficients tends to the norm in the RKHS with an error of order N^(-1/2). As a classifier,
a random layer with a ridge on top does as well as boosted stumps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import kernelcore as kc

from .. import _check
from .._types import Array
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import grown, half_at, many_small, mean_and_error, seeds, slope
from ._words import listed, plus_minus, signed

TITLE = "Random features"
RUDI, SINKS = "Rudi and Rosasco 2017", "Rahimi and Recht 2009"
SETS = ("wine", "breast cancer", "digits, even or odd")
METHODS = ("kitchen sinks", "AdaBoost")
NEAR = 1.25  # times the error of the kernel, which features have to reach


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Inputs are normal in ``dim`` dimensions; noise is a deviation."""

    dim: int = 3
    smallest: int = 100
    largest: int = 800
    sizes: int = 4
    counts: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)
    draws: int = 12
    test: int = 800
    noise: float = 0.3
    lengthscale: float = 1.5
    sinks: int = 400
    stumps: int = 100
    folds: int = 3


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seed 0
    "paper": Settings(largest=12_800, sizes=8, counts=(4, 8, 16, 32, 64, 128, 256, 512, 1024),
                      draws=20, test=4000, sinks=2000, stumps=500, folds=10),
}  # fmt: skip
SECONDS = {"small": 8.0, "paper": 900.0}


def _fits(s: Settings, n: int, draw: int) -> dict[str, Array]:
    """Return excess errors of features over N, of the kernel, and norms over the kernel's."""
    rng = seeds(s.seed, draw)
    kernel = kc.Gaussian(s.lengthscale)
    centres, z = (kc.data.gaussian(m, s.dim, seed=rng) for m in (20, s.test))
    weights = rng.standard_normal(20)
    weights /= math.sqrt(float(weights @ kernel(centres) @ weights))  # a function of norm 1
    x = kc.data.gaussian(n, s.dim, seed=rng)
    y = kc.data.label_noise(kernel(x, centres) @ weights, s.noise**2, seed=rng)
    wanted = kernel(z, centres) @ weights
    ridge = math.sqrt(n)  # lambda = n^(-1/2) in front of a mean
    K = kernel(x)
    alpha = kc.solvers.ridge(K, y, ridge)
    whole = float(np.square(kernel(z, x) @ alpha - wanted).mean())
    size = math.sqrt(float(kc.solvers.rkhs_inner(alpha, K)))
    errors, norms = [], []
    for count in s.counts:
        features = kc.features.FourierFeatures(kernel, count, seed=rng).fit(x)
        fit = kc.features.ridge_features(features, x, y, ridge)
        errors.append(float(np.square(fit.predict(z) - wanted).mean()))
        norms.append(math.sqrt(float(np.sum(np.square(fit.coefficients)))) / size)
    return {"errors": np.array(errors), "kernel": np.array(whole), "norms": np.array(norms)}


def _set(name: str) -> tuple[Array, Array]:
    """Return a data set that ships with scikit-learn or here, its columns scaled."""
    from sklearn.datasets import load_breast_cancer, load_wine

    if name == "digits, even or odd":
        x, y = kc.data.digits()
        x, y = x[:900], y[:900] % 2
    else:
        x, y = (load_wine if name == "wine" else load_breast_cancer)(return_X_y=True)
    return (x - x.mean(0)) / (x.std(0) + 1e-9), y


def _classified(s: Settings, name: str) -> dict[str, Array]:
    """Return test errors of both classifiers, fold by fold."""
    from sklearn.ensemble import AdaBoostClassifier

    x, y = _set(name)
    order = seeds(s.seed, 3).permutation(len(x))
    wrong = []
    for held in np.array_split(order, s.folds):
        rest = np.setdiff1d(order, held)
        sinks = kc.RandomFeatureClassifier(
            kc.features.FourierFeatures(kc.Gaussian(math.sqrt(x.shape[1])), s.sinks, seed=0)
        )
        models = (sinks, AdaBoostClassifier(n_estimators=s.stumps, random_state=0))
        wrong.append([
            float(np.mean(model.fit(x[rest], y[rest]).predict(x[held]) != y[held]))
            for model in models
        ])  # fmt: skip
    return {"wrong": np.array(wrong)}


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    _check.installed("sklearn", "kernelcore.experiments.features")
    s, cells = settings, Cells() if cells is None else cells
    ns = grown(s.smallest, s.largest, s.sizes)
    keys = [("fit", n, draw) for n in ns for draw in range(s.draws)]
    found = cells.map(lambda _, *key: _fits(s, *key), keys, share(progress, 0.0, 0.6))
    sets = [("set", name) for name in SETS]
    beside = cells.map(lambda _, name: _classified(s, name), sets, share(progress, 0.6, 1.0))
    arrays = {
        name: np.array([one[name] for one in found]).reshape(len(ns), s.draws, -1)
        for name in found[0]
    }
    wrong = np.array([one["wrong"] for one in beside])
    return Result("features", s, {"n": ns, **arrays, "wrong": wrong})


def _needed(result: Result, without: int | None = None) -> Array:
    """Return the N at which the mean error is ``NEAR`` times the kernel's, by interpolation."""
    counts = np.array(result.settings["counts"], float)
    errors, kernel = result["errors"], result["kernel"]
    if without is not None:
        errors, kernel = (np.delete(a, without, axis=1) for a in (errors, kernel))
    ratio = errors.mean(1) / kernel.mean(1)
    return np.array([half_at(counts, one, NEAR) for one in ratio])


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    n, needed = result["n"], _needed(result)
    theory = slope(n, np.sqrt(n) * np.log(n))
    text = "exponent in n of the features needed, at most that of sqrt(n) log n"
    # The jackknife: draws are left out one by one.
    powers = np.array([slope(n, _needed(result, k)) for k in range(s.draws)])
    error = math.sqrt((s.draws - 1) * float(powers.var()))
    most = theory + 2 * error
    found = [Claim(text, RUDI, theory, slope(n, needed), error, -math.inf, most)]
    off = np.sqrt(np.square(result["norms"] - 1).mean((0, 1)))
    counts = np.array(s.counts, float)
    text = "exponent in N of the difference between the norm of the fit and that in the RKHS"
    found.append(Claim.near(text, SINKS, -0.5, slope(counts[2:], off[2:]), 0.0, 0.3))
    wrong = result["wrong"].mean(1)
    deviation = result["wrong"].std(1, ddof=1) / math.sqrt(s.folds)
    room = 2 * np.hypot(deviation[:, 0], deviation[:, 1])
    text = "data sets on which kitchen sinks are behind boosting by more than two standard errors"
    behind = int(np.sum(wrong[:, 0] > wrong[:, 1] + room))
    found.append(Claim.order(text, SINKS, behind))
    return found


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    rows = [
        (name, *(plus_minus(100 * e.mean(), 100 * e.std(ddof=1), 1) for e in one.T))
        for name, one in zip(SETS, result["wrong"], strict=True)
    ]
    told = f"Misread points in %, mean ± deviation over {s.folds} folds."
    return [Table(("data set", *METHODS), rows, told)]


def paragraph(result: Result) -> str:
    needed = [f"{count:.0f}" for count in _needed(result)]
    sizes = [f"{n:,}" for n in result["n"]]
    wrong = 100 * result["wrong"].mean(1)
    pairs = [f"{a:.1f} and {b:.1f} % ({name})" for (a, b), name in zip(wrong, SETS, strict=True)]
    return (
        f"With n = {listed(sizes)} samples, N = {listed(needed)} Fourier features come within "
        f"{100 * (NEAR - 1):.0f} % of the error of the kernel: N grows as the power "
        f"{signed(slope(result['n'], _needed(result)), 2)} of n. As classifiers, kitchen sinks and "
        f"boosted stumps misread {listed(pairs)}."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    s = Settings(**result.settings)
    with draw.style():
        fig = draw.figure(3.9)
        left, middle, right = fig.subplots(1, 3)
        left.set(xscale="log", yscale="log", xlabel="N", ylabel="error over that of the kernel")
        for k, n in enumerate(result["n"]):
            mean, error = mean_and_error(result["errors"][k] / result["kernel"][k].mean(), axis=0)
            draw.measured(left, s.counts, mean, error, draw.STEPS[k % 4], "os^D"[k % 4],
                          f"n = {n:,}", ls=":", lw=1)  # fmt: skip
        left.axhline(NEAR, color=draw.GREY, ls="--", lw=1.2)
        left.set_title("Error", loc="left")
        draw.ticks(left.xaxis, s.counts[::2])
        draw.ticks(left.yaxis, (1, 1.5, 2, 3, 5, 10))
        left.legend()
        n, needed = result["n"], _needed(result)
        middle.set(xscale="log", yscale="log", xlabel="n", ylabel="N needed")
        middle.plot(n, needed, ls="", marker="o", color=draw.BLUE, label="measured")
        guide = np.sqrt(n) * np.log(n)
        middle.plot(n, guide * needed[-1] / guide[-1], color=draw.BLACK, ls="--", lw=1.3,
                    label="√n log n, scaled")  # fmt: skip
        middle.set_title("Features needed", loc="left")
        draw.ticks(middle.xaxis, n.tolist())
        draw.ticks(middle.yaxis, (10, 15, 20, 30, 50, 70, 100))
        middle.legend()
        off = np.sqrt(np.square(result["norms"] - 1).mean((0, 1)))
        right.set(xscale="log", yscale="log", xlabel="N", ylabel="relative difference of norms")
        right.plot(s.counts, off, ls="", marker="s", color=draw.VERMILLION)
        right.plot(s.counts, off[-1] * (np.array(s.counts) / s.counts[-1]) ** -0.5,
                   color=draw.BLACK, ls="--", lw=1.3, label="slope −1/2")  # fmt: skip
        right.set_title("Norm of the fit", loc="left")
        draw.ticks(right.xaxis, s.counts[::2])
        draw.ticks(right.yaxis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5))
        right.legend()
    return [
        Picture(
            "features", fig,
            "Left: error of ridge regression on N Fourier features over that of the kernel "
            f"(standard errors over {s.draws} draws); dashed, 25 % more. Middle: N at which that "
            "is reached. Right: root mean square difference between the norm of the coefficients "
            "and the norm in the RKHS, relative to it.",
            "Errors falling to those of the kernel; N needed growing with n; norms converging",
        )
    ]  # fmt: skip
