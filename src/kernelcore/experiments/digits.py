"""Handwritten digits by kernel ridge regression: NTKs beside classical kernels (K1, L1).

The images are those that the package carries, 1,797 of 8 × 8 pixels (UCI, Optical Recognition of
Handwritten Digits). Ridges and lengthscales are chosen on a part of the training images (Arora et
al. 2020 compare NTKs with Gaussian kernels in the same way on many small data sets).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import pdist

import kernelcore as kc

from .._types import Array
from ..linalg import cholesky
from ..linalg.blas import serial
from . import _base, _draw
from ._base import Cells, Claim, Picture, Progress, Result, Table
from ._draw import GREY, ORANGE, STEPS, VERMILLION, Curve, error_bars, legend_below, panels
from ._words import listed, plus_minus, power_of_ten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Handwritten digits"
TEST = 797
RIDGES = (1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0, 100.0)  # times the mean of the diagonal
LENGTHSCALES = tuple(2.0 ** (i / 2) for i in range(-4, 3))  # times the median distance
DEPTHS = (1, 2, 3, 5)
LINEAR, GAUSSIAN = "linear", "Gaussian"
SHOWN = 3  # the depth whose mistakes are drawn
MISTAKES = 20  # two rows of ten
KERNELS: dict[str, kc.Kernel | None] = {
    LINEAR: kc.Polynomial(1),
    GAUSSIAN: None,  # of a lengthscale for each training set
    **{f"NTK, depth {depth}": kc.presets.mlp(depth).ntk for depth in DEPTHS},
    "NNGP, depth 3": kc.presets.mlp(3).nngp,
}
NAMES = list(KERNELS)
NTKS = [k for k, name in enumerate(NAMES) if name.startswith("NTK")]
LOOKS = (
    (GREY, ":", "x"), (VERMILLION, "--", "v"),
    *((color, "-", marker) for color, marker in zip(STEPS, "osD^", strict=True)),
    (ORANGE, "-.", "P"),
)  # fmt: skip
CURVES = [Curve(name, *look) for name, look in zip(NAMES, LOOKS, strict=True)]
ARORA = "Arora et al. 2020"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Training sizes, and how many random divisions into training and test images."""

    sizes: tuple[int, ...] = (50, 100, 200, 400)
    draws: int = 4


PRESETS = {"small": Settings(), "paper": Settings(sizes=(50, 100, 200, 400, 800), draws=20)}
SECONDS = {"small": 2, "paper": 35}


def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    """Read the test images of each draw with every kernel, after each number of images."""
    images, labels = kc.data.digits()
    rng = np.random.default_rng(settings.seed)
    orders = [rng.permutation(len(images)) for _ in range(settings.draws)]

    def one(draw: int, size: int) -> dict[str, Any]:
        train, test = orders[draw][:size], orders[draw][-TEST:]
        mean = images[train].mean(axis=0)
        x, z = (images[train] - mean) / 16, (images[test] - mean) / 16
        median = float(np.median(pdist(x)))
        gaussians = [kc.Gaussian(factor * median) for factor in LENGTHSCALES]
        found = [
            _classify(gaussians if kernel is None else [kernel], x, labels[train], z)
            for kernel in KERNELS.values()
        ]
        return {
            "guesses": np.array([guess for guess, _ in found], np.int8),
            "ridges": [ridge for _, ridge in found],
        }

    keys = [(draw, size) for draw in range(settings.draws) for size in settings.sizes]
    with serial():  # with a few hundred unknowns more threads cost more than they gain
        found = (cells or Cells()).map(one, keys, progress)
    by = (settings.draws, len(settings.sizes), len(NAMES))
    test = np.stack([order[-TEST:] for order in orders])
    return Result(
        "digits", settings,
        {
            # The digit that each kernel, after each size of each draw, reads in a test image.
            "guesses": np.reshape([f["guesses"] for f in found], (*by, TEST)).transpose(2, 1, 0, 3),
            "ridges": np.reshape([f["ridges"] for f in found], by).transpose(2, 1, 0),
            "truth": labels[test], "last": images[test[-1]].astype(np.uint8),
        },
    )  # fmt: skip


