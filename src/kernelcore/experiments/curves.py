"""Learning curves that a spectrum predicts, of kernel ridge regression and random features (E11).

Degrees with eigenvalues above a resolution are learned, and the others act as noise (Bordelon et
al. 2020; Simon et al. 2021): the test error follows from the spectrum and the power of the target
by degree. Ridge regression on N random features has its peak at n = N (Mei and Montanari 2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import kernelcore as kc

from .._types import Array
from ..linalg import cholesky, norm
from ..linalg.blas import serial
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._draw import BLUE, GREY, VERMILLION, measured, panels, theory, ticks
from ._words import plus_minus, power_of_ten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Predicted learning curves"
BORDELON, MEI = "Bordelon et al. 2020, Simon et al. 2021", "Mei and Montanari 2022"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Random functions of single degrees on the sphere of R^dim."""

    dim: int = 30
    ridge: float = 1e-3
    targets: tuple[int, ...] = (2, 3)  # degrees
    sizes: tuple[int, ...] = (30, 60, 120, 250, 500, 1000)
    draws: int = 10
    test: int = 600
    features: int = 150
    shares: tuple[float, ...] = (0.15, 0.3, 0.5, 0.75, 0.9, 1, 1.1, 1.3, 2, 3)  # n over features


PRESETS = {
    "small": Settings(),
    "paper": Settings(sizes=(30, 60, 120, 250, 500, 1000, 2000, 4000), draws=40, test=2000,
                      features=400),
}  # fmt: skip
SECONDS = {"small": 3, "paper": 70}


def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    """Measure test errors draw by draw, and predict them."""
    s, cells = settings, cells or Cells()
    kernel = kc.presets.mlp(2).ntk
    around = np.array([round(s.features * x) for x in s.shares])

    def regression(word: str, draw: int) -> dict[str, Any]:
        rng, most = np.random.default_rng([s.seed, 1, draw]), max(s.sizes)
        x = math.sqrt(s.dim) * _uniform(rng, most + s.test, s.dim)
        powers = [np.eye(k + 1)[k] for k in s.targets]
        drawn = [kc.spectrum.RandomFunction(s.dim, power, rng, centres=500) for power in powers]
        y = np.stack([f(x) for f in drawn], axis=1)
        gram, cross = kernel(x[:most]), kernel(x[most:], x[:most])
        errors = []
        for n in s.sizes:
            missed = cross[:, :n] @ cholesky(gram[:n, :n], s.ridge).solve(y[:n]) - y[most:]
            errors.append(np.square(missed).mean(axis=0))
        return {"errors": np.array(errors).T}

    def features(word: str, draw: int) -> dict[str, Any]:
        rng, most = np.random.default_rng([s.seed, 2, draw]), int(around.max())
        x = _uniform(rng, most + s.test, s.dim)
        y = kc.spectrum.RandomFunction(s.dim, (0.0, 0.5, 0.5), seed=rng)(x)
        weights = rng.standard_normal((s.dim, s.features))
        phi = np.maximum(0, x @ weights) * math.sqrt(2 / s.features)
        errors = []
        for n in around:
            fit = cholesky(phi[:n].T @ phi[:n], s.ridge).solve(phi[:n].T @ y[:n])
            errors.append(np.square(phi[most:] @ fit - y[most:]).mean())
        return {"errors": np.array(errors)}

    # With a few hundred unknowns more threads cost more than they gain.
    with serial():
        keys = [("kernel", r) for r in range(s.draws)]
        kernels = cells.map(regression, keys, share(progress, 0, 0.7))
        keys = [("features", r) for r in range(2 * s.draws)]
        random = cells.map(features, keys, share(progress, 0.7, 0.95))
    fine = np.geomspace(min(s.sizes), max(s.sizes), 60)
    wide = np.unique(np.append(np.geomspace(around.min(), around.max(), 60), s.features))
    arrays = {
        "kernel": np.stack([one["errors"] for one in kernels], axis=1),  # (target, draw, size)
        "features": np.stack([one["errors"] for one in random]),
        "around": around, "fine": fine, "wide": wide,
    }  # fmt: skip
    return Result("curves", s, arrays | _predicted(s, kernel, around, fine, wide))


def _uniform(rng: np.random.Generator, n: int, dim: int) -> Array:
    x = rng.standard_normal((n, dim))
    return x / norm(x, axis=1, keepdims=True)


def _predicted(
    s: Settings, kernel: kc.Kernel, around: Array, fine: Array, wide: Array
) -> dict[str, Array]:
    spectrum = kc.spectrum.sphere(kernel, s.dim, 60)
    units = kc.spectrum.sphere(kc.ArcCosine(1), s.dim, 60)
    power = np.zeros(len(units))
    power[1:3] = 0.5

    def krr(n: Any) -> Array:
        powers = [np.eye(len(spectrum))[k] for k in s.targets]
        return np.stack([kc.theory.learning_curve(spectrum, one, n, s.ridge) for one in powers])

    def rf(n: Any, count: float) -> Array:
        return kc.theory.random_features_curve(units, power, n, count, s.ridge)

    return {
        "kernel.predicted": krr(s.sizes), "kernel.fine": krr(fine),
        "features.predicted": rf(around, s.features), "features.fine": rf(wide, s.features),
        "limit.predicted": rf(around, np.inf), "limit.fine": rf(wide, np.inf),
    }  # fmt: skip


# ---- what it says


def _mean(errors: Array) -> tuple[Array, Array]:
    """Return mean and standard error over the last axis but one."""
    return errors.mean(axis=-2), errors.std(axis=-2, ddof=1) / math.sqrt(errors.shape[-2])


