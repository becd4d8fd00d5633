"""The time of a Gram matrix, next to plain NumPy and the matrix product alone.

This is the one experiment whose subject is time: its results differ from run to run.
"""

from __future__ import annotations

import inspect
import os
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import kernelcore as kc

from .._types import Array
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._draw import BLUE, GREY, VERMILLION, legend_below, panels, ticks
from ._words import scientific

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Speed of a Gram matrix"
CALLS = ("plain NumPy", "kernelcore", "X @ X.T alone")
ERRORS = ("apart in float32", "kernelcore", "NumPy", "NumPy off the diagonal", "apart in float64")


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Sizes, and how often the calls take turns; the fastest turn of each counts."""

    hidden: int = 3
    dims: tuple[int, ...] = (64, 784)
    sizes: tuple[int, ...] = (250, 500, 1000)
    rounds: int = 6
    images: tuple[int, ...] = (16, 256, 16)  # enough to time each of IMAGES


PRESETS = {"small": Settings(), "paper": Settings(sizes=(250, 500, 1000, 2000, 4000), rounds=8)}
SECONDS = {"small": 8, "paper": 90}


def numpy_ntk(x: Array, hidden: int) -> Array:
    """NTK of ReLU networks as one would write it in NumPy: whole arrays, one step per layer."""
    norm = np.linalg.norm(x, axis=1)
    unit = x / norm[:, None]
    s = np.clip(unit @ unit.T, -1, 1)
    t = s
    for _ in range(hidden):
        k0 = 1 - np.arccos(s) / np.pi
        s = np.minimum(s * k0 + np.sqrt(1 - s * s) / np.pi, 1)
        t = t * k0 + s
    return np.outer(norm, norm) / x.shape[1] * t


def fastest(calls: Sequence[Callable[[], Any]], rounds: int, repeats: int = 1) -> list[float]:
    """Return the seconds of the fastest run of each call; they take turns, some repeats each."""
    turns = [
        [timeit.repeat(call, number=1, repeat=repeats) for call in calls] for _ in range(rounds)
    ]
    return np.min(turns, axis=(0, 2)).tolist()


def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    """Time the three calls, and compare their values; then kernels of images, per pair."""
    s, cells = settings, cells or Cells()
    kernel = kc.presets.mlp(s.hidden).ntk

    def rows(d: int, n: int) -> dict[str, Any]:
        x = np.random.default_rng([s.seed, n, d]).standard_normal((n, d)).astype(np.float32)
        ours, theirs = kernel(x), numpy_ntk(x, s.hidden)  # this also warms up
        x64 = x.astype(np.float64)
        exact, other = kernel(x64), numpy_ntk(x64, s.hidden)
        away = ~np.eye(n, dtype=bool)
        calls = (lambda: numpy_ntk(x, s.hidden), lambda: kernel(x), lambda: x @ x.T)
        # After more than one call per turn the threads that the turn before left spinning are gone.
        seconds = fastest(calls, s.rounds, repeats=1 + 2000 // n)
        pairs = ((theirs, ours), (ours, exact), (theirs, exact), (theirs[away], exact[away]),
                 (other, exact))  # fmt: skip
        errors = [float(np.max(np.abs(a - b) / np.abs(b))) for a, b in pairs]
        return {"seconds": seconds, "errors": errors, "load": _load()}

    def images(word: str) -> dict[str, Any]:
        rng, shape = np.random.default_rng(s.seed), (max(s.images), 32, 32, 3)
        x = rng.standard_normal(shape).astype(np.float32)
        # Rectangles are timed, so that every pair counts.
        pairs = zip(IMAGES.values(), s.images, strict=True)
        halves = [(kernel, x[: n // 2], x[n // 2 : n]) for kernel, n in pairs]
        for kernel, one, two in halves:
            kernel(one[:1], two[:2])  # plans are made and threads started
        calls = [partial(kernel, one, two) for kernel, one, two in halves]
        seconds = np.array(fastest(calls, max(2, s.rounds // 2)))
        return {"pair": seconds / [len(one) * len(two) for _, one, two in halves]}

    keys = [(d, n) for d in s.dims for n in s.sizes]
    found = cells.map(rows, keys, share(progress, 0, 0.6))
    (pairs,) = cells.map(images, [("images",)], share(progress, 0.6, 1))
    by = (len(s.dims), len(s.sizes), -1)
    arrays = {key: np.reshape([f[key] for f in found], by) for key in ("seconds", "errors", "load")}
    return Result("speed", s, {**arrays, **pairs, "threads": kc.get_threads()})


BLOCK = [kc.Conv(3, w_std=2**0.5), kc.Relu()]
IMAGES = {
    "5 convolutions, GAP, NTK": kc.Sequential(*BLOCK * 5, kc.GlobalAvgPool(), kc.Dense()).ntk,
    "5 convolutions, Flatten, NTK": kc.Sequential(*BLOCK * 5, kc.Flatten(), kc.Dense()).ntk,
    "Myrtle-5, NNGP": kc.presets.myrtle(5).nngp,
}
POSITIONS = (32**4, 32**2, 32**4)


def _load() -> float:
    """Return the load average per CPU, 0 where the system does not tell."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0


# ---- what it says

BUSY = 1.5
"""Work per CPU from which on more was running than the experiment itself can have caused."""