def _classify(
    kernels: Sequence[kc.Kernel], x: Array, labels: Array, z: Array
) -> tuple[Array, float]:
    """Return classes of z and the relative ridge, by the best choice on the last quarter of x."""
    target = np.eye(10)[labels] - 0.1
    part = len(x) - len(x) // 4
    choices = []
    for kernel in kernels:
        gram = kernel(x, n_threads=1)
        for ridge in RIDGES:
            weights = _ridge(gram[:part, :part], ridge, target[:part])
            loss = np.square(gram[part:, :part] @ weights - target[part:]).mean()
            choices.append((loss, ridge, kernel, gram))
    _, ridge, kernel, gram = min(choices, key=lambda choice: choice[0])
    return (kernel(z, x, n_threads=1) @ _ridge(gram, ridge, target)).argmax(axis=1), ridge


def _ridge(gram: Array, ridge: float, target: Array) -> Array:
    """Fit by kernel ridge regression; ``ridge`` is relative to the mean of the diagonal."""
    return cholesky(gram, ridge * gram.diagonal().mean()).solve(target)


# ---- what it says


def _errors(result: Result) -> Array:
    """Return misread test images in %, by kernel, size and draw."""
    return 100 * (result["guesses"] != result["truth"]).mean(axis=-1)


def _standard_error(values: Array) -> Array:
    return values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])


def claims(result: Result) -> list[Claim]:
    """Compare NTKs with the Gaussian and the linear kernel, on the same draws."""
    errors, n = _errors(result)[:, -1], result.settings["sizes"][-1]
    best = min(NTKS, key=lambda k: errors[k].mean())
    found = []
    for other, text, most in (
        (
            GAUSSIAN,
            "The best NTK reads digits as well as a Gaussian kernel of chosen lengthscale",
            0.5,
        ),
        (LINEAR, "The best NTK reads digits better than a linear kernel", 0.0),
    ):
        ahead = errors[best] - errors[NAMES.index(other)]
        error = float(_standard_error(ahead))
        told = f"{text}: difference in percentage points, n = {n}, at most {most:g} or 2 σ"
        high = most + 2 * error if most else -2 * error
        found.append(Claim(told, ARORA, None, float(ahead.mean()), error, -np.inf, high))
    gap = np.ptp(errors[NTKS].mean(axis=1))
    first = np.ptp(_errors(result)[NTKS, 0].mean(axis=1))
    text = "Depths of the NTK differ less with more images: range of errors, last over first size"
    return [*found, Claim(text, ARORA, None, float(gap / first), 0.0, 0.0, 1.0)]


def paragraph(result: Result) -> str:
    """Say how the images were divided, and who reads them best."""
    errors, sizes = _errors(result), result.settings["sizes"]
    mean = errors.mean(axis=-1)
    best, best_ntk = int(mean[:, -1].argmin()), min(NTKS, key=lambda k: mean[k, -1])
    ahead = errors[best_ntk, -1] - errors[NAMES.index(GAUSSIAN), -1]
    lead, doubt = float(ahead.mean()), float(_standard_error(ahead))
    verdict = f"in favour of the {'Gaussian kernel' if lead > 0 else 'NTK'}"
    if abs(lead) <= 2 * doubt:
        verdict = "too little to tell them apart"
    depths = zip([DEPTHS[i] for i in mean[NTKS].argmin(axis=0)], sizes, strict=True)
    networks = np.delete(result["ridges"], [NAMES.index(LINEAR), NAMES.index(GAUSSIAN)], axis=0)
    return f"""
    From {sizes[-1]} images the best kernel ({NAMES[best]}) misreads {mean[best, -1]:.1f} % of the
    test images, the linear kernel {mean[NAMES.index(LINEAR), -1]:.1f} %. The NTKs of depths
    {listed(DEPTHS)} lie between {mean[NTKS, -1].min():.1f} and {mean[NTKS, -1].max():.1f} %,
    without a lengthscale to choose. The best NTK ({NAMES[best_ntk].removeprefix("NTK, ")}) and the
    Gaussian kernel differ by {plus_minus(abs(lead), doubt, 2)} percentage points, {verdict}. The
    best depth of the NTK is {", ".join(f"{depth} (n = {n})" for depth, n in depths)}. In
    {100 * np.mean(networks == min(RIDGES)):.0f} % of the choices for the network kernels the
    smallest ridge on offer won, which amounts to interpolating the training labels.

    In each of {errors.shape[-1]} random draws {TEST} of 1,797 images of 8 × 8 pixels are set aside
    for the test, and the kernels learn from the first {listed(sizes)} of the others. Pixels are
    divided by 16 and the mean of the training images is subtracted; the largest of ten outputs, one
    per class, names the digit. The ridge ({power_of_ten(min(RIDGES))} to {max(RIDGES):g} times the
    mean of the diagonal) and, for the Gaussian kernel, the lengthscale ({min(LENGTHSCALES):g} to
    {max(LENGTHSCALES):g} times the median distance) are those with the least squared error on the
    last quarter of the training images after learning from the others; the final fit uses all of
    them. Test images have no part in any choice.
    """


