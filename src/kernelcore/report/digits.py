"""Section: handwritten digits by kernel ridge regression, NTKs against classical kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..linalg import cholesky
from ..linalg.blas import serial
from ._page import (
    GREY,
    ORANGE,
    STEPS,
    VERMILLION,
    Part,
    Picture,
    Section,
    Table,
    Text,
    figure,
    ticks,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kernelcore import Kernel

    from .._types import Array

TEST = 797
RIDGES = (1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0, 100.0)  # times the mean of the diagonal
LENGTHSCALES = tuple(2.0 ** (i / 2) for i in range(-4, 3))  # times the median distance
DEPTHS = (1, 2, 3, 5)
LINEAR, GAUSSIAN = "linear", "Gaussian"
SHOWN = 3  # the depth whose mistakes are drawn


@dataclass(frozen=True)
class Family:
    """Kernels to choose from, given the training inputs, and how the curve of the best is drawn."""

    name: str
    kernels: Callable[[Array], Sequence[Kernel]]
    color: str
    line: str
    marker: str


def section(quick: bool) -> Section:
    """Test error against training size; ``quick``: 3 draws instead of 10, sizes up to 400."""
    from kernelcore import data

    sizes = (50, 100, 200, 400) if quick else (50, 100, 200, 400, 800)
    n_draws = 3 if quick else 10
    images, labels = data.digits()
    families = _families()
    rng = np.random.default_rng(0)
    order = np.stack([rng.permutation(len(images)) for _ in range(n_draws)])
    test = order[:, -TEST:]
    # guesses[f, s, r, i]: what family f, trained on sizes[s] images of draw r, calls test image i
    guesses = np.empty((len(families), len(sizes), n_draws, TEST), dtype=np.int64)
    ridges = np.empty(guesses.shape[:3])
    # Systems of a few hundred unknowns: more threads cost more than they bring.
    with serial():
        for r, s in np.ndindex(n_draws, len(sizes)):
            train = order[r, : sizes[s]]
            mean = images[train].mean(axis=0)
            x, z = (images[train] - mean) / 16, (images[test[r]] - mean) / 16
            for f, family in enumerate(families):
                guesses[f, s, r], ridges[f, s, r] = _classify(
                    family.kernels(x), x, labels[train], z
                )
    return _tell(families, sizes, guesses, labels[test], ridges, images[test[-1]])


def _families() -> list[Family]:
    import kernelcore as kc

    def gaussians(x: Array) -> list[Kernel]:
        from scipy.spatial.distance import pdist

        median = float(np.median(pdist(x)))
        return [kc.Gaussian(factor * median) for factor in LENGTHSCALES]

    def just(kernel: Kernel) -> Callable[[Array], list[Kernel]]:
        return lambda x: [kernel]

    ntks = [
        Family(f"NTK, depth {depth}", just(kc.presets.mlp(depth).ntk), color, "-", marker)
        for depth, color, marker in zip(DEPTHS, STEPS, "osD^", strict=True)
    ]
    return [
        Family(LINEAR, just(kc.Polynomial(1)), GREY, ":", "x"),
        Family(GAUSSIAN, gaussians, VERMILLION, "--", "v"),
        *ntks,
        Family("NNGP, depth 3", just(kc.presets.mlp(3).nngp), ORANGE, "-.", "P"),
    ]


def _classify(kernels: Sequence[Kernel], x: Array, labels: Array, z: Array) -> tuple[Array, float]:
    """Classes of z, and the relative ridge: the choice that does best on the last quarter of x."""
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
    """Weights of kernel ridge regression; ``ridge`` is relative to the mean of the diagonal."""
    return cholesky(gram, ridge * gram.diagonal().mean()).solve(target)


def _tell(
    families: Sequence[Family],
    sizes: Sequence[int],
    guesses: Array,
    truth: Array,
    ridges: Array,
    last_images: Array,
) -> Section:
    """The section, from what was measured and nothing else."""
    names = [family.name for family in families]
    errors = 100 * (guesses != truth).mean(axis=-1)
    mean, spread = errors.mean(axis=-1), errors.std(axis=-1, ddof=1)
    n_draws = errors.shape[-1]
    linear, gaussian = names.index(LINEAR), names.index(GAUSSIAN)
    ntks = [i for i, name in enumerate(names) if name.startswith("NTK")]
    networks = [i for i in range(len(names)) if i not in (linear, gaussian)]
    best = int(mean[:, -1].argmin())
    best_ntk = min(ntks, key=lambda i: mean[i, -1])
    ahead = errors[best_ntk, -1] - errors[gaussian, -1]
    smallest = 100 * np.mean(ridges[networks] == min(RIDGES))
    shown = guesses[names.index(f"NTK, depth {SHOWN}"), -1]
    wrong = np.flatnonzero(shown[-1] != truth[-1])
    confused = Counter(
        zip(truth[shown != truth].tolist(), shown[shown != truth].tolist(), strict=True)
    )

    first = [names[i] for i in mean.argmin(axis=0)]
    winners = [f"{name} (n = {n})" for name, n in zip(first, sizes, strict=True)]
    if len(set(first)) == 1:
        winners = [f"{first[0]}, at every n"]
    parts: list[Part] = [
        Text(
            PROTOCOL.format(
                draws=n_draws,
                test=TEST,
                sizes=_listed(sizes),
                ridges=f"10<sup>−{-np.log10(min(RIDGES)):.0f}</sup> to {max(RIDGES):g}",
                lengthscales=f"{min(LENGTHSCALES):g} to {max(LENGTHSCALES):g}",
            )
        ),
        Picture(
            _curves(families, sizes, errors),
            "Left: test error against the number of training images, mean and standard deviation "
            f"over {n_draws} draws (points are moved sideways a little so that the bars can be "
            "told apart). Right: the same errors minus those of the Gaussian kernel in the same "
            "draw, mean and standard error; above the dashed line the Gaussian kernel is better. "
            "The linear kernel is left out there.",
            "Test error of seven kernels against training size, and differences from the Gaussian",
        ),
        Table(
            ("test error in %", *(f"n = {size}" for size in sizes)),
            [(name, *map(_plus_minus, mean[i], spread[i])) for i, name in enumerate(names)],
            f"Mean ± standard deviation over {n_draws} draws. Lowest mean: {'; '.join(winners)}.",
        ),
        Text(
            f"<p>{_against(names[best_ntk], ahead, sizes[-1])} "
            f"{_depths(sizes, mean[ntks])} In {smallest:.0f}&nbsp;% of the choices for the network "
            "kernels the smallest ridge on offer won, which amounts to interpolating the training "
            "labels.</p>"
        ),
    ]
    if len(wrong):
        pairs = [f"{a} read as {b} ({count})" for (a, b), count in confused.most_common(3)]
        parts.append(
            Picture(
                _mistakes(last_images[wrong], truth[-1, wrong], shown[-1, wrong]),
                f"{_some(len(wrong))} of the {TEST} test images of the last draw that the NTK of "
                f"depth {SHOWN} misread after {sizes[-1]} training images. Most frequent over all "
                f"{n_draws} draws: {', '.join(pairs)}, of {sum(confused.values())} mistakes.",
                "Images of misread digits with the true and the predicted class",
            )
        )
    return Section(
        title="Handwritten digits",
        summary=f"From {sizes[-1]} images the best kernel ({names[best]}) misreads "
        f"{mean[best, -1]:.1f}&nbsp;% of the test images, the linear kernel "
        f"{mean[linear, -1]:.1f}&nbsp;%. The NTKs of depths {_listed(DEPTHS)} lie between "
        f"{mean[ntks, -1].min():.1f} and {mean[ntks, -1].max():.1f}&nbsp;%, without a lengthscale "
        "to choose.",
        parts=parts,
    )


PROTOCOL = """
<p>The package carries 1,797 images of handwritten digits, 8 × 8 pixels each (UCI, <i>Optical
Recognition of Handwritten Digits</i>, CC BY 4.0). In each of {draws} random draws {test} images
are set aside for the test, and the first {sizes} of the others are learned from. Pixels are divided
by 16 and the mean of the training images is subtracted. Each class is a column of targets, 0.9 for
its members and −0.1 for the rest, fitted by kernel ridge regression; the largest of the ten outputs
names the digit.</p>
<p>The ridge ({ridges} times the mean of the diagonal) and, for the Gaussian kernel, the lengthscale
({lengthscales} times the median distance) are those with the least squared error on the last
quarter of the training images after learning from the first three; then everything is learned again
from all of them. The test images choose nothing, and all kernels see the same draws.</p>
"""


def _listed(values: Sequence[int]) -> str:
    return f"{', '.join(map(str, values[:-1]))} and {values[-1]}"


def _plus_minus(mean: float, spread: float) -> str:
    return f"{mean:.2f} ± {spread:.2f}"


def _standard_error(values: Array) -> Array:
    return values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])


def _against(name: str, difference: Array, size: int) -> str:
    """One sentence on the paired differences of an NTK from the Gaussian (negative: better)."""
    mean, error = float(difference.mean()), float(_standard_error(difference))
    depth = name.removeprefix("NTK, ")
    start = f"With {size} training images the best NTK ({depth}) and the Gaussian kernel differ by "
    start += f"{abs(mean):.2f} ± {error:.2f} percentage points (mean and standard error of "
    start += f"{len(difference)} paired draws), "
    if abs(mean) <= 2 * error:
        return start + "too little to tell them apart."
    return start + f"in favour of the {'Gaussian kernel' if mean > 0 else 'NTK'}."


def _depths(sizes: Sequence[int], mean: Array) -> str:
    """One sentence on depth, from the mean errors of the NTKs (depth, size)."""
    best = [DEPTHS[i] for i in mean.argmin(axis=0)]
    gap = mean.max(axis=0) - mean.min(axis=0)
    listed = ", ".join(f"{depth} (n = {n})" for depth, n in zip(best, sizes, strict=True))
    return (
        f"The best depth of the NTK is {listed}; the best and the worst lie {gap[0]:.1f} points "
        f"apart at n = {sizes[0]} and {gap[-1]:.1f} at n = {sizes[-1]}."
    )


def _some(count: int) -> str:
    return f"The {count}" if count <= MISTAKES else f"The first {MISTAKES} of the {count}"


MISTAKES = 20  # two rows of ten


def _curves(families: Sequence[Family], sizes: Sequence[int], errors: Array) -> Figure:
    fig = figure(9.7, 5.0)
    left, right = fig.subplots(1, 2)
    gaussian = next(i for i, family in enumerate(families) if family.name == GAUSSIAN)
    spots = np.array(sizes)
    for i, family in enumerate(families):
        looks = {"color": family.color, "ls": family.line, "marker": family.marker, "ms": 5}
        looks |= {"lw": 1.6, "elinewidth": 1.0, "capsize": 2}
        aside = spots * 1.025 ** (i - (len(families) - 1) / 2)
        spread = errors[i].std(axis=-1, ddof=1)
        left.errorbar(aside, errors[i].mean(axis=-1), spread, label=family.name, **looks)
        if family.name not in (LINEAR, GAUSSIAN):
            difference = errors[i] - errors[gaussian]
            right.errorbar(aside, difference.mean(axis=-1), _standard_error(difference), **looks)
    right.axhline(0, color=VERMILLION, ls="--", lw=1.6)
    left.set_yscale("log")
    ticks(left.yaxis, [0.5, 1, 2, 5, 10, 20, 50])
    left.set_title("test error", loc="left")
    left.set_ylabel("misread test images in %")
    right.set_title("difference from the Gaussian kernel", loc="left")
    right.set_ylabel("percentage points")
    for axes in (left, right):
        axes.set_xscale("log")
        ticks(axes.xaxis, sizes)
        axes.set_xlabel("training images n")
    handles, labels = left.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4, handlelength=2.8)
    return fig


def _mistakes(images: Array, truth: Array, guess: Array) -> Figure:
    count = min(len(images), MISTAKES)
    lines = -(-count // 10)
    columns = -(-count // lines)
    fig = figure(0.97 * columns, 1.25 * lines)
    grid = fig.subplots(lines, columns, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    for axes, image, true, read in zip(grid, images, truth, guess, strict=False):
        axes.imshow(image.reshape(8, 8), cmap="Greys", vmin=0, vmax=16)
        axes.set_title(f"{true}, read as {read}", fontsize=9, pad=5)
    return fig
