"""Every estimator and solver on the digits, with nothing set by hand (L1 to L3, L6, L9).

Estimators choose ridges and temperatures from the training images; single precision and every
solver have to end where double precision and the exact one do.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import log_softmax

import kernelcore as kc

from .. import _check
from .._types import Array
from ..linalg.blas import serial
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table
from ._draw import BLUE, ORANGE, figure, legend_below, ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Every estimator with its defaults"
SOLVERS = ("auto", "cholesky", "eigen", "cg", "eigenpro", "nystrom")
KINDS = ("rows", "images")
DTYPES = ("float32", "float64")
CLASSIFIER = "KernelClassifier"
MODELS = (
    *((name, solver) for name in (CLASSIFIER, "KernelRegressor") for solver in SOLVERS),
    ("GaussianProcess", ""), ("KernelSmoother", ""), ("KernelPCA", ""), ("SpectralEmbedding", ""),
)  # fmt: skip
COLUMNS = tuple((kind, dtype) for kind in KINDS for dtype in DTYPES)


@dataclass(frozen=True)
class Settings(_base.Settings):
    """How many of the digits are learned from."""

    n: int = 100
    test: int = 250


PRESETS = {"small": Settings(), "paper": Settings(n=1000, test=797)}
SECONDS = {"small": 5, "paper": 55}


def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    """Measure accuracy and log loss of every estimator and solver, on rows and on images."""
    _check.installed("sklearn", "kernelcore.experiments.defaults")
    images, labels = kc.data.digits()
    order = np.random.default_rng(settings.seed).permutation(len(images))
    images, labels = images[order] / 16, labels[order]
    kernels = {"rows": None, "images": kc.presets.cntk(4, gap=False).ntk}
    shapes = {"rows": (-1, 64), "images": (-1, 8, 8, 1)}

    def column(kind: str, dtype: str) -> dict[str, Any]:
        x = images.reshape(shapes[kind]).astype(dtype)
        with serial(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scores = [_score(*model, kernels[kind], x, labels, settings) for model in MODELS]
        return {"scores": scores, "warnings": sorted({str(w.message) for w in caught} | {""})}

    found = (cells or Cells()).map(column, COLUMNS, progress)
    told = sorted(set().union(*(each["warnings"].tolist() for each in found)))
    scores = np.stack([each["scores"] for each in found], axis=1)  # model, column, score
    return Result("defaults", settings, {"scores": scores, "warnings": told})


def _score(
    name: str, solver: str, kernel: kc.Kernel | None, x: Array, labels: Array, s: Settings
) -> tuple[float, float, float]:
    """Learn from the first n inputs and judge by the last ones.

    Returns the accuracy in per cent, the log loss, and the least log loss at any temperature.
    """
    given = {"solver": solver, "random_state": 0} if solver else {}
    if name == "KernelPCA":  # the default, all components, is too many to look for neighbours
        given = {"n_components": 20}
    model = getattr(kc, name)(kernel=kernel, **given)
    n, train, test, truth = s.n, x[: s.n], x[-s.test :], labels[-s.test :]
    if name == CLASSIFIER:
        model.fit(train, labels[:n])
        logs = model.predict_log_proba(test)
        # These are the scores over their temperature, up to what a softmax does not see.
        right = 100 * np.mean(model.classes_[logs.argmax(1)] == truth)
        return float(right), -_mean_of(logs, truth), _reachable(logs, truth)
    if hasattr(model, "transform"):
        points = model.fit_transform(train)
        nearest = cdist(model.transform(test), points).argmin(1)
        return 100 * float(np.mean(labels[nearest] == truth)), np.nan, np.nan
    model.fit(train, np.eye(10)[labels[:n]])
    return 100 * float(np.mean(model.predict(test).argmax(1) == truth)), np.nan, np.nan


def _mean_of(values: Array, labels: Array) -> float:
    return float(values[np.arange(len(values)), labels].mean())


def _reachable(scores: Array, truth: Array) -> float:
    """Return the least log loss of a softmax of these scores over any temperature."""

    def loss(log: float) -> float:
        return -_mean_of(log_softmax(scores / np.exp(log), axis=1), truth)

    return float(minimize_scalar(loss, bounds=(-8, 4), method="bounded").fun)


# ---- what it says


def _lost(result: Result) -> tuple[float, str]:
    """Return the most accuracy that single precision costs, and where."""
    accuracy = result["scores"][:, :, 0].reshape(len(MODELS), len(KINDS), len(DTYPES))
    lost = accuracy[:, :, 1] - accuracy[:, :, 0]
    at = np.unravel_index(lost.argmax(), lost.shape)
    return float(lost.max()), _named(*MODELS[at[0]], KINDS[at[1]])


def _ratio(result: Result) -> tuple[float, str]:
    """Return the largest log loss over the least reachable one, and where."""
    ratios = result["scores"][:, :, 1] / result["scores"][:, :, 2]
    at = np.unravel_index(np.nanargmax(ratios), ratios.shape)
    return float(np.nanmax(ratios)), _named(*MODELS[at[0]], *COLUMNS[at[1]])


def _spread(result: Result) -> float:
    """Return how far accuracies of solvers of one model are apart, in double precision."""
    apart = []
    for name in (CLASSIFIER, "KernelRegressor"):
        rows = [k for k, model in enumerate(MODELS) if model[0] == name and model[1] != "nystrom"]
        columns = [k for k, (_, dtype) in enumerate(COLUMNS) if dtype == "float64"]
        apart.append(np.ptp(result["scores"][np.ix_(rows, columns)][..., 0], axis=0).max())
    return float(max(apart))


def _named(name: str, solver: str, *rest: str) -> str:
    return ", ".join([f"{name} with solver {solver!r}" if solver else name, *rest])


def claims(result: Result) -> list[Claim]:
    """Bound what single precision, solvers and the choice of a temperature may cost."""
    one = 100 / result.settings["test"]
    return [
        Claim("Single precision costs no accuracy: percentage points lost, at most 3 images",
              "", None, _lost(result)[0], one, -np.inf, 3 * one),
        Claim("Solvers of one system agree: range of their accuracies in points, at most 3 images",
              "", None, _spread(result), one, 0.0, 3 * one),
        Claim("Temperatures chosen by leaving one out are near the best: log loss over the least",
              "Guo et al. 2017", 1.0, _ratio(result)[0], 0.0, 1.0, 1.25),
        Claim.order("Nothing warns: warnings", "", sum(map(bool, result["warnings"].tolist()))),
    ]  # fmt: skip


def paragraph(result: Result) -> str:
    """Say what was fitted, and what precision and temperature cost."""
    (lost, where), (ratio, farthest) = _lost(result), _ratio(result)
    cost = (
        f"at most {lost:.2f} points of accuracy ({where})" if lost > 0 else "no accuracy anywhere"
    )
    return f"""
    How good are the defaults? Every estimator learns from {result.settings["n"]} of the digits and
    reads {result.settings["test"]} others, with each solver it has, in single and in double
    precision. Rows are the 64 pixels, for the default kernel; images go through presets.cntk(4,
    gap=False).ntk. Only the kernel of images, the name of the solver and the random state are
    given. Regressors fit ten columns of zeros and ones, and the largest output names the digit;
    KernelPCA (20 components) and SpectralEmbedding give coordinates, in which the nearest
    training image names it.

    Single precision costs {cost}. Probabilities have a log loss of at most {ratio:.2f} times the
    least that any temperature reaches on the test images ({farthest}).
    """


def tables(result: Result) -> list[Table]:
    """Return accuracies and log losses."""

    def cells(k: int, score: int, form: str) -> list[str]:
        found = result["scores"][k, :, score].tolist()
        return ["–" if np.isnan(value) else format(value, form) for value in found]

    head = ("solver", *(f"{kind}, {dtype}" for kind, dtype in COLUMNS))
    told = [text for text in result["warnings"].tolist() if text]
    said = f"Warnings: {'; '.join(told)}." if told else "There were no warnings."
    classifiers = [k for k, model in enumerate(MODELS) if model[0] == CLASSIFIER]
    return [
        Table(
            ("accuracy in %", *head),
            [(*model, *cells(k, 0, ".2f")) for k, model in enumerate(MODELS)],
            f"Share of the {result.settings['test']} test images read correctly after "
            f"{result.settings['n']} training images. {said}", labels=2,
        ),
        Table(
            ("log loss", *head), [(*MODELS[k], *cells(k, 1, ".4f")) for k in classifiers],
            "Mean negative logarithm of the probability of the true class.", labels=2,
        ),
    ]  # fmt: skip


def plot(result: Result) -> list[Picture]:
    """Draw the errors of all estimators."""
    return [
        Picture(
            "errors", _dots(result),
            "Misread test images by estimator and solver; smaller is better. A ring around a dot "
            "means that both precisions agree.",
            "Test errors of all estimators and solvers on rows and images in both precisions",
        )
    ]  # fmt: skip


def _dots(result: Result) -> Figure:
    fig = figure(5.2)
    axes = fig.subplots()
    places = np.arange(len(MODELS))[::-1]
    for k, (kind, dtype) in enumerate(COLUMNS):
        color, up = (BLUE, 0.15) if kind == KINDS[0] else (ORANGE, -0.15)
        single = dtype == "float32"
        axes.plot(
            100 - result["scores"][:, k, 0], places + up, "o", color=color, mew=1.4,
            ms=9 if single else 4.5, mfc="none" if single else color, label=f"{kind}, {dtype}",
        )  # fmt: skip
    axes.set_yticks(places, [f"{name} {solver}".strip() for name, solver in MODELS])
    axes.set_xscale("log")
    ticks(axes.xaxis, [0.5, 1, 2, 5, 10, 20, 50])
    axes.set_xlabel("misread test images in %")
    legend_below(fig, 4)
    return fig
