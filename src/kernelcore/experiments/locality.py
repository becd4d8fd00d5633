"""What locality and pooling are worth on cyclic signals (E5, E11).

Misiakiewicz and Mei (2022). Signals are uniform on {-1, 1}^d, kernels are H(q, w): patches of q
neighbours, pooled over w. To learn a target of degree l that is local and does not change under
shifts, H(d, 1) needs about d^l samples, H(d, d) d^(l-1), H(q, 1) d q^(l-1), H(q, w) d q^(l-1)/w and
H(q, d) q^(l-1). A target that alternates is not learned by a kernel that pools globally, or over an
even number; and of one that does not shift at all, only the invariant part is.
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

TITLE = "Locality and pooling"
PAPER = "Misiakiewicz and Mei 2022"
NAMES = ("H(d, 1)", "H(q, 1)", "H(d, d)", "H(q, w)", "H(q, d)")
TARGETS = ("f_LF", "f_HF", "not local", "not invariant")


@dataclass(frozen=True)
class Settings(_base.Settings):
    """``ridge`` is added to K as it is; ``even`` is a second pooling, for f_HF."""

    dim: int = 30
    patch: int = 10
    pool: int = 5
    even: int = 6
    smallest: int = 20
    largest: int = 700
    sizes: int = 6
    draws: int = 5
    test: int = 500
    ridge: float = 1e-6


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seed 0
    "paper": Settings(largest=8000, sizes=11, draws=5, test=5000),
}
SECONDS = {"small": 12.0, "paper": 600.0}


def _sizes(s: Settings) -> list[int]:
    return grown(s.smallest, s.largest, s.sizes)


def _kernels(s: Settings) -> list[kc.Kernel]:
    d, q = s.dim, s.patch
    h = kc.profiles.PowerSeries((0.0, *[0.2] * 5))
    pairs = ((d, 1), (q, 1), (d, d), (q, s.pool), (q, d), (q, s.even))
    return [kc.CyclicConvolution(patch, pool, h) for patch, pool in pairs]


def _sets(s: Settings) -> list[tuple[list[list[int]], list[float]]]:
    """Return the products of signs that make each target, and their coefficients."""
    d, far = s.dim, s.dim // 3
    local = [[(i + k) % d for k in range(3)] for i in range(d)]
    apart = [[i, (i + 1) % d, (i + far + 1) % d] for i in range(d)]
    even, odd = ([e**i / math.sqrt(d) for i in range(d)] for e in (1.0, -1.0))
    return [(local, even), (local, odd), (apart, even), ([local[0]], [1.0])]


def _values(s: Settings, x: Array) -> Array:
    """Return all targets at signals, in columns; each has power 1."""
    sums = [
        sum(c * np.prod(x[:, members], axis=1) for members, c in zip(*target, strict=True))
        for target in _sets(s)
    ]
    return np.stack(sums, axis=1)


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    ns, kernels = _sizes(s), _kernels(s)

    def draw(_: str, k: int, one: int) -> dict[str, Array]:
        rng = seeds(s.seed, one)
        x, z = (kc.data.hypercube(m, s.dim, seed=rng) for m in (ns[-1], s.test))
        kernel = kernels[k]
        wanted = _values(s, z)
        return {"errors": ridge_errors(kernel(x), kernel(z, x), _values(s, x), wanted, ns, s.ridge)}

    def predicted(_: str, k: int) -> dict[str, Array]:
        spectrum = kc.spectrum.cyclic(kernels[k], s.dim)
        fine = np.geomspace(2, max(ns[-1], 0.4 * s.dim**3), 80)
        powers = [spectrum.target_power(*target) for target in _sets(s)]
        curves = [
            [kc.theory.learning_curve(spectrum, power, n, s.ridge) for power in powers]
            for n in (ns, fine)
        ]
        # What lies on levels whose eigenvalue is zero is never learned.
        null = np.isneginf(spectrum.log_eigenvalues)
        floors = [float(power[null].sum()) for power in powers]
        found = {"at": curves[0], "line": curves[1], "fine": fine, "floor": floors}
        return {name: np.array(values) for name, values in found.items()}

    pairs = [("draw", k, one) for k in range(len(kernels)) for one in range(s.draws)]
    found = cells.map(draw, pairs, share(progress, 0.0, 0.8))
    keys = [("theory", k) for k in range(len(kernels))]
    theory = cells.map(predicted, keys, share(progress, 0.8, 1.0))
    errors = np.array([one["errors"] for one in found])
    errors = errors.reshape(len(kernels), s.draws, len(TARGETS), len(ns))
    return Result("locality", s, {
        "n": ns, "errors": np.moveaxis(errors, 1, 3), "fine": theory[0]["fine"],
        "predicted": np.array([one["at"] for one in theory]),
        "line": np.array([one["line"] for one in theory]),
        "floor": np.array([one["floor"] for one in theory]),
    })  # fmt: skip


def _halves(result: Result) -> tuple[Array, Array, Array]:
    """Return n at error 1/2 on f_LF: measured, predicted, and of the table of orders."""
    s = Settings(**result.settings)
    mean = result["errors"][:5, 0].mean(-1)
    found = np.array([half_at(result["n"], one) for one in mean])
    line = np.array([half_at(result["fine"], one) for one in result["line"][:5, 0]])
    table = kc.theory.sample_complexity(3, s.dim, s.patch, s.pool)
    return found, line, np.array([table[name] for name in NAMES])


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    errors, found = result["errors"], []
    for k, name in enumerate(NAMES):
        mean, error = mean_and_error(errors[k, 0])
        here = _resolved(result["predicted"][k, 0], result["n"])
        if not here.any():
            continue
        text = f"test error of {name} on f_LF against n, on the predicted curve"
        theory = result["predicted"][k, 0][here]
        found.append(Claim.curve(text, PAPER, theory, mean[here], error[here], 0.1))
    halves, line, table = _halves(result)
    known = np.where(np.isnan(halves), line, halves)
    wrong = int(np.sum(np.diff(known[np.argsort(-table)]) >= 0))
    text = "the order of the five kernels by the n at which half of f_LF is learned"
    found.append(Claim.order(text, PAPER, wrong))
    ratios = known / table
    text = "n at error 1/2 over the order of the table, the same for all: largest over smallest"
    spread = float(ratios.max() / ratios.min())
    found.append(Claim(text, PAPER, 1.0, spread, 0.0, 1.0, 5.0))
    for k, name in ((4, NAMES[4]), (5, f"H(q, {s.even})")):
        last, off = mean_and_error(errors[k, 1, -1])
        text = f"f_HF is not learned by {name}, which pools globally or over an even number"
        found.append(Claim(text, PAPER, 1.0, last, off, 1.0 - 2 * off, math.inf))
    last, off = mean_and_error(errors[4, 3, -1])
    text = "of x0 x1 x2, global pooling learns the invariant part alone: error at least 1 - 1/d"
    floor = 1 - 1 / s.dim
    found.append(Claim(text, PAPER, floor, last, off, floor - 2 * off, math.inf))
    best, _ = mean_and_error(errors[1, 1, -1])
    text = "f_HF is learned by patches without pooling, H(q, 1), better than with global pooling"
    found.append(Claim.order(text, PAPER, int(best >= errors[4, 1, -1].mean())))
    last, off = mean_and_error(errors[1, 2, -1])
    text = "a target that is not local is not learned by patches, H(q, 1)"
    found.append(Claim(text, PAPER, 1.0, last, off, 1.0 - 2 * off, math.inf))
    return found


def _resolved(predicted: Array, n: Array) -> Array:
    """Return where a curve is neither at its end nor among so few samples that none is typical."""
    return (predicted > 0.05) & (n >= 40)


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    halves, line, table = _halves(result)
    rates = kc.theory.sample_complexity(3, s.dim, s.patch, s.pool).rates
    mean, error = mean_and_error(result["errors"][..., -1, :])
    rows = [
        (name, f"{rates[name]} = {table[k]:,.0f}",
         f"more than {result['n'][-1]:,}" if math.isnan(halves[k]) else f"{halves[k]:,.0f}",
         f"{line[k]:,.0f}", *(plus_minus(mean[k, j], error[k, j], 3) for j in range(len(TARGETS))))
        for k, name in enumerate(NAMES)
    ]  # fmt: skip
    head = ("kernel", "order of n", "n at error 1/2", "predicted", *TARGETS)
    told = f"Errors at n = {result['n'][-1]:,}, mean ± standard error over {s.draws} draws."
    return [Table(head, rows, told, 2)]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    halves, line, table = _halves(result)
    known = np.where(np.isnan(halves), line, halves)
    best = [NAMES[k] for k in np.argsort(known)]
    ratios = known / table
    return (
        f"Signals have d = {s.dim} signs, patches q = {s.patch}, pooling w = {s.pool}. From the "
        f"fewest samples to the most, half of f_LF is learned by {listed(best)}. The numbers of "
        f"samples are {ratios.min():.2f} to {ratios.max():.2f} of the orders that theory has for "
        "them. What a kernel cannot represent it does not learn, however many samples there are: "
        f"with global pooling the error on the alternating f_HF ends at "
        f"{result['errors'][4, 1, -1].mean():.2f}, and on x0 x1 x2 at "
        f"{result['errors'][4, 3, -1].mean():.2f}."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    s = Settings(**result.settings)
    with draw.style():
        fig = draw.figure(7.2)
        titles = ("f_LF: local, invariant", "f_HF: local, alternating",
                  "not local, invariant", "x0 x1 x2: local, not invariant")  # fmt: skip
        for j, (axes, title) in enumerate(zip(fig.subplots(2, 2).flat, titles, strict=True)):
            axes.set(xscale="log", yscale="log", xlabel="n", ylim=(3e-3 if j == 0 else 0.05, 4))
            axes.set_title(title, loc="left")
            for k, (name, (color, line, mark)) in enumerate(zip(NAMES, draw.FIVE, strict=True)):
                mean, error = mean_and_error(result["errors"][k, j])
                n, fine = result["n"], result["fine"]
                inside = (fine > 0.9 * n[0]) & (fine < 1.1 * n[-1])
                draw.theory(axes, fine[inside], result["line"][k, j][inside], color, ls=line)
                spots = draw.aside(result["n"], k, len(NAMES), 1.03)
                draw.measured(axes, spots, mean, error, color, mark, name if j == 0 else "")
            draw.ticks(axes.yaxis, (0.01, 0.1, 1) if j == 0 else (0.1, 0.3, 1, 3))
            draw.ticks(axes.xaxis, (30, 100, 300, 1000, 3000))
        for axes in fig.axes[::2]:
            axes.set_ylabel("test error")
        draw.legend_below(fig, len(NAMES))
    return [
        Picture(
            "curves", fig,
            f"Test error of the kernels H(q, w) on four cubic targets, d = {s.dim}, q = {s.patch}, "
            f"w = {s.pool}: points measured (mean and standard error of {s.draws} draws, moved "
            "sideways a little), lines predicted from the spectra of the kernels.",
            "Four panels of test error against n for five kernels; only some kernels learn each "
            "target",
        )
    ]  # fmt: skip
