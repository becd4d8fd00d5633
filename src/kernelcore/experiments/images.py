"""Convolutional kernels: what pooling is worth where positions vary (K4, K5, E7).

Five kernels read digits that stand in the middle of a canvas, or anywhere on it: a fully connected
NTK, convolutional NTKs read out at equal positions and with global pooling (Arora et al. 2019), the
Myrtle network of Shankar et al. (2020) and a convolutional kernel network (Bietti 2021). The images
are the digits that the package carries.

A table has more kernels, on CIFAR-10 where ``data`` names it, beside published accuracies; and from
few of its images the CNTK of 14 layers (Arora et al. 2020).
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
from . import _base, _cifar, _given
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._draw import BLUE, FIVE, GREY, ORANGE, Curve, error_bars, figure, legend_below, panels
from ._learn import mean_and_error, seeds
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
ARORA, SMALL = "Arora et al. 2019", "Arora et al. 2020"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """A pool of digits, divided some times into training and test; and digits that are shifted.

    ``data`` is a file or folder with CIFAR-10 for the table of ``table`` images of about ``side``
    pixels, of which ``held`` are for the test; the digits stand in where it is empty, and
    ``unlabelled`` others give filters, means and deviations. ``few`` are
    the training sizes of CIFAR-10 for the CNTK of ``few_depth`` layers, which is left out where
    ``few_test`` is 0.
    """

    count: int = 110
    test: int = 40
    sizes: tuple[int, ...] = (20, 40, 70)
    draws: int = 8
    shifted: int = 1  # digits of each class
    data: str = ""
    table: int = 300
    held: int = 100
    side: int = 16
    unlabelled: int = 1000
    few: tuple[int, ...] = (10, 20, 40, 80, 160, 320)
    few_test: int = 0
    few_depth: int = 14
    few_draws: int = 20


PRESETS = {
    "small": Settings(),
    "paper": Settings(
        count=600, test=200, sizes=(25, 50, 100, 200, 400), draws=20, shifted=4, table=1500,
        held=500, few_test=1000,
    ),
}  # fmt: skip
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
            errors[k, r] = 100 - _right(gram, labels, train, held)
        return {"errors": errors}

    given = _given.read(s.data)
    colours = given.name == "CIFAR-10"
    chosen_rng = seeds(s.seed, 1)
    pictures, classes, others = _cifar.drawn(given, s.table, s.unlabelled, s.side, chosen_rng)
    makers = _cifar.grams(pictures.shape[1], others, s.seed)
    halves = [chosen_rng.permutation(s.table) for _ in range(s.draws)]

    def judge(word: str, name: str) -> dict[str, Any]:
        gram = makers[name](pictures).astype(np.float64)
        parts = ((order[: -s.held], order[-s.held :]) for order in halves)
        return {"right": [_right(gram, classes, *part) for part in parts]}

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
        errors = cells.map(read, keys, share(progress, 0, 0.3))
        falls = cells.map(shift, [("shift", name) for name in NAMES], share(progress, 0.3, 0.4))
        with_few = s.few_test > 0 and colours
        part = share(progress, 0.4, 0.6 if with_few else 1)
        judged = cells.map(judge, [("judge", name) for name in makers], part)
        few = _few(s, given, cells, share(progress, 0.6, 1)) if with_few else np.empty(0)
    shape = (len(NAMES), len(PLACES), len(s.sizes), s.draws)
    shown = np.unique(labels, return_index=True)[1]  # one of each digit
    return Result(
        "images", s,
        {
            "errors": np.reshape([e["errors"] for e in errors], shape),
            "likeness": np.stack([f["likeness"] for f in falls]),
            "examples": np.stack([canvas[shown, :, :, 0] for canvas in canvases]),
            "data": given.name, "table": [one["right"] for one in judged],
            "few": np.reshape(few, (-1, s.few_draws)),
        },
    )  # fmt: skip


PART = 20
"""The images of the test set in one cell of the few-sample curve."""


def _few(s: Settings, given: _given.Given, cells: Cells, progress: Progress | None) -> Array:
    """Return accuracies in % of the CNTK from few images, by size and draw."""
    rng, most = seeds(s.seed, 2), max(s.few)
    X, y, Z, w = _given.divided(given, most, s.few_test, rng)
    X, Z = (_cifar.scaled(images, X) for images in (X, Z))
    kernel = _cifar.few_images(s.few_depth)

    def rows(word: str, start: int, stop: int) -> dict[str, Any]:
        if word == "train":  # up to the diagonal
            return {"K": kernel(X[start:stop], X[:stop])}
        return {"K": kernel(Z[start:stop], X)}

    keys = [
        (word, start, min(start + PART, count))
        for word, count in (("train", most), ("test", s.few_test))
        for start in range(0, count, PART)
    ]
    gram = np.zeros((most + s.few_test, most))
    for (word, start, stop), one in zip(keys, cells.map(rows, keys, progress), strict=True):
        first = most if word == "test" else 0
        gram[first + start : first + stop, : one["K"].shape[1]] = one["K"]
    lower = np.tril(gram[:most], -1)
    gram[:most] = lower + lower.T + np.diag(gram[:most].diagonal())
    labels, held = np.concatenate([y, w]), np.arange(most, most + s.few_test)
    orders = [rng.permutation(most) for _ in range(s.few_draws)]
    return np.array([[_right(gram, labels, order[:n], held) for order in orders] for n in s.few])


def _right(gram: Array, labels: Array, train: Array, held: Array) -> float:
    """Return the share of images read aright, in %, from others."""
    weights = _fitted(gram[np.ix_(train, train)], labels[train])
    guess = (gram[np.ix_(held, train)] @ weights).argmax(axis=1)
    return 100 * float(np.mean(guess == labels[held]))


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


def _gains(result: Result) -> dict[str, tuple[float, float]]:
    """Return points of accuracy that pooling and flips gain in the table, with standard errors."""
    right = dict(zip(_cifar.PUBLISHED, result["table"], strict=True))
    pairs = {"pooling": (_cifar.GAP, _cifar.FLAT), "local": (_cifar.LOCAL, _cifar.FLAT),
             "flips": (_cifar.FLIPS, _cifar.LOCAL)}  # fmt: skip
    return {name: mean_and_error(right[a] - right[b]) for name, (a, b) in pairs.items()}


def _table_claims(result: Result) -> list[Claim]:
    texts = {
        "pooling": ("Global pooling in the place of equal positions", ARORA),
        "local": ("Local pooling in the place of equal positions", "Li et al. 2019"),
        "flips": ("Mirror images beside local pooling", "Li et al. 2019"),
    }
    found = []
    for name, (gain, error) in _gains(result).items():
        if name == "flips" and str(result["data"]) != "CIFAR-10":
            continue  # a mirrored digit is no digit
        text, paper = texts[name]
        text = f"{text}, {result['data']}: points of accuracy gained"
        found.append(Claim(text, paper, None, gain, error, 2 * error, np.inf))
    for n, right in zip(result.settings["few"], result["few"], strict=False):
        if n in _cifar.FEW:
            text = f"CNTK of {result.settings['few_depth']} layers from {n} images of CIFAR-10: %"
            value, spread = float(right.mean()), _doubt(result, n, right)
            found.append(Claim.near(text, SMALL, _cifar.FEW[n], value, spread, 0.1))
    return found


def _doubt(result: Result, n: int, right: Array) -> float:
    """Return the standard error of an accuracy: of one draw by chance in the test, or of draws.

    Draws are from one pool, so that n of ``few[-1]`` images leave about their ratio of the variance
    in common.
    """
    p, s = right.mean() / 100, result.settings
    share_of_pool = n / max(s["few"])
    chance = p * (1 - p) / s["few_test"]
    spread = np.var(right / 100, ddof=1) * max(share_of_pool, 1 / len(right))
    return float(100 * np.sqrt(chance + spread))


def claims(result: Result) -> list[Claim]:
    """Compare kernels at random positions, a pooled one with itself, and those of the table."""
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
        *_table_claims(result),
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

    {_table_text(result)}
    """


