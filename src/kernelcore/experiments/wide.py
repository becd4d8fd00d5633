"""What training does to a wide network: weights, loss, functions, outputs, kinks (F4, F10).

Jacot, Gabriel and Hongler (2018); Lee et al. (2019); Chizat, Oyallon and Bach (2019). Networks on a
line learn two points. The wider they are, the less their weights change, and the nearer their loss
is to that of the linearised network. Many random ones are draws of a Gaussian process, before and
after training. In the plane of the two outputs a lazy network goes to the targets as exp(-Ht) says,
H the tangent kernel, along the axes of its ellipse, and one that is less lazy bends away. A network
of ReLUs has kinks, where the mean of its kernel is smooth (Bietti and Mairal 2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelcore as kc

from .._types import Array
from ..linalg import eigh, lstsq, norm
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import many_small, mean_and_error, seeds, slopes
from ._words import scientific, signed

TITLE = "Wide networks"
LEE, CHIZAT = "Lee et al. 2019", "Chizat, Oyallon and Bach 2019"
BIETTI, RAHIMI = "Bietti and Mairal 2019", "Rahimi and Recht 2008"

NET = kc.Sequential(
    kc.Dense(1.0, b_std=1.0), kc.Relu(), kc.Dense(2**0.5, b_std=0.5), kc.Relu(),
    kc.Dense(1.0, b_std=0.5),
)  # fmt: skip
SMOOTH = kc.Sequential(
    kc.Dense(1.0, b_std=1.0), kc.Tanh(), kc.Dense(1.5, b_std=0.5), kc.Tanh(),
    kc.Dense(1.0, b_std=0.5),
)  # fmt: skip
"""Exponents in alpha ask for a smooth activation."""
X, Y = np.array([[-3.0], [0.5]]), np.array([2.0, -1.0])
"""The two points that networks learn."""
LARGE = 2
"""The scale from which on a network of these sizes is lazy."""
HALF = 4.0
"""Functions are looked at from -4 to 4."""
STEP, STEPS = 1 / 160, 320
"""Of descent on |f - y|^2 / 2: a fine one, as H has eigenvalues of 15 and 2 at infinite width."""
END = STEP * STEPS
EVERY, FINE = 20, 2
"""Steps between records: of losses, and of outputs."""
SHALLOW = kc.Sequential(kc.Dense(1.0, b_std=1.0), kc.Relu(), kc.Dense(2**0.5))
KNOTS = np.array([[-3.0], [-1.5], [0.0], [1.5], [3.0]])
"""Where networks with kinks learn a sine."""
INSIDE = math.erf(2**0.5)
"""The share of a normal variable within two deviations."""


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Sizes of networks, and how many are drawn, for each of the figures."""

    widths: tuple[int, ...] = (8, 32, 128, 512)
    seeds: int = 5
    networks: int = 100
    band: int = 100
    line: int = 17
    alphas: tuple[float, ...] = (0.05, 0.2, 0.5, 2.0, 8.0, 32.0)
    plane: int = 100
    planes: int = 6
    kinked: tuple[int, ...] = (64, 256, 1024, 4096)
    kinks: int = 8


PRESETS = {
    # What is set here, and where the band is judged, was chosen on draws of seeds 100 and 1.
    "small": Settings(seed=2),
    "paper": Settings(
        seed=2, widths=(10, 32, 100, 316, 1000), seeds=20, line=33, planes=10,
        alphas=(0.01, 0.05, 0.5, 1.0, 5.0, 10.0, 50.0),
        kinked=(64, 256, 1024, 4096, 16_384), kinks=20,
    ),
}  # fmt: skip
SECONDS = {"small": 12.0, "paper": 100.0}


def _path(network: Any, x: Array, y: Array, every: int, step: float = STEP) -> list[Any]:
    """Return the network at every so many steps of descent, from the start on.

    The loss of alpha f is divided by alpha^2, so that all scales take the same time.
    """
    found: list[Any] = []
    kc.networks.train(
        network, x, y, step=len(x) * step / network.alpha**2, steps=STEPS, every=every,
        callback=lambda k, now, loss: found.append(now), progress=False,
    )  # fmt: skip
    return found