def claims(result: Result) -> list[Claim]:
    """Compare each measured curve with the predicted one, and the places of the peak."""
    found = []
    for k, degree in enumerate(result.settings["targets"]):
        mean, error = _mean(result["kernel"][k])
        text = (
            f"Kernel ridge regression of a target of degree {degree} has the predicted test error"
        )
        found.append(Claim.curve(text, BORDELON, result["kernel.predicted"][k], mean, error))
    mean, error = _mean(result["features"])
    features, around = result.settings["features"], result["around"]
    return [
        *found,
        Claim.curve(
            f"Ridge regression on {features} random features has it, too, through its peak", MEI,
            result["features.predicted"], mean, error,
        ),
        Claim.near(
            "The error with random features is largest at n = N: measured n over N", MEI, 1.0,
            float(around[mean.argmax()] / features), tolerance=0.15,
        ),
    ]  # fmt: skip


def paragraph(result: Result) -> str:
    """Say what was predicted and what was drawn."""
    s = result.settings
    counts = " and ".join(
        f"N({s['dim']}, {k}) = {kc.spectrum.multiplicity(s['dim'], k):,}" for k in s["targets"]
    )
    where = [int(result["around"][e.argmax()]) for e in
             (result["features.predicted"], _mean(result["features"])[0])]  # fmt: skip
    return f"""
    A spectrum predicts the test error of kernel ridge regression: degrees with eigenvalues above a
    resolution are learned, and the others act as noise. Here inputs lie on the sphere of
    R^{s["dim"]}, targets are random functions of a single degree (there are {counts} harmonics),
    and the kernel is the NTK of two hidden layers, whose odd degrees do not vanish; the system that
    is solved is K + {power_of_ten(s["ridge"])} I. Each of {s["draws"]} draws has its own target,
    points and {s["test"]} test points.

    Beside it, ridge regression on N = {s["features"]} random features √(2/N) max(0, ⟨w, x⟩), w
    normal, whose target has half of its power in degree 1 and half in degree 2. Its error is
    largest at n = {where[0]} in theory and at n = {where[1]} as measured, over
    {2 * s["draws"]} draws.
    """


def tables(result: Result) -> list[Table]:
    """Return predicted and measured errors by size."""
    s = result.settings
    pairs = [_mean(result["kernel"][k]) for k in range(len(s["targets"]))]
    mean, error = _mean(result["features"])

    def cells(predicted: Array, mean: Array, error: Array, i: int) -> tuple[str, str]:
        return f"{predicted[i]:.3f}", plus_minus(mean[i], error[i], 3)

    head = [f"degree {k}, {what}" for k in s["targets"] for what in ("predicted", "measured")]
    rows = []
    for i, n in enumerate(s["sizes"]):
        found = (
            cells(p, *pair, i) for p, pair in zip(result["kernel.predicted"], pairs, strict=True)
        )
        rows.append((str(n), *(cell for both in found for cell in both)))
    wide = [
        (str(n), *cells(result["features.predicted"], mean, error, i),
         f"{result['limit.predicted'][i]:.3f}")
        for i, n in enumerate(result["around"])
    ]  # fmt: skip
    return [
        Table(("n", *head), rows,
              "Test errors of kernel ridge regression; measured: mean ± standard error."),
        Table(("n", "predicted", "measured", "kernel, predicted"), wide,
              f"Test errors of ridge regression on {s['features']} random features, and of their "
              "kernel."),
    ]  # fmt: skip


def plot(result: Result) -> list[Picture]:
    """Draw theory as lines and means with two standard errors as points."""
    s = result.settings
    return [
        Picture(
            "curves", _figure(result),
            "Test error (the target has mean square 1): theory as lines, measured means with two "
            f"standard errors. Left: kernel ridge regression, {s['draws']} draws. Right: "
            f"{s['features']} random features, {2 * s['draws']} draws, and in grey the kernel that "
            "they tend to.",
            "Predicted and measured test errors against training size: measured points lie on the "
            "predicted lines in both panels",
        )
    ]  # fmt: skip


def _figure(result: Result) -> Figure:
    s = result.settings
    titles = ("NTK, 2 hidden layers", "random features of κ₁")
    fig, (left, right) = panels(4.6, titles, "training points n", "mean squared test error")
    for k, (degree, color, marker) in enumerate(
        zip(s["targets"], (BLUE, VERMILLION), "os", strict=True)
    ):
        theory(left, result["fine"], result["kernel.fine"][k], color, f"degree {degree}, theory")
        mean, error = _mean(result["kernel"][k])
        measured(left, s["sizes"], mean, 2 * error, color, marker, f"degree {degree}, measured")
    theory(right, result["wide"], result["features.fine"], BLUE, f"N = {s['features']}, theory")
    mean, error = _mean(result["features"])
    measured(right, result["around"], mean, 2 * error, BLUE, "o", f"N = {s['features']}, measured")
    theory(right, result["wide"], result["limit.fine"], GREY, "N = ∞, theory", ls=(0, (5, 2)))
    right.axvline(s["features"], color=GREY, lw=0.8, ls=":", zorder=0)
    # There is no room for marks next to that of n = N.
    apart = [n for n in result["around"] if n == s["features"] or not 0.6 < n / s["features"] < 1.8]
    marks: tuple[Sequence[float], ...] = (s["sizes"], apart)
    for axes, some in zip((left, right), marks, strict=True):
        axes.set(xscale="log", ylim=(0, 1.12 * axes.get_ylim()[1]))
        ticks(axes.xaxis, some)
        axes.legend(loc="lower left" if axes is left else "upper left")
    return fig
