"""Section: the time of an NTK Gram matrix, next to plain NumPy and the matrix product alone."""

from __future__ import annotations

import inspect
import os
import timeit
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import kernelcore as kc

from .._types import Array
from ._draw import BLUE, GREY, VERMILLION, legend_below, panels, ticks
from ._page import Listing, Picture, Section, Table, scientific

HIDDEN = 3
DIMS = (64, 784)


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


class Timing(NamedTuple):
    """Seconds for one size, and the relative errors that the last paragraph names, in its order."""

    n: int
    d: int
    ours: float
    plain: float
    product: float
    errors: tuple[float, ...]


def section(quick: bool) -> Section:
    """Measure in interleaved rounds; ``quick`` stops at n = 1000 and takes fewer rounds."""
    sizes = (250, 500, 1000) if quick else (250, 500, 1000, 2000)
    rounds = 3 if quick else 6
    times = [_measure(n, d, rounds) for d in DIMS for n in sizes]
    facts = kc.info()
    machine = ", ".join(f"{key} {facts[key]}" for key in ("cpu", "level", "threads"))
    largest = {row.d: row for row in times}  # sizes ascend: the last of each dimension
    gain = " and ".join(f"{row.plain / row.ours:.1f} (d = {d})" for d, row in largest.items())
    over = " and ".join(f"{row.ours / row.product:.1f}" for row in largest.values())
    worst = [scientific(max(column)) for column in zip(*(row.errors for row in times), strict=True)]
    return Section(
        title="Speed of a Gram matrix",
        summary=f"For {sizes[-1]} inputs and {HIDDEN} hidden layers plain NumPy takes {gain} "
        f"times as long as kernelcore, and kernelcore takes {over} times as long as the matrix "
        "product <code>X @ X.T</code> alone.",
        parts=[
            "<p>Three calls are timed on the same float32 inputs (independent normal numbers): "
            f"<code>kernelcore.presets.mlp({HIDDEN}).ntk(X)</code>, the function below, and "
            "<code>X @ X.T</code>, which any such kernel needs at least once and which NumPy hands "
            "to its BLAS. They take turns, a few calls of each per round, in "
            f"{rounds} rounds, and the fastest call of each counts. Machine: {machine}."
            f"{_busy()}</p>",
            Listing(
                inspect.getsource(numpy_ntk),
                "The plain NumPy version that is timed. It walks the memory of an n × n array "
                "several times per layer, on one core apart from the product.",
            ),
            Picture(
                _figure(times),
                "Seconds against the number of inputs, both axes logarithmic; lower is faster. The "
                "lower dimension shows the price of the layers, the higher one that of the "
                "product. For large n all three costs grow as n².",
                "Two log-log panels of seconds against n for kernelcore, NumPy and the product",
            ),
            Table(
                (
                    "d", "n", "kernelcore, ms", "NumPy, ms", "X @ X.T, ms", "NumPy / kernelcore",
                    "kernelcore / X @ X.T", "ns per entry",
                ),
                [
                    (
                        str(row.d), str(row.n), _ms(row.ours), _ms(row.plain),
                        _ms(row.product), f"{row.plain / row.ours:.1f}",
                        f"{row.ours / row.product:.2f}", f"{1e9 * row.ours / row.n**2:.2f}",
                    )
                    for row in times
                ],
                "The times are minima over the rounds, and the ratios are taken within the run. "
                "The last column divides the time of kernelcore by n² entries, of which it "
                "computes one half and mirrors it.",
                labels=0,
            ),
            "<p>Entry by entry the two float32 results differ by at most "
            f"{worst[0]} relative. Measured against kernelcore in float64, the largest error is "
            f"{worst[1]} for kernelcore; for NumPy it is {worst[2]} with the diagonal and "
            f"{worst[3]} without, because arccos loses half of the digits near u = 1. In float64 "
            f"the two differ by {worst[4]}.</p>",
        ],
    )  # fmt: skip


def _measure(n: int, d: int, rounds: int) -> Timing:
    kernel = kc.presets.mlp(HIDDEN).ntk
    x = np.random.default_rng(n + d).standard_normal((n, d)).astype(np.float32)
    ours, theirs = kernel(x), numpy_ntk(x, HIDDEN)  # this also warms up
    x64 = x.astype(np.float64)
    exact, other = kernel(x64), numpy_ntk(x64, HIDDEN)
    away = ~np.eye(n, dtype=bool)
    calls = (lambda: kernel(x), lambda: numpy_ntk(x, HIDDEN), lambda: x @ x.T)
    # After more than one call per turn the threads that the turn before left spinning have gone.
    mine, plain, product = fastest(calls, rounds, repeats=1 + 2000 // n)
    pairs = (theirs, ours), (ours, exact), (theirs, exact), (theirs[away], exact[away])
    errors = (float(np.max(np.abs(a - b) / np.abs(b))) for a, b in (*pairs, (other, exact)))
    return Timing(n, d, mine, plain, product, tuple(errors))


def _busy() -> str:
    """Return a warning when more was running than the report itself can have caused."""
    cpus = os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    text = (
        f" <b>Other work was running (load average {load:.1f} on {cpus} CPUs): the times are too "
        "long, and those with more than one thread most of all.</b>"
    )
    return text if load > 1.5 * cpus else ""


def fastest(calls: Sequence[Callable[[], Any]], rounds: int, repeats: int = 1) -> list[float]:
    """Return the seconds of the fastest run of each call; they take turns, some repeats each."""
    turns = [
        [timeit.repeat(call, number=1, repeat=repeats) for call in calls] for _ in range(rounds)
    ]
    return np.min(turns, axis=(0, 2)).tolist()


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:.0f}"


def _figure(times: Sequence[Timing]) -> Figure:
    titles = [f"d = {d}" for d in DIMS]
    fig, row = panels(4.5, titles, "number of inputs n", "seconds", sharey=True)
    for axes, d in zip(row, DIMS, strict=True):
        here = [timing for timing in times if timing.d == d]
        n = [timing.n for timing in here]
        for field, label, color, line, marker in (
            ("plain", "plain NumPy", VERMILLION, "--", "s"),
            ("ours", "kernelcore", BLUE, "-", "o"),
            ("product", "X @ X.T alone", GREY, ":", "x"),
        ):
            seconds = [getattr(timing, field) for timing in here]
            axes.loglog(n, seconds, color=color, ls=line, marker=marker, ms=5.5, label=label)
        ticks(axes.xaxis, n)
    legend_below(fig, 3, columnspacing=2.2)
    return fig
