"""Networks of which only some layers are trained: frozen features, and less lazy ones (F10).

Rahimi and Recht (2008); Lee et al. (2018); Bietti and Mairal (2019). A top layer that is trained on
random deep features is a kernel machine, whose kernel tends to the NNGP as they become more. On the
features of a network that was trained elsewhere, on other classes, it is a machine with another
kernel, which helps where features are hard to find: here in images with noise in their high
frequencies. Where only some layers of a network are trained, a lazy one learns what the tangent
kernel of these layers says; one that is less lazy gains by its first layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelcore as kc

from .._types import Array
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import many_small, mean_and_error, seeds, slopes, taught
from ._words import listed, plus_minus, signed

TITLE = "Frozen layers"
RAHIMI, CHIZAT = "Rahimi and Recht 2008", "Chizat, Oyallon and Bach 2019"
GHORBANI = "Ghorbani, Mei, Misiakiewicz and Montanari 2020"
CLASSES = 5
"""Of digits: the first are learned elsewhere, the others here."""
FEATURES = ("random", "learned elsewhere", "kernel")
LAYERS = {
    "first": (0,), "second": (1,), "top": (2,), "first and second": (0, 1), "all": (0, 1, 2)
}  # fmt: skip
"""Of the three layers of weights of a network, those that are trained."""


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Of the images of classes that are learned elsewhere, ``held`` say when to stop.

    ``start`` is the scale of the first and the last weights of that network: a small one learns
    features. ``scales`` are those of students, a small and a large one.
    """

    levels: tuple[float, ...] = (0.0, 2.0)
    sizes: tuple[int, ...] = (25, 50, 100, 200, 400)
    width: int = 100
    start: float = 0.1
    step: float = 3e-3
    decay: float = 1e-3
    batch: int = 100
    steps: int = 600
    held: int = 150
    draws: int = 5
    counts: tuple[int, ...] = (50, 150, 450, 1350)
    n: int = 200
    ridge: float = 0.1
    dim: int = 20
    teacher: int = 3
    sample: int = 200
    test: int = 1000
    students: int = 32
    scales: tuple[float, ...] = (0.1, 30.0)
    descent: int = 600
    student_draws: int = 4


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seed 100
    "paper": Settings(
        levels=(0.0, 1.0, 2.0, 3.0), draws=20, counts=(50, 150, 450, 1350, 4050), dim=100,
        sample=1000, students=100, descent=2000, student_draws=10,
    ),
}  # fmt: skip
SECONDS = {"small": 10.0, "paper": 1200.0}


def _net(start: float) -> kc.Sequential:
    return kc.Sequential(
        kc.Dense(start * 2**0.5), kc.Relu(), kc.Dense(2**0.5), kc.Relu(), kc.Dense(start)
    )


NET = _net(1.0)


def _images(s: Settings, level: float, draw: int) -> tuple[Array, Array]:
    """Return images with noise as rows, in an order of their own, and their classes."""
    rng = seeds(s.seed, 1, draw)
    x, y = kc.data.digits()
    order = rng.permutation(len(x))
    images = x[order].reshape(-1, 8, 8, 1) / 16
    x = kc.data.frequency_noise(images, level, radius=7, seed=rng).reshape(len(x), -1)
    return x / np.sqrt(np.square(x).mean()), y[order]


def _one_hot(labels: Array) -> Array:
    return np.eye(CLASSES)[labels] - 1 / CLASSES


