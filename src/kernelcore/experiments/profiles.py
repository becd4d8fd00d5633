"""Kernels as functions of the cosine, and how smooth they are near u = 1 (K1, K2).

On the sphere |x|² = d a network kernel depends on the cosine u of two inputs alone: this function
is its profile. For ReLU the arc-cosine kernels of Cho and Saul (2009) make it up, one step per
hidden layer. Bietti and Mairal (2019) show that the NTK falls like the distance r of two unit
vectors near u = 1, as a Laplacian kernel does, and the NNGP like r², as a Gaussian one; Bietti and
Bach (2021) that depth changes the factor and not the power.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import kernelcore as kc

from .._types import Array
from . import _base, _draw
from ._base import Cells, Claim, Picture, Progress, Result, Table
from ._draw import BLACK, GREY, PALE, STEPS, legend_below, panels
from ._words import power_of_ten, signed, spanned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Profiles of the kernels"
KINDS = ("NNGP", "NTK")
CLASSICAL = {"Gaussian": kc.Gaussian(1.0), "Laplacian": kc.Laplacian(1.0)}
DASHES = {"Gaussian": (0, (5, 2)), "Laplacian": (0, (1, 1.5))}
ACTIVATIONS: dict[str, tuple[str, Any]] = {
    "Relu": (_draw.BLUE, "-"), "Gelu": (_draw.ORANGE, "-"), "Erf": (_draw.GREEN, "-"),
    "Tanh": (_draw.VERMILLION, (0, (6, 2))), "Sin": (_draw.PURPLE, "-."), "Cos": (_draw.SKY, "-"),
}  # fmt: skip
# The other smooth activations fall on the same bundle; the table has them.
SHOWN = ("Relu", "Gelu", "Erf", "Tanh")
BIETTI = "Bietti and Mairal 2019"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Nothing is drawn at random here; ``seed`` has no effect."""

    depths: tuple[int, ...] = (1, 2, 4, 8)
    # Distances over which the exponent is fitted. Below, 1 - k(u)/k(1) has lost its digits (it is
    # r²/2 at best, against eps); above, the next power of r bends the line.
    low: float = 1e-5
    high: float = 1e-3
    points: int = 131  # Matplotlib simplifies curves of 128 points and more


PRESETS = {"small": Settings(), "paper": Settings(depths=(1, 2, 4, 8), points=401)}
SECONDS = {"small": 1, "paper": 1}


def _kernels(depths: tuple[int, ...]) -> dict[str, kc.Kernel]:
    """Return all kernels of the table by name."""
    relu = {depth: kc.presets.mlp(depth) for depth in depths}
    nets = {name: kc.presets.mlp(2, getattr(kc, name)()) for name in ACTIVATIONS}
    found: dict[str, kc.Kernel] = {}
    for kind in KINDS[::-1]:
        found |= {f"{kind}, Relu, depth {n}": getattr(relu[n], kind.lower()) for n in depths}
    for kind in KINDS[::-1]:
        found |= {
            f"{kind}, {name}, depth 2": getattr(net, kind.lower()) for name, net in nets.items()
        }
    return found | {f"{name}, ℓ = 1": kernel for name, kernel in CLASSICAL.items()}


def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    """Compute profiles, their drops near u = 1, and the fits c r^p of these."""
    kernels = _kernels(settings.depths)
    # Cosines are denser towards the ends, where the square-root corners are.
    cosine = np.cos(np.linspace(np.pi, 0, settings.points))
    u, r = _near_one(settings.low, 1.0, 131)

    def one(name: str) -> dict[str, Any]:
        kernel = kernels[name]
        ends = kernel.profile(np.array([1.0, 0.0, -1.0]))
        return {
            "values": ends,
            "profile": kernel.profile(cosine) / ends[0],
            "drop": 1 - kernel.profile(u) / ends[0],
            "fit": _fit(kernel, settings.low, settings.high),
        }

    found = (cells or Cells()).map(one, [(name,) for name in kernels], progress)
    arrays = {key: np.stack([each[key] for each in found]) for key in found[0]}
    return Result(
        "profiles", settings, {**arrays, "names": list(kernels), "cosine": cosine, "r": r}
    )


