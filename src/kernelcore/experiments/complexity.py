"""Norms tell true labels from random ones; the smallest eigenvalue gives the rate (L8, L11).

Bartlett, Foster and Telgarsky (2017); Arora et al. (2019); Zhang et al. (2017). Kernels and
networks fit random labels as well as true ones, and only norms tell the fits apart: the RKHS norm
with its Rademacher bound, and R_A of a trained network. Training by gradient flow converges at
rates that are the eigenvalues of the Gram matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import kernelcore as kc

from .._types import Array
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import many_small, mean_and_error, seeds
from ._words import listed, plus_minus

TITLE = "Complexity and convergence"
ARORA, BARTLETT = "Arora et al. 2019", "Bartlett, Foster and Telgarsky 2017"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Digits, even against odd; ``shares`` of their labels are drawn at random."""

    n: int = 200
    test: int = 400
    shares: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    draws: int = 6
    flows: int = 3
    width: int = 128
    steps: int = 400
    flow: int = 512
    descent: int = 120
    records: int = 12


PRESETS = {
    "small": Settings(),
    "paper": Settings(
        n=1000, test=797, draws=10, flows=10, width=1024, steps=3000, flow=4096, descent=1000
    ),
}
SECONDS = {"small": 9.0, "paper": 900.0}


def _digits(s: Settings, draw: int) -> tuple[Array, Array, Array, Array]:
    """Return images of norm sqrt d, and whether their digits are even, as signs."""
    x, y = kc.data.digits()
    order = seeds(s.seed, draw).permutation(len(x))[: s.n + s.test]
    x = x[order] - x.mean(0)
    x *= np.sqrt(x.shape[1] / (x**2).sum(1, keepdims=True))
    signs = np.where(y[order] % 2 == 0, 1.0, -1.0)
    return x[: s.n], signs[: s.n], x[s.n :], signs[s.n :]


def _norms(s: Settings, share: float, draw: int) -> dict[str, Array]:
    """Fit a kernel and a network to labels of which a share is random, and take their norms."""
    x, y, z, wanted = _digits(s, draw)
    seen = kc.data.random_labels(y, share, seed=draw)
    kernel = kc.presets.mlp(2).ntk
    K = kernel(x)
    of_kernel = kc.theory.kernel_complexity(K, seen)
    start = kc.presets.mlp(1).sample(s.width, seed=draw, shape=x.shape[1])
    trained = kc.networks.train(
        start, x, seen, method="adam", step=0.1, steps=s.steps, every=s.steps, progress=False
    ).network
    of_network = kc.theory.network_complexity(trained, x, seen, reference=start)
    guess = kernel(z, x) @ kc.solvers.interpolate(K, seen)
    return {
        "kernel": np.array([of_kernel.norm, of_kernel.rademacher]),
        "network": np.array([of_network.spectral_complexity, of_network.rademacher]),
        "errors": np.array([np.mean(np.sign(g) != wanted) for g in (guess, trained(z))]),
        "fitted": np.array([
            np.mean(of_kernel.margins > 0), np.mean(np.sign(trained(x)) == seen),
        ]),
        "margins": np.quantile(of_kernel.normalised_margins, [0.1, 0.5, 0.9]),
    }  # fmt: skip


