"""Lipschitz against Hölder, and stability to translations and deformations (E6).

Bietti and Mairal (2019). The kernel map of a convolutional kernel network (CKN) with non-expansive
layers is Lipschitz; that of a neural tangent kernel is like a square root of the distance. The
distance in the RKHS between an image and its deformation x(u - tau(u)) grows with the size of tau,
divided by the width of the last pooling, and with its gradient; and a predictor f changes by at
most norm(f) times that distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import kernelcore as kc

from .._types import Array
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import many_small, mean_and_error, seeds, slope
from ._words import listed, plus_minus, signed

TITLE = "Smoothness and stability"
PAPER = "Bietti and Mairal 2019"
KINDS = ("CKN", "NTK")


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Images are digits of 8 x 8 pixels, drawn twice as large in the middle of a canvas."""

    depths: tuple[int, ...] = (1, 2, 5)
    canvas: int = 24
    patches: tuple[int, ...] = (3, 3)
    pools: tuple[int, ...] = (2, 3)
    images: int = 6
    draws: int = 2
    sizes: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    gradient: float = 0.3
    scales: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0)
    patch_sizes: tuple[int, ...] = (1, 3, 5)
    train: int = 40


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seed 0
    "paper": Settings(canvas=28, pools=(2, 5), images=10, draws=20, train=300),
}
SECONDS = {"small": 10.0, "paper": 600.0}


def _digits(s: Settings) -> tuple[Array, Array]:
    """Return digits of twice their size, by linear interpolation, on canvases of zeros."""
    from scipy.ndimage import zoom

    x, y = kc.data.digits()
    order = seeds(s.seed, 9).permutation(len(x))[: max(s.images, 2 * s.train)]
    large = zoom(x[order].reshape(-1, 8, 8) / 16, (1, 2, 2), order=1)
    edge = (s.canvas - 16) // 2
    canvas = np.zeros((len(large), s.canvas, s.canvas, 1))
    canvas[:, edge : edge + 16, edge : edge + 16, 0] = large
    return canvas, y[order]


def _kernels(s: Settings) -> dict[str, kc.Kernel]:
    net = kc.presets.pooled_cntk(s.patches, s.pools)
    ckn = kc.presets.ckn(s.patches, s.pools, kc.profiles.Kappa1(), non_expansive=True)
    return {"CKN": ckn.nngp, "NTK": net.ntk}


def _distances(kernel: kc.Kernel, x: Array, others: Array, relative: bool = True) -> Array:
    """Return distances in the RKHS from one image to others, over the norm of the first."""
    own = float(kernel.diag(x[None])[0])
    square = own + kernel.diag(others) - 2 * kernel(x[None], others)[0]
    return np.sqrt(np.maximum(square, 0) / (own if relative else 1.0))


UNPOOLED = kc.Sequential(
    kc.Input(sum=True), kc.Conv(3, w_std=3.0), kc.DotProduct(kc.profiles.Kappa1()),
    kc.Flatten(sum=True),
).nngp  # fmt: skip
"""One layer before its pooling."""


def _pooled(scale: float) -> kc.Kernel:
    return kc.presets.ckn((3,), (1,), kc.profiles.Kappa1(), sigmas=scale).nngp