def _left(kernel: Array, y: Array, every: int, step: float = STEP) -> Array:
    """Return ``(1 - step H)^k y``: what descent on a model with this kernel has still to learn."""
    values, vectors = eigh(kernel)
    left = (1 - step * values) ** np.arange(0, STEPS + 1, every)[:, None]
    return np.asarray((left * (y @ vectors)) @ vectors.T)


def _loss(left: Array) -> Any:
    return np.square(left).mean(-1) / 2


def _moved(kernel: Array, y: Array) -> float:
    """Return ``|theta - theta_0|`` at the end of the flow on a model whose outputs begin at zero.

    It is the root of ``y' (1 - e^(-Ht)) H^(-1) (1 - e^(-Ht)) y``.
    """
    values, vectors = eigh(kernel)
    learned = (1 - np.exp(-END * values)) * (y @ vectors)
    return math.sqrt(float((learned**2 / values).sum()))


def _trained(s: Settings, width: int, seed: int) -> dict[str, Array]:
    """Return losses over time, the relative change of parameters, and some weights."""
    start = NET.sample(width, seed=seeds(s.seed, 1, seed), shape=1, doubled=True)
    path = _path(start, X, Y, EVERY)
    end, corner = path[-1], slice(s.widths[0])
    return {
        "loss": np.array([_loss(now(X) - Y) for now in path]),
        "linear": _loss(_left(start.ntk(X), Y, EVERY)),
        "change": np.array(norm(end.theta - start.theta) / norm(start.theta)),
        "parameters": np.array(start.theta.size),
        "weights": np.stack([f.weights[1].w[corner, corner] for f in (start, end)]),
    }


def _ensemble(s: Settings) -> dict[str, Array]:
    """Return functions of many networks at the start and in the end, and their law in the limit."""
    line = np.linspace(-HALF, HALF, s.line)[:, None]
    theory = kc.solvers.ensemble_flow(
        NET.ntk(X), NET.nngp(X), Y, [0.0, END], ntk_test=NET.ntk(line, X),
        nngp_test=NET.nngp(line, X), nngp_test_test=NET.nngp(line),
    )  # fmt: skip
    outputs = np.empty((2, s.networks, s.line))
    for k in range(s.networks):
        start = NET.sample(s.band, seed=seeds(s.seed, 2, k), shape=1)
        end = _path(start, X, Y, STEPS)[-1]
        outputs[0, k], outputs[1, k] = start(line), end(line)
    covariance, variance = (np.asarray(a) for a in (theory.test_covariance, theory.test_variance))
    # How shares of the line within the band vary from draw to draw of the process itself.
    normal, drawn = seeds(s.seed, 5).standard_normal((2, 4000, s.line)), []
    for one, numbers in zip(covariance, normal, strict=True):
        values, vectors = eigh(one)
        drawn.append(numbers @ (vectors * np.sqrt(np.maximum(values, 0))).T)
    return {
        "outputs": outputs, "band_mean": np.asarray(theory.test_mean), "band_variance": variance,
        "share_spread": _inside(np.array(drawn), variance).std(1),
    }  # fmt: skip


def _open(variance: Array) -> Array:
    """Return where on the line functions are open, before and after: not at what was learned.

    There the spread is what exp(-Ht) leaves of the start. A network of finite width differs from
    the limit by a factor in H, and so by a power of that.
    """
    return np.asarray(variance > 1e-3 * variance[0])


def _inside(apart: Array, variance: Array) -> Array:
    """Return shares of the line within two deviations: before and after, for each function."""
    inside = np.abs(apart) <= 2 * np.sqrt(variance)[:, None]
    return np.asarray(inside.mean(-1, where=_open(variance)[:, None]))


def _plane_of(s: Settings, seed: int) -> dict[str, Array]:
    """Return outputs on the two points over time at all scales, and the kernel at the start.

    Outputs at the start are subtracted, that is, added to the targets. A doubled network would
    begin at zero, too, but has no terms of second order, and is lazier.
    """
    start = SMOOTH.sample(s.plane, seed=seeds(s.seed, 3, seed), shape=1)
    H = start.ntk(X)
    step = 0.1 / float(eigh(H)[0][-1])
    paths = []
    for alpha in s.alphas:
        first = alpha * start(X)
        path = _path(start.scaled(alpha), X, Y + first, FINE, step)
        paths.append(np.array([now(X) - first for now in path]))
    return {"paths": np.array(paths), "kernel": H, "lazy": Y - _left(H, Y, FINE, step)}


