"""Convolutional kernels: what pooling is worth where positions vary (K4, K5, E7).

Five kernels read digits that stand in the middle of a canvas, or anywhere on it: a fully connected
NTK, convolutional NTKs read out at equal positions and with global pooling (Arora et al. 2019), the
Myrtle network of Shankar et al. (2020) and a convolutional kernel network (Bietti 2021). The images
are the digits that the package carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import kernelcore as kc

from .._types import Array
from ..linalg.blas import serial
from ..solvers import RidgePath
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._draw import FIVE, GREY, Curve, error_bars, figure, legend_below, panels
from ._words import listed, plus_minus, power_of_ten, scientific, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Convolutional kernels"
CANVAS = 12  # 25 positions for an image of 8 x 8
RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)  # times the mean of the diagonal
DENSE, FLAT, GAP = "fully connected", "CNTK, Flatten", "CNTK, GAP"
MYRTLE, CKN = "Myrtle-5", "CKN"
PLACES = ("centred", "at random positions")
WIDE = 20  # the canvas on which images are shifted
SHIFTS = 8
BLOCK = [kc.Conv(3, w_std=2**0.5, padding="circular"), kc.Relu()]
KERNELS = {
    DENSE: kc.Sequential(kc.Flatten(), *kc.presets.mlp(3).layers).ntk,
    FLAT: kc.Sequential(*BLOCK * 3, kc.Flatten(), kc.Dense(2**0.5)).ntk,
    CKN: kc.presets.ckn(patches=(3, 3), pools=(2, 2)).nngp,
    MYRTLE: kc.Sequential(
        *BLOCK * 2, kc.AvgPool(2), *BLOCK, kc.AvgPool(2), *BLOCK,
        kc.GlobalAvgPool(), kc.Project(), kc.DotProduct(kc.profiles.Kappa1()),
    ).nngp,
    GAP: kc.Sequential(*BLOCK * 3, kc.GlobalAvgPool(), kc.Dense(2**0.5)).ntk,
}  # fmt: skip
NAMES = list(KERNELS)
CURVES = [Curve(name, *look) for name, look in zip(NAMES, FIVE, strict=True)]
ARORA = "Arora et al. 2019"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """A pool of digits, divided some times into training and test; and digits that are shifted."""

    count: int = 110
    test: int = 40
    sizes: tuple[int, ...] = (20, 40, 70)
    draws: int = 8
    shifted: int = 1  # digits of each class


PRESETS = {
    "small": Settings(),
    "paper": Settings(count=600, test=200, sizes=(25, 50, 100, 200, 400), draws=20, shifted=4),
}
SECONDS = {"small": 6, "paper": 240}


def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    """Read digits on a canvas with each kernel, and compare digits with shifted copies."""
    s, cells = settings, cells or Cells()
    images, labels = kc.data.digits()
    rng = np.random.default_rng(s.seed)
    pool = rng.permutation(len(images))[: s.count]
    chosen = np.concatenate([np.flatnonzero(labels == k)[: s.shifted] for k in range(10)])
    shifted = images[chosen].reshape(-1, 1, 8, 8) / 16
    images, labels = (images[pool].reshape(-1, 8, 8) / 16).astype(np.float32), labels[pool]
    free = CANVAS - 8
    corners = np.full((s.count, 2), free // 2), rng.integers(0, free, (s.count, 2), endpoint=True)
    canvases = [_on_canvas(images, corner, CANVAS) for corner in corners]
    orders = [rng.permutation(s.count) for _ in range(s.draws)]

    def read(word: str, name: str, place: int) -> dict[str, Any]:
        gram = KERNELS[name](canvases[place]).astype(np.float64)
        errors = np.empty((len(s.sizes), s.draws))
        for k, r in np.ndindex(errors.shape):
            train, held = orders[r][: s.sizes[k]], orders[r][-s.test :]
            weights = _fitted(gram[np.ix_(train, train)], labels[train])
            guess = (gram[np.ix_(held, train)] @ weights).argmax(axis=1)
            errors[k, r] = 100 * np.mean(guess != labels[held])
        return {"errors": errors}

    def shift(word: str, name: str) -> dict[str, Any]:
        # The digits stay so far from all borders that these do not matter.
        start = (WIDE - 8 - SHIFTS) // 2
        corners = np.array([[WIDE // 2 - 4, start + step] for step in range(SHIFTS + 1)])
        found = []
        for image in shifted:
            moved = _on_canvas(image.repeat(len(corners), axis=0), corners, WIDE)
            size = KERNELS[name].diag(moved)
            found.append(KERNELS[name](moved[:1], moved)[0] / np.sqrt(size[0] * size))
        return {"likeness": found}

    with serial():  # with a few hundred unknowns more threads cost more than they gain
        keys = [("read", name, place) for name in NAMES for place in range(len(PLACES))]
        errors = cells.map(read, keys, share(progress, 0, 0.7))
        falls = cells.map(shift, [("shift", name) for name in NAMES], share(progress, 0.7, 1))
    shape = (len(NAMES), len(PLACES), len(s.sizes), s.draws)
    shown = np.unique(labels, return_index=True)[1]  # one of each digit
    return Result(
        "images", s,
        {
            "errors": np.reshape([e["errors"] for e in errors], shape),
            "likeness": np.stack([f["likeness"] for f in falls]),
            "examples": np.stack([canvas[shown, :, :, 0] for canvas in canvases]),
        },
    )  # fmt: skip


def _on_canvas(images: Array, corners: Array, size: int) -> Array:
    """Put images on canvases of zeros, by their upper left corners; shape (n, size, size, 1)."""
    canvas = np.zeros((len(images), size, size, 1), images.dtype)
    height, width = images.shape[1:]
    for to, image, (i, j) in zip(canvas, images, corners, strict=True):
        to[i : i + height, j : j + width, 0] = image
    return canvas


def _fitted(gram: Array, labels: Array) -> Array:
    """Fit by kernel ridge regression, with the ridge that leaving one out chooses."""
    target = np.eye(10)[labels] - 0.1
    path = RidgePath(gram, target)
    choices = []
    for ridge in (one * float(gram.diagonal().mean()) for one in RIDGES):
        missed = path.loo(ridge)
        mistakes = np.count_nonzero((target - missed).argmax(axis=1) != labels)
        choices.append((mistakes, np.square(missed).sum(), ridge))
    return path.alpha(min(choices)[-1])


# ---- what it says


def claims(result: Result) -> list[Claim]:
    """Compare kernels at random positions, and the pooled kernel with itself."""
    errors = result["errors"][:, :, -1]
    apart = np.abs(1 - result["likeness"])
    lead = errors[NAMES.index(DENSE), 1] - errors[NAMES.index(GAP), 1]
    cost = errors[:, 1] - errors[:, 0]
    draws = errors.shape[-1]

    def mean(values: Array) -> tuple[float, float]:
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(draws))

    (ahead, error), (price, doubt) = mean(lead), mean(cost[NAMES.index(GAP)])
    return [
        Claim("At random positions global pooling beats a fully connected NTK: points of error "
              "gained", ARORA, None, ahead, error, 2 * error, np.inf),
        Claim("Random positions cost the globally pooled kernel nothing: points of error", ARORA,
              0.0, price, doubt, -np.inf, max(2.0, 2 * doubt)),
        Claim("A globally pooled kernel with circular padding does not see a shift: largest "
              "1 − normalised kernel", ARORA, 0.0, float(apart[NAMES.index(GAP)].max()), 0.0, 0.0,
              1e-12),
        Claim.order("Without global pooling likeness falls with the first pixel of a shift: "
                    "kernels for which it does not", ARORA,
                    int((apart[[NAMES.index(n) for n in (DENSE, FLAT, CKN)], :, 1].min(axis=1)
                         < 1e-3).sum())),
    ]  # fmt: skip


def paragraph(result: Result) -> str:
    """Say what the kernels are, and what positions cost them."""
    s, mean = result.settings, result["errors"].mean(axis=-1)
    dense, gap = mean[NAMES.index(DENSE), :, -1], mean[NAMES.index(GAP), :, -1]
    cost = (mean[:, 1, -1] - mean[:, 0, -1]).tolist()
    costs = "; ".join(f"{name}: {signed(x, 1)}" for name, x in zip(NAMES, cost, strict=True))
    return f"""
    With {s["sizes"][-1]} training digits at random positions the fully connected NTK misreads
    {dense[1]:.0f} % of the others and the convolutional NTK with global pooling {gap[1]:.1f} %; of
    centred digits {dense[0]:.1f} and {gap[0]:.1f} %. Random positions cost, in percentage points:
    {costs}. A convolution alone does not make a kernel invariant: read out at equal positions, it
    still compares a stroke with whatever the other image has in its place. Pooling over a few
    pixels forgives shifts of a few pixels, and pooling over all of them any shift.

    The kernel of a convolutional network is carried by pairs of positions: a convolution averages
    over patches, an activation acts on each pair, and the readout decides which of them count:
    Flatten takes the equal positions, global average pooling (GAP) all pairs. {DENSE.capitalize()}:
    three hidden ReLU layers. {FLAT} and {GAP}: three 3 × 3 convolutions with ReLU. {MYRTLE}
    (Shankar et al. 2020): four of them, 2 × 2 average pooling after the second and the third, and
    at the end global pooling and κ₁ of the cosine. {CKN} (Bietti 2021): two layers of
    exp((u − 1)/0.6²) on patches, each followed by Gaussian pooling to half the size,
    read out at equal positions.

    Each digit is put on an empty canvas of {CANVAS} × {CANVAS} pixels. A pool of {s["count"]}
    digits is divided {s["draws"]} times at random: {s["test"]} are kept for the test, and the
    kernels learn from the first {listed(s["sizes"])} of the others. The ridge
    ({power_of_ten(min(RIDGES))} to {max(RIDGES):g} times the mean of the diagonal) is the one with
    the fewest mistakes when each training digit is left out in turn. Test digits have no
    part in any choice.
    """


def tables(result: Result) -> list[Table]:
    """Return test errors by kernel, place and size."""
    s, errors = result.settings, result["errors"]
    mean, spread = errors.mean(axis=-1), errors.std(axis=-1, ddof=1)
    rows = [
        (name, place, *map(plus_minus, mean[k, p], spread[k, p], [1] * len(s["sizes"])))
        for p, place in enumerate(PLACES)
        for k, name in enumerate(NAMES)
    ]
    told = f"Test error in %, mean ± standard deviation over {s['draws']} draws."
    return [Table(("kernel", "digits", *(f"n = {n}" for n in s["sizes"])), rows, told, labels=2)]


def plot(result: Result) -> list[Picture]:
    """Draw the digits, learning curves, and likeness against shift."""
    s, errors = result.settings, result["errors"]
    best = [NAMES[k] for k in errors.mean(axis=-1)[:, :, -1].argmin(axis=0)]
    apart = dict(zip(NAMES, np.abs(1 - result["likeness"]), strict=True))
    most = float(apart[GAP].max())
    exactly = "exactly 1" if most == 0 else f"1, to {scientific(most)},"
    back = [k for k in range(1, SHIFTS + 1) if apart[MYRTLE][:, k].max() < 1e-9]
    again = (
        f" {MYRTLE} returns to 1 after {listed(back)} pixels, where its two poolings see the same "
        "windows again."
    ) if back else ""  # fmt: skip
    digits = result["likeness"].shape[1]
    return [
        Picture(
            "digits", _examples(result["examples"]),
            "The same digits centred (above) and at random positions (below).",
            "Digits in the middle of their canvas, and the same ones anywhere on it",
        ),
        Picture(
            "errors", _learning_curves(s["sizes"], errors),
            "Test error against the number of training images, mean and standard deviation over "
            f"{s['draws']} draws (points are moved sideways a little so that the bars can be told "
            f"apart). Lowest mean at n = {s['sizes'][-1]}: {best[0]} ({PLACES[0]}), {best[1]} "
            f"({PLACES[1]}).",
            "Two panels of test error against training size for five kernels: at random positions "
            "only pooled kernels learn well",
        ),
        Picture(
            "shifts", _falls(result["likeness"]),
            "Left: cosine of an image x and the image x′ shifted to the right in feature space, "
            f"k(x, x′) / √(k(x, x) k(x′, x′)), mean over {digits} digits and one standard "
            f"deviation, on a canvas of {WIDE} × {WIDE}. Right: one minus that; {GAP} stays at "
            f"{exactly} in float64 and is left out.{again} Where the strokes no longer meet, "
            f"{FLAT} has nothing left to compare, and {DENSE} comes down to its value at a "
            "right angle.",
            "Normalised kernel of an image and the shifted image against the shift, two panels",
        ),
    ]  # fmt: skip


def _examples(canvases: Array) -> Figure:
    fig = figure(2.0)
    for line, canvas in zip(fig.subplots(*canvases.shape[:2]), canvases, strict=True):
        for axes, image in zip(line, canvas, strict=True):
            axes.imshow(image, cmap="Greys", vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
            axes.spines[:].set(visible=True, color=GREY, linewidth=0.6)
    return fig


def _learning_curves(sizes: Sequence[int], errors: Array) -> Figure:
    ylabel, marks = "misread test digits in %", (0.5, 1, 2, 5, 10, 20, 50, 100)
    fig, row = panels(4.9, PLACES, "training examples n", ylabel, sharey=True)
    for k, axes in enumerate(row):
        error_bars(axes, CURVES, sizes, errors[:, k], marks)
    row[0].set_ylim(max(marks[0], row[0].get_ylim()[0]), None)
    legend_below(fig, 5, handlelength=2.8)
    return fig


def _falls(likeness: Array) -> Figure:
    fig, (left, right) = panels(4.6, ("", ""), "shift in pixels", "normalised kernel")
    shifts = np.arange(likeness.shape[-1])
    for curve, values in zip(CURVES, likeness, strict=True):
        mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
        left.fill_between(shifts, mean - spread, mean + spread, color=curve.color, alpha=0.15, lw=0)
        left.plot(shifts, mean, **curve.look, ms=5)
        if curve.name != GAP:
            gap = np.where(1 - mean > 1e-9, 1 - mean, np.nan)
            low = np.maximum(gap - spread, 0.05 * gap)
            right.fill_between(shifts, low, gap + spread, color=curve.color, alpha=0.15, lw=0)
            right.semilogy(shifts, gap, **curve.look, ms=5)
    left.set(ylim=(0, 1.03), xticks=shifts)
    right.set(ylabel="1 − normalised kernel", ylim=(None, 1.3), xticks=shifts)
    legend_below(fig, 5, handlelength=2.8)
    return fig
