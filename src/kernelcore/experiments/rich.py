"""From lazy to rich: the scale of the start decides whether features are learned (F7).

Chizat, Oyallon and Bach (2019). A two-layer student whose output is multiplied by alpha learns a
teacher of a few neurons. For a large alpha its weights do not move, and it is no better than its
tangent kernel; for a small one they turn towards the teacher's, and the test loss is far smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kernelcore as kc

from .._types import Array
from ..linalg import norm
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table
from ._learn import many_small, mean_and_error, seeds
from ._words import listed, plus_minus, scientific

TITLE = "Lazy and rich"
PAPER = "Chizat, Oyallon and Bach 2019"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """A teacher of ``teacher`` neurons, and doubled students of ``width`` units at scales alpha."""

    dim: int = 20
    n: int = 240
    test: int = 1000
    teacher: int = 3
    width: int = 32
    alphas: tuple[float, ...] = (0.1, 0.3, 1.0, 10.0)
    step: float = 0.7
    steps: int = 1000
    draws: int = 2


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seed 0
    "paper": Settings(
        dim=100, n=1000, width=50, alphas=(0.03, 0.1, 0.3, 1.0, 3.0, 10.0), steps=10_000, draws=10
    ),
}
SECONDS = {"small": 7.0, "paper": 1800.0}


def _task(s: Settings, draw: int) -> tuple[Array, Array, Array, Array, Array]:
    rng = seeds(s.seed, draw)
    w = kc.data.sphere(s.teacher, s.dim, 1.0, seed=rng)
    signs = np.where(np.arange(s.teacher) % 2 == 0, 1.0, -1.0)
    x, z = (kc.data.sphere(m, s.dim, seed=rng) for m in (s.n, s.test))
    y, wanted = (np.maximum(points @ w.T, 0) @ signs for points in (x, z))
    return w, x, y, z, wanted


def _fits(s: Settings, draw: int, alpha: float) -> dict[str, Array]:
    w, x, y, z, wanted = _task(s, draw)
    net = kc.Sequential(kc.Dense(2**0.5), kc.Relu(), kc.Dense())
    start = net.sample(s.width, seed=draw, shape=s.dim, doubled=True)
    # The loss is divided by alpha^2, so that all scales are trained for the same time.
    found = kc.networks.train(
        start.scaled(alpha), x, y, step=s.step / max(alpha, 1.0) ** 2 / min(alpha, 1.0),
        steps=s.steps, every=s.steps, progress=False,
    ).network  # fmt: skip
    first, then = (np.asarray(f.weights[0].w, float) for f in (start, found))
    moved = float(norm(then - first) / norm(first))
    # The cosine of the nearest teacher, weighted by the norms of the units.
    cosine = np.abs(w @ then).max(0) / np.sqrt((then**2).sum(0))
    weight = (then**2).sum(0)
    return {
        "test": np.array(np.square(found(z) - wanted).mean() / wanted.var()),
        "train": np.array(np.square(found(x) - y).mean() / y.var()),
        "moved": np.array(moved), "cosine": np.array(float(cosine @ weight / weight.sum())),
    }  # fmt: skip


def _tangent(s: Settings, draw: int) -> dict[str, Array]:
    """Return the error of ridge regression with the tangent kernel of the same student."""
    _, x, y, z, wanted = _task(s, draw)
    net = kc.Sequential(kc.Dense(2**0.5), kc.Relu(), kc.Dense())
    start = net.sample(s.width, seed=draw, shape=s.dim, doubled=True)
    K = start.ntk(x)
    flow = kc.solvers.gradient_flow(
        K, y, [s.step * s.steps / s.n], K_test=start.ntk(z, x)
    )  # for as long as the students, whose loss is a mean
    guess = np.asarray(flow.test)[0]
    return {"test": np.array(np.square(guess - wanted).mean() / wanted.var())}


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    keys = [("fit", draw, alpha) for draw in range(s.draws) for alpha in s.alphas]
    found = cells.map(lambda _, *key: _fits(s, *key), keys, progress)
    kernel = cells.map(lambda _, k: _tangent(s, k), [("tangent", k) for k in range(s.draws)])
    shape = (s.draws, len(s.alphas))
    return Result("rich", s, {
        **{name: np.array([one[name] for one in found]).reshape(shape).T for name in found[0]},
        "tangent": np.array([one["test"] for one in kernel]),
    })  # fmt: skip


def claims(result: Result) -> list[Claim]:
    mean = result["test"].mean(-1)
    text = "least test error over scales, over that of the largest scale"
    found = [Claim(text, PAPER, None, float(mean.min() / mean[-1]), 0.0, 0.0, 0.5)]
    ratio = result["test"][-1] / result["tangent"]
    value, error = mean_and_error(ratio)
    text = "test error at the largest scale, over that of the tangent kernel at the start"
    found.append(Claim.near(text, PAPER, 1.0, float(value), float(error), 0.1))
    text = "weights move less at larger scales"
    moved = result["moved"].mean(-1)
    found.append(Claim.order(text, PAPER, int(np.sum(np.diff(moved) >= 0))))
    text = "weights are nearer to the teacher's at the smallest scale than at the largest"
    cosine = result["cosine"].mean(-1)
    found.append(Claim.order(text, PAPER, int(cosine[0] <= cosine[-1])))
    return found


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)

    def told(values: Array) -> str:
        return plus_minus(values.mean(), values.std(ddof=1) if len(values) > 1 else 0.0, 3)

    rows = [
        (f"{alpha:g}", told(result["test"][k]), scientific(result["train"][k].mean()),
         told(result["moved"][k]), told(result["cosine"][k]))
        for k, alpha in enumerate(s.alphas)
    ]  # fmt: skip
    head = ("α", "test error", "training error", "weights moved", "cosine to a teacher")
    return [Table(head, rows, f"Mean ± deviation over {s.draws} draws.")]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    mean, cosine = result["test"].mean(-1), result["cosine"].mean(-1)
    scales = listed([f"{alpha:g}" for alpha in s.alphas])
    return (
        f"A student of {s.width} pairs of units learns a teacher of {s.teacher} neurons in "
        f"d = {s.dim} dimensions from {s.n} samples. At the scales {scales} of its output the "
        f"relative test errors are {listed([f'{e:.3f}' for e in mean])}; its tangent kernel has "
        f"{result['tangent'].mean():.3f}. The mean cosine between its weights and the nearest "
        f"teacher's goes from {cosine[-1]:.2f} at the largest scale to {cosine[0]:.2f} at the "
        "smallest."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    s = Settings(**result.settings)
    with draw.style():
        fig = draw.figure(3.8)
        left, right = fig.subplots(1, 2)
        left.set(xscale="log", yscale="log", xlabel="scale α", ylabel="relative test error")
        mean, error = mean_and_error(result["test"])
        draw.measured(left, s.alphas, mean, np.nan_to_num(error), draw.BLACK, "*", "network",
                      ls=":", lw=1)  # fmt: skip
        left.axhline(result["tangent"].mean(), color=draw.BLUE, label="tangent kernel")
        left.set_title("Test error", loc="left")
        draw.ticks(left.yaxis, (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1))
        left.legend()
        right.set(xscale="log", yscale="log", xlabel="scale α", ylabel="relative")
        looks = (("moved", "movement", draw.ORANGE, "s"), ("cosine", "cosine", draw.GREEN, "D"))
        for name, label, color, mark in looks:
            mean, error = mean_and_error(result[name])
            draw.measured(right, s.alphas, mean, np.nan_to_num(error), color, mark, label, ls=":",
                          lw=1)  # fmt: skip
        right.set_title("Weights", loc="left")
        draw.ticks(right.yaxis, (0.01, 0.03, 0.1, 0.3, 1, 3))
        for axes in (left, right):
            draw.ticks(axes.xaxis, s.alphas)
        right.legend()
    return [
        Picture(
            "scales", fig,
            "Left: relative test error of students at different scales (standard errors over "
            f"{s.draws} draws), and of the tangent kernel at the start. Right: how far the first "
            "weights move, relative to their size, and how near they come to a teacher's.",
            "Test error rising with the scale to that of the tangent kernel; weights moving less",
        )
    ]  # fmt: skip