class _Kinks:
    """A network of one hidden layer on a line, as sum of slopes that change at knots."""

    def __init__(self, network: Any, top: Array | None = None) -> None:
        (w, b), (a, _) = network.weights
        self.w, self.b = w[0], b
        scale = 2**0.5 / math.sqrt(w.size)  # of SHALLOW
        self.top = scale * a[:, 0] if top is None else top
        self.knots = -self.b / self.w

    def jumps(self) -> Array:
        """Return by how much the derivative changes at each knot on the line that is looked at."""
        return (self.top * np.abs(self.w))[np.abs(self.knots) < HALF]

    def derivative(self, x: Array) -> Array:
        active = np.outer(x, self.w) + self.b > 0
        return np.asarray(active @ (self.top * self.w))


def _kinks(s: Settings, width: int, seed: int) -> dict[str, Array]:
    """Return kinks of a trained network, and of its top layer on the features it began with."""
    start = SHALLOW.sample(width, seed=seeds(s.seed, 4, seed), shape=1)
    y, line = np.sin(KNOTS[:, 0]), np.linspace(-HALF, HALF, 801)
    end = _path(start, KNOTS, y, STEPS)[-1]
    features = kc.features.FrozenFeatures(start).fit(KNOTS).transform(KNOTS)
    # The solution of least norm, which descent on the top layer finds from zero.
    top = lstsq(features, y) / math.sqrt(width)
    all_layers, top_layer = _Kinks(end), _Kinks(start, top)
    kernel = SHALLOW.nngp
    alpha = kc.solvers.ridge(kernel(KNOTS), y, 0.0)
    smooth = kernel.gradient(line[:, None], KNOTS, weights=alpha)[:, 0]
    derivative = top_layer.derivative(line)
    return {
        "count": np.array(len(top_layer.jumps())),
        "jumps": np.array([
            np.sqrt(np.square(kinks.jumps()).mean()) for kinks in (all_layers, top_layer)
        ]),
        "apart": np.sqrt(np.square(derivative - smooth).mean()),
        "derivative": derivative[::2], "smooth": smooth[::2],
    }  # fmt: skip


def _expected_kinks() -> tuple[float, float, float]:
    """Return kinks for each unit; and root mean squares of jumps: at the start times the root of
    the width, and with the top layer alone trained times the width.

    A unit r (x cos p + sin p) of normal weights has its knot at -tan p, where |tan p| is less than
    HALF in a part 2 a/pi of all directions p, and its slope changes by r |cos p|. The least norm
    gives it the weight sum over points of alpha_i r (x_i cos p + sin p)_+, over the width. The
    means of r^2 and r^4 are 2 and 8.
    """
    a = math.atan(HALF)
    p = (np.arange(20_000) + 0.5) / 20_000 * 2 * a - a
    turned = np.concatenate([p, p + math.pi])  # cos p of either sign
    alpha = kc.solvers.ridge(SHALLOW.nngp(KNOTS), np.sin(KNOTS[:, 0]), 0.0)
    units = np.maximum(np.outer(np.cos(turned), KNOTS[:, 0]) + np.sin(turned)[:, None], 0)
    top = np.cos(turned) * (units @ alpha)
    scale = 2.0  # the square of w_std of the last layer
    return (
        2 * a / math.pi, math.sqrt(scale * 2 * np.square(np.cos(turned)).mean()),
        scale * math.sqrt(8 * np.square(top).mean()),
    )  # fmt: skip


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    arrays: dict[str, Array] = {}

    def stacked(found: list[dict[str, Array]], *shape: int) -> None:
        for name in found[0]:
            each = np.stack([one[name] for one in found])
            arrays[name] = each.reshape(*shape, *each.shape[1:])

    keys = [("train", width, k) for width in s.widths for k in range(s.seeds)]
    found = cells.map(lambda _, *key: _trained(s, *key), keys, share(progress, 0.0, 0.4))
    stacked(found, len(s.widths), s.seeds)
    arrays["weights"] = arrays["weights"][[0, -1], 0]
    arrays |= cells.get(("ensemble",), lambda: _ensemble(s))
    draws = [("path", k) for k in range(s.planes)]
    stacked(cells.map(lambda _, k: _plane_of(s, k), draws, share(progress, 0.6, 0.8)), s.planes)
    keys = [("kinks", width, k) for width in s.kinked for k in range(s.kinks)]
    found = cells.map(lambda _, *key: _kinks(s, *key), keys, share(progress, 0.8, 1.0))
    stacked(found, len(s.kinked), s.kinks)
    for name in ("derivative", "smooth"):
        arrays[name] = arrays[name][[0, -1], 0]
    arrays["moved"] = np.array(_moved(NET.ntk(X), Y))
    arrays["expected"] = np.array(_expected_kinks())
    return Result("wide", s, arrays)