def _table_text(result: Result) -> str:
    s, gains = result.settings, _gains(result)
    stand_in = "" if s["data"] else ", which stand in for CIFAR-10 (--data)"
    return f"""
    The table of kernels is of {s["table"] - s["held"]} training images, {result["data"]}{stand_in}.
    Over equal positions global pooling gains {plus_minus(*gains["pooling"], 1)} points of accuracy
    and local pooling {plus_minus(*gains["local"], 1)}; mirror images add
    {plus_minus(*gains["flips"], 1)} to that (± standard errors).
    """.strip()


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
    found = [Table(("kernel", "digits", *(f"n = {n}" for n in s["sizes"])), rows, told, labels=2)]
    rows = []
    for (name, known), right in zip(_cifar.PUBLISHED.items(), result["table"], strict=True):
        of = f"{known.accuracy:g}, {known.of}" if known.of else "none"
        rows.append((name, plus_minus(right.mean(), right.std(ddof=1), 1), of, known.paper))
    n, side = s["table"] - s["held"], s["side"]
    found.append(
        Table(
            ("kernel", f"measured, n = {n}", "published, n = 50,000", "paper"),
            rows,
            f"Accuracy in %, {result['data']}: mean ± standard deviation over {s['draws']} draws "
            f"of {n} training and {s['held']} test images, averaged to {side} pixels a side if "
            "they have more. The published numbers are those of the papers, on the whole of "
            "CIFAR-10, and were not measured here; convolutional networks now have more than 99.",
        )
    )
    if len(result["few"]):
        rows = [
            (
                str(k),
                plus_minus(right.mean(), _doubt(result, k, right), 2),
                f"{_cifar.FEW[k]:.2f}" if k in _cifar.FEW else "",
            )
            for k, right in zip(s["few"], result["few"], strict=True)
        ]
        found.append(
            Table(
                ("training images", "measured", "published (Arora et al. 2020)"),
                rows,
                f"Accuracy in % of the CNTK of {s['few_depth']} layers with global pooling on "
                f"{s['few_test']:,} test images of CIFAR-10, mean over {s['few_draws']} draws from "
                f"a pool of {max(s['few'])} ± standard error. The published ones are of support "
                "vectors.",
            )
        )
    return found


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
        Picture(
            "table", _dots(result),
            f"Accuracy of kernels of images: measured from {s['table'] - s['held']} training "
            f"images, {result['data']} (points, with standard deviations over draws), and as "
            "published from the 50,000 training images of CIFAR-10, often with deeper networks "
            "(diamonds).",
            "Accuracies of eight kernels, those measured beside those published",
        ),
    ]  # fmt: skip


def _dots(result: Result) -> Figure:
    fig, (axes,) = panels(3.9, ("",), "accuracy in %", "")
    for k, ((_, known), right) in enumerate(
        zip(_cifar.PUBLISHED.items(), result["table"], strict=True)
    ):
        axes.errorbar(
            right.mean(), k, xerr=right.std(ddof=1), color=BLUE, marker="o", ms=6, capsize=2.5,
            label="_" if k else "measured, few images",
        )  # fmt: skip
        axes.plot(
            known.accuracy, k, color=ORANGE, marker="D", mfc="none", ms=7, ls="",
            label="_" if k else "published, CIFAR-10, all images",
        )  # fmt: skip
    axes.set_yticks(range(len(_cifar.PUBLISHED)), list(_cifar.PUBLISHED))
    axes.set(xlim=(None, 100), ylim=(len(_cifar.PUBLISHED) - 0.5, -0.5))
    legend_below(fig, 2)
    return fig


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
