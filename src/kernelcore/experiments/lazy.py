"""How networks of finite width leave their kernels: exponents in width and scale (F2-F4, F9).

Jacot, Gabriel and Hongler (2018); Lee et al. (2019); Chizat, Oyallon and Bach (2019). Beside its
linearisation a wide network is trained to nearly the same function; the larger the width, or the
scale alpha of the output, the less its parameters, its kernel and its weights move. Descent on a
linear model ends in the solution nearest to its start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelcore as kc

from .._types import Array
from ..linalg import lstsq, norm
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import many_small, seeds, slopes
from ._words import plus_minus, signed

TITLE = "Lazy training"
LEE, CHIZAT = "Lee et al. 2019", "Chizat, Oyallon and Bach 2019"
STEP = 0.5
ACTIVATIONS = {"tanh": (kc.Tanh(), -1.0), "ReLU": (kc.Relu(), -0.75)}
STARTS = (0.0, 0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Widths for distances, and those for curvatures and weights, which settle later."""

    dim: int = 5
    points: int = 16
    elsewhere: int = 128
    widths: tuple[int, ...] = (64, 128, 256, 512)
    wide: tuple[int, ...] = (128, 256, 512, 1024)
    seeds: int = 3
    steps: int = 50
    alphas: tuple[float, ...] = (2.0, 4.0, 8.0, 16.0, 32.0)
    networks: int = 50
    band: int = 128


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seed 0
    "paper": Settings(widths=(64, 128, 256, 512, 1024, 2048), seeds=10, steps=100, elsewhere=256,
                      alphas=(2.0, 4.0, 8.0, 16.0, 32.0, 64.0), networks=100, band=512),
}  # fmt: skip
SECONDS = {"small": 18.0, "paper": 600.0}


def _sample(s: Settings, seed: int) -> tuple[Array, Array, Array]:
    """Return points with a smooth target, and points to compare at."""
    rng = seeds(s.seed, 7, seed)
    x, z = (kc.data.sphere(n, s.dim, seed=rng) for n in (s.points, s.elsewhere))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] / 2, z


def _two_layers(activation: Any) -> kc.Sequential:
    return kc.Sequential(kc.Dense(1.5, b_std=0.5), activation, kc.Dense())


DEEP = kc.Sequential(
    kc.Dense(1.5, b_std=0.5), kc.Tanh(), kc.Dense(1.5, b_std=0.5), kc.Tanh(), kc.Dense()
)


def _apart(s: Settings, name: str, seed: int) -> dict[str, Array]:
    """Return sup |NN - NT| on the sample and elsewhere, and the change of the tangent kernel."""
    x, y, z = _sample(s, seed)
    found: dict[str, list[float]] = {"near": [], "far": [], "drift": []}
    for width in s.widths:
        net = _two_layers(ACTIVATIONS[name][0])
        f = net.sample(width, seed=seed, shape=s.dim, doubled=True)
        options: Any = {"step": STEP, "steps": s.steps, "every": 10}
        both = np.concatenate([x, z])
        pair = kc.networks.coupled(f, x, y, points=both, **options)
        end, linear = pair.network.network, pair.linear.network
        found["near"].append(float(np.abs(end(x) - linear(x)).max()))
        found["far"].append(float(pair.distance.max()))
        K = f.ntk(x)
        found["drift"].append(float(norm(end.ntk(x) - K) / norm(K)))
    return {key: np.array(values) for key, values in found.items()}


def _scaled(s: Settings, seed: int) -> dict[str, Array]:
    """Return how far parameters move at scale alpha, and from the linear path; and kappa(w0)."""
    x, y, _ = _sample(s, seed)
    f = _two_layers(kc.Tanh()).sample(64, seed=seed, shape=s.dim, doubled=True)
    found: dict[str, list[float]] = {"moved": [], "beside": [], "kappa": []}
    for alpha in s.alphas:
        # The loss of alpha f is divided by alpha^2, which is a step that is.
        pair = kc.networks.coupled(
            f.scaled(alpha), x, y, step=STEP / alpha**2, steps=s.steps, every=s.steps
        )
        found["moved"].append(float(pair.moved[-1]))
        found["beside"].append(float(pair.apart[-1]))
        found["kappa"].append(float(kc.networks.laziness(f.scaled(alpha), x, y).kappa))
    return {key: np.array(values) for key, values in found.items()}