def _local(s: Settings) -> dict[str, Array]:
    """Return distances on the sphere at r = |x - x'|, by the profile, in float64."""
    u = 1 - np.geomspace(1e-4, 1.0, 41) ** 2 / 2
    r = np.sqrt(2 * (1 - u))  # of the rounded cosines
    found = []
    for depth in s.depths:
        net = kc.presets.mlp(depth)
        rows = []
        for k in (net.nngp, net.ntk):
            top = float(k.profile(1.0))
            rows.append(np.sqrt(2 * (1 - k.profile(u) / top)))
        found.append(rows)
    return {"r": r, "local": np.array(found)}


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    canvas, labels = _digits(s)
    kernels = _kernels(s)
    shape = (s.canvas, s.canvas)

    def moved(_: str, image: int) -> dict[str, Array]:
        """Translations, and deformations of a fixed gradient, of growing size."""
        rng = seeds(s.seed, image)
        x, found = canvas[image], {}
        shifted, bent = [], []
        for _draw in range(s.draws):
            angle = rng.uniform(0, 2 * math.pi)
            tau = kc.data.deformation(shape, 1.0, s.gradient, seed=rng).tau
            shifted += [size * np.array([math.sin(angle), math.cos(angle)]) for size in s.sizes]
            bent += [size * tau for size in s.sizes]
        for name, taus in (("translations", shifted), ("deformations", bent)):
            others = np.concatenate([kc.data.deform(x[None], tau) for tau in taus])
            for kind, kernel in kernels.items():
                far = _distances(kernel, x, others).reshape(s.draws, len(s.sizes))
                found[f"{name}_{kind}"] = far.T
        return found

    def widths(_: str, image: int) -> dict[str, Array]:
        """One layer whose last pooling has the width sigma: what a shift by a pixel changes."""
        x = canvas[image]
        other = np.roll(x, 1, axis=1)[None]
        norm = math.sqrt(float(UNPOOLED.diag(x[None])[0]))
        by_scale = [_distances(_pooled(scale), x, other, relative=False) for scale in s.scales]
        tau = kc.data.deformation(shape, 1.0, s.gradient, seed=image).tau
        bent = kc.data.deform(x[None], tau)
        by_patch = [
            _distances(kc.presets.ckn((p,), (2,), kc.profiles.Kappa1()).nngp, x, bent)
            for p in s.patch_sizes
        ]
        return {"scales": np.array(by_scale)[:, 0] / norm, "patches": np.array(by_patch)[:, 0]}

    def bounded(_: str, kind: str) -> dict[str, Array]:
        """Fit a predictor, and compare its changes with the bound norm(f) d(x, x')."""
        kernel = kernels[kind]
        x, y = canvas[: s.train], np.where(labels[: s.train] % 2 == 0, 1.0, -1.0)
        K = kernel(x)
        alpha = kc.solvers.ridge(K, y, 1e-6 * float(K.diagonal().mean()))
        size = math.sqrt(float(kc.solvers.rkhs_inner(alpha, K)))
        z = canvas[s.train : s.train + 8]
        tau = kc.data.deformation(shape, 1.0, s.gradient, seed=s.seed).tau
        other = kc.data.deform(z, tau)
        change = np.abs((kernel(z, x) - kernel(other, x)) @ alpha)
        square = kernel.diag(z) + kernel.diag(other)
        cross = np.array([kernel(a[None], b[None])[0, 0] for a, b in zip(z, other, strict=True)])
        return {"share": change / (size * np.sqrt(square - 2 * cross))}

    local = cells.get(("local",), lambda: _local(s))
    images = [("moved", k) for k in range(s.images)]
    found = cells.map(moved, images, share(progress, 0.0, 0.6))
    more = cells.map(widths, [("widths", k) for k in range(s.images)], share(progress, 0.6, 0.9))
    bounds = cells.map(bounded, [("bound", kind) for kind in KINDS], share(progress, 0.9, 1.0))
    arrays = {
        name: np.stack([one[name] for one in found])
        for name in sorted(found[0])
    }  # fmt: skip
    return Result("stability", s, {
        **local, **arrays, "scales": np.stack([one["scales"] for one in more]),
        "patches": np.stack([one["patches"] for one in more]),
        "shares": np.stack([one["share"] for one in bounds]),
        "examples": _examples(s, canvas),
    })  # fmt: skip


def _examples(s: Settings, canvas: Array) -> Array:
    """Return a digit, and how it looks moved by displacements that can be seen."""
    shape, size = (s.canvas, s.canvas), 2 * s.sizes[-2]
    tau = kc.data.deformation(shape, 1.0, s.gradient, seed=s.seed).tau
    moved = [np.array([0.0, size]), size * tau]
    return np.stack([canvas[0, ..., 0], *(kc.data.deform(canvas[:1], t)[0, ..., 0] for t in moved)])


