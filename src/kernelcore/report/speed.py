"""Section: seconds of an NTK Gram matrix, next to plain NumPy and the matrix product alone."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._page import (
    BLUE,
    GREY,
    VERMILLION,
    Listing,
    Picture,
    Section,
    Table,
    Text,
    figure,
    plain,
    ticks,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .._types import Array

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


@dataclass(frozen=True)
class Timing:
    """Seconds for one size, and the errors against float64 (largest relative one of any entry)."""

    n: int
    d: int
    ours: float
    plain: float
    product: float
    ours_error: float
    plain_error: float
    plain_off_diagonal: float  # the same without the diagonal
    between: float
    float64: float


def section(quick: bool) -> Section:
    """Times in interleaved rounds; ``quick`` stops at n = 1000 and takes fewer rounds."""
    import kernelcore as kc

    sizes = (250, 500, 1000) if quick else (250, 500, 1000, 2000)
    rounds = 3 if quick else 6
    times = [_measure(n, d, rounds) for d in DIMS for n in sizes]
    facts = kc.info()
    machine = ", ".join(f"{key} {plain(facts[key])}" for key in MACHINE if key in facts)

    largest = {row.d: row for row in times}  # sizes ascend: the last of each dimension
    gain = " and ".join(f"{row.plain / row.ours:.1f} (d = {d})" for d, row in largest.items())
    over = " and ".join(f"{row.ours / row.product:.1f}" for row in largest.values())
    return Section(
        title="Speed of a Gram matrix",
        summary=f"For {sizes[-1]} inputs and {HIDDEN} hidden layers plain NumPy takes {gain} "
        f"times as long as kernelcore, and kernelcore takes {over} times as long as the matrix "
        "product <code>X @ X.T</code> alone.",
        parts=[
            Text(
                "<p>Three calls on the same float32 inputs (independent normal numbers): "
                f"<code>kernelcore.presets.mlp({HIDDEN}).ntk(X)</code>, the function below, and "
                "<code>X @ X.T</code>, which any such kernel needs at least once and which NumPy "
                "hands to its BLAS. They take turns, a few calls of each per round, in "
                f"{rounds} rounds, and the fastest call of each counts. Machine: {machine}."
                f"{_busy()}</p>"
            ),
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
                "Minimum over the rounds, and ratios within the run. The last column divides the "
                "time of kernelcore by n² entries, of which it computes one half and mirrors it.",
                labels=0,
            ),
            Text(_accuracy(times)),
        ],
    )  # fmt: skip


MACHINE = ("cpu", "level", "threads")


def _measure(n: int, d: int, rounds: int) -> Timing:
    import kernelcore as kc

    kernel = kc.presets.mlp(HIDDEN).ntk
    x = np.random.default_rng(n + d).standard_normal((n, d)).astype(np.float32)
    ours, theirs = kernel(x), numpy_ntk(x, HIDDEN)  # this also warms up
    x64 = x.astype(np.float64)
    exact, other = kernel(x64), numpy_ntk(x64, HIDDEN)
    away = ~np.eye(n, dtype=bool)
    calls = (lambda: kernel(x), lambda: numpy_ntk(x, HIDDEN), lambda: x @ x.T)
    # More than one call per turn: the threads that the one before left spinning have gone by then.
    repeats = 1 + 2000 // n
    seconds = np.min([[_fastest(call, repeats) for call in calls] for _ in range(rounds)], axis=0)
    return Timing(
        n, d, float(seconds[0]), float(seconds[1]), float(seconds[2]),
        ours_error=_difference(ours, exact), plain_error=_difference(theirs, exact),
        plain_off_diagonal=_difference(theirs[away], exact[away]),
        between=_difference(theirs, ours), float64=_difference(other, exact),
    )  # fmt: skip


def _busy() -> str:
    """A warning when more was running than the report itself can have caused."""
    if not hasattr(os, "getloadavg"):
        return ""
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    if load <= 1.5 * cpus:
        return ""
    return (
        f" <b>Other work was running (load average {load:.1f} on {cpus} CPUs): the times are too "
        "long, and those with more than one thread most of all.</b>"
    )


def _fastest(call: Callable[[], Array], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _difference(one: Array, two: Array) -> float:
    """Largest relative difference of two Gram matrices; the entries of an NTK here are positive."""
    return float(np.max(np.abs(one - two) / np.abs(two)))


def _accuracy(times: Sequence[Timing]) -> str:
    worst = {
        name: _power(max(getattr(row, name) for row in times))
        for name in ("between", "ours_error", "plain_error", "plain_off_diagonal", "float64")
    }
    return (
        f"<p>Entry by entry the two float32 results differ by at most {worst['between']} relative. "
        f"Measured against kernelcore in float64, the largest error is {worst['ours_error']} for "
        f"kernelcore; for NumPy it is {worst['plain_error']} with the diagonal and "
        f"{worst['plain_off_diagonal']} without, because arccos loses half of the digits near "
        f"u = 1. In float64 the two differ by {worst['float64']}.</p>"
    )


def _power(value: float) -> str:
    """``1.7e-04`` as a power of ten in HTML."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa} · 10<sup>{int(exponent)}</sup>".replace("-", "−")


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:.0f}"


def _figure(times: Sequence[Timing]) -> Figure:
    fig = figure(9.7, 4.5)
    panels = fig.subplots(1, len(DIMS), sharey=True)
    for axes, d in zip(panels, DIMS, strict=True):
        here = [row for row in times if row.d == d]
        n = [row.n for row in here]
        for label, seconds, color, line, marker in (
            ("plain NumPy", [row.plain for row in here], VERMILLION, "--", "s"),
            ("kernelcore", [row.ours for row in here], BLUE, "-", "o"),
            ("X @ X.T alone", [row.product for row in here], GREY, ":", "x"),
        ):
            axes.loglog(n, seconds, color=color, ls=line, marker=marker, ms=5.5, label=label)
        axes.set_title(f"d = {d}", loc="left")
        axes.set_xlabel("number of inputs n")
        ticks(axes.xaxis, n)
    panels[0].set_ylabel("seconds")
    handles, labels = panels[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, columnspacing=2.2)
    return fig