def _wide(s: Settings, seed: int) -> dict[str, Array]:
    """Return kappa(w0) in both parameterisations, and relative changes of weights, by width."""
    x, y, _ = _sample(s, seed)
    found: dict[str, list[Any]] = {"ntk": [], "standard": [], "weights": []}
    for width in s.wide:
        for how in ("ntk", "standard"):
            f = _two_layers(kc.Tanh()).sample(
                width, seed=seed, shape=s.dim, doubled=True, parameterization=how
            )
            found[how].append(float(kc.networks.laziness(f, x, y).kappa))
        f = DEEP.sample(width, seed=seed, shape=s.dim)
        end = kc.networks.train(
            f, x, y, step=STEP, steps=s.steps, every=s.steps, progress=False
        ).network
        found["weights"].append([
            float(norm(b.w - a.w) / norm(a.w)) for a, b in zip(f.weights, end.weights, strict=True)
        ])  # fmt: skip
    return {key: np.array(values) for key, values in found.items()}


def _ensemble(s: Settings) -> dict[str, Array]:
    """Return outputs of many networks before and after training, and the band of infinite width."""
    net = _two_layers(kc.Relu())
    x, y, z = _sample(s, 0)
    z, steps = z[:8], 100
    time = steps * STEP / s.points  # the loss of train is a mean
    theory = kc.solvers.ensemble_flow(
        net.ntk(x), net.nngp(x), y, [0.0, time], ntk_test=net.ntk(z, x),
        nngp_test=net.nngp(z, x), nngp_test_test=net.nngp.diag(z),
    )  # fmt: skip
    outputs = np.empty((2, s.networks, len(z)))
    for k in range(s.networks):
        f = net.sample(s.band, seed=1000 + k, shape=s.dim)
        end = kc.networks.train(f, x, y, step=STEP, steps=steps, every=steps, progress=False)
        outputs[0, k], outputs[1, k] = f(z), end.network(z)
    return {
        "outputs": outputs, "band_mean": np.asarray(theory.test_mean),
        "band_variance": np.asarray(theory.test_variance),
    }  # fmt: skip


def _start(s: Settings, seed: int) -> dict[str, Array]:
    """Return norms that descent on a linear model ends with, over those that theory says."""
    x, y, _ = _sample(s, seed)
    f = _two_layers(kc.Tanh()).sample(40, seed=seed, shape=s.dim, doubled=True)
    linear, J = f.linearize(), f.jacobian(x)
    rng = seeds(s.seed, 13, seed)
    start = rng.standard_normal(f.theta.size)
    start /= norm(start)
    least = lstsq(J, y)
    unseen = start - lstsq(J, J @ start)
    ratios = []
    for size in STARTS:
        begin = linear.at(f.theta + size * start)
        end = kc.networks.train(
            begin, x, y, steps=20_000, tol=1e-7, every=20_000, progress=False
        ).network
        ratios.append(float(norm(end.theta - f.theta) / norm(least + size * unseen)))
    return {"ratios": np.array(ratios)}


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    arrays: dict[str, Array] = {}

    def stacked(found: list[dict[str, Array]], prefix: str = "") -> None:
        for name in found[0]:
            arrays[prefix + name] = np.stack([one[name] for one in found])

    each = range(s.seeds)
    for k, name in enumerate(ACTIVATIONS):
        keys = [("apart", name, seed) for seed in each]
        part = share(progress, 0.2 * k, 0.2 * k + 0.2)
        found = cells.map(lambda _, which, seed: _apart(s, which, seed), keys, part)
        stacked(found, f"{name}_")
    pair = share(progress, 0.4, 0.5)
    stacked(cells.map(lambda _, k: _scaled(s, k), [("scaled", k) for k in each], pair))
    pair = share(progress, 0.5, 0.7)
    stacked(cells.map(lambda _, k: _wide(s, k), [("wide", k) for k in each], pair))
    arrays |= cells.get(("ensemble",), lambda: _ensemble(s))
    pair = share(progress, 0.9, 1.0)
    stacked(cells.map(lambda _, k: _start(s, k), [("start", k) for k in each], pair))
    return Result("lazy", s, arrays)