def _gaps(result: Result) -> Array:
    """Return largest differences of actual and linearised losses, of the loss at the start."""
    apart = np.abs(result["loss"] - result["linear"]).max(-1)
    return np.asarray(apart / _loss(Y))


def _bends(result: Result) -> Array:
    """Return largest distances between paths and exp(-Ht), of the way to go: by scale and draw."""
    apart = norm(result["paths"] - result["lazy"][:, None], axis=-1)
    return np.asarray(apart.max(-1).T / norm(Y))


def _shares(result: Result) -> Array:
    return _inside(result["outputs"] - result["band_mean"][:, None], result["band_variance"])


def _changes(result: Result) -> Array:
    """Return relative changes of parameters that infinite width predicts, by width."""
    return np.asarray(result["moved"] / np.sqrt(result["parameters"][:, 0]))


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    found = []
    power, error = slopes(s.widths, result["change"].T)
    text = "exponent of the relative change of all weights in the width, two hidden layers"
    found.append(Claim.near(text, LEE, -1.0, power, error, 0.1))
    mean, error = mean_and_error(result["change"][-1] / _changes(result)[-1])
    text = f"relative change of the weights of {s.widths[-1]} units a layer, of the predicted"
    found.append(Claim.near(text, LEE, 1.0, mean, error))
    power, error = slopes(s.widths, _gaps(result).T)
    text = "exponent of the largest gap between actual and linearised loss in the width: at most"
    found.append(Claim(text, LEE, -0.5, power, error, -math.inf, -0.5 + 2 * error))
    for k, when in enumerate(("before", "after")):
        error = result["share_spread"][k] / math.sqrt(s.networks)
        text = f"share of the line within two deviations, {s.networks} networks {when} training"
        found.append(Claim.near(text, LEE, INSIDE, _shares(result)[k].mean(), error, 0.03))
    # In standard errors the square of a mean is 1 in the mean, and at most 4 but for 5 of 100.
    mean, error = mean_and_error(result["outputs"][1], axis=0)
    squares = np.square((mean - result["band_mean"][1]) / error)[_open(result["band_variance"])[1]]
    text = "squared distance of the mean of trained networks from the predicted, in standard errors"
    found.append(Claim(text, LEE, 1.0, squares.mean(), 0.0, 0.0, 4.0))
    large = np.array(s.alphas) >= LARGE
    bends = _bends(result)
    power, error = slopes(np.array(s.alphas)[large], bends[large].T)
    text = (
        f"exponent of the largest distance of outputs from the path exp(−Ht) in α, from {LARGE} on"
    )
    found.append(Claim.near(text, CHIZAT, -1.0, power, error, 0.1))
    each, start, top = result["expected"]
    mean, error = mean_and_error((result["count"] / np.array(s.kinked)[:, None]).ravel())
    text = f"kinks of a ReLU network from −{HALF:g} to {HALF:g}, for each of its units"
    found.append(Claim.near(text, BIETTI, each, mean, error))
    for k, (which, predicted, expected) in enumerate((
        ("all layers trained", -0.5, start), ("the top layer trained", -1.0, top)
    )):  # fmt: skip
        jumps = result["jumps"][..., k]
        power, error = slopes(s.kinked, jumps.T)
        text = f"exponent of the jumps of the derivative in the width, {which}"
        found.append(Claim.near(text, BIETTI, predicted, power, error, 0.1))
        mean, error = mean_and_error(jumps[-1] * s.kinked[-1] ** -predicted / expected)
        text = f"jumps of the derivative of {s.kinked[-1]:,} units, of the predicted, {which}"
        found.append(Claim.near(text, BIETTI, 1.0, mean, error))
    power, error = slopes(s.kinked, result["apart"].T)
    text = "exponent of the distance of derivatives, random features and their kernel, in the width"
    found.append(Claim.near(text, RAHIMI, -0.5, power, error, 0.2))
    return found


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    told = _changes(result)
    rows = [
        (f"{width:,}", f"{result['parameters'][k, 0]:,}",
         scientific(result["change"][k].mean()), scientific(told[k]),
         scientific(_gaps(result)[k].mean()))
        for k, width in enumerate(s.widths)
    ]  # fmt: skip
    head = ("width", "parameters", "relative change", "predicted", "gap of losses")
    caption = (
        "Relative change of all weights in training, what infinite width predicts, and the largest "
        f"gap between actual and linearised loss, of the loss at the start; means over {s.seeds} "
        "draws."
    )
    return [Table(head, rows, caption)]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    first, last = (scientific(result["change"][k].mean()) for k in (0, -1))
    inside = [f"{100 * share:.0f} %" for share in _shares(result).mean(-1)]
    bends = [f"{100 * bend:.2g} %" for bend in _bends(result)[[0, -1]].mean(-1)]
    each, jumps = result["expected"][0], result["jumps"][-1].mean(0)
    return (
        "Networks of two hidden layers learn two points on a line. With "
        f"{s.widths[0]} units in each their weights change by {first} of their norm, with "
        f"{s.widths[-1]} by {last}. Of {s.networks} networks with random weights, {inside[0]} of "
        "the values lie within two deviations of the Gaussian process before training and "
        f"{inside[1]} after it. In the plane of the two outputs, paths leave that of the tangent "
        f"kernel by {bends[0]} of the way at α = {s.alphas[0]:g} and {bends[1]} at "
        f"α = {s.alphas[-1]:g}. A network of one hidden layer has {each:.2f} kinks for each unit. "
        f"With {s.kinked[-1]:,} units its derivative jumps by {scientific(jumps[0])} where all "
        f"layers were trained, and by {scientific(jumps[1])} where only the top layer was, which "
        "tends to the smooth mean of its kernel."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    with draw.style():
        return [
            _weights(result), _losses(result), _draws(result), _plane(result), _derivatives(result)
        ]  # fmt: skip


def _weights(result: Result) -> Picture:
    from . import _draw as draw

    s = Settings(**result.settings)
    fig = draw.figure(4.2)
    parts: Any = fig.subfigures(1, 2, width_ratios=(1.25, 1))
    left, right = parts
    grid = left.subplots(2, 3)
    for row, width, (first, then) in zip(
        grid, (s.widths[0], s.widths[-1]), result["weights"], strict=True
    ):
        images = {"start": first, "trained": then, "10 × change": 10 * (then - first)}
        for axes, (title, image) in zip(row, images.items(), strict=True):
            axes.imshow(image, cmap="RdBu_r", vmin=-2.5, vmax=2.5)
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
            axes.set_title(f"{title}, width {width}", fontsize=9.5)
    axes = right.subplots()
    mean, error = mean_and_error(result["change"])
    draw.theory(axes, s.widths, _changes(result), draw.BLACK, "infinite width")
    draw.theory(axes, s.widths, mean[-1] * (np.array(s.widths) / s.widths[-1]) ** -1.0,
                draw.VERMILLION, "slope −1", ls="--", lw=1.2)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="width m", ylabel="|w − w₀| / |w₀|")
    draw.measured(axes, s.widths, mean, error, draw.BLUE, "o", "networks")
    draw.ticks(axes.xaxis, s.widths)
    axes.set_title("Relative change of all weights", loc="left")
    axes.legend()
    return Picture(
        "weights", fig,
        f"Left: {s.widths[0]} x {s.widths[0]} weights of the second layer at the start, after "
        "training, and ten times the change, in the same colours from −2.5 to 2.5. Right: relative "
        f"change of all weights (standard errors over {s.seeds} draws) beside what the tangent "
        "kernel of infinite width predicts.",
        "Images of weights, whose change can be seen for a narrow network alone",
    )  # fmt: skip