def _near_one(low: float, high: float, count: int) -> tuple[Array, Array]:
    """Return cosines 1 - r²/2 for r from low to high, and the r of the rounded cosines."""
    u = 1 - np.geomspace(low, high, count) ** 2 / 2
    return u, np.sqrt(2 * (1 - u))


def _fit(kernel: kc.Kernel, low: float, high: float) -> tuple[float, float]:
    """Fit (p, c) of 1 - k(u)/k(1) = c r**p: p by a line in logarithms, c at the rounded power."""
    u, r = _near_one(low, high, 41)
    drop = 1 - kernel.profile(u) / kernel.profile(np.ones(1))
    power = np.polynomial.Polynomial.fit(np.log(r), np.log(drop), 1).convert().coef[1]
    return float(power), float(np.median(drop / r ** round(power)))


# ---- what it says


def _of(result: Result, key: str) -> dict[str, Any]:
    return dict(zip(result["names"].tolist(), result[key], strict=True))


def _groups(result: Result) -> dict[str, list[str]]:
    depths = result.settings["depths"]
    return {
        "ntk": [f"NTK, Relu, depth {depth}" for depth in depths],
        "nngp": [f"NNGP, Relu, depth {depth}" for depth in depths],
        "smooth": [f"NTK, {name}, depth 2" for name in ACTIVATIONS if name != "Relu"],
    }


def _powers(result: Result, group: str) -> list[float]:
    fits = _of(result, "fit")
    return [float(fits[name][0]) for name in _groups(result)[group]]


def claims(result: Result) -> list[Claim]:
    """Compare the powers and factors of the drops with those of the papers."""

    def power(text: str, paper: str, group: str, predicted: float) -> Claim:
        found = max(_powers(result, group), key=lambda p: abs(p - predicted))
        return Claim.near(text, paper, predicted, found, tolerance=0.01)

    fits, depths = _of(result, "fit"), result.settings["depths"]
    ratios = [
        2 * np.pi * float(fits[name][1]) / depth
        for name, depth in zip(_groups(result)["ntk"], depths, strict=True)
    ]
    worst = max(ratios, key=lambda ratio: abs(ratio - 1))
    return [
        power("1 − k(u)/k(1) of ReLU NTKs falls like r to the power 1", BIETTI, "ntk", 1.0),
        power("1 − k(u)/k(1) of ReLU NNGPs falls like r²", BIETTI, "nngp", 2.0),
        power("That of NTKs with smooth activations falls like r²", BIETTI, "smooth", 2.0),
        Claim.near(
            "The corner of an NTK of depth L has the slope L / 2π (the depth farthest off)",
            "Bietti and Bach 2021", 1.0, worst, tolerance=0.01,
        ),
    ]  # fmt: skip


def paragraph(result: Result) -> str:
    """Say what the profiles have in common."""
    fits, groups, depths = _of(result, "fit"), _groups(result), result.settings["depths"]
    steep = float(fits[groups["ntk"][-1]][1] / fits[groups["ntk"][0]][1])
    low, high = (power_of_ten(result.settings[key]) for key in ("low", "high"))
    return f"""
    On the sphere |x|² = d a network kernel depends on the cosine u of two inputs alone. For ReLU,
    κ₀(u) = (π − arccos u) / π and κ₁(u) = u κ₀(u) + √(1 − u²) / π make up the whole profile by one
    step per hidden layer, from S₀ = T₀ = u: Sₗ = κ₁(Sₗ₋₁) is the NNGP, and
    Tₗ = Tₗ₋₁ κ₀(Sₗ₋₁) + Sₗ the NTK.

    How rough are the functions that such a kernel learns? The answer lies near u = 1. Let
    r = √(2 − 2u) be the distance of two unit vectors. The NTK of a ReLU network falls like
    r^{spanned(_powers(result, "ntk"))} there, as a Laplacian kernel does, so that its functions
    have corners; its NNGP falls like r^{spanned(_powers(result, "nngp"))}, as a Gaussian one does.
    The corner of depth {depths[-1]} is {steep:.1f} times as steep as that of depth {depths[0]};
    with smooth activations there is no corner (r^{spanned(_powers(result, "smooth"))}). Straight
    lines were fitted to log(1 − k(u)/k(1)) against log r from {low} to {high}, in float64.
    """