def _rows(result: Result) -> list[tuple[str, str, float, float, Any, Array]]:
    """Return text, paper, predicted slope, tolerance, and x and y of every exponent."""
    s = Settings(**result.settings)
    rows: list[tuple[str, str, float, float, Any, Array]] = []
    for name, (_, predicted) in ACTIVATIONS.items():
        for key, what, room in (("near", "sup |NN − NT| on the sample", 0.15),
                                ("far", "sup |NN − NT| on the sphere", 0.15),
                                ("drift", "change of the tangent kernel", 0.25)):  # fmt: skip
            text = f"{what}, {name}, in the width"
            rows.append((text, LEE, predicted, room, s.widths, result[f"{name}_{key}"]))
    rows.append(("|θ − θ₀| in α", CHIZAT, -1.0, 0.1, s.alphas, result["moved"]))
    rows.append(("|θ − θ_lin| in α", CHIZAT, -2.0, 0.15, s.alphas, result["beside"]))
    rows.append(("κ(w₀) in α", CHIZAT, -1.0, 0.01, s.alphas, result["kappa"]))
    for how, predicted in (("ntk", -0.5), ("standard", -1.0)):
        text = f"κ(w₀) in the width, {how} parameterisation"
        rows.append((text, CHIZAT, predicted, 0.1, s.wide, result[how]))
    for layer, predicted in enumerate((-0.5, -1.0, -0.5)):
        text = f"relative change of weights in the width, layer {layer + 1} of 3"
        rows.append((text, LEE, predicted, 0.15, s.wide, result["weights"][:, :, layer]))
    return rows


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    found = []
    for text, paper, predicted, room, x, y in _rows(result):
        power, error = slopes(x, y)
        low, high = predicted - room - 2 * error, predicted + room + 2 * error
        found.append(Claim(f"exponent of {text}", paper, predicted, power, error, low, high))
    for k, when in enumerate(("before", "after")):
        spread = result["outputs"][k].var(0, ddof=1) / result["band_variance"][k]
        error = math.sqrt(2 / (s.networks - 1))
        text = f"variance of {s.networks} networks {when} training, of the predicted one"
        found.append(Claim.near(text, LEE, 1.0, float(spread.mean()), error))
    for k, size in enumerate(STARTS):
        ratio = result["ratios"][:, k]
        text = f"norm that descent on a linear model ends with, of the predicted, start {size:g}"
        error = float(ratio.std(ddof=1) / math.sqrt(len(ratio)))
        paper = "Zhang et al. 2017"
        found.append(Claim.near(text, paper, 1.0, float(ratio.mean()), error, 0.02))
    return found


def tables(result: Result) -> list[Table]:
    rows = [
        (text, signed(predicted, 2), plus_minus(*slopes(x, y), 3))
        for text, _, predicted, _, x, y in _rows(result)
    ]
    told = "Exponents of power laws: slopes in logarithms, mean ± standard error over seeds."
    return [Table(("quantity", "theory", "measured"), rows, told)]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    tanh, relu = (slopes(s.widths, result[f"{name}_far"])[0] for name in ACTIVATIONS)
    share_inside = np.mean(
        np.abs(result["outputs"][1] - result["band_mean"][1])
        <= 2 * np.sqrt(result["band_variance"][1])
    )
    return (
        "A network and its linearisation are trained side by side. The largest distance between "
        f"them over the sphere falls with the width as a power of {signed(tanh, 2)} for tanh and "
        f"{signed(relu, 2)} for ReLU; with the scale α of the output, parameters move as its power "
        f"{signed(slopes(s.alphas, result['moved'])[0], 2)} and leave the linear path as "
        f"{signed(slopes(s.alphas, result['beside'])[0], 2)}. Of the outputs of {s.networks} "
        f"trained networks, {100 * share_inside:.0f} % lie within two deviations of the prediction "
        "for infinite width."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    rows = _rows(result)
    with draw.style():
        fig = draw.figure(8.6)
        grid = fig.subplots(-(-len(rows) // 4), 4)
        for axes in grid.flat[len(rows) :]:
            axes.axis("off")
        for axes, (text, _, predicted, _, x, y) in zip(grid.flat, rows, strict=False):
            mean = np.exp(np.log(y).mean(0))
            axes.loglog(x, y.T, color="#cfcfcf", lw=0.8)
            axes.loglog(x, mean, ls="", marker="o", ms=4.5, color=draw.BLUE)
            line = mean[-1] * (np.array(x) / x[-1]) ** predicted
            axes.loglog(x, line, color=draw.VERMILLION, ls="--", lw=1.3)
            scale = "α" if " in α" in text else "width"
            what, _, detail = text.partition(" in α" if scale == "α" else " in the width")
            title = what.rstrip(",") + (f"\n{detail.removeprefix(', ')}" if detail else "")
            axes.set_title(title, fontsize=8)
            power = slopes(x, y)[0]
            axes.text(0.04, 0.06, f"{signed(power, 2)} ({signed(predicted, 2)})",
                      transform=axes.transAxes, fontsize=8.5)  # fmt: skip
            axes.set_xlabel(scale, fontsize=8.5)
            axes.tick_params(labelsize=7.5)
            draw.ticks(axes.xaxis, x[::2])
        draw.plain_powers(fig)
    return [
        Picture(
            "slopes", fig,
            "Each panel: seeds (grey), their geometric mean (points), and the predicted power "
            "through the last point (dashed); in the corner the measured exponent and, in "
            "parentheses, the predicted one.",
            "Fourteen log-log panels of falling straight lines",
        )
    ]  # fmt: skip