def _losses(result: Result) -> Picture:
    from . import _draw as draw

    s = Settings(**result.settings)
    shown = range(len(s.widths))[-4:]
    fig, row = draw.panels(
        3.1, [f"width {s.widths[k]}" for k in shown], "time t", "loss, of the first", sharey=True
    )
    first, times = float(_loss(Y)), STEP * np.arange(0, STEPS + 1, EVERY)
    for axes, k in zip(row, shown, strict=True):
        axes.set_yscale("log")
        axes.plot(times, result["linear"][k, 0] / first, color=draw.VERMILLION, label="linearised")
        axes.plot(times, result["linear"][k, 1:].T / first, color=draw.VERMILLION, lw=1)
        axes.plot(times, result["loss"][k, 0] / first, color=draw.BLUE, ls="", marker="o", ms=4,
                  label="actual")  # fmt: skip
        axes.plot(times, result["loss"][k, 1:].T / first, color=draw.BLUE, ls="", marker="o",
                  ms=2.5)  # fmt: skip
        axes.set_ylim(max(1e-8, float(result["loss"].min() / first) / 3), 2)
    row[-1].legend(loc="upper right")
    draw.plain_powers(fig)
    return Picture(
        "losses", fig,
        f"Loss along training of {s.seeds} networks (points) and of their linearisations at the "
        "start (lines).",
        "Points that leave their lines for narrow networks, and lie on them for wide ones",
    )  # fmt: skip


