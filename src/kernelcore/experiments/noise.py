"""Noise in the high frequencies of images: networks against kernels (E4, E16).

Ghorbani, Mei, Misiakiewicz and Montanari (2020). Images have most of their variance in low
frequencies, and labels depend on these: images are spiked covariates. Noise in the high frequencies
lowers the signal-to-noise ratio of the covariates, so that kernels need more and more samples; a
network that learns its features looks past it, and its lead over the kernels grows with the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelcore as kc

from .._types import Array
from ..linalg import eigh
from . import _base, _given
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import many_small, mean_and_error, seeds
from ._words import listed, plus_minus, signed

TITLE = "Noise in high frequencies"
PAPER = "Ghorbani, Mei, Misiakiewicz and Montanari 2020"
METHODS = ("NN", "NT", "RF", "NT kernel", "RF kernel")
RIDGES = (1e-3, 1e-2, 0.1, 1.0, 10.0)  # times the mean of the diagonal
QUARTER = 0.25
"""The share of frequencies that claims are about."""


@dataclass(frozen=True)
class Settings(_base.Settings):
    """``data`` is a folder with Fashion-MNIST, or CIFAR-10; the digits stand in where it is empty.

    Of ``n`` images ``held`` choose ridges and the end of training. ``start`` is the scale of the
    first weights: a small one learns features. Images are averaged over ``shrink`` x ``shrink``
    pixels.
    """

    data: str = ""
    shipped: bool = True
    shrink: int = 1
    n: int = 1200
    held: int = 200
    test: int = 597
    levels: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0)
    shares: tuple[float, ...] = (0.03, 0.06, 0.125, 0.25, 0.5, 1.0)
    draws: int = 4
    width: int = 64
    start: float = 0.03
    step: float = 3e-3
    decay: float = 1e-3
    steps: int = 1000
    batch: int = 100


PRESETS = {
    "small": Settings(),  # what is set was chosen on the validation parts of draws of seed 100
    "fashion": Settings(
        shipped=False, shrink=2, n=5000, held=1000, test=4000, draws=2, width=128, step=3e-4,
        steps=2000, batch=200,
    ),
    "paper": Settings(
        shipped=False, n=20_000, held=2000, test=10_000, levels=(0.0, 0.6, 1.2, 1.8, 2.4, 3.0),
        draws=1, width=512, step=3e-4, steps=4000, batch=500,
    ),
}  # fmt: skip
SECONDS = {"small": 15.0, "fashion": 240.0, "paper": 3600.0}


class _Parts:
    """Images to learn from, those that choose, and those of the test, as rows of single numbers."""

    def __init__(self, s: Settings, given: _given.Given, draw: int) -> None:
        x, y, z, wanted = _given.divided(given, s.n, s.test, seeds(s.seed, draw))
        # Grey, as in the paper.
        self.x, self.z = (_given.shrunk(one.mean(3, keepdims=True), s.shrink) for one in (x, z))
        self.held, self.y, self.wanted, self.draw = s.held, y, wanted, draw
        self.s = s

    def noisy(self, level: float) -> tuple[Array, Array]:
        """Return the images of both parts with noise, which is new in each of them."""
        rng = seeds(self.s.seed, self.draw, round(1000 * level))
        radius = self.x.shape[1] - 1  # 27 for 28 x 28 pixels
        x, z = (
            kc.data.frequency_noise(one, level, radius=radius, seed=rng) for one in (self.x, self.z)
        )
        return x, z

    def kernel(self, kernel: Any, x: Array, z: Array) -> float:
        """Return the accuracy of kernel ridge regression, with the ridge that validation chose."""
        x, z = x.reshape(len(x), -1), z.reshape(len(z), -1)
        target = np.eye(self.y.max() + 1)[self.y] - 0.1
        K = np.asarray(kernel(x), np.float64)
        learned, held = slice(self.held, None), slice(0, self.held)
        found = []
        for ridge in RIDGES:
            alpha = kc.solvers.ridge(
                K[learned, learned], target[learned], ridge * float(K.diagonal().mean())
            )
            guess = K[held, learned] @ alpha
            right = np.mean(guess.argmax(1) == self.y[held])
            found.append((right, -np.square(guess - target[held]).sum(), alpha))
        alpha = max(found, key=lambda one: one[:2])[-1]
        return float(np.mean((kernel(z, x[learned]) @ alpha).argmax(1) == self.wanted))

    def network(self, start: Any, x: Array, z: Array) -> float:
        """Return the accuracy of a network, as it was when validation images were fitted best."""
        s = self.s
        x, z = x.reshape(len(x), -1), z.reshape(len(z), -1)
        target = np.eye(self.y.max() + 1, dtype=x.dtype)[self.y] - x.dtype.type(0.1)
        trained = kc.networks.train(
            start, x[s.held :], target[s.held :], method="adam", step=s.step, decay=s.decay,
            batch=s.batch, steps=s.steps, every=max(1, s.steps // 40),
            validation=(x[: s.held], target[: s.held]), patience=10, seed=self.draw, progress=False,
        ).network  # fmt: skip
        return float(np.mean(trained(z).argmax(1) == self.wanted))


def _spectrum(images: Array) -> Array:
    """Return the eigenvalues of the covariance, falling, as shares of their sum."""
    x = images.reshape(len(images), -1).astype(np.float64)
    x -= x.mean(0)
    values = np.maximum(eigh(x.T @ x)[0][::-1], 0)
    return values / values.sum()


def _variance(images: Array, part: float, *, highest: bool = False) -> float:
    """Return the share of the variance in the lowest, or highest, part of the frequencies."""
    centred = images - images.mean(0)
    kept = _given.band(centred, part, highest=highest)
    return float(np.square(kept).sum() / np.square(centred).sum())


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    given = _given.read(s.data, s.shipped)

    def compared(_: str, level: float, draw: int) -> dict[str, Any]:
        parts = _Parts(s, given, draw)
        x, z = parts.noisy(level)
        classes = int(parts.y.max()) + 1
        net = kc.Sequential(kc.Dense(s.start * 2**0.5), kc.Relu(), kc.Dense(s.start))
        start = net.sample(
            s.width, seed=draw, shape=x[0].size, dtype=x.dtype, outputs=classes,
            parameterization="standard",
        )  # fmt: skip
        limit = kc.presets.mlp(1)
        wide = limit.sample(s.width, seed=draw, shape=x[0].size, dtype=x.dtype)
        kernels = wide.ntk, wide.conjugate(), limit.ntk, limit.nngp
        right = [parts.network(start, x, z), *(parts.kernel(k, x, z) for k in kernels)]
        return {"accuracy": 100 * np.array(right)}

    def filtered(_: str, part: float, draw: int) -> dict[str, Any]:
        parts, kernel = _Parts(s, given, draw), kc.presets.mlp(1, b_std=0.1).ntk
        right = [
            parts.kernel(kernel, *(_given.band(one, part, highest=highest)
                                   for one in (parts.x, parts.z)))
            for highest in (False, True)
        ]  # fmt: skip
        return {"accuracy": 100 * np.array(right)}

    draws = range(s.draws)
    keys = [("noise", level, k) for level in s.levels for k in draws]
    found = cells.map(compared, keys, share(progress, 0.0, 0.7))
    keys = [("kept", part, k) for part in s.shares for k in draws]
    low = cells.map(filtered, keys, share(progress, 0.7, 1.0))
    first = _Parts(s, given, 0)
    noisy = [first.noisy(level)[0] for level in s.levels]
    shown = [int(np.flatnonzero(first.y == label)[0]) for label in np.unique(first.y)[:4]]
    at = np.linspace(0.01, 1.0, 60)
    return Result("noise", s, {
        "name": given.name,
        "accuracy": np.array([one["accuracy"] for one in found]).reshape(
            len(s.levels), s.draws, len(METHODS)),
        "kept": np.array([one["accuracy"] for one in low]).reshape(len(s.shares), s.draws, 2),
        "eigenvalues": np.array([_spectrum(x) for x in noisy]),
        "part": at, "variance": np.array([[_variance(x, a) for a in at] for x in noisy]),
        "quarters": [
            [_variance(_Parts(s, given, k).x, QUARTER, highest=highest) for k in draws]
            for highest in (False, True)
        ],
        "examples": np.array([x[shown, :, :, 0] for x in noisy]),
    })  # fmt: skip


def _leads(result: Result) -> tuple[Array, Array, Array]:
    """Return the lead of the network over the NT kernel in points, by level and draw; and bars."""
    a = result["accuracy"]
    lead = a[..., METHODS.index("NN")] - a[..., METHODS.index("NT kernel")]
    return (lead, *mean_and_error(lead))


def _growth(result: Result) -> tuple[float, float]:
    """Return points of lead that a unit of noise adds, and the standard error of that."""
    lead, levels = _leads(result)[0], np.array(result.settings["levels"])
    found = np.polyfit(levels, lead, 1)[0]
    error = float(found.std(ddof=1) / math.sqrt(len(found))) if len(found) > 1 else 0.0
    return float(found.mean()), error


def _at_quarter(result: Result) -> tuple[Array, Array]:
    """Return what is lost with the lowest quarter of frequencies alone, and with the highest."""
    shares = list(result.settings["shares"])
    quarter, whole = (result["kept"][shares.index(one)] for one in (QUARTER, 1.0))
    return whole[:, 0] - quarter[:, 0], whole[:, 0] - quarter[:, 1]


def claims(result: Result) -> list[Claim]:
    _, mean, error = _leads(result)
    last = np.nan_to_num(error[-1])
    slope, doubt = _growth(result)
    low, high = _at_quarter(result)
    (lost, error_lost), (apart, error_apart) = map(mean_and_error, (low, high - low))
    error_lost, error_apart = np.nan_to_num([error_lost, error_apart])
    ratio, error_ratio = mean_and_error(result["quarters"][0] / result["quarters"][1])
    error_ratio = np.nan_to_num(error_ratio)
    return [
        Claim("points by which the network is ahead of its NT kernel at the largest noise", PAPER,
              None, mean[-1], last, 2 * last, math.inf),
        Claim("lead of the network over its NT kernel, points that each unit of noise adds", PAPER,
              None, slope, doubt, 2 * doubt, math.inf),
        Claim("variance of images in the lowest quarter of frequencies, over that in the highest",
              PAPER, None, ratio, error_ratio, 1 + 2 * error_ratio, math.inf),
        Claim("points that a kernel loses when it sees the lowest quarter of frequencies alone",
              PAPER, 0.0, lost, error_lost, -math.inf, max(5.0, 2 * error_lost)),
        Claim("points by which the lowest quarter alone is ahead of the highest quarter alone",
              PAPER, None, apart, error_apart, 2 * error_apart, math.inf),
    ]  # fmt: skip


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    rows = []
    for level, accuracy in zip(s.levels, result["accuracy"], strict=True):
        mean, error = mean_and_error(accuracy, axis=0)
        rows.append((f"{level:g}", *map(plus_minus, mean, np.nan_to_num(error), [1] * len(mean))))
    told = (
        f"Images of the test that are read right, in %: {result['name']}, n = {s.n - s.held:,}, "
        f"mean ± standard error of {s.draws} draws."
    )
    return [Table(("noise ε", *METHODS), rows, told)]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    accuracy = result["accuracy"].mean(1)
    slope, error = _growth(result)
    low, high = (one.mean() for one in _at_quarter(result))
    lowest, highest = result["quarters"].mean(1)
    first, last = (
        f"{row[METHODS.index('NN')]:.1f} % against {row[METHODS.index('NT kernel')]:.1f} %"
        for row in accuracy[[0, -1]]
    )
    stand_in = "" if s.data else ", which ship with the package and stand in for Fashion-MNIST"
    smaller = f", averaged over {s.shrink} × {s.shrink} pixels" if s.shrink > 1 else ""
    return (
        f"Images are {result['name']}{stand_in}{smaller}. The lowest quarter of their frequencies "
        f"has {100 * lowest:.0f} % of their variance, the highest "
        f"{100 * highest:.1f} %. A kernel that sees the lowest quarter alone loses "
        f"{signed(low, 1)} points of accuracy, and {signed(high, 1)} points with the highest. "
        "Noise of ε times the norm of an image fills the high "
        f"frequencies. Without noise the network reads {first} of its NT kernel, and with "
        f"ε = {s.levels[-1]:g} {last}: each unit of noise adds {plus_minus(slope, error, 1)} "
        f"points to its lead. All learn from {s.n - s.held:,} images, and {s.held:,} others choose "
        f"ridges and the end of training. The network, of {s.width} units, starts from weights "
        f"{s.start:g} times as large as usual, so that it learns its "
        "features. NT and RF are tangent and random features of as many units."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw
    from ._draw import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, STEPS, VERMILLION

    s = Settings(**result.settings)
    mean, error = mean_and_error(result["accuracy"], axis=1)
    with draw.style():
        fig = draw.figure(4.0)
        left, right = fig.subplots(1, 2)
        five = ((BLACK, "*"), (ORANGE, "s"), (VERMILLION, "^"), (BLUE, "o"), (SKY, "D"))
        for k, (name, (color, mark)) in enumerate(zip(METHODS, five, strict=True)):
            look = {"ls": "-" if k == 0 else ":", "lw": 1.2}
            bars = np.nan_to_num(error[:, k])
            draw.measured(left, s.levels, mean[:, k], bars, color, mark, name, **look)
        left.set(xlabel="noise ε", ylabel="test images read right in %")
        left.set_title("Accuracy", loc="left")
        left.legend()
        _, lead, bars = _leads(result)
        draw.measured(right, s.levels, lead, np.nan_to_num(bars), BLACK, "*", ls="-", lw=1.2)
        right.axhline(0, color=GREY, lw=1)
        right.set(xlabel="noise ε", ylabel="points")
        right.set_title("Lead of the network over the NT kernel", loc="left")

        low = draw.figure(3.8)
        first, second, third = low.subplots(1, 3)
        for k, level in enumerate(s.levels):
            color = STEPS[3 - k % 4]
            values = result["eigenvalues"][k]
            values = values[values > 1e-6]
            first.loglog(np.arange(1, len(values) + 1), values, color=color, label=f"ε = {level:g}")
            second.plot(100 * result["part"], 100 * result["variance"][k], color=color)
        first.set(xlabel="rank", ylabel="share of the variance")
        first.set_title("Covariance", loc="left")
        first.legend(loc="lower left")
        second.plot([0, 100], [0, 100], color=GREY, ls="--", lw=1)
        second.set(xlabel="lowest frequencies in %", ylabel="variance in %", ylim=(0, 103))
        second.set_title("Where images vary", loc="left")
        kept = mean_and_error(result["kept"], axis=1)
        looks = (("lowest", GREEN, "o"), ("highest", VERMILLION, "^"))
        for k, (name, color, mark) in enumerate(looks):
            bars = np.nan_to_num(kept[1][:, k])
            x = 100 * np.array(s.shares)
            draw.measured(third, x, kept[0][:, k], bars, color, mark, name, ls=":", lw=1)
        third.set(xscale="log", xlabel="frequencies kept in %", ylabel="read right in %",
                  ylim=(0, 103))  # fmt: skip
        draw.ticks(third.xaxis, [100 * one for one in s.shares])
        third.set_title("What labels depend on", loc="left")
        third.legend()
        draw.plain_powers(low)
        shown = _examples(result["examples"], s.levels)
    told = f"mean and standard error of {s.draws} draws"
    return [
        Picture(
            "accuracy", fig,
            f"Left: accuracy of a trained network (NN), its tangent and random features (NT, RF) "
            f"and their kernels against the noise in the high frequencies of images; {told}. "
            f"Right: by how many points the network is ahead. Images: {result['name']}.",
            "Accuracies that fall with noise, that of the network least; its lead, which grows",
        ),
        Picture(
            "spectrum", low,
            "Left: eigenvalues of the covariance of images, by rank, without noise and with it. "
            "Middle: the share of the variance in the lowest frequencies of the cosine basis; "
            "dashed, for white noise. Right: accuracy of an NTK on images of which only the lowest "
            f"or the highest frequencies are kept; {told}.",
            "Spectra of images, which fall steeply; accuracy against the frequencies that are kept",
        ),
        Picture(
            "examples", shown,
            f"Images as learners see them, with noise ε = {listed([f'{v:g}' for v in s.levels])}.",
            "Rows of images, from clean to noisy",
        ),
    ]  # fmt: skip


def _examples(images: Array, levels: tuple[float, ...]) -> Any:
    """Draw images in columns, with more noise further right: each level has all of them."""
    from . import _draw as draw

    fig = draw.figure(2.6)
    parts = np.atleast_1d(np.asarray(fig.subfigures(1, len(levels))))
    for part, some, level in zip(parts, images, levels, strict=True):
        part.suptitle(f"ε = {level:g}", fontsize=11)
        for axes, image in zip(part.subplots(2, 2).ravel(), some, strict=True):
            axes.imshow(image, cmap="Greys")
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
            axes.spines[:].set(visible=True, color=draw.GREY, linewidth=0.6)
    return fig
