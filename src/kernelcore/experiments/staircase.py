"""Kernels and random features learn an isotropic target degree by degree (E1, E11).

Ghorbani, Mei, Misiakiewicz and Montanari (2021); Mei, Misiakiewicz and Montanari (2022). Inputs are
uniform on a sphere, the target has a third of its power in each of the degrees 1, 2 and 3. As d
grows, n samples or N features with d^l << min(n, N) << d^(l+1) learn degree l: a staircase in
log n / log d. At finite d the deterministic equivalent of the same problem has the curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import kernelcore as kc

from .._types import Array
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import grown, many_small, mean_and_error, ridge_errors, seeds
from ._words import listed, plus_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "The staircase"
KERNELS = "Ghorbani, Mei, Misiakiewicz and Montanari 2021"
FEATURES = "Mei, Misiakiewicz and Montanari 2022"
POWER = (0.0, 1 / 3, 1 / 3, 1 / 3)
PEAK = 1.5  # n and N closer than this factor are the peak, which no claim is about


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Depths are hidden layers; exponents are those of d."""

    dim: int = 24
    depths: tuple[int, ...] = (1, 2, 3)
    bias: float = 0.0
    low: float = 0.5
    high: float = 2.3
    sizes: int = 8
    draws: int = 8
    test: int = 2000
    ridge: float = 1e-8
    shift: float = -0.5
    feature_low: float = 0.8
    feature_high: float = 2.2
    feature_sizes: int = 6
    feature_draws: int = 5
    feature_ridge: float = 0.1


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seed 0
    "paper": Settings(
        dim=50, depths=(1, 2, 3), high=2.4, sizes=14, draws=10, test=5000, feature_high=2.2,
        feature_sizes=9, feature_draws=10, feature_ridge=1e-3,
    ),
}  # fmt: skip
SECONDS = {"small": 10.0, "paper": 1200.0}


def _sizes(s: Settings) -> list[int]:
    return grown(s.dim**s.low, s.dim**s.high, s.sizes)


def _grid(s: Settings) -> list[int]:
    return grown(s.dim**s.feature_low, s.dim**s.feature_high, s.feature_sizes)


def _kernel(s: Settings, depth: int) -> kc.Kernel:
    return kc.presets.mlp(depth, b_std=s.bias).ntk


def _features(s: Settings, count: int, seed: int) -> kc.features.NetworkFeatures:
    return kc.features.NetworkFeatures(kc.Relu(shift=s.shift), count, seed=seed)


def _task(s: Settings, n: int, draw: int) -> tuple[Array, Array, Array, Array]:
    rng = seeds(s.seed, draw)
    f = kc.data.RandomFunction(s.dim, POWER, seed=rng, centres=600)
    x, z = (kc.data.sphere(m, s.dim, seed=rng) for m in (n, s.test))
    return x, f(x)[:, None], z, f(z)[:, None]


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    ns, grid = _sizes(s), _grid(s)

    def kernels(_: str, draw: int) -> dict[str, Array]:
        x, y, z, wanted = _task(s, ns[-1], draw)
        errors = []
        for depth in s.depths:
            k = _kernel(s, depth)
            ridge = s.ridge * float(k.profile(1.0, dim=s.dim))
            errors.append(ridge_errors(k(x), k(z, x), y, wanted, ns, ridge)[0])
        return {"errors": np.array(errors)}

    def features(_: str, draw: int) -> dict[str, Array]:
        x, y, z, wanted = _task(s, grid[-1], 1000 + draw)
        phi = _features(s, grid[-1], draw).fit(x)
        a, b = (math.sqrt(grid[-1]) * phi.transform(points) for points in (x, z))
        ridge = s.feature_ridge * float(phi.kernel_.profile(1.0, dim=s.dim))
        errors = np.empty((len(grid), len(grid)))
        for j, count in enumerate(grid):
            u, v = a[:, :count] / math.sqrt(count), b[:, :count] / math.sqrt(count)
            errors[:, j] = ridge_errors(u @ u.T, v @ u.T, y, wanted, grid, ridge)[0]
        return {"errors": errors}

    found = cells.map(
        kernels, [("kernels", draw) for draw in range(s.draws)], share(progress, 0.0, 0.6)
    )
    more = cells.map(
        features, [("features", draw) for draw in range(s.feature_draws)], share(progress, 0.6, 1.0)
    )
    return Result("staircase", s, {
        "n": ns, "errors": np.stack([one["errors"] for one in found], axis=-1),
        "grid": grid, "features": np.stack([one["errors"] for one in more], axis=-1),
        **_theory(s),
    })  # fmt: skip


