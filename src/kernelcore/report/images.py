"""Section: convolutional kernels, what locality and pooling are worth, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

import kernelcore as kc

from .._types import Array
from ..linalg import cholesky
from ..linalg.blas import serial
from ..solvers import RidgePath
from . import _page
from ._draw import FIVE, GREY, Curve, error_bars, figure, legend_below, panels
from ._page import Part, Picture, Section, Table, listed, plus_minus, power_of_ten, signed
from .speed import _busy, fastest

CANVAS = 12  # 25 positions for an image of 8 x 8
RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)  # times the mean of the diagonal
DENSE, FLAT, GAP = "fully connected", "CNTK, Flatten", "CNTK, GAP"
MYRTLE, CKN = "Myrtle-5", "CKN"
PLACES = ("centred", "at random positions")

WIDE = 20  # the canvas on which images are shifted
SHIFTS = 8

LENGTH, PATCH, POOL = 30, 10, 5  # d, q and w
RIDGE = 1e-6  # added to the diagonal as it is


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
CURVES = [Curve(*item, *look) for item, look in zip(KERNELS.items(), FIVE, strict=True)]


def section(quick: bool) -> Section:
    """Compare kernels on digits and signals; ``quick`` takes smaller sizes and fewer draws."""
    # With a few hundred unknowns more threads cost more than they gain.
    with serial():
        placed, pays = _placed_digits(quick)
        shifted = _shifted_digits(1 if quick else 2)
        cyclic, needs = _cyclic(quick)
    parts = [NETWORKS, *placed, *shifted, *cyclic, *_times(2 if quick else 4)]
    return Section("Convolutional kernels", f"{pays} {needs}", parts)


NETWORKS = f"""
<p>The kernel of a convolutional network is carried by pairs of positions: K(p, p′) starts as the
product of pixel p of one image and pixel p′ of the other. A convolution averages these values over
patches, an activation acts on each of them, and the readout decides which of them count:
<code>Flatten</code> takes the equal positions, <code>GlobalAvgPool</code> (GAP) all pairs. Five
kernels are compared; filters are 3 × 3, with circular padding except in the last:</p>
<ul>
<li><b>{DENSE}</b>: the NTK of three hidden ReLU layers, for which pixels have no order;</li>
<li><b>{FLAT}</b>: the NTK of three convolutions with ReLU, read out at equal positions;</li>
<li><b>{GAP}</b>: the same, read out at all pairs of positions;</li>
<li><b>{MYRTLE}</b> (Shankar et al. 2020): the NNGP of four convolutions with ReLU, 2 × 2 average
pooling after the second and the third, and at the end global pooling and κ₁ of the cosine;</li>
<li><b>{CKN}</b> (Bietti 2021): two layers of exp((u − 1)/0.6²) on patches, each followed by
Gaussian pooling to half the size, read out at equal positions.</li>
</ul>
"""


# ---- digits on a canvas


def _on_canvas(images: Array, corners: Array, size: int) -> Array:
    """Put images on canvases of zeros, by their upper left corners; shape (n, size, size, 1)."""
    canvas = np.zeros((len(images), size, size, 1), images.dtype)
    height, width = images.shape[1:]
    for to, image, (i, j) in zip(canvas, images, corners, strict=True):
        to[i : i + height, j : j + width, 0] = image
    return canvas


def _placed_digits(quick: bool) -> tuple[list[Part], str]:
    count, test = (100, 40) if quick else (240, 80)
    sizes = (15, 30, 60) if quick else (20, 40, 80, 160)
    n_draws = 5 if quick else 10
    images, labels = kc.data.digits()
    rng = np.random.default_rng(0)
    pool = rng.permutation(len(images))[:count]
    images, labels = (images[pool].reshape(-1, 8, 8) / 16).astype(np.float32), labels[pool]
    free = CANVAS - 8
    corners = np.full((count, 2), free // 2), rng.integers(0, free, (count, 2), endpoint=True)
    canvases = [_on_canvas(images, corner, CANVAS) for corner in corners]
    orders = [rng.permutation(count) for _ in range(n_draws)]
    errors = np.empty((len(CURVES), len(PLACES), len(sizes), n_draws))
    for k, p in np.ndindex(errors.shape[:2]):
        gram = CURVES[k].kernel(canvases[p]).astype(np.float64)
        for s, r in np.ndindex(errors.shape[2:]):
            train, held = orders[r][: sizes[s]], orders[r][-test:]
            weights = _fitted(gram[np.ix_(train, train)], labels[train])
            guess = (gram[np.ix_(held, train)] @ weights).argmax(axis=1)
            errors[k, p, s, r] = 100 * np.mean(guess != labels[held])

    names = list(KERNELS)
    mean, spread = errors.mean(axis=-1), errors.std(axis=-1, ddof=1)
    dense, gap = mean[names.index(DENSE), :, -1], mean[names.index(GAP), :, -1]
    best = [names[k] for k in mean[:, :, -1].argmin(axis=0)]
    cost = (mean[:, 1, -1] - mean[:, 0, -1]).tolist()
    parts: list[Part] = [
        PROTOCOL.format(
            canvas=CANVAS, places=(free + 1) ** 2, count=count, draws=n_draws, test=test,
            sizes=listed(sizes), ridges=f"{power_of_ten(min(RIDGES))} to {max(RIDGES):g}",
        ),
        Picture(
            _examples(canvases, labels),
            "The same digits centred (above) and at random positions (below).",
            "Ten digits in the middle of their canvas, and the same ten anywhere on it",
        ),
        Picture(
            _learning_curves(
                CURVES, PLACES, "misread test digits in %", sizes, errors,
                [(0.5, 1, 2, 5, 10, 20, 50, 100)] * 2, sharey=True,
            ),
            "Test error against the number of training images, mean and standard deviation over "
            f"{n_draws} draws (points are moved sideways a little so that the bars can be told "
            f"apart). Lowest mean at n = {sizes[-1]}: {best[0]} ({PLACES[0]}), {best[1]} "
            f"({PLACES[1]}).",
            "Two panels of test error against training size for five kernels",
        ),
        Table(
            ("kernel", "digits", *(f"n = {size}" for size in sizes)),
            [
                (name, place, *map(plus_minus, mean[k, p], spread[k, p], [1] * len(sizes)))
                for p, place in enumerate(PLACES)
                for k, name in enumerate(names)
            ],
            f"Test error in %, mean ± standard deviation over {n_draws} draws.",
            labels=2,
        ),
        f"<p>Random positions cost, in percentage points at n = {sizes[-1]}: "
        + "; ".join(f"{name}: {signed(x, 1)}" for name, x in zip(names, cost, strict=True))
        + ". A convolution alone does not make a kernel invariant: if it is read out at equal "
        "positions, it still compares a stroke with whatever the other image has in its place. "
        "Pooling over a few pixels forgives shifts of a few pixels, and pooling over all of them "
        "any shift.</p>",
    ]  # fmt: skip
    pays = (
        f"With {sizes[-1]} training digits at random positions the fully connected NTK misreads "
        f"{dense[1]:.0f}&nbsp;% of the others and the convolutional NTK with global pooling "
        f"{gap[1]:.1f}&nbsp;%; of centred digits {dense[0]:.1f} and {gap[0]:.1f}&nbsp;%."
    )
    return parts, pays


PROTOCOL = """
<p>Each digit is put on an empty canvas of {canvas} × {canvas} pixels: in the middle, or at one of
{places} positions at random. A pool of {count} digits is drawn and split {draws} times at random:
{test} digits are kept for the test, and the kernels learn from the first {sizes} of the others.
(The splits share the pool, so that one Gram matrix serves them all; the bars show what the choice
of training and test digits changes.) Pixels are divided by 16 and nothing is subtracted. The
targets are 0.9 and −0.1. The ridge ({ridges} times the mean of the diagonal) is the one with the
fewest mistakes when each training digit is left out in turn, and among equals the one with the
least squared error. The test digits have no part in any choice.</p>
"""


def _decimals(x: float) -> int:
    """Return how many decimals the first digit of x needs, for x that is not negative."""
    return -math.floor(math.log10(x)) if x else 0


def _fitted(gram: Array, labels: Array) -> Array:
    """Fit by kernel ridge regression, with the ridge that leaving one out chooses."""
    target = np.eye(10)[labels] - 0.1
    path = RidgePath(gram, target)
    choices = []
    for ridge in (share * float(gram.diagonal().mean()) for share in RIDGES):
        missed = path.loo(ridge)
        mistakes = np.count_nonzero((target - missed).argmax(axis=1) != labels)
        choices.append((mistakes, np.square(missed).sum(), ridge))
    return path.alpha(min(choices)[-1])


def _examples(canvases: Sequence[Array], labels: Array) -> Figure:
    shown = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]
    fig = figure(2.0)
    for line, canvas in zip(fig.subplots(len(canvases), 10), canvases, strict=True):
        for axes, k in zip(line, shown, strict=True):
            axes.imshow(canvas[k, :, :, 0], cmap="Greys", vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
            axes.spines[:].set(visible=True, color=GREY, linewidth=0.6)
    return fig


def _learning_curves(
    curves: Sequence[Curve], titles: Sequence[str], ylabel: str, sizes: Sequence[int],
    errors: Array, marks: Sequence[Sequence[float]], sharey: bool = False,
) -> Figure:  # fmt: skip
    """Draw errors (curve, panel, size, draw); the first of the ``marks`` is the least error."""
    fig, row = panels(4.9, titles, "training examples n", ylabel, sharey=sharey)
    for k, axes in enumerate(row):
        error_bars(axes, curves, sizes, errors[:, k], marks[k])
    row[0].set_ylim(max(marks[0][0], row[0].get_ylim()[0]), None)
    legend_below(fig, 5, handlelength=2.8)
    return fig


# ---- shifts


def _shifted_digits(per_class: int) -> list[Part]:
    images, labels = kc.data.digits()
    chosen = np.concatenate([np.flatnonzero(labels == k)[:per_class] for k in range(10)])
    # The digits stay so far from all borders that these do not matter.
    start = (WIDE - 8 - SHIFTS) // 2
    corners = np.array([[WIDE // 2 - 4, start + shift] for shift in range(SHIFTS + 1)])
    likeness = np.empty((len(CURVES), len(chosen), len(corners)))
    for i, image in enumerate(images[chosen].reshape(-1, 1, 8, 8) / 16):
        moved = _on_canvas(image.repeat(len(corners), axis=0), corners, WIDE)
        for k, curve in enumerate(CURVES):
            size = curve.kernel.diag(moved)
            likeness[k, i] = curve.kernel(moved[:1], moved)[0] / np.sqrt(size[0] * size)
    apart = dict(zip(KERNELS, np.abs(1 - likeness), strict=True))
    most = float(apart[GAP].max())
    exactly = "exactly 1" if most == 0 else f"1, to {_page.scientific(most)}"
    back = [k for k in range(1, SHIFTS + 1) if apart[MYRTLE][:, k].max() < 1e-9]
    again = (
        f" {MYRTLE} returns to 1 after {listed(back)} pixels, where its two poolings see the same "
        "windows again."
    )
    return [
        "<p>The kernels themselves show the same. How much does an image resemble itself after a "
        f"shift? {len(chosen)} digits, {per_class} of each class, are moved to the right pixel by "
        f"pixel on a canvas of {WIDE} × {WIDE}.</p>",
        Picture(
            _falls(likeness),
            "Left: cosine of an image x and the shifted image x′ in feature space, k(x, x′) / "
            f"√(k(x, x) k(x′, x′)), mean over {len(chosen)} digits and one standard deviation. "
            f"Right: one minus that; {GAP} stays at {exactly} in float64 and is left out."
            f"{again if len(back) > 1 else ''} Where the strokes no longer meet, {FLAT} has "
            f"nothing left to compare, and {DENSE} comes down to its value at a right angle.",
            "Normalised kernel of an image and the shifted image against the shift, two panels",
        ),
    ]


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


# ---- H(q, w)


def _cyclic(quick: bool) -> tuple[list[Part], str]:
    sizes = (12, 25, 50, 100, 200) if quick else (12, 25, 50, 100, 200, 400, 800)
    n_draws, test = (3, 300) if quick else (5, 500)
    h = kc.profiles.PowerSeries((0.0, *[0.2] * 5))
    d, q, w = LENGTH, PATCH, POOL
    settings = {
        "H(d, 1)": (d, 1, "d³", d**3), "H(q, 1)": (q, 1, "d q²", d * q * q),
        "H(d, d)": (d, d, "d²", d * d), "H(q, w)": (q, w, "d q² / w", d * q * q // w),
        "H(q, d)": (q, d, "q²", q * q),
    }  # fmt: skip
    curves = [
        Curve(name, kc.CyclicConvolution(patch, pool, h), *look)
        for (name, (patch, pool, *_)), look in zip(settings.items(), FIVE, strict=True)
    ]
    rng = np.random.default_rng(1)
    errors = np.empty((len(curves), 2, len(sizes), n_draws))
    for r in range(n_draws):
        x = rng.choice([-1.0, 1.0], (max(sizes) + test, d))
        y = _cubic(x)
        learned, held = x[:-test], x[-test:]
        for k, curve in enumerate(curves):
            gram, cross = curve.kernel(learned), curve.kernel(held, learned)
            for s, size in enumerate(sizes):
                weights = cholesky(gram[:size, :size], RIDGE).solve(y[:size])
                missed = cross[:, :size] @ weights - y[-test:]
                errors[k, :, s, r] = np.square(missed).mean(axis=0)

    names = list(settings)
    mean, spread = errors.mean(axis=-1), errors.std(axis=-1, ddof=1)
    half = [_crossing(sizes, mean[k, 0]) for k in range(len(names))]
    best_first = [names[k] for k in mean[:, 0, -1].argsort()]
    ends = np.stack([mean[:, :, -1], spread[:, :, -1]], axis=-1)  # of both targets
    parts: list[Part] = [
        CYCLIC.format(d=d, q=q, w=w, draws=n_draws, test=test, ridge=power_of_ten(RIDGE)),
        Picture(
            _learning_curves(
                curves, ("$f_{LF}$, invariant under shifts", "$f_{HF}$, alternating"),
                "mean squared error", sizes, errors,
                ((1e-4, 1e-3, 1e-2, 0.1, 1), (0.1, 0.2, 0.5, 1, 2, 5, 10)),
            ),
            f"Test error of kernel ridge regression, mean and standard deviation over {n_draws} "
            f"draws. Left, from the best kernel to the worst at n = {sizes[-1]}: "
            f"{', '.join(best_first)}. Right: all functions of a kernel that pools globally are "
            "invariant, and no part of f<sub>HF</sub> is. The functions of H(q, d) have "
            f"{_dimensions(q, 5)} dimensions. From that many examples on f<sub>LF</sub> is learned "
            "up to rounding and the ridge; near that number f<sub>HF</sub>, which this kernel "
            "takes for noise, does most harm.",
            "Two log-log panels of test error against training size for five kernels",
        ),
        Table(
            (
                "kernel", "patch", "pooling", "theory, n of order", "n for error 1/2",
                f"f_LF at n = {sizes[-1]}", f"f_HF at n = {sizes[-1]}",
            ),
            [
                (
                    name, str(patch), str(pool), f"{order} = {count:,}", half[k],
                    *(plus_minus(m, e, max(3, _decimals(e))) for m, e in ends[k]),
                )
                for k, (name, (patch, pool, order, count)) in enumerate(settings.items())
            ],
            "Theory (Misiakiewicz and Mei 2022): the number of examples, up to constants, from "
            "which on f<sub>LF</sub> is learned. Measured: the number from which on the mean error "
            "on f<sub>LF</sub> is below one half (interpolated), and the errors at "
            f"n = {sizes[-1]}, mean ± standard deviation over {n_draws} draws. Both functions have "
            "variance 1.",
        ),
    ]  # fmt: skip
    local, pooled, both = (names.index(name) for name in ("H(q, 1)", "H(d, d)", "H(q, d)"))
    needs = (
        f"Half the variance of a local, shift-invariant function of {d} signs is learned from "
        f"{half[both]} examples with local patches and global pooling, {half[pooled]} with pooling "
        f"alone, {half[local]} with local patches alone and {half[names.index('H(d, 1)')]} with "
        "neither; but functions that are not invariant are never learned with global pooling."
    )
    return parts, needs


CYCLIC = """
<p>The gains from locality and from pooling can be told apart where both are exact: on cyclic
signals x of {d} signs, with the one-layer kernel <code>CyclicConvolution(q, w, h)</code>,</p>
<p class="formula">H(q, w) = 1/(d w) Σ<sub>k</sub> Σ<sub>s, s′ &lt; w</sub>
h(⟨x<sub>(k+s)</sub>, y<sub>(k+s′)</sub>⟩ / q),&emsp; h(t) = (t + t² + t³ + t⁴ + t⁵) / 5,</p>
<p>where x<sub>(k)</sub> is the patch of q entries that begins at k. H(d, 1) is an inner-product
kernel without structure; q = {q} makes it local; w = {w} pools over neighbours, and w = d over
everything. The targets are two sums of products of three neighbours, the second with alternating
signs:</p>
<p class="formula">f<sub>LF</sub>(x) = Σ<sub>i</sub> x<sub>i</sub> x<sub>i+1</sub>
x<sub>i+2</sub> / √d, &emsp; f<sub>HF</sub>(x) = Σ<sub>i</sub> (−1)<sup>i</sup> x<sub>i</sub>
x<sub>i+1</sub> x<sub>i+2</sub> / √d.</p>
<p>There is no noise and nothing to choose: {ridge} is added to the diagonal. Each of {draws} draws
has its own training signals and {test} test signals.</p>
"""


def _cubic(x: Array) -> Array:
    """Return f_LF and f_HF at the rows, shape (n, 2); both have variance 1."""
    products = x * np.roll(x, -1, axis=1) * np.roll(x, -2, axis=1)
    signs = np.ones((x.shape[1], 2))
    signs[1::2, 1] = -1
    return products @ signs / np.sqrt(x.shape[1])


def _dimensions(patch: int, degree: int) -> int:
    """Count the products of up to ``degree`` signs in a patch, once for all positions, and 1."""
    return 1 + sum(math.comb(patch - 1, k) for k in range(degree))


def _crossing(sizes: Sequence[int], errors: Array) -> str:
    """Return where a falling curve meets 1/2, by lines between logarithms, or a bound."""
    below = errors <= 0.5
    if below[0] or not below.any():
        return f"fewer than {sizes[0]}" if below[0] else f"more than {sizes[-1]}"
    k = int(below.argmax())
    x, y = np.log(sizes[k - 1 : k + 1]), np.log(errors[k - 1 : k + 1])
    return f"{np.exp(x[0] + (np.log(0.5) - y[0]) * (x[1] - x[0]) / (y[1] - y[0])):.0f}"


# ---- times


def _times(rounds: int) -> list[Part]:
    block = [kc.Conv(3, w_std=2**0.5), kc.Relu()]
    gap = kc.Sequential(*block * 5, kc.GlobalAvgPool(), kc.Dense())
    flat = kc.Sequential(*block * 5, kc.Flatten(), kc.Dense())
    rng = np.random.default_rng(2)
    x = rng.standard_normal((256, 32, 32, 3)).astype(np.float32)
    cases = (
        ("5 convolutions, GAP, NTK", gap.ntk, 16),
        ("5 convolutions, Flatten, NTK", flat.ntk, 256),
        ("Myrtle-5, NNGP", kc.presets.myrtle(5).nngp, 16),
    )
    # Rectangles are timed, so that every pair counts.
    halves = [(kernel, x[: n // 2], x[n // 2 : n]) for _, kernel, n in cases]
    for kernel, one, two in halves:
        kernel(one[:2], two[:8])  # plans are made and threads started
    seconds = fastest([partial(kernel, one, two) for kernel, one, two in halves], rounds)
    rows = []
    for (name, _, n), positions, each in zip(cases, (32**4, 32**2, 32**4), seconds, strict=True):
        pair = each / (n // 2) ** 2
        hours = pair * 1e4 * (1e4 + 1) / 2 / 3600
        told = f"{hours:.2g}" if hours < 9.5 else f"{hours:.0f}"
        rows.append((name, f"{positions:,}", f"{1e3 * pair:.3g}", told))
    return [
        "<p>The cost is measured as the seconds of one call on independent normal images of "
        "32 × 32 × 3 in float32, divided by the number of pairs of images; the least of "
        f"{rounds} rounds counts. Threads: {kc.info()['threads']}.{_busy()}</p>",
        Table(
            ("kernel", "pairs of positions", "ms per pair of images", "10,000 images, hours"),
            rows,
            "Time of a kernel of two images. Global pooling needs the kernel at all pairs of "
            "positions, of which there are 32⁴ up to the first pooling; Flatten without pooling "
            "needs the 32² pairs of equal positions. The last column scales the time to a Gram "
            "matrix of 10,000 images, one half of which is computed.",
        ),
    ]