def _draws(result: Result) -> Picture:
    from . import _draw as draw

    s = Settings(**result.settings)
    titles = ("At the start", "Trained")
    fig, row = draw.panels(3.7, titles, "x", "f(x)", sharey=True)
    line = np.linspace(-HALF, HALF, s.line)
    for k, axes in enumerate(row):
        mean, spread = result["band_mean"][k], 2 * np.sqrt(result["band_variance"][k])
        axes.fill_between(line, mean - spread, mean + spread, color=draw.PALE, zorder=0)
        axes.plot(line, result["outputs"][k].T, color=draw.SKY, lw=0.4)
        axes.plot(line, mean, color=draw.BLACK, label="mean, infinite width")
        for sign in (-1, 1):
            axes.plot(line, mean + sign * spread, color=draw.BLACK, ls="--", lw=1.2,
                      label="two deviations" if sign > 0 else "_")  # fmt: skip
        mean = result["outputs"][k].mean(0)
        axes.plot(line, mean, color=draw.VERMILLION, ls=":", label=f"mean of {s.networks} networks")
    row[1].plot(X[:, 0], Y, color=draw.BLACK, ls="", marker="o", ms=6, label="learned points")
    row[1].legend(loc="upper center", fontsize=9)
    return Picture(
        "ensemble", fig,
        f"{s.networks} networks of two hidden layers with {s.band} units (thin lines), before and "
        "after training on two points, with mean and two deviations of the Gaussian process that "
        "they are draws of at infinite width.",
        "Many random functions within a band, which narrows at the two points in training",
    )  # fmt: skip


def _ellipse(H: Array, size: float) -> Array:
    """Return the ellipse ``u' H^-1 u = const``, whose axes are roots of eigenvalues of H."""
    values, vectors = eigh(H)
    angle = np.linspace(0, 2 * math.pi, 61)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    return np.asarray(size * vectors @ (np.sqrt(values)[:, None] * circle))


