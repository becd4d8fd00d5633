"""One Gram matrix and its ridges, times, iterations and random features (L1, L2, L4, L7).

Ridge regression and stopping gradient flow early are two remedies for labels that are partly wrong;
leave-one-out chooses between ridges without test data. Gradient descent with small steps follows
the closed form of the flow (Jacot et al. 2018). Random features estimate a kernel with an error
that falls as N^(-1/2) (Rahimi and Recht 2007).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import kernelcore as kc
from kernelcore import features, solvers

from .._types import Array
from ..linalg.blas import serial
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table
from ._draw import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, panels, ticks
from ._words import power_of_ten, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Solvers, flows and random features"
RIDGES = 10.0 ** np.arange(-5, 2.01, 0.25)  # times the mean of the diagonal
CRITERIA = {"loo": "leave-one-out", "gcv": "generalised CV", "likelihood": "marginal likelihood"}
TOL = 1e-6
RIDGE = 1e-4  # of the systems that are solved by iterations, times the mean of the diagonal
STEPS = np.array([1, 4, 16, 64, 256])
TENTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1)
BELOW = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "fontsize": 9, "ncols": 2}
ITERATIVE = (
    "Richardson", "descent with momentum", "Richardson, EigenPro", "conjugate gradients",
    "conjugate gradients, Nyström",
)  # fmt: skip
FEATURES = (
    "Fourier, Gaussian", "Fourier, Laplacian", "Fourier, Cauchy", "arc-cosine, order 1",
    "tangent, ReLU", "convolution, ReLU, pooled",
)  # fmt: skip
JACOT, RAHIMI = "Jacot et al. 2018", "Rahimi and Recht 2007"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """Digits with a share of labels drawn at random; random features of some sizes."""

    n: int = 400
    noise: float = 0.2
    sizes: tuple[int, ...] = (32, 128, 512, 2048)
    draws: int = 20


PRESETS = {
    "small": Settings(),
    "paper": Settings(n=1000, sizes=(32, 128, 512, 2048, 8192), draws=100),
}
SECONDS = {"small": 2, "paper": 11}


class Digits(NamedTuple):
    """A task: Gram matrices and targets."""

    K: Array
    K_test: Array
    y: Array
    labels: Array  # of the test images

    def wrong(self, scores: Array) -> Array:
        """Return misread test images in %, over the last two axes of scores."""
        return 100 * (scores.argmax(-1) != self.labels).mean(-1)


def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    """Follow ridges, flow, descent, iterations and features on one task."""
    parts = {"paths": _paths, "iterations": _iterate}

    def part(word: str) -> dict[str, Any]:
        if word == "features":
            return _features(settings)
        return parts[word](_digits(kc.presets.mlp(2, b_std=0.1).ntk, settings))

    with serial():  # in thousands of small products more threads cost more than they gain
        keys = [("paths",), ("iterations",), ("features",)]
        found = (cells or Cells()).map(part, keys, progress)
    return Result("learning", settings, {key: a for one in found for key, a in one.items()})


def _digits(kernel: kc.Kernel, s: Settings) -> Digits:
    """Return digits of which some labels are wrong, so that there is something to regularise."""
    rng = np.random.default_rng(s.seed)
    images, labels = kc.data.digits()
    order = rng.permutation(len(images))
    train, test = order[: s.n], order[s.n : s.n + 797]
    mean = images[train].mean(0)
    x, z = (images[train] - mean) / 16, (images[test] - mean) / 16
    seen = labels[train].copy()
    spoiled = rng.random(s.n) < s.noise
    seen[spoiled] = rng.integers(0, 10, spoiled.sum())
    return Digits(kernel(x), kernel(z, x), np.eye(10)[seen] - 0.1, labels[test])


def _paths(task: Digits) -> dict[str, Any]:
    """Return squared errors along the ridge, and along the time of gradient flow."""
    unit = float(task.K.diagonal().mean())
    path = solvers.RidgePath(task.K, task.y)
    truth = np.eye(10)[task.labels] - 0.1

    def square(scores: Array, target: Array = truth) -> Array:
        return np.square(scores - target).sum(-1).mean(-1)

    scores = task.K_test @ path.alpha(RIDGES * unit)
    chosen = [path.best(criterion) for criterion in CRITERIA]
    wrong = [float(task.wrong(task.K_test @ path.alpha(r))) for r in chosen]
    largest = float(path.eigenvalues.max())
    times = np.geomspace(0.1, 1e7, 61) / largest
    # The steps of descent are 1/largest, half of the longest that is stable.
    flow = solvers.gradient_flow(task.K, task.y, [*times, *STEPS / largest], K_test=task.K_test)
    seen = np.asarray(flow.test)
    errors = np.stack([square(flow.train, task.y), square(seen)])
    alpha, kept = np.zeros_like(task.y), []
    for step in range(1, STEPS[-1] + 1):
        alpha += (task.y - task.K @ alpha) / largest
        if step in STEPS:
            kept.append((square(task.K @ alpha, task.y), square(task.K_test @ alpha)))
    early = int(errors[1, : len(times)].argmin())
    return {
        "loo": [np.square(path.loo(r)).sum(-1).mean() for r in RIDGES * unit],
        "test": square(scores),
        "chosen": np.array([np.array(chosen) / unit, wrong]).T,  # by criterion
        "best": min(float(task.wrong(scores).min()), *wrong),
        "times": times * largest,
        "flow": errors[:, : len(times)],  # of training and test
        "flow.steps": errors[:, len(times) :],
        "descent": np.array(kept).T,
        "stopped": (times[early] * largest, task.wrong(seen[early])),
    }


def _iterate(task: Digits) -> dict[str, Any]:
    """Return the residuals of the largest column after each product with K, by solver."""
    ridge = RIDGE * float(task.K.diagonal().mean())
    settings: dict[str, Any] = {"rank": len(task.K) // 5, "ridge": ridge, "seed": 0}
    nystrom = {"preconditioner": solvers.nystrom_preconditioner(task.K, **settings)}
    eigenpro = {"preconditioner": solvers.eigenpro_preconditioner(task.K, **settings)}
    solve: list[tuple[Any, dict[str, Any]]] = [
        (solvers.richardson, {}), (solvers.gradient_descent, {}), (solvers.richardson, eigenpro),
        (solvers.conjugate_gradients, {}), (solvers.conjugate_gradients, nystrom),
    ]  # fmt: skip
    with warnings.catch_warnings():  # some do not converge, which is what the figure shows
        warnings.simplefilter("ignore", RuntimeWarning)
        found = [
            one(task.K, task.y, ridge, tol=TOL, max_iter=300, **how).residuals.max(1)
            for one, how in solve
        ]
    return {f"residuals.{k}": residuals for k, residuals in enumerate(found)}


def _features(s: Settings) -> dict[str, Any]:
    """Return relative root mean square errors of random features: measured, by theory, by size."""
    x = np.random.default_rng([s.seed, 1]).standard_normal((40, 5))
    units = features.NetworkFeatures()
    families: list[tuple[features.Transformer, str]] = [
        (features.FourierFeatures(kc.Gaussian(2.0)), "n_features"),
        (features.FourierFeatures(kc.Laplacian(2.0)), "n_features"),
        (features.FourierFeatures(kc.Cauchy(2.0)), "n_features"),
        (features.ArcCosineFeatures(1), "n_features"),
        (features.TangentFeatures(), "width"),
        (features.ConvolutionalFeatures(units, pool=5), "features__n_features"),
    ]
    errors = []
    for family, size in families:
        grown = (family.set_params(**{size: n}) for n in s.sizes)
        found = [features.feature_error(one, x, s.draws) for one in grown]
        scale = float(np.sqrt(np.square(family.fit(x).kernel_(x)).mean()))
        errors.append(np.array([(e.rms, e.theory_rms) for e in found]).T / scale)
    return {"features": np.array(errors)}  # family, measured or theory, size


# ---- what it says


def _slopes(result: Result) -> list[float]:
    log = np.log(result.settings["sizes"])
    return [float(np.polyfit(log, np.log(e), 1)[0]) for e in result["features"][:, 0]]


def _apart(result: Result) -> float:
    """Return how far descent is from the flow, relative, from its fourth step on."""
    return float(np.abs(result["descent"] / result["flow.steps"] - 1)[:, 1:].max())


def _arrived(result: Result) -> dict[str, int]:
    """Return the products with K of the solvers that converged."""
    histories = (result[f"residuals.{k}"] for k in range(len(ITERATIVE)))
    pairs = zip(ITERATIVE, histories, strict=True)
    return {name: len(h) - 1 for name, h in pairs if h[-1] <= TOL}


def claims(result: Result) -> list[Claim]:
    """Compare choices with the best one, descent with the flow, features with their theory."""
    wrong, best = float(result["chosen"][0, 1]), float(result["best"])
    measured, theory = result["features"][:, 0], result["features"][:, 1]
    known = np.isfinite(theory)
    error = float(np.sqrt(best * (100 - best) / 797))
    slopes = np.array(_slopes(result))
    arrived = _arrived(result)
    nystrom, plain = (arrived.get(ITERATIVE[k], 301) for k in (4, 3))
    return [
        Claim("The ridge of leave-one-out is as good as the best: misread images in % beyond its",
              "", 0.0, wrong - best, error, 0.0, 2 * error),
        Claim("Gradient descent with steps 1/λ_max follows the closed form of the flow from its "
              "fourth step on: relative deviation of squared errors", JACOT, 0.0, _apart(result),
              0.0, 0.0, 0.05),
        Claim.near("Random features err like N^(−1/2): mean slope over six families", RAHIMI, -0.5,
                   float(slopes.mean()), float(slopes.std(ddof=1) / np.sqrt(len(slopes))), 0.05),
        Claim.curve("Random features have the error that theory gives, where it is known", RAHIMI,
                    theory[known], measured[known], 0 * theory[known], 0.1),
        Claim("A Nyström preconditioner saves products with K: share of those of plain conjugate "
              "gradients", "Frangella et al. 2023", None, nystrom / plain, 0.0, 0.0, 0.5),
    ]  # fmt: skip


def paragraph(result: Result) -> str:
    """Say what one matrix has told."""
    s, arrived, slopes = result.settings, _arrived(result), _slopes(result)
    told = ""
    if arrived:
        best = min(arrived, key=lambda name: arrived[name])
        told = (
            f" The fastest of the iterative solvers ({best}) takes {arrived[best]} products with K "
            f"to a residual of {power_of_ten(TOL)}."
        )
    low, high = (signed(slope, 2) for slope in (min(slopes), max(slopes)))
    return f"""
    Everything linear follows from one Gram matrix K. Here K is that of an NTK with two hidden
    layers and a bias, on {s["n"]} handwritten digits of which {100 * s["noise"]:.0f} % carry a
    label drawn at random, so that fitting them exactly is a mistake; the 797 test images have their
    true labels. The ridge that leave-one-out chooses misreads {result["chosen"][0, 1]:.1f} % of the
    test images (the best ridge {float(result["best"]):.1f}); gradient descent follows the closed
    form of the flow within {100 * _apart(result):.1f} % from its fourth step on.{told} Errors of
    random features fall with slopes from {low} to {high}.
    """


def tables(result: Result) -> list[Table]:
    """Return the ways to regularise, and the errors of random features."""
    chosen = zip(CRITERIA.values(), result["chosen"].tolist(), strict=True)
    rows = [(name, f"{ridge:.2g}", f"{wrong:.1f}") for name, (ridge, wrong) in chosen]
    rows.append(
        ("gradient flow, stopped at its least test error", "", f"{result['stopped'][1]:.1f}")
    )
    errors = [
        (name, *(f"{v:.4f}" for v in e), signed(slope, 3))
        for name, e, slope in zip(FEATURES, result["features"][:, 0], _slopes(result), strict=True)
    ]
    return [
        Table(
            ("how to regularise", "ridge / mean diagonal", "misread test images in %"), rows,
            "The ridge that suits the test images themselves best would misread "
            f"{float(result['best']):.1f} %; the last row uses them, too.",
        ),
        Table(
            ("random features", *(f"N = {n}" for n in result.settings["sizes"]), "slope"), errors,
            "Relative root mean square error, and the slope of its logarithm, −1/2 by theory.",
        ),
    ]  # fmt: skip


def plot(result: Result) -> list[Picture]:
    """Draw paths along ridge and time, and rates of solvers and features."""
    return [
        Picture(
            "paths", _draw_paths(result),
            "Left: squared error against the ridge, by leaving one training image out and on test "
            "images; arrows mark the ridges that three criteria choose without test images (a "
            "ridge beyond the edge is marked there, with its value). One eigendecomposition gives "
            "both curves. They differ by the wrong labels, which only training images have. Right: "
            "training with the same kernel from zero by gradient flow, in closed form (lines), and "
            "by gradient descent with step 1/λ_max (points), in units of 1/λ_max.",
            "Squared errors against ridge, and against the time of gradient flow, which descent "
            "follows",
        ),
        Picture(
            "rates", _draw_rates(result),
            f"Left: relative residual of (K + ridge I) x = y, ridge {RIDGE:g} times the mean of "
            "the diagonal, ten columns, against the number of products with K; preconditioners "
            f"have rank {result.settings['n'] // 5}. Right: root mean square error of random "
            "features over pairs of 40 points, relative to the kernel: measured (points), by "
            "theory where it is known (lines), and N^(−1/2) (dotted).",
            "Residuals of iterative solvers fall, and errors of random features lie on lines of "
            "slope −1/2",
        ),
    ]  # fmt: skip


def _draw_paths(result: Result) -> Figure:
    fig, (left, right) = panels(4.2, ("", ""), "ridge / mean of the diagonal", "squared error")
    left.loglog(RIDGES, result["loo"], color=BLUE, label="leave-one-out, spoiled labels")
    left.loglog(RIDGES, result["test"], color=VERMILLION, ls="--", label="test, true labels")
    edges = RIDGES[0] / 1.5, RIDGES[-1] * 1.5
    marks = zip(CRITERIA.values(), result["chosen"][:, 0], (0.04, 0.11, 0.18), strict=True)
    for name, ridge, height in marks:
        shown = float(np.clip(ridge, *edges))
        # The label goes where there is room for it.
        side = -1 if shown > np.sqrt(edges[0] * edges[1]) else 1
        left.annotate(
            name + (f" ({ridge:.1g})" if shown != ridge else ""),
            (shown, height), xycoords=("data", "axes fraction"),
            xytext=(8 * side, 0), textcoords="offset points",
            ha="left" if side > 0 else "right", va="center", fontsize=9,
        )  # fmt: skip
        arrow, where = "k<" if side > 0 else "k>", left.get_xaxis_transform()
        left.plot([shown], [height], arrow, ms=5, transform=where, clip_on=False)
    lowest = min(result["loo"].min(), result["test"].min())
    left.set(xlim=edges, ylim=(0.6 * float(lowest), None))  # room for arrows
    ticks(left.yaxis, TENTHS)
    left.legend(loc="upper left")
    looks = (("training", BLUE, "-"), ("test", VERMILLION, "--"))
    for errors, dots, (name, color, line) in zip(
        result["flow"], result["descent"], looks, strict=True
    ):
        right.loglog(result["times"], errors, color=color, ls=line, label=name)
        right.plot(STEPS, dots, "o", color=color, ms=5, mfc="white", label=f"{name}, descent")
    right.axvline(result["stopped"][0], color=GREY, lw=1, ls=":")
    right.set_ylim(max(1e-4, 0.5 * result["flow"][0].min()), 2)
    right.set_xlabel("time in units of 1/λ_max (steps of gradient descent)")
    right.legend(loc="lower left")
    return fig


def _draw_rates(result: Result) -> Figure:
    residual = "relative residual, largest of ten columns"
    fig, (left, right) = panels(5.4, ("", ""), "1 + products with K", residual)
    looks = ((GREY, ":"), (ORANGE, "-."), (PURPLE, "--"), (BLUE, "-"), (GREEN, "-"))
    for k, (name, (color, line)) in enumerate(zip(ITERATIVE, looks, strict=True)):
        residuals = result[f"residuals.{k}"]
        left.loglog(1 + np.arange(len(residuals)), residuals, color=color, ls=line, label=name)
    left.axhline(TOL, color=GREY, lw=0.8)
    left.legend(**BELOW)
    sizes = np.array(result.settings["sizes"])
    dots = zip((BLUE, SKY, PURPLE, ORANGE, VERMILLION, GREEN), "osD^vP", strict=True)
    for name, (measured, theory), (color, marker) in zip(
        FEATURES, result["features"], dots, strict=True
    ):
        right.loglog(sizes, measured, marker, color=color, ms=5, label=name)
        right.loglog(sizes, theory, color=color, lw=1.2)
    guide = result["features"][:, 0, 0].min() / 2
    right.loglog(sizes, guide * (sizes / sizes[0]) ** -0.5, "k:", lw=1.2)
    ticks(right.xaxis, sizes.tolist())
    ticks(right.yaxis, TENTHS)
    right.set(xlabel="N (features; hidden units, filters)", ylabel="relative error of the kernel")
    right.legend(**BELOW)
    return fig
