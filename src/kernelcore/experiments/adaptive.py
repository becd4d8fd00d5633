"""Kernels that adapt: recursive feature machines find the directions that matter (F6).

Radhakrishnan, Beaglehole, Pandit and Belkin (2024). A kernel is fitted, the average outer product
of the gradient of its prediction becomes the metric of the next kernel, and so on. On targets g(Ux)
the metric turns into the span of U, and errors fall to those of a kernel that is told U.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelcore as kc

from .. import _check
from .._types import Array
from ..linalg import eigh, eigvalsh, qr
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table
from ._learn import grown, many_small, mean_and_error, seeds
from ._words import listed, plus_minus

TITLE = "Kernels that adapt"
PAPER = "Radhakrishnan et al. 2024"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Targets are products of two directions plus a quadratic one; ``rounds`` of adaptation."""

    dim: int = 20
    smallest: int = 100
    largest: int = 500
    sizes: int = 3
    draws: int = 3
    test: int = 1000
    rounds: int = 4
    lengthscale: float = 6.0
    ridge: float = 1e-3


PRESETS = {
    "small": Settings(),
    "paper": Settings(dim=50, smallest=300, largest=8000, sizes=6, draws=5, test=5000, rounds=6),
}
SECONDS = {"small": 7.0, "paper": 1800.0}


def _kernels(s: Settings) -> dict[str, kc.Kernel]:
    return {"Laplacian": kc.Laplacian(s.lengthscale), "NTK": kc.presets.mlp(1, b_std=0.5).ntk}


def _target(z: Array) -> Array:
    """Return a function of two projections of power 1 that is not zonal in them."""
    return (z[:, 0] * z[:, 1] + (z[:, 0] ** 2 - 1) / math.sqrt(2)) / math.sqrt(2)


def _angle(metric: Array, U: Array) -> float:
    """Return the largest angle between U and the top eigenvectors of a metric, in degrees."""
    top = eigh(metric)[1][:, -U.shape[1] :]
    inner = top.T @ U
    least = math.sqrt(max(float(eigvalsh(inner.T @ inner).min()), 0.0))
    return math.degrees(math.acos(min(1.0, least)))