def tables(result: Result) -> list[Table]:
    """Return values of the profiles, and the fits beside theory."""
    fits, values = _of(result, "fit"), _of(result, "values")

    def theory(name: str) -> str:
        kind, what, *_ = [*name.split(", "), ""]
        if what == "Relu" and kind == "NTK":
            return f"{int(name.rsplit(' ', 1)[1]) / (2 * np.pi):.4f} r"
        return {"NNGP, Relu": "0.5000 r²", "Gaussian, ℓ = 1": "0.5000 r²",
                "Laplacian, ℓ = 1": "1.0000 r"}.get(f"{kind}, {what}", "")  # fmt: skip

    def ratio(value: float) -> str:
        return "0" if abs(value) < 5e-5 else signed(value, 4)

    shown = [*_groups(result)["ntk"], *_groups(result)["nngp"], *_groups(result)["smooth"]]
    shown += [f"{name}, ℓ = 1" for name in CLASSICAL]
    rows = []
    for name in shown:
        high, middle, low = values[name].tolist()
        power, factor = fits[name].tolist()
        ends = f"{high:.4g}", ratio(middle / high), ratio(low / high)
        rows.append((name, *ends, f"{power:.3f}", f"{factor:.4f}", theory(name)))
    head = ("kernel", "k(1)", "k(0) / k(1)", "k(−1) / k(1)", "exponent p", "factor c", "theory")
    return [
        Table(
            head, rows,
            "Values of the profiles, and the fit 1 − k(u)/k(1) ≈ c rᵖ. Theory for ReLU: "
            "κ₀(u) ≈ 1 − r/π and κ₁(u) ≈ 1 − r²/2, which the recursion turns into (depth / 2π) r "
            "for the NTK and r²/2 for the NNGP of any depth.",
        )
    ]  # fmt: skip


def plot(result: Result) -> list[Picture]:
    """Draw profiles by depth and by activation, and the corner at u = 1."""
    powers = {group: spanned(_powers(result, group)) for group in _groups(result)}
    return [
        Picture(
            "depth", _by_depth(result),
            "Kernels of ReLU networks by number of hidden layers, each divided by its value at "
            "u = 1. Grey: Gaussian and Laplacian kernels of lengthscale 1 between unit vectors. "
            "With depth the NNGP rises towards the constant 1: any two inputs look alike. The NTK "
            "flattens away from u = 1, towards 1/4, and turns up ever more sharply near it.",
            "Two panels of normalised kernel against cosine, for depths "
            + ", ".join(map(str, result.settings["depths"])),
        ),
        Picture(
            "activation", _by_activation(result),
            "Two hidden layers with different activations and the weights of presets.mlp. Odd "
            "activations (erf, tanh, sin) give odd profiles and an even one (cos) an even "
            "profile: functions of the other parity cannot be learned at all unless a bias or a "
            "shift breaks the symmetry.",
            "Two panels of normalised kernel against cosine for six activations",
        ),
        Picture(
            "corner", _corner(result, powers),
            f"Left: ReLU networks. The NTKs are parallel lines of slope {powers['ntk']} that move "
            f"up with depth; the NNGPs of all depths begin on one line of slope {powers['nngp']}. "
            f"Right: NTKs with two hidden layers. Smooth activations have slope {powers['smooth']} "
            "and run with the Gaussian kernel; ReLU runs with the Laplacian. The slopes were "
            "fitted within the grey band.",
            "Two log-log panels of one minus the normalised kernel against distance: NTKs of ReLU "
            "fall with slope 1, all others with slope 2",
        ),
    ]  # fmt: skip


