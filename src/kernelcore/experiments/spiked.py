"""Spiked covariates: kernels see an effective dimension, networks the dimension of the signal (E3).

Ghorbani, Mei, Misiakiewicz and Montanari (2020). The first d_s coordinates of an input, on which
alone the target depends, have a variance that is snr_c times that of the others. To learn degree l,
kernels need d_eff^l samples, d_eff = max(d_s, d / snr_c), and networks d_s^l. The product of two
spheres has an exact spectrum, which gives the whole curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import kernelcore as kc

from .._types import Array
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import grown, half_at, many_small, mean_and_error, ridge_errors, seeds
from ._words import listed, plus_minus

TITLE = "Spiked covariates"
PAPER = "Ghorbani, Mei, Misiakiewicz and Montanari 2020"
METHODS = ("NN", "NT", "RF", "KRR")


@dataclass(frozen=True)
class Settings(_base.Settings):
    """``ridge`` is relative to k(x, x); ``compared`` is the n at which methods are compared."""

    dim: int = 48
    signal_dim: int = 2
    snrs: tuple[float, ...] = (1.0, 4.0, 16.0)
    power: tuple[float, ...] = (0.0, 0.0, 1.0)
    depth: int = 2
    smallest: int = 40
    largest: int = 1000
    sizes: int = 6
    draws: int = 6
    test: int = 1500
    ridge: float = 1e-3
    compared: int = 900
    width: int = 32
    features: int = 1000
    step: float = 0.1
    steps: int = 1000
    batch: int = 150
    network_draws: int = 2


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seed 0
    "paper": Settings(
        dim=1024, signal_dim=16, snrs=(1.0, 4.0, 16.0, 64.0), power=(0.0, 0.0, 1.0, 1.0, 1.0),
        smallest=300, largest=20_000, sizes=7, draws=3, test=5000, compared=10_000, width=1024,
        features=8000, step=0.03, steps=2000, batch=500, network_draws=1,
    ),
}  # fmt: skip
SECONDS = {"small": 12.0, "paper": 3600.0}


def _sizes(s: Settings) -> list[int]:
    return grown(s.smallest, s.largest, s.sizes)


def _task(s: Settings, n: int, snr: float, draw: int) -> tuple[Array, Array, Array, Array]:
    """Return inputs and targets; they have the same signal directions at every snr."""
    f = kc.data.Chains(s.signal_dim, s.power, seed=seeds(s.seed, draw), law="sphere")
    rng = seeds(s.seed, draw, 1)
    x, z = (kc.data.spiked(m, s.dim, s.signal_dim, snr, seed=rng) for m in (n, s.test))
    return x, f(x), z, f(z)


def _fits(s: Settings, snr: float, draw: int) -> Array:
    """Return the test errors of a network, NT, RF and KRR at one n, relative to the target's."""
    x, y, z, wanted = _task(s, s.compared, snr, 500 + draw)
    x, z = x.astype(np.float32), z.astype(np.float32)
    held = len(x) // 10
    net = kc.Sequential(kc.Dense(2**0.5, b_std=0.1), kc.Relu(), kc.Dense())
    start = net.sample(s.width, seed=draw, shape=s.dim, dtype="float32", doubled=True)
    trained = kc.networks.train(
        start, x[held:], y[held:].astype(np.float32), method="adam", step=s.step,
        batch=min(s.batch, len(x) - held), steps=s.steps, every=25,
        validation=(x[:held], y[:held].astype(np.float32)), patience=20, seed=draw, progress=False,
    ).network  # fmt: skip
    guesses = [trained(z)]
    tangents = kc.features.TangentFeatures(s.width, b_std=0.1, seed=draw).fit(x)
    units = kc.features.NetworkFeatures(n_features=s.features, b_std=0.5, seed=draw).fit(x)
    for features in (tangents, units):
        guesses.append(kc.features.ridge_features(features, x, y, "loo").predict(z))
    k = kc.presets.mlp(s.depth).ntk
    K = k(x.astype(np.float64))
    alpha = kc.solvers.ridge(K, y, s.ridge * float(np.mean(K.diagonal())))
    guesses.append(k(z.astype(np.float64), x.astype(np.float64)) @ alpha)
    return np.array([np.square(g - wanted).mean() for g in guesses]) / sum(s.power)


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    ns, kernel = _sizes(s), kc.presets.mlp(s.depth).ntk

    def kernels(_: str, snr: float, draw: int) -> dict[str, Array]:
        x, y, z, wanted = _task(s, ns[-1], snr, draw)
        K = kernel(x)
        ridge = s.ridge * float(K.diagonal().mean())
        columns = y[:, None], wanted[:, None]
        return {"errors": ridge_errors(K, kernel(z, x), *columns, ns, ridge)[0] / sum(s.power)}

    def predicted(_: str, snr: float) -> dict[str, Array]:
        spectrum = kc.spectrum.spiked(kernel, s.dim, s.signal_dim, snr, max_degree=10)
        power, ridge = spectrum.target_power(s.power) / sum(s.power), s.ridge * spectrum.trace
        fine = np.geomspace(ns[0], ns[-1], 80)
        at = (ns, fine, float(s.compared))
        found = [kc.theory.learning_curve(spectrum, power, n, ridge) for n in at]
        return {"at": found[0], "line": found[1], "compared": found[2], "fine": fine}

    def compared(_: str, snr: float, draw: int) -> dict[str, Array]:
        return {"errors": _fits(s, snr, draw)}

    pairs = [(snr, draw) for snr in s.snrs for draw in range(s.draws)]
    found = cells.map(kernels, [("krr", *pair) for pair in pairs], share(progress, 0.0, 0.3))
    theory = cells.map(predicted, [("theory", snr) for snr in s.snrs], share(progress, 0.3, 0.5))
    pairs = [(snr, draw) for snr in s.snrs for draw in range(s.network_draws)]
    fits = cells.map(compared, [("fits", *pair) for pair in pairs], share(progress, 0.5, 1.0))
    shape = (len(s.snrs), s.draws, len(ns))
    errors = np.array([one["errors"] for one in found]).reshape(shape)
    most = np.array([one["errors"] for one in fits]).reshape(len(s.snrs), s.network_draws, 4)
    return Result("spiked", s, {
        "n": ns, "errors": np.moveaxis(errors, 1, 2), "fits": np.moveaxis(most, 1, 2),
        "fine": theory[0]["fine"], "predicted": np.array([one["at"] for one in theory]),
        "line": np.array([one["line"] for one in theory]),
        "compared": np.array([one["compared"] for one in theory]),
        "points": np.array([
            kc.data.spiked(300, s.dim, s.signal_dim, snr, seed=s.seed)[:, [0, -1]]
            for snr in (s.snrs[0], s.snrs[-1])
        ]),
    })  # fmt: skip


