"""Section: the kernels as functions of the cosine, and their behaviour near u = 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import kernelcore as kc

from .._types import Array
from . import _draw
from ._draw import BLACK, GREY, STEPS, legend_below, panels
from ._page import Picture, Section, Table, power_of_ten, signed

DEPTHS = (1, 2, 4, 8)
# Distances between unit vectors over which the exponent is fitted. Below, 1 - k(u)/k(1) has lost
# its digits (it is r²/2 at best, against eps); above, the next power of r bends the line.
FIT = (1e-5, 1e-3)
KINDS = ("NNGP", "NTK")
GAUSSIAN, LAPLACIAN = "Gaussian, ℓ = 1", "Laplacian, ℓ = 1"
CLASSICAL = {"Gaussian": kc.Gaussian(1.0), "Laplacian": kc.Laplacian(1.0)}
DASHES = {"Gaussian": (0, (5, 2)), "Laplacian": (0, (1, 1.5))}
ACTIVATIONS: dict[str, tuple[str, Any]] = {
    "Relu": (_draw.BLUE, "-"), "Gelu": (_draw.ORANGE, "-"), "Erf": (_draw.GREEN, "-"),
    "Tanh": (_draw.VERMILLION, (0, (6, 2))), "Sin": (_draw.PURPLE, "-."), "Cos": (_draw.SKY, "-"),
}  # fmt: skip
# The other smooth activations fall on the same bundle; the table has them.
SHOWN = ("Relu", "Gelu", "Erf", "Tanh")


def section(quick: bool) -> Section:
    """Draw profiles by depth and activation, and the corner of the NTK; ``quick`` is ignored."""
    relu = {depth: kc.presets.mlp(depth) for depth in DEPTHS}
    nets = {name: kc.presets.mlp(2, getattr(kc, name)()) for name in ACTIVATIONS}
    smooth = [name for name in nets if name != "Relu"]
    rows: list[tuple[str, kc.Kernel, str]] = [
        *((f"NTK, Relu, depth {n}", relu[n].ntk, f"{n / (2 * np.pi):.4f} r") for n in DEPTHS),
        *((f"NNGP, Relu, depth {n}", relu[n].nngp, "0.5000 r²") for n in DEPTHS),
        *((f"NTK, {name}, depth 2", nets[name].ntk, "") for name in smooth),
        (GAUSSIAN, CLASSICAL["Gaussian"], "0.5000 r²"),
        (LAPLACIAN, CLASSICAL["Laplacian"], "1.0000 r"),
    ]
    fits = {name: _fit(kernel) for name, kernel, _ in rows}
    cusp = _span([fits[f"NTK, Relu, depth {depth}"][0] for depth in DEPTHS])
    flat = _span([fits[f"NNGP, Relu, depth {depth}"][0] for depth in DEPTHS])
    others = _span([fits[f"NTK, {name}, depth 2"][0] for name in smooth])
    factors = [fits[f"NTK, Relu, depth {depth}"][1] for depth in DEPTHS]
    over_theory = [2 * np.pi * c / depth for c, depth in zip(factors, DEPTHS, strict=True)]
    return Section(
        title="Profiles of the kernels",
        summary=f"Near u = 1 the NTK of a ReLU network falls like r<sup>{cusp}</sup>, as a "
        f"Laplacian kernel does, and its NNGP like r<sup>{flat}</sup>, as a Gaussian one does. The "
        f"corner of depth {DEPTHS[-1]} is {factors[-1] / factors[0]:.1f} times as steep as that of "
        f"depth {DEPTHS[0]}; with smooth activations there is no corner (r<sup>{others}</sup>).",
        parts=[
            FORMULAS,
            Picture(
                _by_depth(relu),
                "Kernels of ReLU networks by number of hidden layers, each divided by its value at "
                "u = 1; all inputs lie on one sphere. Grey: Gaussian and Laplacian kernels of "
                "lengthscale 1 between unit vectors. With depth the NNGP rises towards the "
                "constant 1: any two inputs look alike. The NTK flattens away from u = 1, "
                "towards 1/4, and turns up ever more sharply near it: a deep NTK tells an input "
                "from its neighbours and hardly tells the others apart.",
                "Two panels of normalised kernel against cosine for depths 1, 2, 4 and 8",
            ),
            Picture(
                _by_activation(nets),
                "Two hidden layers with different activations and the weights of "
                "<code>presets.mlp</code> (variance 2 after the first layer). Odd activations "
                "(erf, tanh, sin) give odd profiles and an even one (cos) an even profile: "
                "functions of the other parity cannot be learned at all unless a bias or "
                "<code>shift=</code> breaks the symmetry.",
                "Two panels of normalised kernel against cosine for six activations",
            ),
            CORNER,
            Picture(
                _corner(relu, nets, fits),
                f"Left: ReLU networks. The NTKs are parallel lines of slope {cusp} that move up "
                f"with depth; the NNGPs of all depths begin on one line of slope {flat}. Right: "
                f"NTKs with two hidden layers. Smooth activations have slope {others} and run with "
                "the Gaussian kernel; ReLU runs with the Laplacian. The slopes were fitted within "
                "the grey band.",
                "Two log-log panels of one minus the normalised kernel against distance",
            ),
            Table(
                ("kernel", "k(1)", "k(0) / k(1)", "k(−1) / k(1)", "exponent p", "factor c",
                 "theory"),
                [
                    (name, *_values(kernel), f"{fits[name][0]:.3f}", f"{fits[name][1]:.4f}", theory)
                    for name, kernel, theory in rows
                ],
                "Values of the profiles, and the fit 1 − k(u)/k(1) ≈ c r<sup>p</sup>. Theory for "
                "ReLU: κ₀(u) ≈ 1 − r/π and κ₁(u) ≈ 1 − r²/2, which the recursion turns into "
                "(depth / 2π) r for the NTK and r²/2 for the NNGP of any depth. The measured "
                f"factors of the NTK are {_span(over_theory, 4)} times those of theory.",
            ),
        ],
    )  # fmt: skip


FORMULAS = """
<p>On the sphere |x|² = d a network kernel depends on the cosine u of two inputs alone. This
function of u is its <i>profile</i>, <code>kernel.profile(u)</code>. For ReLU two functions (Cho and
Saul's arc-cosine kernels of order 0 and 1),</p>
<p class="formula">κ₀(u) = (π − arccos u) / π, &emsp; κ₁(u) = u κ₀(u) + √(1 − u²) / π,</p>
<p>make up the whole profile by one step per hidden layer: from S₀ = T₀ = u,</p>
<p class="formula">S<sub>ℓ</sub> = κ₁(S<sub>ℓ−1</sub>) &ensp;(NNGP), &emsp;
T<sub>ℓ</sub> = T<sub>ℓ−1</sub> κ₀(S<sub>ℓ−1</sub>) + S<sub>ℓ</sub> &ensp;(NTK).</p>
<p>With one hidden layer the NTK is u κ₀(u) + κ₁(u). At u = 1 the NNGP stays 1 and the NTK counts
the trained layers, depth + 1.</p>
"""

CORNER = f"""
<p>How rough are the functions that such a kernel learns? The answer lies near u = 1. Let
r = |x − x′| = √(2 − 2u) be the distance of two unit vectors. The squared distance of their feature
vectors is 2 (k(1) − k(u)): if it falls like r², the feature map is smooth (Lipschitz), and if it
falls only like r, the map is Hölder with exponent 1/2 and the functions have corners. Straight
lines were fitted to log(1 − k(u)/k(1)) against log r for {power_of_ten(FIT[0])} ≤ r ≤
{power_of_ten(FIT[1])}, in float64.</p>
"""


def _normalised(kernel: kc.Kernel, u: Array) -> Array:
    return kernel.profile(u) / kernel.profile(np.ones(1))


def _near_one(low: float, high: float, count: int) -> tuple[Array, Array]:
    """Return cosines 1 - r²/2 for r from low to high, and the r of the rounded cosines."""
    u = 1 - np.geomspace(low, high, count) ** 2 / 2
    return u, np.sqrt(2 * (1 - u))


def _fit(kernel: kc.Kernel) -> tuple[float, float]:
    """Fit (p, c) of 1 - k(u)/k(1) = c r**p: p by a line in logarithms, c at the rounded power."""
    u, r = _near_one(*FIT, 41)
    drop = 1 - _normalised(kernel, u)
    power = np.polynomial.Polynomial.fit(np.log(r), np.log(drop), 1).convert().coef[1]
    return float(power), float(np.median(drop / r ** round(power)))


def _values(kernel: kc.Kernel) -> list[str]:
    *ratios, high = kernel.profile(np.array([0.0, -1.0, 1.0]))
    ratios = [value / high for value in ratios]
    return [f"{high:.4g}", *("0" if abs(x) < 5e-5 else signed(x, 4) for x in ratios)]


def _span(values: list[float], digits: int = 2) -> str:
    """Write one number when all agree to that many digits, otherwise the range."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


# Cosines are denser towards the ends, where the square-root corners are.
COSINES = np.cos(np.linspace(np.pi, 0, 401))
BETWEEN: dict[str, Any] = {"xlim": (-1, 1), "xticks": (-1, -0.5, 0, 0.5, 1)}


def _by_depth(relu: dict[int, kc.Sequential]) -> Figure:
    fig, row = panels(4.5, KINDS, "cosine u", "k(u) / k(1)", sharey=True)
    for axes, kind in zip(row, KINDS, strict=True):
        for name, kernel in CLASSICAL.items():
            values = _normalised(kernel, COSINES)
            axes.plot(COSINES, values, color=GREY, lw=1.3, ls=DASHES[name], label=name)
        for (depth, net), color in zip(relu.items(), STEPS, strict=True):
            values = _normalised(getattr(net, kind.lower()), COSINES)
            axes.plot(COSINES, values, color=color, label=f"Relu, depth {depth}")
        axes.set(ylim=(-0.12, 1.02), **BETWEEN)
    legend_below(fig, 6, columnspacing=1.5)
    return fig


def _by_activation(nets: dict[str, kc.Sequential]) -> Figure:
    titles = [f"{kind}, depth 2" for kind in KINDS]
    fig, row = panels(4.5, titles, "cosine u", "k(u) / k(1)", sharey=True)
    for axes, kind in zip(row, KINDS, strict=True):
        for name, (color, line) in ACTIVATIONS.items():
            values = _normalised(getattr(nets[name], kind.lower()), COSINES)
            axes.plot(COSINES, values, color=color, ls=line, label=name)
        axes.axhline(0, color=BLACK, lw=0.6)
        axes.set(ylim=(-1.03, 1.03), **BETWEEN)
    legend_below(fig, 6, columnspacing=1.5)
    return fig


def _corner(
    relu: dict[int, kc.Sequential],
    nets: dict[str, kc.Sequential],
    fits: dict[str, tuple[float, float]],
) -> Figure:
    u, r = _near_one(FIT[0], 1.0, 121)
    titles = ("ReLU, by depth", "NTK of depth 2, by activation")
    distance = "distance r of two unit vectors"
    fig, (left, right) = panels(5.2, titles, distance, "1 − k(u) / k(1)", sharey=True)

    def draw(
        axes: Axes, kernel: kc.Kernel, label: str, color: str, ls: Any = "-", **more: Any
    ) -> None:
        axes.loglog(r, 1 - _normalised(kernel, u), color=color, ls=ls, label=label, **more)

    def slopes(axes: Axes, spot: tuple[float, float], *names: str) -> None:
        axes.text(*spot, f"slope {_span([fits[name][0] for name in names])}")

    for (depth, net), color in zip(relu.items(), STEPS, strict=True):
        draw(left, net.ntk, f"NTK, depth {depth}", color)
    # The NNGPs of all depths share one line: the first broad and pale, the last dashed on top.
    draw(left, relu[DEPTHS[0]].nngp, f"NNGP, depth {DEPTHS[0]}", STEPS[0], lw=4.5)
    draw(left, relu[DEPTHS[-1]].nngp, f"NNGP, depth {DEPTHS[-1]}", STEPS[-1], (0, (4, 3)))
    for name in ("Laplacian", "Gaussian"):
        draw(right, CLASSICAL[name], name, GREY, DASHES[name])
    for name in SHOWN:
        draw(right, nets[name].ntk, name, *ACTIVATIONS[name])
    upper, lower = (2.5e-5, 3e-3), (4e-3, 1e-7)
    slopes(left, upper, *(f"NTK, Relu, depth {depth}" for depth in DEPTHS))
    slopes(left, lower, *(f"NNGP, Relu, depth {depth}" for depth in DEPTHS))
    slopes(right, upper, "NTK, Relu, depth 2", LAPLACIAN)
    slopes(right, lower, *(f"NTK, {name}, depth 2" for name in SHOWN[1:]), GAUSSIAN)
    for axes in (left, right):
        axes.axvspan(*FIT, color="#f0f0f0", lw=0, zorder=0)
        axes.set_xlim(r[0], 1)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, handlelength=2.6)
    return fig