BETWEEN: dict[str, Any] = {"xlim": (-1, 1), "xticks": (-1, -0.5, 0, 0.5, 1)}


def _by_depth(result: Result) -> Figure:
    fig, row = panels(4.5, KINDS, "cosine u", "k(u) / k(1)", sharey=True)
    values, cosine = _of(result, "profile"), result["cosine"]
    for axes, kind in zip(row, KINDS, strict=True):
        for name in CLASSICAL:
            look: dict[str, Any] = {"color": GREY, "lw": 1.3, "ls": DASHES[name]}
            axes.plot(cosine, values[f"{name}, ℓ = 1"], label=name, **look)
        for depth, color in zip(result.settings["depths"], STEPS, strict=False):
            name = f"Relu, depth {depth}"
            axes.plot(cosine, values[f"{kind}, {name}"], color=color, label=name)
        axes.set(ylim=(-0.12, 1.02), **BETWEEN)
    legend_below(fig, 6, columnspacing=1.5)
    return fig


def _by_activation(result: Result) -> Figure:
    titles = [f"{kind}, depth 2" for kind in KINDS]
    fig, row = panels(4.5, titles, "cosine u", "k(u) / k(1)", sharey=True)
    values = _of(result, "profile")
    for axes, kind in zip(row, KINDS, strict=True):
        for name, (color, line) in ACTIVATIONS.items():
            y = values[f"{kind}, {name}, depth 2"]
            axes.plot(result["cosine"], y, color=color, ls=line, label=name)
        axes.axhline(0, color=BLACK, lw=0.6)
        axes.set(ylim=(-1.03, 1.03), **BETWEEN)
    legend_below(fig, 6, columnspacing=1.5)
    return fig


def _corner(result: Result, powers: dict[str, str]) -> Figure:
    titles = ("ReLU, by depth", "NTK of depth 2, by activation")
    distance = "distance r of two unit vectors"
    fig, (left, right) = panels(5.2, titles, distance, "1 − k(u) / k(1)", sharey=True)
    drops, r, depths = _of(result, "drop"), result["r"], result.settings["depths"]

    def draw(axes: Axes, name: str, label: str, color: str, ls: Any = "-", **more: Any) -> None:
        axes.loglog(r, drops[name], color=color, ls=ls, label=label, **more)

    for depth, color in zip(depths, STEPS, strict=False):
        draw(left, f"NTK, Relu, depth {depth}", f"NTK, depth {depth}", color)
    # The NNGPs of all depths share one line: the first broad and pale, the last dashed on top.
    first, last = depths[0], depths[-1]
    draw(left, f"NNGP, Relu, depth {first}", f"NNGP, depth {first}", STEPS[0], lw=4.5)
    dashed = f"NNGP, depth {last}", STEPS[-1], (0, (4, 3))
    draw(left, f"NNGP, Relu, depth {last}", *dashed)
    for name in ("Laplacian", "Gaussian"):
        draw(right, f"{name}, ℓ = 1", name, GREY, DASHES[name])
    for name in SHOWN:
        draw(right, f"NTK, {name}, depth 2", name, *ACTIVATIONS[name])
    upper, lower = (2.5e-5, 3e-3), (4e-3, 1e-7)
    left.text(*upper, f"slope {powers['ntk']}")
    left.text(*lower, f"slope {powers['nngp']}")
    right.text(*upper, f"slope {powers['ntk']}")
    right.text(*lower, f"slope {powers['smooth']}")
    for axes in (left, right):
        axes.axvspan(result.settings["low"], result.settings["high"], color=PALE, lw=0, zorder=0)
        axes.set_xlim(r[0], 1)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, handlelength=2.6)
    return fig