def _fits(s: Settings, name: str, n: int, draw: int) -> dict[str, Array]:
    rng = seeds(s.seed, draw)
    U = qr(rng.standard_normal((s.dim, 2)))[0]
    f = kc.data.Subspace(U, _target)
    z = kc.data.gaussian(s.test, s.dim, seed=rng)
    x = kc.data.gaussian(n, s.dim, seed=rng)
    y, wanted = f(x), f(z)
    kernel = _kernels(s)[name]

    def error(model: Any) -> float:
        return float(np.square(model.fit(x, y).predict(z) - wanted).mean() / wanted.var())

    errors, angles = [], []
    for rounds in range(s.rounds + 1):
        model = kc.RecursiveFeatureMachine(kernel, ridge=s.ridge, rounds=rounds)
        errors.append(error(model))
        angles.append(_angle(np.asarray(model.feature_matrix_), U) if rounds else 90.0)
    told = kc.KernelRegressor(kernel, ridge=s.ridge).fit(x @ U, y)
    oracle = float(np.square(told.predict(z @ U) - wanted).mean() / wanted.var())
    return {
        "errors": np.array(errors), "angles": np.array(angles), "oracle": np.array(oracle),
    }  # fmt: skip


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    _check.installed("sklearn", "kernelcore.experiments.adaptive")
    s, cells = settings, Cells() if cells is None else cells
    ns = grown(s.smallest, s.largest, s.sizes)
    keys = [("fit", name, n, k) for name in _kernels(s) for n in ns for k in range(s.draws)]
    found = cells.map(lambda _, *key: _fits(s, *key), keys, progress)
    shape = (2, len(ns), s.draws)
    return Result("adaptive", s, {
        "n": ns, **{
            name: np.array([one[name] for one in found]).reshape(*shape, *found[0][name].shape)
            for name in found[0]
        },
    })  # fmt: skip


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    found = []
    for k, name in enumerate(_kernels(s)):
        mean, error = mean_and_error(result["angles"][k, -1, :, -1])
        text = f"largest angle between the metric and U in degrees, {name}, at the last n"
        found.append(Claim(text, PAPER, 0.0, mean, error, 0.0, 15.0))
        errors = result["errors"][k, -1].mean(0)
        text = f"error after {s.rounds} rounds over that without adaptation, {name}, at the last n"
        found.append(Claim(text, PAPER, None, errors[-1] / errors[0], 0.0, 0.0, 0.5))
    return found


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    rows = []
    for k, name in enumerate(_kernels(s)):
        for i, n in enumerate(result["n"]):
            columns = (
                (result["errors"][k, i, :, 0], 3), (result["errors"][k, i, :, -1], 3),
                (result["oracle"][k, i], 3), (result["angles"][k, i, :, -1], 1),
            )  # fmt: skip
            cells = [
                plus_minus(one.mean(), one.std(ddof=1) if len(one) > 1 else 0.0, digits)
                for one, digits in columns
            ]
            rows.append((name, f"{n:,}", *cells))
    head = ("kernel", "n", "without", f"after {s.rounds} rounds", "told U", "angle in degrees")
    told = f"Relative test errors and angles, mean ± deviation over {s.draws} draws."
    return [Table(head, rows, told, 2)]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    told = [
        f"{name} from {result['errors'][k, -1, :, 0].mean():.2f} to "
        f"{result['errors'][k, -1, :, -1].mean():.2f} (told U: "
        f"{result['oracle'][k, -1].mean():.2f})"
        for k, name in enumerate(_kernels(s))
    ]
    angles = [f"{result['angles'][k, -1, :, -1].mean():.1f}" for k in range(2)]
    return (
        f"The target reads two of d = {s.dim} directions. With n = {result['n'][-1]:,} samples, "
        f"{s.rounds} rounds of adaptation bring the relative errors of kernel ridge regression "
        f"with the {listed(told)}. The metrics lie at {listed(angles)} degrees to the span of U."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    s = Settings(**result.settings)
    with draw.style():
        fig = draw.figure(3.8)
        left, right = fig.subplots(1, 2)
        rounds = np.arange(s.rounds + 1)
        looks = ((draw.VERMILLION, "s"), (draw.BLUE, "o"))
        for k, (name, (color, mark)) in enumerate(zip(_kernels(s), looks, strict=True)):
            mean, error = mean_and_error(result["errors"][k, -1], axis=0)
            draw.measured(left, rounds + 0.04 * k, mean, np.nan_to_num(error), color, mark, name,
                          ls=":", lw=1)  # fmt: skip
            left.axhline(result["oracle"][k, -1].mean(), color=color, ls="--", lw=1.2,
                         label=f"{name}, told U")  # fmt: skip
            mean, error = mean_and_error(result["angles"][k, :, :, -1])
            draw.measured(right, draw.aside(result["n"], k, 2), mean, np.nan_to_num(error), color,
                          mark, name, ls=":", lw=1)  # fmt: skip
        left.set(xlabel="rounds", ylabel="relative test error", yscale="log")
        left.set_xticks(rounds)
        left.set_title(f"n = {result['n'][-1]:,}", loc="left")
        draw.ticks(left.yaxis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1))
        left.legend(fontsize=9)
        right.set(xscale="log", xlabel="n", ylabel="angle to U in degrees", ylim=(0, 92))
        right.set_title(f"After {s.rounds} rounds", loc="left")
        draw.ticks(right.xaxis, result["n"].tolist())
        right.legend(fontsize=9)
    return [
        Picture(
            "rounds", fig,
            "Left: relative test error round by round (standard errors over "
            f"{s.draws} draws), and of the same kernels on the two projections themselves "
            "(dashed). Right: largest angle between the metric and the span of U.",
            "Errors falling with rounds towards dashed lines; angles falling with n",
        )
    ]  # fmt: skip
