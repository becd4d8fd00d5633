"""Section: one Gram matrix and its ridges, times, iterations and random features."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import kernelcore as kc
from kernelcore import features, solvers

from .._types import Array
from ..linalg.blas import serial
from ._draw import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, panels, ticks
from ._page import Part, Picture, Section, Table, power_of_ten, signed

RIDGES = 10.0 ** np.arange(-5, 2.01, 0.25)  # times the mean of the diagonal
CRITERIA = {"loo": "leave-one-out", "gcv": "generalised CV", "likelihood": "marginal likelihood"}
NOISE = 0.2  # share of the labels that are replaced
TOL = 1e-6
RIDGE = 1e-4  # of the systems that are solved by iterations, times the mean of the diagonal
TENTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1)
BELOW = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "fontsize": 9, "ncols": 2}


class Digits(NamedTuple):
    """A task: Gram matrices and targets."""

    K: Array
    K_test: Array
    y: Array
    labels: Array  # of the test images

    def wrong(self, scores: Array) -> Array:
        """Return misread test images in %, over the last two axes of scores."""
        return 100 * (scores.argmax(-1) != self.labels).mean(-1)


class Paths(NamedTuple):
    """Squared errors along the ridge, and along the time of gradient flow."""

    loo: Array  # per ridge
    test: Array  # per ridge
    chosen: dict[str, tuple[float, float]]  # ridge and misread test images of each criterion
    best: float  # misread test images of the ridge that suits them best
    times: Array
    flow: Array  # of training and test, per time
    steps: Array
    descent: Array  # of training and test, per number of steps
    stopped: tuple[float, float]  # time of least test error of the flow, misread images there


def section(quick: bool) -> Section:
    """Compare solvers and features; ``quick`` takes 300 images instead of 800 and fewer draws."""
    # In thousands of small products more threads cost more than they gain.
    with serial():
        task = _digits(kc.presets.mlp(2, b_std=0.1).ntk, 300 if quick else 800)
        return _tell(task, _paths(task), _iterate(task), *_features(quick))


def _digits(kernel: kc.Kernel, n: int) -> Digits:
    """Return digits of which some labels are wrong, so that there is something to regularise."""
    rng = np.random.default_rng(0)
    images, labels = kc.data.digits()
    order = rng.permutation(len(images))
    train, test = order[:n], order[n : n + 797]
    mean = images[train].mean(0)
    x, z = (images[train] - mean) / 16, (images[test] - mean) / 16
    seen = labels[train].copy()
    spoiled = rng.random(n) < NOISE
    seen[spoiled] = rng.integers(0, 10, spoiled.sum())
    return Digits(kernel(x), kernel(z, x), np.eye(10)[seen] - 0.1, labels[test])


def _paths(task: Digits) -> Paths:
    unit = float(task.K.diagonal().mean())
    path = solvers.RidgePath(task.K, task.y)
    truth = np.eye(10)[task.labels] - 0.1

    def square(scores: Array, target: Array = truth) -> Array:
        return np.square(scores - target).sum(-1).mean(-1)

    scores = task.K_test @ path.alpha(RIDGES * unit)
    ridges = {criterion: path.best(criterion) for criterion in CRITERIA}
    chosen = {
        c: (r / unit, float(task.wrong(task.K_test @ path.alpha(r)))) for c, r in ridges.items()
    }
    largest = float(path.eigenvalues.max())
    times = np.geomspace(0.1, 1e7, 61) / largest
    flow = solvers.gradient_flow(task.K, task.y, times, K_test=task.K_test)
    seen = np.asarray(flow.test)
    errors = np.stack([square(flow.train, task.y), square(seen)])
    # The steps are 1/largest, half of the longest that is stable.
    steps = np.array([1, 4, 16, 64, 256])
    alpha, kept = np.zeros_like(task.y), []
    for step in range(1, steps[-1] + 1):
        alpha += (task.y - task.K @ alpha) / largest
        if step in steps:
            kept.append((square(task.K @ alpha, task.y), square(task.K_test @ alpha)))
    early = int(errors[1].argmin())
    return Paths(
        loo=np.array([np.square(path.loo(r)).sum(-1).mean() for r in RIDGES * unit]),
        test=square(scores),
        chosen=chosen,
        best=min(float(task.wrong(scores).min()), *(wrong for _, wrong in chosen.values())),
        times=times * largest,
        flow=errors,
        steps=steps,
        descent=np.array(kept).T,
        stopped=(float(times[early] * largest), float(task.wrong(seen[early]))),
    )


def _iterate(task: Digits) -> dict[str, Array]:
    """Return the residuals of the largest column after each product with K, by solver."""
    ridge = RIDGE * float(task.K.diagonal().mean())
    settings: dict[str, Any] = {"rank": len(task.K) // 5, "ridge": ridge, "seed": 0}
    nystrom = solvers.nystrom_preconditioner(task.K, **settings)
    eigenpro = solvers.eigenpro_preconditioner(task.K, **settings)
    found: dict[str, tuple[Any, dict[str, Any]]] = {
        "Richardson": (solvers.richardson, {}),
        "descent with momentum": (solvers.gradient_descent, {}),
        "Richardson, EigenPro": (solvers.richardson, {"preconditioner": eigenpro}),
        "conjugate gradients": (solvers.conjugate_gradients, {}),
        "conjugate gradients, Nyström": (solvers.conjugate_gradients, {"preconditioner": nystrom}),
    }
    with warnings.catch_warnings():  # some do not converge, which is what the figure shows
        warnings.simplefilter("ignore", RuntimeWarning)
        return {
            name: solve(task.K, task.y, ridge, tol=TOL, max_iter=300, **how).residuals.max(1)
            for name, (solve, how) in found.items()
        }


Errors = dict[str, tuple[Array, Array]]
"""Root mean square errors of random features over pairs of points and draws: measured, theory."""


def _features(quick: bool) -> tuple[Array, Errors]:
    x = np.random.default_rng(1).standard_normal((40, 5))
    sizes = 2 ** np.arange(5, 12 if quick else 14, 2)
    draws = 10 if quick else 40
    units = features.NetworkFeatures()
    families: dict[str, tuple[features.Transformer, str]] = {
        "Fourier, Gaussian": (features.FourierFeatures(kc.Gaussian(2.0)), "n_features"),
        "Fourier, Laplacian": (features.FourierFeatures(kc.Laplacian(2.0)), "n_features"),
        "Fourier, Cauchy": (features.FourierFeatures(kc.Cauchy(2.0)), "n_features"),
        "arc-cosine, order 1": (features.ArcCosineFeatures(1), "n_features"),
        "tangent, ReLU": (features.TangentFeatures(), "width"),
        "convolution, ReLU, pooled": (
            features.ConvolutionalFeatures(units, pool=5), "features__n_features"),
    }  # fmt: skip
    errors = {}
    for name, (family, size) in families.items():
        grown = (family.set_params(**{size: int(n)}) for n in sizes)
        found = [features.feature_error(one, x, draws) for one in grown]
        scale = float(np.sqrt(np.square(family.fit(x).kernel_(x)).mean()))
        measured, theory = np.array([(e.rms, e.theory_rms) for e in found]).T / scale
        errors[name] = measured, theory
    return sizes, errors


def _tell(
    task: Digits, paths: Paths, histories: dict[str, Array], sizes: Array, errors: Errors
) -> Section:
    slopes = {
        name: float(np.polyfit(np.log(sizes), np.log(e), 1)[0]) for name, (e, _) in errors.items()
    }
    known = [(e, theory) for e, theory in errors.values() if np.isfinite(theory).all()]
    off = max(float(np.abs(e / theory - 1).max()) for e, theory in known)
    arrived = [name for name, residuals in histories.items() if residuals[-1] <= TOL]
    apart = float(np.abs(_flow_at(paths, paths.steps) / paths.descent - 1).max())
    rows = [(CRITERIA[c], f"{r:.2g}", f"{wrong:.1f}") for c, (r, wrong) in paths.chosen.items()]
    rows.append(("gradient flow, stopped at its least test error", "", f"{paths.stopped[1]:.1f}"))
    parts: list[Part] = [
        TASK.format(n=len(task.K), test=len(task.labels), noise=100 * NOISE),
        Picture(
            _draw_paths(paths),
            "Left: squared error against the ridge, by leaving one training image out and on test "
            "images; arrows mark the ridges that three criteria choose without test images (a "
            "ridge beyond the edge is marked there, with its value). One eigendecomposition gives "
            "both curves. They differ by the wrong labels, which only training images have. Right: "
            "training with the same kernel from zero by gradient flow, in closed form (lines), and "
            "by gradient descent with step 1/λ<sub>max</sub> (points), in units of "
            "1/λ<sub>max</sub>.",
            "Squared errors against ridge, and against the time of gradient flow",
        ),
        Table(
            ("how to regularise", "ridge / mean diagonal", "misread test images in %"),
            rows,
            "The ridge that suits the test images themselves best would misread "
            f"{paths.best:.1f} %; the last row uses them, too.",
        ),
        Picture(
            _draw_rates(histories, sizes, errors),
            f"Left: relative residual of (K + ridge I) x = y, ridge {RIDGE:g} times the mean of "
            "the diagonal, ten columns, against the number of products with K; preconditioners "
            f"have rank {len(task.K) // 5}. Right: root mean square error of random features over "
            "pairs of 40 points, relative to the kernel: measured (points), by theory where it is "
            "known (lines), and N<sup>−1/2</sup> (dotted).",
            "Residuals of iterative solvers, and errors of random features against their number",
        ),
        Table(
            ("random features", *(f"N = {n}" for n in sizes), "slope"),
            [
                (name, *(f"{v:.4f}" for v in e), signed(slopes[name], 3))
                for name, (e, _) in errors.items()
            ],
            "Relative root mean square error, and the slope of its logarithm, −1/2 by theory. "
            f"Where theory gives the error itself, it is within {100 * off:.0f} % of the measured "
            "one.",
        ),
    ]
    summary = (
        f"With {100 * NOISE:.0f}&nbsp;% of the labels spoiled, the ridge that leave-one-out "
        f"chooses misreads {paths.chosen['loo'][1]:.1f}&nbsp;% of the test images (the best ridge "
        f"{paths.best:.1f}); gradient descent follows the closed form of the flow within "
        f"{100 * apart:.0f}&nbsp;%; "
    )
    if arrived:
        best = min(arrived, key=lambda name: len(histories[name]))
        summary += (
            f"the fastest of the iterative solvers ({best}) takes {len(histories[best]) - 1} "
            f"products with K to a residual of {power_of_ten(TOL)}; "
        )
    low, high = (signed(slope, 2) for slope in (min(slopes.values()), max(slopes.values())))
    summary += f"errors of random features fall with slopes from {low} to {high}."
    return Section("Solvers, flows and random features", summary, parts)


def _flow_at(paths: Paths, times: Array) -> Array:
    """Interpolate the errors of the flow between the times that were computed."""
    at, known = np.log(times), np.log(paths.times)
    return np.stack([np.exp(np.interp(at, known, np.log(e))) for e in paths.flow])


TASK = """
<p>Everything linear follows from one Gram matrix K. Here K is that of an NTK with two hidden layers
and a bias, on {n} handwritten digits of which {noise:.0f}&nbsp;% carry a label drawn at random, so
that fitting them exactly is a mistake; the {test} test images have their true labels. Ridge
regression (<code>solvers.RidgePath</code>) and stopping gradient flow early
(<code>solvers.gradient_flow</code>) are two remedies.</p>
"""


def _draw_paths(paths: Paths) -> Figure:
    fig, (left, right) = panels(4.2, ("", ""), "ridge / mean of the diagonal", "squared error")
    left.loglog(RIDGES, paths.loo, color=BLUE, label="leave-one-out, spoiled labels")
    left.loglog(RIDGES, paths.test, color=VERMILLION, ls="--", label="test, true labels")
    edges = RIDGES[0] / 1.5, RIDGES[-1] * 1.5
    heights = (0.04, 0.11, 0.18)
    for (criterion, (ridge, _)), height in zip(paths.chosen.items(), heights, strict=True):
        shown = float(np.clip(ridge, *edges))
        # The label goes where there is room for it.
        side = -1 if shown > np.sqrt(edges[0] * edges[1]) else 1
        left.annotate(
            CRITERIA[criterion] + (f" ({ridge:.1g})" if shown != ridge else ""),
            (shown, height), xycoords=("data", "axes fraction"),
            xytext=(8 * side, 0), textcoords="offset points",
            ha="left" if side > 0 else "right", va="center", fontsize=9,
        )  # fmt: skip
        arrow, where = "k<" if side > 0 else "k>", left.get_xaxis_transform()
        left.plot([shown], [height], arrow, ms=5, transform=where, clip_on=False)
    lowest = min(paths.loo.min(), paths.test.min())
    left.set(xlim=edges, ylim=(0.6 * float(lowest), None))  # room for arrows
    ticks(left.yaxis, TENTHS)
    left.legend(loc="upper left")
    looks = (("training", BLUE, "-"), ("test", VERMILLION, "--"))
    for errors, dots, (name, color, line) in zip(paths.flow, paths.descent, looks, strict=True):
        right.loglog(paths.times, errors, color=color, ls=line, label=name)
        right.plot(paths.steps, dots, "o", color=color, ms=5, mfc="white")
    right.axvline(paths.stopped[0], color=GREY, lw=1, ls=":")
    right.set_ylim(max(1e-4, 0.5 * paths.flow[0].min()), 2)
    right.set_xlabel("time in 1/λ$_{max}$ (steps of gradient descent)")
    right.legend(loc="lower left")
    return fig


def _draw_rates(histories: dict[str, Array], sizes: Array, errors: Errors) -> Figure:
    residual = "relative residual, largest of ten columns"
    fig, (left, right) = panels(5.4, ("", ""), "1 + products with K", residual)
    looks = ((GREY, ":"), (ORANGE, "-."), (PURPLE, "--"), (BLUE, "-"), (GREEN, "-"))
    for (name, residuals), (color, line) in zip(histories.items(), looks, strict=True):
        left.loglog(1 + np.arange(len(residuals)), residuals, color=color, ls=line, label=name)
    left.axhline(TOL, color=GREY, lw=0.8)
    left.legend(**BELOW)
    dots = zip((BLUE, SKY, PURPLE, ORANGE, VERMILLION, GREEN), "osD^vP", strict=True)
    for (name, (measured, theory)), (color, marker) in zip(errors.items(), dots, strict=True):
        right.loglog(sizes, measured, marker, color=color, ms=5, label=name)
        right.loglog(sizes, theory, color=color, lw=1.2)
    guide = min(measured[0] for measured, _ in errors.values()) / 2
    right.loglog(sizes, guide * (sizes / sizes[0]) ** -0.5, "k:", lw=1.2)
    ticks(right.xaxis, sizes.tolist())
    ticks(right.yaxis, TENTHS)
    right.set(xlabel="N (features; hidden units, filters)", ylabel="relative error of the kernel")
    right.legend(**BELOW)
    return fig