def tables(result: Result) -> list[Table]:
    """Return test errors by kernel and size."""
    errors, sizes = _errors(result), result.settings["sizes"]
    mean, spread = errors.mean(axis=-1), errors.std(axis=-1, ddof=1)
    rows = [
        (name, *map(plus_minus, mean[k], spread[k], [2] * len(sizes)))
        for k, name in enumerate(NAMES)
    ]
    first = [f"{NAMES[k]} (n = {n})" for k, n in zip(mean.argmin(axis=0), sizes, strict=True)]
    told = (
        f"Mean ± standard deviation over {errors.shape[-1]} draws. Lowest mean: {'; '.join(first)}."
    )
    return [Table(("test error in %", *(f"n = {size}" for size in sizes)), rows, told)]


def plot(result: Result) -> list[Picture]:
    """Draw learning curves, and digits that were misread."""
    errors, sizes, truth = _errors(result), result.settings["sizes"], result["truth"]
    draws = errors.shape[-1]
    pictures = [
        Picture(
            "errors", _curves(sizes, errors),
            "Left: test error against the number of training images, mean and standard deviation "
            f"over {draws} draws (points are moved sideways a little so that the bars can be told "
            "apart). Right: the same errors minus those of the Gaussian kernel in the same draw, "
            "mean and standard error; above the dashed line the Gaussian kernel is better. The "
            "linear kernel is left out there.",
            "Test errors of seven kernels fall with training size; those of NTKs lie within a few "
            "tenths of a percentage point of the Gaussian kernel's",
        )
    ]  # fmt: skip
    shown = result["guesses"][NAMES.index(f"NTK, depth {SHOWN}"), -1]
    wrong = np.flatnonzero(shown[-1] != truth[-1])
    if len(wrong):
        misread = shown != truth
        confused = Counter(zip(truth[misread].tolist(), shown[misread].tolist(), strict=True))
        pairs = [f"{a} read as {b} ({count})" for (a, b), count in confused.most_common(3)]
        most = len(wrong) > MISTAKES
        some = f"The first {MISTAKES} of the {len(wrong)}" if most else f"The {len(wrong)}"
        pictures.append(
            Picture(
                "mistakes", _mistakes(result["last"][wrong], truth[-1, wrong], shown[-1, wrong]),
                f"{some} of the {TEST} test images of the last draw that the NTK of depth {SHOWN} "
                f"misread after {sizes[-1]} training images. Most frequent over all {draws} draws: "
                f"{', '.join(pairs)}, of {sum(confused.values())} mistakes.",
                "Images of misread digits with the true and the predicted class",
            )
        )  # fmt: skip
    return pictures


def _curves(sizes: Sequence[int], errors: Array) -> Figure:
    titles = ("test error", "difference from the Gaussian kernel")
    fig, (left, right) = panels(5.0, titles, "training images n", "misread test images in %")
    error_bars(left, CURVES, sizes, errors, (0.5, 1, 2, 5, 10, 20, 50), 1.025)
    for k, curve in enumerate(CURVES):
        if curve.name not in (LINEAR, GAUSSIAN):
            spots = _draw.aside(sizes, k, len(CURVES), 1.025)
            difference = errors[k] - errors[NAMES.index(GAUSSIAN)]
            mean, error = difference.mean(axis=-1), _standard_error(difference)
            right.errorbar(spots, mean, error, **(curve.look | _draw.BARS))
    right.axhline(0, color=VERMILLION, ls="--", lw=1.6)
    right.set(ylabel="percentage points", xscale="log")
    _draw.ticks(right.xaxis, sizes)
    legend_below(fig, 4, handlelength=2.8)
    return fig


def _mistakes(images: Array, truth: Array, guess: Array) -> Figure:
    count = min(len(images), MISTAKES)
    lines = -(-count // 10)
    columns = -(-count // lines)
    fig = _draw.figure(1.25 * lines, 0.97 * columns)
    grid = fig.subplots(lines, columns, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    for axes, image, true, read in zip(grid, images, truth, guess, strict=False):
        axes.imshow(image.reshape(8, 8), cmap="Greys", vmin=0, vmax=16)
        axes.set_title(f"{true}, read as {read}", fontsize=9, pad=5)
    return fig