def _gains(result: Result) -> tuple[Array, Array]:
    """Return NumPy over kernelcore and kernelcore over the product, at the largest size, by d."""
    plain, ours, product = result["seconds"][:, -1].T
    return plain / ours, ours / product


def claims(result: Result) -> list[Claim]:
    """Compare with NumPy and with the product, and state how exact the values are."""
    gain, over = _gains(result)
    n, dims = result.settings["sizes"][-1], result.settings["dims"]
    exact = float(result["errors"][..., 1].max())
    return [
        Claim(f"Faster than plain NumPy: its time over ours, n = {n}, d = {dims[0]}", "", None,
              gain[0], 0.0, 1.0, np.inf),
        Claim(f"A Gram matrix costs little more than X @ X.T: ratio, n = {n}, d = {dims[-1]}", "",
              1.0, over[-1], 0.0, 0.0, 3.0),
        Claim("Entries in float32 are exact to rounding, next to the diagonal, too: relative error",
              "", None, exact, 0.0, 0.0, 32 * float(np.finfo(np.float32).eps)),
    ]  # fmt: skip


def paragraph(result: Result) -> str:
    """Say what was timed, and how fast it is."""
    s, (gain, over) = result.settings, _gains(result)
    worst = [scientific(x) for x in result["errors"].max(axis=(0, 1))]
    gains = " and ".join(f"{g:.1f} (d = {d})" for g, d in zip(gain, s["dims"], strict=True))
    busy = float(result["load"].max())
    warning = (
        f" Other work was running (load {busy:.1f} per CPU): the times are too long, and those "
        "with more than one thread most of all."
    )
    return f"""
    For {s["sizes"][-1]} inputs and {s["hidden"]} hidden layers plain NumPy takes {gains} times as
    long as kernelcore on {int(result["threads"])} threads, and kernelcore takes
    {" and ".join(f"{x:.1f}" for x in over)} times as long as the matrix product X @ X.T alone,
    which any such kernel needs at least once. The calls take turns on the same float32 inputs, and
    the fastest of {s["rounds"]} rounds counts.{warning if busy > BUSY else ""}

    Entry by entry the two float32 results differ by at most {worst[0]} relative. Measured against
    kernelcore in float64, the largest error is {worst[1]} for kernelcore; for NumPy it is
    {worst[2]} with the diagonal and {worst[3]} without, because arccos loses half of the digits
    near u = 1. In float64 the two differ by {worst[4]}. The plain version is
    numpy_ntk of this experiment, {len(inspect.getsource(numpy_ntk).splitlines())} lines.
    """


def tables(result: Result) -> list[Table]:
    """Return times of rows, and of pairs of images."""
    s = result.settings
    rows = []
    for d, line in zip(s["dims"], result["seconds"], strict=True):
        for n, (plain, ours, product) in zip(s["sizes"], line, strict=True):
            ratios = f"{plain / ours:.1f}", f"{ours / product:.2f}", f"{1e9 * ours / n**2:.2f}"
            rows.append((str(d), str(n), *map(_ms, (ours, plain, product)), *ratios))
    images = []
    for name, count, pair in zip(IMAGES, POSITIONS, result["pair"].tolist(), strict=True):
        hours = pair * 1e4 * (1e4 + 1) / 2 / 3600
        told = f"{hours:.2g}" if hours < 9.5 else f"{hours:.0f}"
        images.append((name, f"{count:,}", f"{1e3 * pair:.3g}", told))
    return [
        Table(
            ("d", "n", "kernelcore, ms", "NumPy, ms", "X @ X.T, ms", "NumPy / kernelcore",
             "kernelcore / X @ X.T", "ns per entry"), rows,
            "Least times over the rounds; ratios are taken within the run. The last column divides "
            "the time of kernelcore by n² entries, of which it computes one half and mirrors it.",
            labels=0,
        ),
        Table(
            ("kernel", "pairs of positions", "ms per pair of images", "10,000 images, hours"),
            images,
            "Kernels of two images of 32 × 32 × 3 in float32. Global pooling needs the kernel at "
            "all pairs of positions; Flatten needs the pairs of equal positions. The last column "
            "scales the time to a Gram matrix of 10,000 images, one half of which is computed.",
        ),
    ]  # fmt: skip


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:.0f}"


def plot(result: Result) -> list[Picture]:
    """Draw seconds against the number of inputs."""
    return [
        Picture(
            "seconds", _figure(result),
            "Seconds against the number of inputs, both axes logarithmic; lower is faster. The "
            "lower dimension shows the price of the layers, the higher one that of the product. "
            "For large n all three costs grow as n².",
            "Two log-log panels of seconds against n for kernelcore, NumPy and the product",
        )
    ]  # fmt: skip


def _figure(result: Result) -> Figure:
    s = result.settings
    titles = [f"d = {d}" for d in s["dims"]]
    fig, row = panels(4.5, titles, "number of inputs n", "seconds", sharey=True)
    looks = ((VERMILLION, "--", "s"), (BLUE, "-", "o"), (GREY, ":", "x"))
    for axes, seconds in zip(row, result["seconds"], strict=True):
        for name, column, (color, line, marker) in zip(CALLS, seconds.T, looks, strict=True):
            axes.loglog(s["sizes"], column, color=color, ls=line, marker=marker, ms=5.5, label=name)
        ticks(axes.xaxis, s["sizes"])
    legend_below(fig, 3, columnspacing=2.2)
    return fig
