"""Section: the kernels as functions of the cosine, and their behaviour near u = 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._page import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    STEPS,
    VERMILLION,
    Picture,
    Section,
    Table,
    Text,
    figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernelcore import Kernel, Sequential

    from .._types import Array

DEPTHS = (1, 2, 4, 8)
# Distances between unit vectors over which the exponent is fitted. Below, 1 - k(u)/k(1) has lost
# its digits (it is r²/2 at best, against eps); above, the next power of r bends the line.
FIT = (1e-5, 1e-3)
TICKS = (-1, -0.5, 0, 0.5, 1)
GAUSSIAN, LAPLACIAN = "Gaussian, ℓ = 1", "Laplacian, ℓ = 1"


def section(quick: bool) -> Section:
    """Profiles by depth and activation, and the corner of the NTK; ``quick`` changes nothing."""
    import kernelcore as kc

    relu = {depth: kc.presets.mlp(depth) for depth in DEPTHS}
    smooth = {
        name: kc.presets.mlp(2, getattr(kc, name)())
        for name in ("Gelu", "Erf", "Tanh", "Sin", "Cos")
    }
    nets = {"Relu": kc.presets.mlp(2)} | smooth
    gaussian, laplacian = kc.Gaussian(1.0), kc.Laplacian(1.0)

    rows: list[tuple[str, Kernel, str]] = []
    for depth, net in relu.items():
        rows.append((f"NTK, Relu, depth {depth}", net.ntk, f"{depth / (2 * np.pi):.4f} r"))
    for depth, net in relu.items():
        rows.append((f"NNGP, Relu, depth {depth}", net.nngp, "0.5000 r²"))
    rows += [(f"NTK, {name}, depth 2", net.ntk, "") for name, net in smooth.items()]
    rows += [(GAUSSIAN, gaussian, "0.5000 r²"), (LAPLACIAN, laplacian, "1.0000 r")]
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
        f"depth {DEPTHS[0]}; with smooth activations there is none (r<sup>{others}</sup>).",
        parts=[
            Text(FORMULAS),
            Picture(
                _by_depth(relu, gaussian, laplacian),
                "Kernels of ReLU networks by number of hidden layers, each divided by its value at "
                "u = 1; all inputs on one sphere. Grey: Gaussian and Laplacian kernels of "
                "lengthscale 1 between unit vectors. With depth the NNGP rises towards the "
                "constant 1: every two inputs look alike. The NTK flattens away from u = 1, "
                "towards 1/4, and turns up ever more sharply near it: a deep NTK tells an input "
                "from its neighbours and hardly tells the others apart.",
                "Two panels of normalised kernel against cosine for depths 1, 2, 4 and 8",
            ),
            Picture(
                _by_activation(nets),
                "Two hidden layers with different activations, weights as in "
                "<code>presets.mlp</code> (variance 2 after the first layer). Odd activations "
                "(erf, tanh, sin) give odd profiles and an even one (cos) an even profile: "
                "functions of the other parity cannot be learned at all unless a bias or "
                "<code>shift=</code> breaks the symmetry.",
                "Two panels of normalised kernel against cosine for six activations",
            ),
            Text(CORNER),
            Picture(
                _corner(relu, nets, gaussian, laplacian, fits),
                f"Left: ReLU networks. The NTKs are parallel lines of slope {cusp} that move up "
                f"with depth; the NNGPs of all depths begin on one line of slope {flat}. Right: "
                f"NTKs with two hidden layers. Smooth activations have slope {others} and run with "
                "the Gaussian kernel, ReLU runs with the Laplacian. Grey band: where the slopes "
                "were fitted.",
                "Two log-log panels of one minus the normalised kernel against distance",
            ),
            Table(
                (
                    *("kernel", "k(1)", "k(0) / k(1)", "k(−1) / k(1)"),
                    *("exponent p", "factor c", "theory"),
                ),
                [
                    (name, *_values(kernel), *_measured(*fits[name]), theory)
                    for name, kernel, theory in rows
                ],
                "Values of the profiles, and the fit 1 − k(u)/k(1) ≈ c r<sup>p</sup>. Theory for "
                "ReLU: κ₀(u) ≈ 1 − r/π and κ₁(u) ≈ 1 − r²/2, which the recursion turns into "
                "(depth / 2π) r for the NTK and r²/2 for the NNGP of any depth. Measured over "
                f"theory, factors of the NTK: {_span(over_theory, 4)}.",
            ),
        ],
    )


FORMULAS = """
<p>On the sphere |x|² = d a network kernel depends on the cosine u of two inputs alone: its
<i>profile</i>, given by <code>kernel.profile(u)</code>. For ReLU two functions (Cho and Saul's
arc-cosine kernels of order 0 and 1) make all of it,</p>
<p class="formula">κ₀(u) = (π − arccos u) / π, &emsp; κ₁(u) = u κ₀(u) + √(1 − u²) / π,</p>
<p>by one step per hidden layer: from S₀ = T₀ = u,</p>
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
lines were fitted to log(1 − k(u)/k(1)) against log r for
10<sup>{np.log10(FIT[0]):.0f}</sup> ≤ r ≤ 10<sup>{np.log10(FIT[1]):.0f}</sup>, in float64.</p>
""".replace("<sup>-", "<sup>−")


def _of(net: Sequential, kind: str) -> Kernel:
    return getattr(net, kind.lower())


def _normalised(kernel: Kernel, u: Array) -> Array:
    return kernel.profile(u) / kernel.profile(np.ones(1))


def _near_one(low: float, high: float, count: int) -> tuple[Array, Array]:
    """Cosines 1 - r²/2 for r from low to high, and the r that the rounded cosines really have."""
    u = 1 - np.geomspace(low, high, count) ** 2 / 2
    return u, np.sqrt(2 * (1 - u))


def _fit(kernel: Kernel) -> tuple[float, float]:
    """(p, c) of 1 - k(u)/k(1) = c r**p: p a straight line in logarithms, c at the rounded power."""
    u, r = _near_one(*FIT, 41)
    drop = 1 - _normalised(kernel, u)
    power = np.polynomial.Polynomial.fit(np.log(r), np.log(drop), 1).convert().coef[1]
    return float(power), float(np.median(drop / r ** round(power)))


def _values(kernel: Kernel) -> tuple[str, str, str]:
    low, middle, high = kernel.profile(np.array([-1.0, 0.0, 1.0]))
    return f"{high:.4g}", _signed(middle / high), _signed(low / high)


def _signed(value: float) -> str:
    return f"{value:.4f}".replace("-", "−") if abs(value) >= 5e-5 else "0"


def _measured(power: float, factor: float) -> tuple[str, str]:
    return f"{power:.3f}", f"{factor:.4f}"


def _span(values: list[float], digits: int = 2) -> str:
    """One number when all agree to that many digits, otherwise the range."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def _panels(fig: Figure, titles: tuple[str, str], ylabel: str) -> tuple[Axes, Axes]:
    left, right = fig.subplots(1, 2, sharey=True)
    for axes, title in ((left, titles[0]), (right, titles[1])):
        axes.set_title(title, loc="left")
    left.set_ylabel(ylabel)
    return left, right


