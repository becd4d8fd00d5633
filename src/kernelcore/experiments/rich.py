"""From lazy to rich: the scale of the start decides whether features are learned (F7, F10).

Chizat, Oyallon and Bach (2019). A two-layer student whose output is multiplied by alpha learns a
teacher of a few neurons. For a large alpha its weights do not move, and it is no better than its
tangent kernel; for a small one they turn towards the teacher's, and the test loss is far smaller.
On images, filters of the first layer stay the noise that they began as, or get structure (Bietti
and Mairal 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelcore as kc

from .._types import Array
from ..linalg import eigh, norm
from . import _base, _given
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import many_small, mean_and_error, seeds, taught
from ._words import listed, plus_minus, scientific

TITLE = "Lazy and rich"
PAPER, BIETTI = "Chizat, Oyallon and Bach 2019", "Bietti and Mairal 2019"
QUARTER = 0.25
"""The part of frequencies, and of principal components, that the power of filters is counted in."""
SHOWN = 8
"""Filters of each kind in the figure."""


@dataclass(frozen=True)
class Settings(_base.Settings):
    """A teacher of ``teacher`` neurons, and doubled students of ``width`` units at scales alpha.

    Networks on ``images`` digits have ``filters`` pairs of units, and a small and a large scale.
    """

    dim: int = 20
    n: int = 240
    test: int = 1000
    teacher: int = 3
    width: int = 32
    alphas: tuple[float, ...] = (0.1, 0.3, 1.0, 10.0)
    step: float = 0.7
    steps: int = 1000
    draws: int = 2
    images: int = 600
    filters: int = 24
    scales: tuple[float, ...] = (0.01, 10.0)
    image_steps: int = 600
    image_draws: int = 4


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seeds 0 and 100
    "paper": Settings(
        dim=100, n=1000, width=50, alphas=(0.03, 0.1, 0.3, 1.0, 3.0, 10.0), steps=10_000, draws=10,
        images=1200, filters=50, image_steps=2000, image_draws=10,
    ),
}  # fmt: skip
SECONDS = {"small": 4.0, "paper": 2000.0}


def _task(s: Settings, draw: int) -> tuple[Array, Array, Array, Array, Array]:
    return taught(seeds(s.seed, draw), s.dim, s.teacher, s.n, s.test)


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


def _powers(filters: Array, images: Array) -> tuple[float, float]:
    """Return the shares of the power of filters, in columns, in low frequencies, and in the leading
    principal components of images, in rows: a quarter of each, and so of white noise.
    """
    side = round(len(filters) ** 0.5)
    low = _given.band(filters.T.reshape(-1, side, side, 1), QUARTER)
    centred = images - images.mean(0)
    leading = eigh(centred.T @ centred)[1][:, -round(QUARTER * len(filters)) :]
    total = np.square(filters).sum()
    return float(np.square(low).sum() / total), float(np.square(leading.T @ filters).sum() / total)


def _filters(s: Settings, draw: int, alpha: float) -> dict[str, Array]:
    """Return filters before and after training on digits, their structure, and the accuracy."""
    rng = seeds(s.seed, 1, draw)
    x, labels = kc.data.digits()
    x = (x - x.mean()) / x.std()
    order = rng.permutation(len(x))
    learned, test = order[: s.images], order[s.images :]
    net = kc.Sequential(kc.Dense(2**0.5), kc.Relu(), kc.Dense())
    start = net.sample(s.filters, seed=rng, shape=x.shape[1], outputs=10, doubled=True)
    # A large scale has the loss divided by alpha^2, and half of the largest stable step, as nothing
    # moves. A small one has it divided by alpha, and three times that step, as its kernel grows.
    step = 0.5 * kc.networks.largest_step(start, x[learned])
    found = kc.networks.train(
        start.scaled(alpha), x[learned], np.eye(10)[labels[learned]] - 0.1,
        step=step / alpha**2 if alpha > 1 else 3 * step / alpha,
        steps=s.image_steps, every=s.image_steps, progress=False,
    ).network  # fmt: skip
    both = [np.asarray(f.weights[0].w, float) for f in (start, found)]
    largest = np.argsort(-np.square(both[1]).sum(0), kind="stable")[:SHOWN]
    return {
        "power": np.array([_powers(filters, x[learned]) for filters in both]),
        "right": np.array(100 * np.mean(found(x[test]).argmax(1) == labels[test])),
        "pictures": np.stack([filters[:, largest].T for filters in both]),
    }


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    keys = [("fit", draw, alpha) for draw in range(s.draws) for alpha in s.alphas]
    found = cells.map(lambda _, *key: _fits(s, *key), keys, share(progress, 0.0, 0.7))
    kernel = cells.map(lambda _, k: _tangent(s, k), [("tangent", k) for k in range(s.draws)])
    keys = [("filters", draw, alpha) for draw in range(s.image_draws) for alpha in s.scales]
    seen = cells.map(lambda _, *key: _filters(s, *key), keys, share(progress, 0.7, 1.0))
    shape, pair = (s.draws, len(s.alphas)), (s.image_draws, len(s.scales))
    return Result("rich", s, {
        **{name: np.array([one[name] for one in found]).reshape(shape).T for name in found[0]},
        "tangent": np.array([one["test"] for one in kernel]),
        "power": np.moveaxis(np.array([one["power"] for one in seen]).reshape(*pair, 2, 2), 0, -1),
        "right": np.array([one["right"] for one in seen]).reshape(pair).T,
        "pictures": np.stack([one["pictures"] for one in seen[: len(s.scales)]]),
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
    names = ("low frequencies", "leading principal components")
    for k, name in enumerate(names):
        value, error = mean_and_error(result["power"][-1, 1, k])
        text = f"power of filters in a quarter of all, the {name}, after lazy training on digits"
        found.append(Claim.near(text, BIETTI, QUARTER, float(value), float(error)))
    for k, name in enumerate(names):
        # As theory says no number: more than white noise has by a quarter of that.
        value, error = mean_and_error(result["power"][0, 1, k] / QUARTER)
        text = f"power of filters in the {name} after rich training, over that of white noise"
        found.append(Claim(text, BIETTI, None, float(value), float(error), 1.25, 1 / QUARTER))
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
    filters = [
        (f"{alpha:g}", when,
         *(plus_minus(*mean_and_error(one), 3) for one in result["power"][k, j]),
         plus_minus(*mean_and_error(result["right"][k]), 1) if j else "–")
        for k, alpha in enumerate(s.scales)
        for j, when in enumerate(("at the start", "trained"))
    ]  # fmt: skip
    columns = ("α", "filters", "low frequencies", "leading components", "accuracy in per cent")
    caption = (
        "Shares of the power of filters in the lowest quarter of frequencies and in the leading "
        "quarter of principal components of the digits, and accuracy, mean ± standard error over "
        f"{s.image_draws} draws."
    )
    return [
        Table(head, rows, f"Mean ± deviation over {s.draws} draws."),
        Table(columns, filters, caption, 2),
    ]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    mean, cosine = result["test"].mean(-1), result["cosine"].mean(-1)
    power = result["power"][:, 1, 1].mean(-1)
    scales = listed([f"{alpha:g}" for alpha in s.alphas])
    return (
        f"A student of {s.width} pairs of units learns a teacher of {s.teacher} neurons in "
        f"d = {s.dim} dimensions from {s.n} samples. At the scales {scales} of its output the "
        f"relative test errors are {listed([f'{e:.3f}' for e in mean])}; its tangent kernel has "
        f"{result['tangent'].mean():.3f}. The mean cosine between its weights and the nearest "
        f"teacher's goes from {cosine[-1]:.2f} at the largest scale to {cosine[0]:.2f} at the "
        "smallest. On digits, filters of the first layer have "
        f"{100 * power[-1]:.0f} % of their power in the leading quarter of principal components "
        f"after lazy training, as the noise that they began as, and {100 * power[0]:.0f} % after "
        "rich training."
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
        filters = _draw_filters(s, result["pictures"])
    return [
        Picture(
            "scales", fig,
            "Left: relative test error of students at different scales (standard errors over "
            f"{s.draws} draws), and of the tangent kernel at the start. Right: how far the first "
            "weights move, relative to their size, and how near they come to a teacher's.",
            "Test error rising with the scale to that of the tangent kernel; weights moving less",
        ),
        Picture(
            "filters", filters,
            f"The {SHOWN} largest filters of the first layer of a network that learns digits, at "
            "the start and after training, each in colours of its own range. At a large scale of "
            "the output they stay the noise that they began as; at a small one they get structure.",
            "Rows of filters: noise, noise, noise, and smooth patterns",
        ),
    ]  # fmt: skip


def _draw_filters(s: Settings, pictures: Array) -> Any:
    """Draw filters in rows: for the large and the small scale, at the start and trained."""
    from . import _draw as draw

    fig = draw.figure(4.8)
    rows = [(k, j) for k in (1, 0) for j in (0, 1)]
    for axes, (k, j) in zip(fig.subplots(4, 1), rows, strict=True):
        each = pictures[k, j] / np.abs(pictures[k, j]).max(1, keepdims=True)
        side = round(each.shape[1] ** 0.5)
        # All in one picture, side by side, each with a column of nothing behind it.
        apart = np.pad(each.reshape(-1, side, side), ((0, 0), (0, 0), (0, 1)),
                       constant_values=np.nan)  # fmt: skip
        image = np.concatenate(list(apart), axis=1)[:, :-1]
        axes.imshow(image, cmap="RdBu_r", vmin=-1, vmax=1)
        axes.set(xticks=[], yticks=[])
        axes.grid(False)
        axes.spines[:].set_visible(False)
        axes.set_title(f"α = {s.scales[k]:g}, {('at the start', 'trained')[j]}", loc="left",
                       fontsize=10)  # fmt: skip
    return fig