def _elsewhere(s: Settings, x: Array, y: Array, draw: int) -> tuple[Any, Any]:
    """Return a network before and after it was trained on these images."""
    start = _net(s.start).sample(
        s.width, seed=seeds(s.seed, 2, draw), shape=x.shape[1], outputs=CLASSES,
        parameterization="standard",
    )  # fmt: skip
    target, held = _one_hot(y), s.held
    found = kc.networks.train(
        start, x[held:], target[held:], method="adam", step=s.step, decay=s.decay, batch=s.batch,
        steps=s.steps, every=max(1, s.steps // 30), validation=(x[:held], target[:held]),
        patience=15, seed=seeds(s.seed, 3, draw), progress=False,
    )  # fmt: skip
    return start, found.network


def _transferred(s: Settings, level: float, draw: int) -> dict[str, Array]:
    """Return accuracies of a top layer on features: random ones, those learned elsewhere, NNGP."""
    x, y = _images(s, level, draw)
    there, here = y < CLASSES, y >= CLASSES
    start, found = _elsewhere(s, x[there], y[there], draw)
    x, y = x[here], y[here] - CLASSES
    most = max(s.sizes)
    learned, test = x[:most], x[most:]
    units = [
        [kc.features.FrozenFeatures(f).fit(x).transform(part) for part in (learned, test)]
        for f in (start, found)
    ]
    K, K_test = NET.nngp(learned), NET.nngp(test, learned)
    right = np.empty((len(FEATURES), len(s.sizes)))
    for k, n in enumerate(s.sizes):
        target = _one_hot(y[:n])
        guesses = [
            kc.features.ridge_features(None, z[:n], target, "loo").predict(tested)
            for z, tested in units
        ]
        path = kc.solvers.RidgePath(K[:n, :n], target)
        guesses.append(K_test[:, :n] @ path.alpha(path.best("loo")))
        right[:, k] = [np.mean(guess.argmax(1) == y[most:]) for guess in guesses]
    return {"right": 100 * right}


def _random(s: Settings, draw: int) -> dict[str, Array]:
    """Return distances of predictions from random deep features to those of the NNGP."""
    x, y = _images(s, 0.0, draw)
    learned, test, target = x[: s.n], x[s.n :], np.eye(10)[y[: s.n]] - 0.1
    kernel = NET.nngp
    limit = kernel(test, learned) @ kc.solvers.ridge(kernel(learned), target, s.ridge)
    apart = []
    for count in s.counts:
        features = kc.features.SampledFeatures(NET, count, seed=seeds(s.seed, 4, draw, count))
        fit = kc.features.ridge_features(features.fit(learned), learned, target, s.ridge)
        apart.append(np.sqrt(np.square(fit.predict(test) - limit).mean() / np.square(limit).mean()))
    return {"apart": np.array(apart)}


def _student(s: Settings, name: str, draw: int) -> dict[str, Array]:
    """Return test errors with some layers trained, at all scales, and of their tangent kernel."""
    _, x, y, z, wanted = taught(seeds(s.seed, 5, draw), s.dim, s.teacher, s.sample, s.test)
    net = NET.sample(s.students, seed=seeds(s.seed, 6, draw), shape=s.dim, doubled=True)
    start = net.training(*LAYERS[name])
    step = 0.5 * kc.networks.largest_step(start, x)
    errors = []
    for alpha in s.scales:
        # As in ``rich``: the loss is divided by alpha^2, and by alpha where that is small.
        found = kc.networks.train(
            start.scaled(alpha), x, y, step=step / max(alpha, 1.0) ** 2 / min(alpha, 1.0),
            steps=s.descent, every=s.descent, progress=False,
        ).network  # fmt: skip
        errors.append(np.square(found(z) - wanted).mean() / wanted.var())
    K, time = start.ntk(x), step * s.descent / s.sample
    flow = kc.solvers.gradient_flow(K, y, [time], K_test=start.ntk(z, x))
    errors.append(np.square(np.asarray(flow.test)[0] - wanted).mean() / wanted.var())
    return {"errors": np.array(errors)}


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    noisy = [("elsewhere", level, k) for level in s.levels for k in range(s.draws)]
    found = cells.map(lambda _, *key: _transferred(s, *key), noisy, share(progress, 0.0, 0.4))
    right = np.array([one["right"] for one in found])
    draws = [("random", k) for k in range(s.draws)]
    near = cells.map(lambda _, k: _random(s, k), draws, share(progress, 0.4, 0.6))
    some = [("layers", name, k) for name in LAYERS for k in range(s.student_draws)]
    students = cells.map(lambda _, *key: _student(s, *key), some, share(progress, 0.6, 1.0))
    errors = np.array([one["errors"] for one in students])
    return Result("frozen", s, {
        "right": np.moveaxis(right.reshape(len(s.levels), s.draws, *right.shape[1:]), 1, -1),
        "apart": np.array([one["apart"] for one in near]),
        "errors": errors.reshape(len(LAYERS), s.student_draws, -1).transpose(0, 2, 1),
    })  # fmt: skip


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    power, error = slopes(s.counts, result["apart"])
    text = "exponent of the distance of random deep features from their NNGP in their number"
    found = [Claim.near(text, RAHIMI, -0.5, power, error, 0.2)]
    gain = result["right"][-1, 1] - result["right"][-1, 0]
    mean, error = mean_and_error(gain.mean(0))
    text = (
        "points of accuracy that features learned on other classes gain over random ones, at "
        f"noise {s.levels[-1]:g}"
    )
    found.append(Claim(text, GHORBANI, None, mean, error, 2 * error, np.inf))
    text = "test errors of lazy networks with some layers trained, of their tangent kernels'"
    lazy, kernel = result["errors"][:, 1], result["errors"][:, -1]
    ratio, error = mean_and_error(lazy / kernel)
    found.append(Claim.curve(text, CHIZAT, np.ones(len(ratio)), ratio, error))
    names = list(LAYERS)
    for name, bounds in (("first", (0.0, 0.5)), ("top", (0.5, np.inf))):
        rich_ones = result["errors"][names.index(name), 0]
        mean, error = mean_and_error(rich_ones / result["errors"][names.index(name), -1])
        text = (
            f"test error of a small start over the tangent kernel's, {name} layer trained: "
            + ("at most" if name == "first" else "at least") + " a half"
        )  # fmt: skip
        found.append(Claim(text, CHIZAT, None, mean, error, *bounds))
    return found


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    rows = [
        (f"{level:g}", name,
         *(plus_minus(*mean_and_error(one), 1) for one in result["right"][k, j]))
        for k, level in enumerate(s.levels)
        for j, name in enumerate(FEATURES)
    ]  # fmt: skip
    head = ("noise", "features", *(f"n = {n}" for n in s.sizes))
    told = (
        f"Accuracy in per cent on the digits {CLASSES} to 9 of a top layer trained on n of them, "
        f"mean ± standard error over {s.draws} draws."
    )
    layers = [
        (name, *(plus_minus(*mean_and_error(one), 3) for one in result["errors"][k]))
        for k, name in enumerate(LAYERS)
    ]
    columns = (*(f"α = {alpha:g}" for alpha in s.scales), "tangent kernel")
    caption = (
        "Relative test errors of students of which some layers are trained, mean ± standard error "
        f"over {s.student_draws} draws."
    )
    return [
        Table(head, rows, told, 2), Table(("layers trained", *columns), layers, caption)
    ]  # fmt: skip


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    names = list(LAYERS)
    small, lazy, kernel = (result["errors"][:, k].mean(-1) for k in (0, 1, -1))
    first, everything = names.index("first"), names.index("all")
    at = s.sizes.index(min(s.sizes, key=lambda n: abs(n - 100)))
    right = result["right"][:, :, at].mean(-1)
    told = [
        f"{right[k, 1]:.0f} % against {right[k, 0]:.0f} % at noise {level:g}"
        for k, level in enumerate(s.levels)
    ]
    return (
        f"Predictions from N random deep features approach those of the NNGP as N to the power "
        f"{signed(slopes(s.counts, result['apart'])[0], 2)}. A top layer on {s.width} units that "
        f"were trained on the digits 0 to {CLASSES - 1}, and then on {s.sizes[at]} images of the "
        f"others, is right on {listed(told)}, compared with the random units that training began "
        f"with. With the first layer alone trained, a student's relative test error is "
        f"{lazy[first]:.2f} at the large scale of the output ({kernel[first]:.2f} for the tangent "
        f"kernel of that layer) and {small[first]:.2f} at the small one, where training all layers "
        f"has {small[everything]:.2f}."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    s = Settings(**result.settings)
    looks = ((draw.ORANGE, "s"), (draw.BLUE, "o"), (draw.BLACK, ""))
    with draw.style():
        fig = draw.figure(3.9)
        levels = range(len(s.levels))[-3:]
        row = np.atleast_1d(fig.subplots(1, len(levels) + 1)).tolist()
        for axes, k in zip(row, levels, strict=False):
            axes.set(xscale="log", xlabel="images n")
            for j, (name, (color, mark)) in enumerate(zip(FEATURES, looks, strict=True)):
                mean, error = mean_and_error(result["right"][k, j])
                if mark:
                    label = f"{s.width} units, {name}"
                    draw.measured(axes, s.sizes, mean, error, color, mark, label, ls=":", lw=1)
                else:
                    draw.measured(axes, s.sizes, mean, error, color, ".", "NNGP kernel", ls="--",
                                  lw=1)  # fmt: skip
            draw.ticks(axes.xaxis, s.sizes)
            axes.set_title(f"Noise {s.levels[k]:g}", loc="left")
        row[0].set_ylabel("accuracy in per cent")
        row[0].legend(loc="lower right", fontsize=8.5)
        last = row[-1]
        last.set(xscale="log", yscale="log", xlabel="random features N", ylabel="relative distance")
        mean, error = mean_and_error(result["apart"], axis=0)
        counts = np.array(s.counts, float)
        draw.theory(last, counts, mean[-1] * (counts / counts[-1]) ** -0.5, draw.VERMILLION,
                    "slope −1/2", ls="--", lw=1.2)  # fmt: skip
        draw.measured(last, counts, mean, error, draw.ORANGE, "s", "deep features")
        draw.ticks(last.xaxis, s.counts)
        draw.ticks(last.yaxis, (0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8))
        last.set_title("To the NNGP", loc="left")
        last.legend(fontsize=8.5)
        layers = draw.figure(3.4)
        axes = layers.subplots()
        shown = (
            *((f"network, α = {alpha:g}", color, mark) for alpha, color, mark in zip(
                s.scales, (draw.GREEN, draw.BLUE), ("D", "o"), strict=False)),
            ("tangent kernel", draw.VERMILLION, "_"),
        )  # fmt: skip
        spots = np.arange(len(LAYERS))
        axes.set_yscale("log")
        for k, (label, color, mark) in enumerate(shown):
            mean, error = mean_and_error(result["errors"][:, k])
            more = {"ms": 16, "mew": 2} if mark == "_" else {"ms": 6}
            draw.measured(axes, spots, mean, error, color, mark, label, **more)
        axes.set_xticks(spots, list(LAYERS))
        axes.set(xlabel="layers of weights that are trained", ylabel="relative test error",
                 xlim=(-0.5, len(LAYERS) - 0.5))  # fmt: skip
        draw.ticks(axes.yaxis, (0.02, 0.05, 0.1, 0.2, 0.5, 1))
        axes.legend(loc="lower center", ncols=3, bbox_to_anchor=(0.5, 1.0))
    return [
        Picture(
            "features", fig,
            f"Left and middle: accuracy on the digits {CLASSES} to 9 of a top layer trained on n "
            f"images, on the units of a network that was trained on the digits 0 to {CLASSES - 1}, "
            "on the random units that it began with, and with the kernel of infinitely many, for "
            "images without noise and with noise in the high frequencies. Right: distance of "
            "predictions from N random deep features to those of the NNGP. Standard errors over "
            f"{s.draws} draws.",
            "Accuracy rising with n; features learned elsewhere help where there is noise",
        ),
        Picture(
            "layers", layers,
            f"Relative test errors of students with two hidden layers in d = {s.dim} dimensions, "
            "of which only some layers are trained, from a large and from a small scale of the "
            f"output, and of the tangent kernel of these layers; standard errors over "
            f"{s.student_draws} draws.",
            "Errors of five choices of layers; a small scale gains where the first is trained",
        ),
    ]  # fmt: skip