def _theory(s: Settings) -> dict[str, Array]:
    """Return the predicted curves, at the sizes that were measured and on finer ones."""
    ns, grid = _sizes(s), _grid(s)
    fine = np.geomspace(ns[0], ns[-1], 100)
    there, line = [], []
    for depth in s.depths:
        spectrum = kc.spectrum.sphere(_kernel(s, depth), s.dim, max_degree=40)
        ridge, power = s.ridge * spectrum.trace, np.append(POWER, np.zeros(37))
        there.append(kc.theory.learning_curve(spectrum, power, ns, ridge))
        line.append(kc.theory.learning_curve(spectrum, power, fine, ridge))
    kernel = _features(s, 1, 0).fit(np.ones((1, s.dim))).kernel_
    spectrum = kc.spectrum.sphere(kernel, s.dim, max_degree=40)
    ridge, power = s.feature_ridge * spectrum.trace, np.append(POWER, np.zeros(37))
    wide = np.geomspace(grid[0], grid[-1], 100)
    n, count = np.array(grid, float)[:, None], np.array(grid, float)
    curve = kc.theory.random_features_curve
    return {
        "fine": fine, "predicted": np.array(there), "line": np.array(line), "wide": wide,
        "features_predicted": curve(spectrum, power, n, count, ridge),
        "features_line": curve(spectrum, power, float(grid[-2]), wide, ridge),
        "samples_line": curve(spectrum, power, wide, float(grid[-2]), ridge),
        "plane": curve(spectrum, power, wide[:, None], wide, ridge),
    }  # fmt: skip


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    found = []
    for k, depth in enumerate(s.depths):
        mean, error = mean_and_error(result["errors"][k])
        text = f"test error of the NTK of {depth} hidden layers against n, on the predicted curve"
        found.append(Claim.curve(text, KERNELS, result["predicted"][k], mean, error))
    mean, error = mean_and_error(result["features"])
    grid = result["grid"]
    away = np.abs(np.log(grid[:, None] / grid)) > math.log(PEAK)
    text = "test error of random features over the plane of n and N, off the peak at n = N"
    theory = result["features_predicted"]
    found.append(Claim.curve(text, FEATURES, theory[away], mean[away], error[away]))
    # What parity forbids to learn is never learned; the last n is past d^2.
    if s.bias == 0 and 1 in s.depths:
        floor, off = mean_and_error(result["errors"][s.depths.index(1), -1])
        text = "one hidden layer without biases leaves the power in degree 3, which it cannot learn"
        found.append(Claim(text, KERNELS, POWER[3], floor, off, POWER[3] - 2 * off, math.inf))
    return found


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    mean, error = mean_and_error(result["errors"])
    rows = [
        (f"{n:,}", f"{math.log(n) / math.log(s.dim):.2f}",
         *(f"{plus_minus(mean[k, i], error[k, i], 3)} ({result['predicted'][k, i]:.3f})"
           for k in range(len(s.depths))))
        for i, n in enumerate(result["n"])
    ]  # fmt: skip
    head = ("n", "log n / log d", *(f"{depth} hidden" for depth in s.depths))
    return [Table(head, rows, "Test errors, mean ± standard error over draws (predicted).", 2)]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    curves = claims(result)[: len(s.depths)]
    off = [f"{100 * one.measured:.1f} %" for one in curves]
    stairs = _levels(result)
    return (
        f"Inputs are uniform on a sphere in d = {s.dim} dimensions, and the target has a third of "
        "its power in each of the degrees 1, 2 and 3. With few samples a kernel learns nothing; "
        "near n = d it learns the linear part, near d² the quadratic one. Measured errors of the "
        f"NTKs of {listed(s.depths)} hidden layers are off the predicted curves by {listed(off)} "
        f"(root mean square); the staircase, which is their limit as d grows, has its steps at "
        f"errors {listed(stairs)}. Random features show the same staircase in the smaller of n and "
        f"N; where both are equal, errors reach {result['features'].mean(-1).max():.1f}."
    )