def _by_depth(nets: dict[int, Sequential], gaussian: Kernel, laplacian: Kernel) -> Figure:
    # Denser towards the ends, where the square-root corners are.
    u = np.cos(np.linspace(np.pi, 0, 401))
    fig = figure(9.7, 4.5)
    panels = _panels(fig, ("NNGP", "NTK"), "k(u) / k(1)")
    for axes, kind in zip(panels, ("NNGP", "NTK"), strict=True):
        for name, kernel, dash in (
            ("Gaussian", gaussian, (5, 2)),
            ("Laplacian", laplacian, (1, 1.5)),
        ):
            axes.plot(u, _normalised(kernel, u), color=GREY, lw=1.3, ls=(0, dash), label=name)
        for (depth, net), color in zip(nets.items(), STEPS, strict=True):
            values = _normalised(_of(net, kind), u)
            axes.plot(u, values, color=color, label=f"Relu, depth {depth}")
        axes.set(xlabel="cosine u", xlim=(-1, 1), ylim=(-0.12, 1.02), xticks=TICKS)
    _legend_below(fig, panels[0], columns=6)
    return fig


def _by_activation(nets: dict[str, Sequential]) -> Figure:
    u = np.cos(np.linspace(np.pi, 0, 401))
    fig = figure(9.7, 4.5)
    panels = _panels(fig, ("NNGP, depth 2", "NTK, depth 2"), "k(u) / k(1)")
    for axes, kind in zip(panels, ("NNGP", "NTK"), strict=True):
        for (name, net), (color, line) in zip(nets.items(), ACTIVATION_LINES, strict=True):
            axes.plot(u, _normalised(_of(net, kind), u), color=color, ls=line, label=name)
        axes.axhline(0, color=BLACK, lw=0.6)
        axes.set(xlabel="cosine u", xlim=(-1, 1), ylim=(-1.03, 1.03), xticks=TICKS)
    _legend_below(fig, panels[0], columns=6)
    return fig