def _plane(result: Result) -> Picture:
    from . import _draw as draw

    s = Settings(**result.settings)
    fig = draw.figure(4.4)
    left, right = fig.subplots(1, 2, width_ratios=(1.35, 1))
    H, lazy = result["kernel"][0], result["lazy"][0]
    size = 0.5 / math.sqrt(float(eigh(H)[0][-1]))
    left.plot(*(Y[:, None] + _ellipse(H, size)), color=draw.BLACK, lw=1.2, label="ellipse of H")
    values, vectors = eigh(H)
    for axis in (size * np.sqrt(values) * vectors).T:
        left.plot(*np.stack([Y - axis, Y + axis], axis=1), color=draw.GREY, lw=0.8, ls=":")
    colors = (draw.PURPLE, draw.VERMILLION, draw.ORANGE, draw.GREEN, draw.SKY, draw.BLUE)
    for path, alpha, color in zip(result["paths"][0], s.alphas, colors, strict=False):
        left.plot(*path.T, color=color, label=f"α = {alpha:g}")
    left.plot(*lazy.T, color=draw.BLACK, ls="--", lw=1.2, label="exp(−Ht)")
    left.plot(*Y, color=draw.BLACK, marker="*", ms=10)
    left.set(xlabel=f"output at x = {signed(X[0, 0], 0)}", ylabel=f"output at x = {X[1, 0]:g}")
    left.set_aspect("equal", adjustable="datalim")
    left.set_title("From zero to the targets", loc="left")
    left.legend(fontsize=8.5, loc="lower left")
    mean, error = mean_and_error(_bends(result))
    right.set(xscale="log", yscale="log", xlabel="scale α", ylabel="distance, of the way to go")
    draw.measured(right, s.alphas, mean, error, draw.BLUE, "o", "networks")
    draw.theory(right, s.alphas, mean[-1] * (np.array(s.alphas) / s.alphas[-1]) ** -1.0,
                draw.VERMILLION, "slope −1", ls="--", lw=1.2)  # fmt: skip
    draw.ticks(right.xaxis, s.alphas)
    right.set_title("Largest distance from exp(−Ht)", loc="left")
    right.legend()
    return Picture(
        "plane", fig,
        f"Left: outputs of a network of {s.plane} units on the two points that it learns, from "
        "zero to the targets (star), at several scales α of the output; dashed, what the tangent "
        "kernel H at the start predicts, with its ellipse around the targets: the way is first "
        "along the long axis, then along the short one. Right: the largest distance between both, "
        f"standard errors over {s.planes} draws.",
        "Paths in a plane, which bend away from the dashed one where the scale is small",
    )  # fmt: skip


def _derivatives(result: Result) -> Picture:
    from . import _draw as draw

    s = Settings(**result.settings)
    fig = draw.figure(3.7)
    one, two, three = fig.subplots(1, 3)
    line = np.linspace(-HALF, HALF, result["smooth"].shape[1])
    for axes, k in ((one, 0), (two, 1)):
        axes.plot(line, result["derivative"][k], color=draw.BLUE, lw=1.1, drawstyle="steps-mid",
                  label="network, top layer")  # fmt: skip
        axes.plot(line, result["smooth"][k], color=draw.VERMILLION, lw=1.4, label="kernel")
        axes.set_xlabel("x")
        axes.set_title(f"Derivative, {s.kinked[(0, -1)[k]]:,} units", loc="left")
    one.set_ylabel("f′(x)")
    two.sharey(one)
    one.set_ylim(top=1.6 * float(result["derivative"].max()))
    one.legend(fontsize=9, loc="upper left")
    three.set(xscale="log", yscale="log", xlabel="units")
    _, start, top = result["expected"]
    m = np.array(s.kinked, float)
    looks = (
        (result["jumps"][..., 0], start * m**-0.5, draw.ORANGE, "s", "jumps, all layers"),
        (result["jumps"][..., 1], top / m, draw.BLUE, "o", "jumps, top layer"),
    )
    for values, theory, color, mark, label in looks:
        draw.theory(three, m, theory, color, lw=1.2)
        mean, error = mean_and_error(values)
        draw.measured(three, m, mean, error, color, mark, label)
    mean, error = mean_and_error(result["apart"])
    draw.theory(three, m, mean[0] * (m / m[0]) ** -0.5, draw.GREEN, ls="--", lw=1.2)
    draw.measured(three, m, mean, error, draw.GREEN, "D", "distance to the kernel's")
    three.set_title("Of the derivative", loc="left")
    draw.ticks(three.xaxis, s.kinked)
    three.legend(fontsize=8.5)
    return Picture(
        "kinks", fig,
        "Left and middle: the derivative of a ReLU network whose top layer was trained on five "
        "points, a staircase, and of the mean of its kernel, which is smooth. Right: root mean "
        "squares of the jumps of the derivative where all layers are trained from random weights "
        f"and where the top layer is from zero (standard errors over {s.kinks} draws), predicted "
        "ones as lines; and the distance of the derivative from the kernel's, with slope −1/2 "
        "(dashed).",
        "A coarse and a fine staircase around a smooth curve; jumps falling with the width",
    )  # fmt: skip