def _dimensions(s: Settings) -> Array:
    return kc.theory.spiked_dimension(s.dim, s.signal_dim, s.snrs)


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    found = []
    for k, snr in enumerate(s.snrs):
        mean, error = mean_and_error(result["errors"][k])
        text = f"KRR test error against n at snr_c = {snr:g}, on the curve of the product spectrum"
        found.append(Claim.curve(text, PAPER, result["predicted"][k], mean, error))
    last = result["errors"][:, -1].mean(-1)
    wrong = int(np.sum(np.diff(last) >= 0))
    found.append(Claim.order("KRR errors fall as snr_c grows, at the last n", PAPER, wrong))
    fits = result["fits"].mean(-1)
    gaps = fits[:, METHODS.index("KRR")] - fits[:, METHODS.index("NN")]
    text = "the network is ahead of KRR at the smallest snr_c, and its lead falls as snr_c grows"
    wrong = int(gaps[0] <= 0) + int(gaps[-1] >= gaps[0])
    found.append(Claim.order(text, PAPER, wrong))
    return found


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    fits = result["fits"]
    rows = [
        (f"{snr:g}", f"{dim:g}",
         *(plus_minus(one.mean(), one.std(ddof=1) if len(one) > 1 else 0.0, 3) for one in fits[k]),
         f"{result['compared'][k]:.3f}")
        for k, (snr, dim) in enumerate(zip(s.snrs, _dimensions(s), strict=True))
    ]  # fmt: skip
    head = ("snr_c", "d_eff", *METHODS, "KRR, predicted")
    told = f"Test errors at n = {s.compared:,}, mean ± deviation over {s.network_draws} draws."
    return [Table(head, rows, told, 2)]