def _exponents(result: Result) -> Array:
    """Return the exponents of distances on the sphere in r, for depths and both kernels."""
    near = (result["r"] >= 1e-4) & (result["r"] <= 1e-2)
    r = result["r"][near]
    return np.array([[slope(r, d[near]) for d in rows] for rows in result["local"]])


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    found, exponents = [], _exponents(result)
    for k, depth in enumerate(s.depths):
        for j, (kind, predicted) in enumerate(zip(KINDS, (1.0, 0.5), strict=True)):
            text = f"exponent of the distance on the sphere, {kind} of {depth} hidden layers"
            found.append(Claim.near(text, PAPER, predicted, exponents[k, j], 0.0, 0.03))
    small = np.array(s.sizes) <= 0.1
    for name in ("translations", "deformations"):
        rates = {
            kind: np.array([slope(np.array(s.sizes)[small], one[small].mean(-1))
                            for one in result[f"{name}_{kind}"]])
            for kind in KINDS
        }  # fmt: skip
        mean, error = mean_and_error(rates["CKN"])
        text = f"CKN distance to small {name} is linear: exponent in the size of tau"
        found.append(Claim.near(text, PAPER, 1.0, float(mean), float(error), 0.1))
        mean, error = mean_and_error(rates["NTK"])
        text = f"NTK distance to small {name} is like a square root: exponent in the size of tau"
        found.append(Claim.near(text, PAPER, 0.5, float(mean), float(error), 0.15))
    # A translation by tau moves h_sigma * g by at most |tau| times the integral of |grad h_sigma|.
    bounds = math.sqrt(math.pi / 2) / np.array(s.scales)
    text = "CKN distance to a shift by a pixel over its bound, sqrt(pi/2)/sigma_n times norm(Phi)"
    most = float((result["scales"] / bounds).max())
    found.append(Claim(text, PAPER, None, most, 0.0, 0.0, 1.0))
    most = float(result["shares"].max())
    text = "|f(x) - f(x')| over norm(f) d(x, x') of fitted predictors, at most"
    found.append(Claim(text, PAPER, None, most, 0.0, 0.0, 1.0))
    return found


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    mean, error = mean_and_error(result["patches"], axis=0)
    rows = [
        (f"{p} x {p}", plus_minus(m, e, 3))
        for p, m, e in zip(s.patch_sizes, mean, error, strict=True)
    ]
    told = (
        "Relative distance of one-layer CKNs to a deformation of one pixel, mean ± standard error "
        f"over {s.images} digits."
    )
    patches = Table(("patches", "distance"), rows, told)
    mean, error = mean_and_error(result["scales"], axis=0)
    wide = [
        (f"{scale:g}", plus_minus(m, e, 3), f"{math.sqrt(math.pi / 2) / scale:.3f}")
        for scale, m, e in zip(s.scales, mean, error, strict=True)
    ]
    told = "Distance to a shift by one pixel, relative to the norm before pooling, and its bound."
    return [patches, Table(("σ of the pooling", "distance", "bound"), wide, told)]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    exponents = _exponents(result)
    ckn, ntk = (listed([signed(e, 3) for e in exponents[:, j]]) for j in range(2))
    return (
        "Near a point of the sphere the distance in the RKHS is the power "
        f"{ckn} of the distance for kernels whose last layer alone is trained, and {ntk} for NTKs "
        f"({listed(s.depths)} hidden layers). The same holds for digits that are moved: CKN "
        "distances grow in proportion to the displacement, those of the NTK much faster at first. "
        "Wider pooling makes them smaller. Fitted predictors changed by at most "
        f"{100 * float(result['shares'].max()):.0f} % of what their norm allows."
    )


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    s = Settings(**result.settings)
    with draw.style():
        fig = draw.figure(3.8)
        one, two, three = fig.subplots(1, 3)
        for k, depth in enumerate(s.depths):
            for j, (kind, line) in enumerate(zip(KINDS, ("-", "--"), strict=True)):
                one.loglog(result["r"], result["local"][k, j], color=draw.STEPS[k % 4], ls=line,
                           label=f"{kind}, {depth} hidden")  # fmt: skip
        one.set(xlabel="|x − x′| on the sphere", ylabel="distance in the RKHS")
        one.set_title("Lipschitz and Hölder", loc="left")
        one.legend(fontsize=8.5)
        for axes, name in ((two, "translations"), (three, "deformations")):
            axes.set(xscale="log", yscale="log", xlabel="sup |τ| in pixels")
            for kind, color, mark in (("CKN", draw.BLUE, "o"), ("NTK", draw.VERMILLION, "s")):
                each = result[f"{name}_{kind}"].mean(-1)
                mean, error = mean_and_error(each, axis=0)
                draw.measured(axes, s.sizes, mean, error, color, mark, kind)
                power = 1.0 if kind == "CKN" else 0.5
                draw.theory(axes, s.sizes, mean[0] * (np.array(s.sizes) / s.sizes[0]) ** power,
                            color, f"slope {power:g}", lw=1, ls=":")  # fmt: skip
            axes.set_title(name.capitalize(), loc="left")
            draw.ticks(axes.xaxis, s.sizes[::2])
            axes.legend(fontsize=8.5)
        shown = draw.figure(2.3, 6.5)
        titles = ("a digit", "translated", "deformed")
        for axes, image, title in zip(
            shown.subplots(1, 3), result["examples"], titles, strict=True
        ):
            axes.imshow(image, cmap="gray_r")
            axes.set_title(title, loc="left")
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
    return [
        Picture(
            "distances", fig,
            "Left: distances in the RKHS on the sphere, solid for the kernel of the last layer "
            "(CKN), dashed for NTKs. Middle and right: mean relative distance from digits to their "
            f"translations and deformations (standard errors over {s.images} digits), two layers "
            "with Gaussian pooling; dotted lines have the slopes of theory.",
            "Three log-log panels: slopes of one for CKNs and of one half for NTKs",
        ),
        Picture(
            "examples", shown, f"A digit, moved by {2 * s.sizes[-2]:g} pixels at most.",
            "Three pictures of a digit: as it is, shifted, and bent",
        ),
    ]  # fmt: skip
