"""Section: handwritten digits by kernel ridge regression, NTKs against classical kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist

import kernelcore as kc

from .._types import Array
from ..linalg import cholesky
from ..linalg.blas import serial
from . import _draw
from ._draw import GREY, ORANGE, STEPS, VERMILLION, Curve, error_bars, legend_below, panels
from ._page import Part, Picture, Section, Table, listed, plus_minus, power_of_ten

TEST = 797
RIDGES = (1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0, 100.0)  # times the mean of the diagonal
LENGTHSCALES = tuple(2.0 ** (i / 2) for i in range(-4, 3))  # times the median distance
DEPTHS = (1, 2, 3, 5)
LINEAR, GAUSSIAN = "linear", "Gaussian"
SHOWN = 3  # the depth whose mistakes are drawn
MISTAKES = 20  # two rows of ten


FAMILIES = (
    Curve(LINEAR, kc.Polynomial(1), GREY, ":", "x"),
    Curve(GAUSSIAN, None, VERMILLION, "--", "v"),  # of a lengthscale for each training set
    *(
        Curve(f"NTK, depth {depth}", kc.presets.mlp(depth).ntk, color, "-", marker)
        for depth, color, marker in zip(DEPTHS, STEPS, "osD^", strict=True)
    ),
    Curve("NNGP, depth 3", kc.presets.mlp(3).nngp, ORANGE, "-.", "P"),
)
NAMES = [family.name for family in FAMILIES]


def section(quick: bool) -> Section:
    """Measure test errors; ``quick`` takes 3 draws instead of 10 and sizes up to 400."""
    sizes = (50, 100, 200, 400) if quick else (50, 100, 200, 400, 800)
    n_draws = 3 if quick else 10
    images, labels = kc.data.digits()
    rng = np.random.default_rng(0)
    order = np.stack([rng.permutation(len(images)) for _ in range(n_draws)])
    test = order[:, -TEST:]
    # guesses[f, s, r, i] is the digit that family f, trained on sizes[s] images of draw r, reads in
    # test image i.
    guesses = np.empty((len(FAMILIES), len(sizes), n_draws, TEST), dtype=np.int64)
    ridges = np.empty(guesses.shape[:3])
    # With a few hundred unknowns more threads cost more than they gain.
    with serial():
        for r, s in np.ndindex(n_draws, len(sizes)):
            train = order[r, : sizes[s]]
            mean = images[train].mean(axis=0)
            x, z = (images[train] - mean) / 16, (images[test[r]] - mean) / 16
            median = float(np.median(pdist(x)))
            gaussians = [kc.Gaussian(factor * median) for factor in LENGTHSCALES]
            for f, family in enumerate(FAMILIES):
                kernels = gaussians if family.name == GAUSSIAN else [family.kernel]
                guesses[f, s, r], ridges[f, s, r] = _classify(kernels, x, labels[train], z)
    return _tell(sizes, guesses, labels[test], ridges, images[test[-1]])


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


def _tell(
    sizes: Sequence[int], guesses: Array, truth: Array, ridges: Array, last_images: Array
) -> Section:
    errors = 100 * (guesses != truth).mean(axis=-1)
    mean, spread = errors.mean(axis=-1), errors.std(axis=-1, ddof=1)
    n_draws = errors.shape[-1]
    linear, gaussian = NAMES.index(LINEAR), NAMES.index(GAUSSIAN)
    ntks = [i for i, name in enumerate(NAMES) if name.startswith("NTK")]
    best = int(mean[:, -1].argmin())
    best_ntk = min(ntks, key=lambda i: mean[i, -1])
    ahead = errors[best_ntk, -1] - errors[gaussian, -1]
    lead, doubt = float(ahead.mean()), float(_standard_error(ahead))
    verdict = f"in favour of the {'Gaussian kernel' if lead > 0 else 'NTK'}"
    if abs(lead) <= 2 * doubt:
        verdict = "too little to tell them apart"
    depths = zip([DEPTHS[i] for i in mean[ntks].argmin(axis=0)], sizes, strict=True)
    gap = np.ptp(mean[ntks], axis=0)
    networks = np.delete(ridges, (linear, gaussian), axis=0)
    smallest = 100 * np.mean(networks == min(RIDGES))
    shown = guesses[NAMES.index(f"NTK, depth {SHOWN}"), -1]
    wrong = np.flatnonzero(shown[-1] != truth[-1])
    misread = shown != truth
    confused = Counter(zip(truth[misread].tolist(), shown[misread].tolist(), strict=True))
    first = [NAMES[i] for i in mean.argmin(axis=0)]
    winners = [f"{name} (n = {n})" for name, n in zip(first, sizes, strict=True)]
    if len(set(first)) == 1:
        winners = [f"{first[0]}, at every n"]
    parts: list[Part] = [
        PROTOCOL.format(
            draws=n_draws, test=TEST, sizes=listed(sizes),
            ridges=f"{power_of_ten(min(RIDGES))} to {max(RIDGES):g}",
            lengthscales=f"{min(LENGTHSCALES):g} to {max(LENGTHSCALES):g}",
        ),
        Picture(
            _curves(sizes, errors),
            "Left: test error against the number of training images, mean and standard deviation "
            f"over {n_draws} draws (points are moved sideways a little so that the bars can be "
            "told apart). Right: the same errors minus those of the Gaussian kernel in the same "
            "draw, mean and standard error; above the dashed line the Gaussian kernel is better. "
            "The linear kernel is left out there.",
            "Test error of seven kernels against training size, and differences from the Gaussian",
        ),
        Table(
            ("test error in %", *(f"n = {size}" for size in sizes)),
            [
                (name, *map(plus_minus, mean[i], spread[i], [2] * len(sizes)))
                for i, name in enumerate(NAMES)
            ],
            f"Mean ± standard deviation over {n_draws} draws. Lowest mean: {'; '.join(winners)}.",
        ),
        f"<p>With {sizes[-1]} training images the best NTK "
        f"({NAMES[best_ntk].removeprefix('NTK, ')}) and the Gaussian kernel differ by "
        f"{plus_minus(abs(lead), doubt, 2)} percentage points (mean and standard error of "
        f"{n_draws} paired draws), {verdict}. The best depth of the NTK is "
        f"{', '.join(f'{depth} (n = {n})' for depth, n in depths)}; the best and the worst lie "
        f"{gap[0]:.1f} points apart at n = {sizes[0]} and {gap[-1]:.1f} at n = {sizes[-1]}. In "
        f"{smallest:.0f}&nbsp;% of the choices for the network kernels the smallest ridge on offer "
        "won, which amounts to interpolating the training labels.</p>",
    ]  # fmt: skip
    if len(wrong):
        pairs = [f"{a} read as {b} ({count})" for (a, b), count in confused.most_common(3)]
        most = len(wrong) > MISTAKES
        some = f"The first {MISTAKES} of the {len(wrong)}" if most else f"The {len(wrong)}"
        parts.append(
            Picture(
                _mistakes(last_images[wrong], truth[-1, wrong], shown[-1, wrong]),
                f"{some} of the {TEST} test images of the last draw that the NTK of "
                f"depth {SHOWN} misread after {sizes[-1]} training images. Most frequent over all "
                f"{n_draws} draws: {', '.join(pairs)}, of {sum(confused.values())} mistakes.",
                "Images of misread digits with the true and the predicted class",
            )
        )
    return Section(
        title="Handwritten digits",
        summary=f"From {sizes[-1]} images the best kernel ({NAMES[best]}) misreads "
        f"{mean[best, -1]:.1f}&nbsp;% of the test images, the linear kernel "
        f"{mean[linear, -1]:.1f}&nbsp;%. The NTKs of depths {listed(DEPTHS)} lie between "
        f"{mean[ntks, -1].min():.1f} and {mean[ntks, -1].max():.1f}&nbsp;%, without a lengthscale "
        "to choose.",
        parts=parts,
    )


PROTOCOL = """
<p>The package carries 1,797 images of handwritten digits, 8 × 8 pixels each (UCI, <i>Optical
Recognition of Handwritten Digits</i>, CC BY 4.0). In each of {draws} random draws {test} images
are set aside for the test, and the kernels learn from the first {sizes} of the others. Pixels are
divided by 16 and the mean of the training images is subtracted. Each class is a column of targets,
0.9 for its members and −0.1 for the rest, fitted by kernel ridge regression; the largest of the ten
outputs names the digit.</p>
<p>The ridge ({ridges} times the mean of the diagonal) and, for the Gaussian kernel, the lengthscale
({lengthscales} times the median distance) are those with the least squared error on the last
quarter of the training images after learning from the first three quarters; the final fit uses all
of them. The test images have no part in any choice, and all kernels see the same draws.</p>
"""


def _standard_error(values: Array) -> Array:
    return values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])


def _curves(sizes: Sequence[int], errors: Array) -> Figure:
    titles = ("test error", "difference from the Gaussian kernel")
    fig, (left, right) = panels(5.0, titles, "training images n", "misread test images in %")
    error_bars(left, FAMILIES, sizes, errors, (0.5, 1, 2, 5, 10, 20, 50), 1.025)
    for i, family in enumerate(FAMILIES):
        if family.name not in (LINEAR, GAUSSIAN):
            spots = _draw.aside(sizes, i, len(FAMILIES), 1.025)
            difference = errors[i] - errors[NAMES.index(GAUSSIAN)]
            mean, error = difference.mean(axis=-1), _standard_error(difference)
            right.errorbar(spots, mean, error, **(family.look | _draw.BARS))
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
