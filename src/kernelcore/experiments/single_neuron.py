"""Targets of one direction: networks against features and kernels, and controls (E2, E17).

Ghorbani, Mei, Misiakiewicz and Montanari (2019, 2021): a network learns a function of one
projection <w, x> from a number of samples of order d, and its weights turn towards w; random
features, tangent features and kernels need d^l for a part of degree l. Controls: on a generic
polynomial of high degree a network has no such advantage; on a parity of a few bits under the law
of Daniely and Malach (2020) it has one; and descent on a single neuron recovers w (Mei, Bai and
Montanari 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelcore as kc

from .._types import Array
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import many_small, seeds
from ._words import listed, plus_minus

TITLE = "A single neuron"
PAPER = "Ghorbani, Mei, Misiakiewicz and Montanari 2019"
METHODS = ("NN", "NT", "RF", "KRR")


@dataclass(frozen=True)
class Settings(_base.Settings):
    """``ratios`` are n / d; ``power`` is that of the teacher by Hermite degree."""

    dim: int = 30
    ratios: tuple[float, ...] = (4.0, 12.0, 36.0)
    power: tuple[float, ...] = (0.0, 0.0, 0.5, 0.5)
    draws: int = 2
    test: int = 1500
    width: int = 16
    features: int = 800
    step: float = 0.02
    decay: float = 2e-3
    steps: int = 800
    batch: int = 100
    control: int = 700
    control_dim: int = 12
    parity: int = 3
    bits: int = 16


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seed 0
    "paper": Settings(
        dim=100, ratios=(1.0, 3.0, 10.0, 30.0), power=(0.0, 0.0, 1 / 3, 1 / 3, 1 / 3), draws=10,
        test=5000, width=100, features=4096, step=0.01, steps=6000, batch=200, control=3000,
        control_dim=20, bits=60,
    ),
}  # fmt: skip
SECONDS = {"small": 9.0, "paper": 3600.0}


def _network(s: Settings, x: Array, y: Array, seed: int) -> Any:
    """Train a two-layer network by Adam until a tenth of the data gets worse."""
    x, y, held = x.astype(np.float32), y.astype(np.float32), max(10, len(x) // 10)
    net = kc.Sequential(kc.Dense(2**0.5, b_std=0.5), kc.Relu(), kc.Dense())
    start = net.sample(
        s.width, seed=seed, shape=x.shape[1], dtype="float32", doubled=True,
        parameterization="standard",
    )  # fmt: skip
    return kc.networks.train(
        start, x[held:], y[held:], method="adam", step=s.step, steps=s.steps, every=50,
        decay=s.decay, batch=min(s.batch, len(x) - held), validation=(x[:held], y[:held]),
        patience=16, seed=seed, progress=False,
    ).network  # fmt: skip


def _guesses(s: Settings, x: Array, y: Array, z: Array, seed: int) -> tuple[list[Array], Any]:
    """Return the predictions of all methods, and the network; ridges by leave-one-out."""
    trained = _network(s, x, y, seed)
    tangents = kc.features.TangentFeatures(s.width, b_std=0.5, seed=seed).fit(x)
    units = kc.features.NetworkFeatures(n_features=s.features, b_std=0.5, seed=seed).fit(x)
    found = [np.asarray(trained(z.astype(np.float32)), float)]
    found += [kc.features.ridge_features(f, x, y, "loo").predict(z) for f in (tangents, units)]
    k = kc.presets.mlp(2, b_std=0.5).ntk
    path = kc.solvers.RidgePath(k(x), y)
    found.append(k(z, x) @ path.alpha(path.best("loo")))
    return found, trained


def _alignment(network: Any, w: Array) -> float:
    """Return the share of the squared first weights along w, each times what it is read with."""
    layers = [np.asarray(one.w, float) for one in network.weights]
    # A doubled network has two of each layer, one network after the other.
    products = [first * last.ravel() for first, last in zip(layers[::2], layers[1::2], strict=True)]
    whole = np.concatenate(products, axis=1)
    return float(np.sum((w @ whole) ** 2) / np.sum(whole**2))


def _recovered(s: Settings, draw: int) -> Array:
    """Return |w - w*| / |w*| along descent on relu(<w, x>), from a random start."""
    rng = seeds(s.seed, draw, 5)
    n, d = 20 * s.dim, s.dim
    w = rng.standard_normal(d)
    w /= math.sqrt(float(w @ w))
    x = kc.data.gaussian(n, d, seed=rng)
    y = kc.data.neuron(w)(x)
    now = rng.standard_normal(d) / math.sqrt(d)
    found = []
    for step in range(121):
        if step % 10 == 0:
            found.append(math.sqrt(float((now - w) @ (now - w))))
        z = x @ now
        now = now - (2 / n) * (x.T @ ((np.maximum(z, 0) - y) * (z > 0)))
    return np.array(found)


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells

    def neuron(_: str, ratio: float, draw: int) -> dict[str, Array]:
        rng = seeds(s.seed, draw)
        w = kc.data.sphere(1, s.dim, 1.0, seed=rng)[0]
        f = kc.data.Subspace(w, kc.data.hermite(s.power))
        x, z = (kc.data.gaussian(m, s.dim, seed=rng) for m in (round(ratio * s.dim), s.test))
        wanted = f(z)
        found, network = _guesses(s, x, f(x), z, draw)
        errors = [np.square(g - wanted).mean() / wanted.var() for g in found]
        return {"errors": np.array(errors), "aligned": np.array(_alignment(network, w))}

    def generic(_: str, draw: int) -> dict[str, Array]:
        """A random polynomial of degree 3 in all directions: the worst case."""
        rng = seeds(s.seed, draw, 1)
        f = kc.data.RandomFunction(s.control_dim, [0, 0, 0, 1.0], seed=rng, centres=400)
        x, z = (kc.data.sphere(m, s.control_dim, seed=rng) for m in (s.control, s.test))
        wanted = f(z)
        found, _network = _guesses(s, x, f(x), z, draw)
        return {"errors": np.array([np.square(g - wanted).mean() / wanted.var() for g in found])}

    def parity(_: str, draw: int) -> dict[str, Array]:
        """Half of the inputs have equal signs on the bits of the parity, as Daniely and Malach."""
        rng = seeds(s.seed, draw, 2)
        x, z = (kc.data.hypercube(m, s.bits, seed=rng) for m in (s.control, s.test))
        for points in (x, z):
            alike = rng.random(len(points)) < 0.5
            points[alike, : s.parity] = points[alike, :1]
        y, wanted = (points[:, : s.parity].prod(1) for points in (x, z))
        found, _network = _guesses(s, x, y, z, draw)
        return {"errors": np.array([np.mean(np.sign(g) != wanted) for g in found])}

    pairs = [("neuron", ratio, draw) for ratio in s.ratios for draw in range(s.draws)]
    found = cells.map(neuron, pairs, share(progress, 0.0, 0.6))
    worst = cells.map(generic, [("generic", k) for k in range(s.draws)], share(progress, 0.6, 0.8))
    bits = cells.map(parity, [("parity", k) for k in range(s.draws)], share(progress, 0.8, 1.0))
    lost = cells.map(lambda _, k: {"off": _recovered(s, k)}, [("off", k) for k in range(5)])
    errors = np.array([one["errors"] for one in found]).reshape(len(s.ratios), s.draws, 4)
    aligned = np.array([one["aligned"] for one in found]).reshape(len(s.ratios), s.draws)
    return Result("single_neuron", s, {
        "errors": np.moveaxis(errors, 1, 2), "aligned": aligned,
        "generic": np.array([one["errors"] for one in worst]).T,
        "parity": np.array([one["errors"] for one in bits]).T,
        "off": np.array([one["off"] for one in lost]),
    })  # fmt: skip


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    last = result["errors"][-1].mean(-1)
    found = [
        Claim.order(
            f"at n = {s.ratios[-1]:g} d the network's error is below those of NT, RF and KRR",
            PAPER, int(np.sum(last[1:] <= last[0])),
        )
    ]  # fmt: skip
    gain = float(last[1:].min() / last[0])
    text = "error of the best of NT, RF and KRR over that of the network, at the last n"
    found.append(Claim(text, PAPER, None, gain, 0.0, 2.0, math.inf))
    share = result["aligned"].mean(-1)
    text = "share of the first weights along w, at the last n; 1/d without learning"
    found.append(Claim(text, PAPER, 1.0, float(share[-1]), 0.0, 0.5, 1.0))
    generic = result["generic"].mean(-1)
    text = "control: error of the network over that of KRR on a generic cubic polynomial"
    ratio = float(generic[0] / generic[3])
    found.append(Claim(text, "Ghorbani et al. 2021", None, ratio, 0.0, 0.95, math.inf))
    parity = result["parity"].mean(-1)
    text = "control: on a parity of few bits the network misreads fewer than the kernel"
    found.append(Claim.order(text, "Daniely and Malach 2020", int(parity[0] >= parity[3])))
    off = result["off"]
    text = "descent on a single neuron recovers w: |w - w*|, at the end over the start"
    ends = off[:, -1] / off[:, 0]
    error = float(ends.std(ddof=1) / math.sqrt(len(ends)))
    paper = "Mei, Bai and Montanari 2018"
    found.append(Claim(text, paper, 0.0, float(ends.mean()), error, 0.0, 0.05 + 2 * error))
    return found


def tables(result: Result) -> list[Table]:
    def cells(errors: Array) -> list[str]:
        return [
            plus_minus(one.mean(), one.std(ddof=1) if len(one) > 1 else 0.0, 3) for one in errors
        ]

    s = Settings(**result.settings)
    rows = [
        ("single neuron", f"{round(r * s.dim):,}", *cells(result["errors"][k]))
        for k, r in enumerate(s.ratios)
    ]
    rows.append(("generic cubic", f"{s.control:,}", *cells(result["generic"])))
    rows.append((f"parity of {s.parity} of {s.bits}", f"{s.control:,}", *cells(result["parity"])))
    told = (
        "Relative test errors (for the parity, misread signs), mean ± deviation over "
        f"{s.draws} draws."
    )
    return [Table(("target", "n", *METHODS), rows, told, 2)]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    last, generic = result["errors"][-1].mean(-1), result["generic"].mean(-1)
    parity = result["parity"].mean(-1)
    named = [f"{name} {error:.2f}" for name, error in zip(METHODS, last, strict=True)]
    return (
        f"The teacher reads one direction of d = {s.dim}. From n = {s.ratios[-1]:g} d samples the "
        f"relative errors are {listed(named)}; {100 * result['aligned'][-1].mean():.0f} % of the "
        "network's first weights point along the teacher's direction, where chance has "
        f"{100 / s.dim:.0f} %. That is no law of nature: on a generic cubic polynomial the network "
        f"has {generic[0]:.2f} and the kernel {generic[3]:.2f}. On a parity of {s.parity} bits, "
        f"half of whose inputs give it away, they misread {100 * parity[0]:.0f} % and "
        f"{100 * parity[3]:.0f} %."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    s = Settings(**result.settings)
    looks = ((draw.BLACK, "*"), (draw.ORANGE, "s"), (draw.VERMILLION, "^"), (draw.BLUE, "o"))
    with draw.style():
        fig = draw.figure(3.9)
        left, middle, right = fig.subplots(1, 3)
        left.set(xscale="log", yscale="log", xlabel="n / d", ylabel="relative test error")
        for k, (name, (color, mark)) in enumerate(zip(METHODS, looks, strict=True)):
            one = result["errors"][:, k]
            spread = one.std(-1, ddof=1) if s.draws > 1 else np.zeros(len(one))
            spots = draw.aside(np.array(s.ratios), k, 4, 1.03)
            draw.measured(left, spots, one.mean(-1), spread, color, mark, name, ls=":", lw=1)
        left.set_title("A single neuron", loc="left")
        draw.ticks(left.xaxis, s.ratios)
        draw.ticks(left.yaxis, (0.01, 0.03, 0.1, 0.3, 1))
        left.legend()
        spread = result["aligned"].std(-1, ddof=1) if s.draws > 1 else np.zeros(len(s.ratios))
        middle.set(xscale="log", xlabel="n / d", ylim=(0, 1.02), ylabel="share along w")
        draw.measured(middle, s.ratios, result["aligned"].mean(-1), spread, draw.BLACK, "*")
        middle.axhline(1 / s.dim, color=draw.GREY, ls="--", lw=1.2, label="1/d: no learning")
        middle.set_title("The network's weights", loc="left")
        draw.ticks(middle.xaxis, s.ratios)
        middle.legend()
        steps = 10 * np.arange(result["off"].shape[1])
        right.semilogy(steps, result["off"].T, color=draw.GREEN, lw=1.2)
        right.set(xlabel="steps", ylabel="|w − w*|", ylim=(1e-16, 10))
        right.set_title("Descent on one neuron", loc="left")
        draw.plain_powers(fig)
    return [
        Picture(
            "neuron", fig,
            f"Left: relative test errors on a teacher of one direction, mean and deviation of "
            f"{s.draws} draws. Middle: the share of the network's first weights along that "
            "direction. Right: distance of a single neuron to its teacher along descent, five "
            "starts.",
            "Errors of four methods against n/d; alignment of weights; distances falling to zero",
        )
    ]  # fmt: skip