def _halves(result: Result) -> str:
    """Return the n from which on KRR has an error of one half, as predicted, at each ratio."""
    told, fine = [], result["fine"]
    for line in result["line"]:
        if line[0] <= 0.5:
            told.append(f"fewer than {fine[0]:.0f}")
        else:
            at = half_at(fine, line)
            told.append(f"more than {fine[-1]:.0f}" if math.isnan(at) else f"{at:.0f}")
    return listed(told)


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    fits = result["fits"].mean(-1)
    first, last = (
        f"{fits[k, METHODS.index('NN')]:.2f} against {fits[k, METHODS.index('KRR')]:.2f}"
        for k in (0, -1)
    )
    return (
        f"Inputs have d = {s.dim} coordinates, of which the target reads d_s = {s.signal_dim}. "
        f"With signal-to-noise ratios of {listed([f'{snr:g}' for snr in s.snrs])} a kernel sees "
        f"{listed([f'{d:g}' for d in _dimensions(s)])} effective dimensions, and learns half "
        f"of the target from {_halves(result)} samples on. A network finds the signal by itself: "
        f"at n = {s.compared:,} its error is {first} of kernel ridge regression at the smallest "
        f"ratio, and {last} at the largest."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw
    from ._draw import BLACK, BLUE, GREEN, GREY, ORANGE, STEPS, VERMILLION

    s = Settings(**result.settings)
    with draw.style():
        fig = draw.figure(3.9)
        left, right = fig.subplots(1, 2)
        for k, (snr, dim) in enumerate(zip(s.snrs, _dimensions(s), strict=True)):
            color, log = STEPS[k % 4], math.log(dim)
            mean, error = mean_and_error(result["errors"][k])
            draw.theory(left, np.log(result["fine"]) / log, result["line"][k], color)
            label = f"snr_c = {snr:g}, d_eff = {dim:g}"
            draw.measured(left, np.log(result["n"]) / log, mean, error, color, "os^D"[k % 4], label)
        left.set(xlabel="log n / log d_eff", ylabel="KRR test error", ylim=(0, None))
        left.set_title("Kernel ridge regression", loc="left")
        left.legend()
        looks = ((BLACK, "*"), (ORANGE, "s"), (VERMILLION, "^"), (BLUE, "o"))
        right.set(xscale="log", xlabel="snr_c", ylim=(0, 1.35))
        right.set_title(f"At n = {s.compared:,}", loc="left")
        for j, (name, (color, mark)) in enumerate(zip(METHODS, looks, strict=True)):
            one = result["fits"][:, j]
            spread = one.std(-1, ddof=1) if one.shape[-1] > 1 else np.zeros(len(one))
            draw.measured(right, s.snrs, one.mean(-1), spread, color, mark, name, ls=":", lw=1)
        right.plot(s.snrs, result["compared"], color=BLUE, label="KRR, predicted")
        draw.ticks(right.xaxis, s.snrs)
        right.legend(ncols=2, loc="upper right")
        clouds, two = draw.panels(
            3.4, [f"snr_c = {snr:g}" for snr in (s.snrs[0], s.snrs[-1])],
            "a signal coordinate", "a noise coordinate", sharey=True,
        )  # fmt: skip
        for axes, points in zip(two, result["points"], strict=True):
            axes.plot(*points.T, ls="", marker=".", ms=4, color=GREEN)
            axes.axhline(0, color=GREY, lw=0.6)
            most = 1.1 * float(np.abs(result["points"]).max())
            axes.set(xlim=(-most, most), ylim=(-most, most), aspect="equal")
    return [
        Picture(
            "curves", fig,
            "Left: KRR test error against log n / log d_eff, points measured (mean and standard "
            f"error of {s.draws} draws), lines from the spectrum on the product of two spheres. "
            f"Right: a trained network (NN), its tangent features (NT), random features (RF) and "
            "the kernel at one n.",
            "Left, falling curves for several signal-to-noise ratios; right, errors of four "
            "methods against the ratio",
        ),
        Picture(
            "covariates", clouds,
            "Covariates: a signal coordinate against a noise coordinate of 300 inputs, at the "
            "smallest and the largest snr_c.",
            "Two clouds of points, round and stretched",
        ),
    ]  # fmt: skip