def _trained(s: Settings, draw: int) -> dict[str, Array]:
    """Return the loss of a network along gradient descent, and the one its Gram matrix predicts."""
    x, y, _, _ = _digits(s, draw)
    net = kc.presets.mlp(1, b_std=0.1)
    f = net.sample(s.flow, seed=draw, shape=x.shape[1], doubled=True)
    K = f.ntk(x)
    found = kc.theory.convergence(K, y)
    step = 0.4 * found.largest_step
    losses: dict[int, float] = {}

    def watch(k: int, now: kc.networks.Network, loss: float) -> None:
        losses[k] = 2 * loss * s.n  # the loss of train is half of a mean

    # Steps of train, on the mean, are n times as long.
    every = max(1, s.descent // s.records)
    kc.networks.train(f, x, y, step=s.n * step, steps=s.descent, every=every, callback=watch,
                      progress=False)  # fmt: skip
    steps = np.array(sorted(losses))
    decay = np.exp(2 * steps[:, None] * np.log1p(-step * found.eigenvalues))
    return {
        "steps": steps, "loss": np.array([losses[k] for k in steps]),
        "predicted": decay @ found.power, "eigenvalues": found.eigenvalues,
        "rate": np.array(found.rate), "rank": np.array(found.effective_rank),
    }  # fmt: skip


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    keys = [("norms", part, draw) for part in s.shares for draw in range(s.draws)]
    found = cells.map(lambda _, part, k: _norms(s, part, k), keys, share(progress, 0.0, 0.8))
    falls = cells.map(
        lambda _, k: _trained(s, k),
        [("flow", k) for k in range(s.flows)],
        share(progress, 0.8, 1.0),
    )
    shape = (len(s.shares), s.draws)
    arrays = {
        name: np.moveaxis(np.array([one[name] for one in found]).reshape(*shape, -1), 1, 2)
        for name in found[0]
    }
    return Result("complexity", s, {
        **arrays, **{name: np.array([one[name] for one in falls]) for name in falls[0]},
    })  # fmt: skip


def _growth(result: Result, values: Array) -> tuple[float, float]:
    """Return how much values of shape (shares, draws) grow from no random labels to all of them.

    By a line in each draw, whose data and start are the same for all shares; and its error.
    """
    return mean_and_error(np.polyfit(result.settings["shares"], values, 1)[0])


def claims(result: Result) -> list[Claim]:
    found = []
    for name, what, paper in (("kernel", "RKHS norm of the interpolant", ARORA),
                              ("network", "R_A of the trained network", BARTLETT)):  # fmt: skip
        values = result[name][:, 0]
        mean, error = _growth(result, values / values[0])
        text = f"growth of the {what} with the share of random labels, relative to true ones"
        found.append(Claim(text, paper, None, mean, error, 2 * error, math.inf))
    least = float(result["fitted"].min())
    text = "share of labels that are fitted, true or random, by kernel and network, at least"
    found.append(Claim(text, "Zhang et al. 2017", 1.0, least, 0.0, 0.99, 1.0))
    text = "the errors of the kernel grow as its norms do: points, from true to random labels"
    mean, error = _growth(result, 100 * result["errors"][:, 0])
    found.append(Claim(text, ARORA, None, mean, error, 2 * error, math.inf))
    text = "loss of a wide network along descent, on the curve of its Gram matrix"
    mean, error = mean_and_error(result["loss"], axis=0)
    theory = result["predicted"].mean(0)
    found.append(Claim.curve(text, ARORA, theory[1:], mean[1:], error[1:], 0.15))
    rate = float(result["rate"].min())
    text = "smallest eigenvalue of the tangent kernel on the sample: positive, as training needs"
    found.append(Claim(text, "Du et al. 2019", None, rate, 0.0, 1e-12, math.inf))
    return found


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    rows = []
    for k, part in enumerate(s.shares):
        cells = [
            plus_minus(one.mean(), one.std(ddof=1) if len(one) > 1 else 0.0, digits)
            for one, digits in (
                (result["kernel"][k, 0], 1), (result["kernel"][k, 1], 3),
                (result["network"][k, 0], 0), (result["network"][k, 1], 3),
                (100 * result["errors"][k, 0], 1), (100 * result["errors"][k, 1], 1),
            )
        ]  # fmt: skip
        rows.append((f"{100 * part:.0f} %", *cells))
    head = ("random labels", "RKHS norm", "bound", "R_A", "bound by |a|", "kernel errs, %",
            "network errs, %")  # fmt: skip
    told = f"Even and odd digits, n = {s.n}, mean ± deviation over {s.draws} draws."
    return [Table(head, rows, told)]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    norms = result["kernel"][:, 0].mean(-1)
    errors = 100 * result["errors"][:, 0].mean(-1)
    grown, error = _growth(result, result["network"][:, 0] / result["network"][0, 0])
    ranks = [f"{rank:.1f}" for rank in result["rank"]]
    return (
        f"A kernel and a network of width {s.width} fit {s.n} digits, even against odd, whatever "
        f"their labels. With random ones the RKHS norm is {norms[-1] / norms[0]:.1f} times that "
        f"with true ones; along a line R_A grows by {plus_minus(grown, error, 2)} of what it is "
        f"there (mean and standard error of {s.draws} draws), and the kernel misreads "
        f"{errors[-1]:.0f} % of new digits instead of {errors[0]:.0f} %. Along descent the loss of "
        "a wide network follows the eigenvalues of its tangent kernel, whose effective ranks are "
        f"{listed(ranks)} of {s.n}."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    s = Settings(**result.settings)
    with draw.style():
        fig = draw.figure(3.8)
        left, middle, right = fig.subplots(1, 3)
        x = 100 * np.array(s.shares)
        looks = (("kernel", "RKHS norm", draw.BLUE, "o"), ("network", "R_A", draw.BLACK, "*"))
        for name, label, color, mark in looks:
            values = result[name][:, 0] / result[name][0, 0].mean()
            mean, error = mean_and_error(values)
            draw.measured(left, x, mean, error, color, mark, label, ls=":", lw=1)
        left.set(xlabel="random labels in %", ylabel="relative to true labels", ylim=(0, None))
        left.set_title("Norms", loc="left")
        left.legend()
        for j, (name, _, color, mark) in enumerate(looks):
            mean, error = mean_and_error(100 * result["errors"][:, j])
            draw.measured(middle, x, mean, error, color, mark, name, ls=":", lw=1)
        middle.set(xlabel="random labels in %", ylabel="misread new digits in %", ylim=(0, 60))
        middle.axhline(50, color=draw.GREY, ls="--", lw=1.2)
        middle.set_title("Errors", loc="left")
        middle.legend(loc="lower right")
        steps = result["steps"][0]
        for k, (loss, line) in enumerate(zip(result["loss"], result["predicted"], strict=True)):
            color = draw.STEPS[k % 4]
            right.semilogy(steps, line, color=color, label="predicted" if k == 0 else "_")
            right.semilogy(steps, loss, ls="", marker="o", ms=4, color=color,
                           label="network" if k == 0 else "_")  # fmt: skip
        right.set(xlabel="steps", ylabel="sum of squares")
        right.set_title("Training", loc="left")
        right.legend()
        draw.plain_powers(fig)
    return [
        Picture(
            "complexity", fig,
            "Left: norms of fits to labels of which a share is random, relative to those with true "
            "labels. Middle: what they misread of new digits. Right: loss of wide networks along "
            "descent (points), and as their Gram matrices predict (lines).",
            "Norms and errors rising with random labels; losses falling along predicted curves",
        )
    ]  # fmt: skip