def _levels(result: Result) -> list[str]:
    """Return the levels of the staircase that the sizes reach."""
    dim = float(result.settings["dim"])
    levels = kc.theory.staircase(result["fine"], dim, POWER)
    return [f"{level:.2f}" for level in sorted(set(levels.round(6).tolist()), reverse=True)]


def plot(result: Result) -> list[Picture]:
    from ._draw import BLACK, BLUE, GREY, STEPS, VERMILLION, measured, panels, style, theory

    s = Settings(**result.settings)
    log = math.log(s.dim)
    marks = "os^D"
    with style():
        fig, (left, right) = panels(
            3.9, ("Kernel ridge regression", "Random features"), "log n / log d", "test error"
        )
        fine = np.log(result["fine"]) / log
        stairs = kc.theory.staircase(result["fine"], float(s.dim), POWER)
        left.plot(fine, stairs, color=GREY, ls="--", lw=1.2, label="staircase, d → ∞")
        for k, depth in enumerate(s.depths):
            color = STEPS[k % 4]
            mean, error = mean_and_error(result["errors"][k])
            theory(left, fine, result["line"][k], color)
            label = f"NTK, {depth} hidden"
            measured(left, np.log(result["n"]) / log, mean, error, color, marks[k % 4], label)
        _finish(left)
        left.legend(loc="lower left")
        wide, grid = np.log(result["wide"]) / log, np.log(result["grid"]) / log
        mean, error = mean_and_error(result["features"])
        stairs = kc.theory.staircase(result["wide"], float(s.dim), POWER)
        right.plot(wide, stairs, color=GREY, ls="--", lw=1.2)
        other = int(result["grid"][-2])
        for line, values, bars, color, mark, label in (
            ("features_line", mean[-2], error[-2], BLUE, "o", f"N, at n = {other:,}"),
            ("samples_line", mean[:, -2], error[:, -2], VERMILLION, "s", f"n, at N = {other:,}"),
        ):
            theory(right, wide, result[line], color)
            measured(right, grid, values, bars, color, mark, f"against {label}")
        _finish(right)
        right.set(xlabel="log N / log d, or log n / log d", ylim=(0, 1.4))
        right.legend(loc="lower left")

        plane, (one, two) = panels(
            4.2, ("Random features, measured", "predicted"), "log N / log d", "log n / log d"
        )
        look: Any = {"vmin": 0.0, "vmax": 1.3, "cmap": "viridis", "shading": "nearest"}
        one.pcolormesh(grid, grid, mean, **look)
        shown = two.pcolormesh(wide, wide, result["plane"], **look, rasterized=True)
        for axes in (one, two):
            axes.contour(wide, wide, result["plane"], levels=[1 / 3, 2 / 3], colors=BLACK,
                         linewidths=1)  # fmt: skip
            axes.grid(False)
            axes.set(xlim=(grid[0], grid[-1]), ylim=(grid[0], grid[-1]))
        plane.colorbar(shown, ax=[one, two], label="test error")
    return [
        Picture(
            "staircase", fig,
            f"Test error against log n / log d at d = {s.dim}: points measured (mean and standard "
            f"error of {s.draws} and {s.feature_draws} draws), lines predicted, dashed the limit "
            "as d grows. One hidden layer without biases cannot learn degree 3.",
            "Falling curves of test error in three steps, for NTKs and for random features",
        ),
        Picture(
            "plane", plane,
            "Test error of random features in the plane of n and N; contours, at errors of one and "
            "two thirds, are predicted. The smaller of both decides; errors are largest where "
            "both are equal and small.",
            "Two maps of test error against n and N, with corners at equal exponents and a bright "
            "diagonal",
        ),
    ]  # fmt: skip


def _finish(axes: Axes) -> None:
    axes.set_ylim(0, 1.2)
    axes.set_xticks([0.5, 1, 1.5, 2, 2.5])
    axes.set_xlim(0.42, None)