ACTIVATION_LINES = (
    (BLUE, "-"),
    (ORANGE, "-"),
    (GREEN, "-"),
    (VERMILLION, (0, (6, 2))),
    (PURPLE, "-."),
    (SKY, "-"),
)


def _corner(
    relu: dict[int, Sequential],
    nets: dict[str, Sequential],
    gaussian: Kernel,
    laplacian: Kernel,
    fits: dict[str, tuple[float, float]],
) -> Figure:
    u, r = _near_one(FIT[0], 1.0, 121)
    fig = figure(9.7, 5.2)
    titles = ("ReLU, by depth", "NTK of depth 2, by activation")
    left, right = _panels(fig, titles, "1 − k(u) / k(1)")

    def draw(
        axes: Axes, kernel: Kernel, label: str, color: str, line: Any = "-", lw: float = 1.9
    ) -> None:
        axes.loglog(r, 1 - _normalised(kernel, u), color=color, ls=line, lw=lw, label=label)

    def slopes(*names: str) -> str:
        return f"slope {_span([fits[name][0] for name in names])}"

    for (depth, net), color in zip(relu.items(), STEPS, strict=True):
        draw(left, net.ntk, f"NTK, depth {depth}", color)
    # The NNGPs of all depths share one line: the first broad and pale, the last dashed on top.
    draw(left, relu[DEPTHS[0]].nngp, f"NNGP, depth {DEPTHS[0]}", STEPS[0], lw=4.5)
    draw(left, relu[DEPTHS[-1]].nngp, f"NNGP, depth {DEPTHS[-1]}", STEPS[-1], (0, (4, 3)))
    draw(right, laplacian, "Laplacian", GREY, (0, (1, 1.5)))
    draw(right, gaussian, "Gaussian", GREY, (0, (5, 2)))
    for (name, net), (color, line) in zip(nets.items(), ACTIVATION_LINES, strict=True):
        if name in SHOWN:
            draw(right, net.ntk, name, color, line)
    upper, lower = (2.5e-5, 3e-3), (4e-3, 1e-7)
    smooth = [f"NTK, {name}, depth 2" for name in SHOWN if name != "Relu"]
    left.text(*upper, slopes(*(f"NTK, Relu, depth {depth}" for depth in DEPTHS)))
    left.text(*lower, slopes(*(f"NNGP, Relu, depth {depth}" for depth in DEPTHS)))
    right.text(*upper, slopes("NTK, Relu, depth 2", LAPLACIAN))
    right.text(*lower, slopes(*smooth, GAUSSIAN))
    for axes in (left, right):
        axes.axvspan(*FIT, color="#f0f0f0", lw=0, zorder=0)
        axes.set(xlabel="distance r of two unit vectors", xlim=(r[0], 1))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, handlelength=2.6)
    return fig


# The other smooth activations fall on the same bundle; the table has them.
SHOWN = ("Relu", "Gelu", "Erf", "Tanh")


def _legend_below(fig: Figure, axes: Axes, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=columns, columnspacing=1.5)
