"""Section: every estimator and solver on the digits, with nothing set by hand."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import log_softmax

import kernelcore as kc

from .. import _check
from .._types import Array
from ..linalg.blas import serial
from ._draw import BLUE, ORANGE, figure, legend_below, ticks
from ._page import Picture, Section, Table

SOLVERS = ("auto", "cholesky", "eigen", "cg", "eigenpro", "nystrom")
TEST = 797
KINDS = ("rows", "images")
DTYPES = ("float32", "float64")
CLASSIFIER = "KernelClassifier"
MODELS = (
    *((name, solver) for name in (CLASSIFIER, "KernelRegressor") for solver in SOLVERS),
    ("GaussianProcess", ""), ("KernelSmoother", ""), ("KernelPCA", ""), ("SpectralEmbedding", ""),
)  # fmt: skip
TITLE = "Every estimator with its defaults"


class Score(NamedTuple):
    """One fit's accuracy in per cent, log loss, and the least loss at any temperature."""

    accuracy: float
    log_loss: float = np.nan
    reachable: float = np.nan


def section(quick: bool) -> Section:
    """Measure accuracy and log loss; ``quick`` takes 100 training images instead of 500."""
    remedy = _check.absent("sklearn")
    if remedy is not None:
        text = f"Not computed: estimators need scikit-learn; install it with <code>{remedy}</code>."
        return Section(TITLE, text, [])
    n = 100 if quick else 500
    images, labels = kc.data.digits()
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order] / 16, labels[order]
    scores = {}
    with serial(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kind in KINDS:
            kernel = None if kind == "rows" else kc.presets.cntk(4, gap=False).ntk
            shape = (-1, 64) if kind == "rows" else (-1, 8, 8, 1)
            for dtype in DTYPES:
                x = images.reshape(shape).astype(dtype)
                for model in MODELS:
                    scores[(*model, kind, dtype)] = _score(*model, kernel, x, labels, n)
        told = {str(warning.message) for warning in caught}
    return _tell(scores, n, sorted(told))


def _score(
    name: str, solver: str, kernel: kc.Kernel | None, x: Array, labels: Array, n: int
) -> Score:
    """Learn from the first n inputs and judge by the last ones."""
    settings = {"solver": solver, "random_state": 0} if solver else {}
    if name == "KernelPCA":  # the default, all components, is too many to look for neighbours
        settings = {"n_components": 20}
    model = getattr(kc, name)(kernel=kernel, **settings)
    train, test, truth = x[:n], x[-TEST:], labels[-TEST:]
    if name == CLASSIFIER:
        model.fit(train, labels[:n])
        logs = model.predict_log_proba(test)
        # These are the scores over their temperature, up to what a softmax does not see.
        right = 100 * np.mean(model.classes_[logs.argmax(1)] == truth)
        return Score(right, -_mean_of(logs, truth), _reachable(logs, truth))
    if hasattr(model, "transform"):
        points = model.fit_transform(train)
        nearest = cdist(model.transform(test), points).argmin(1)
        return Score(100 * np.mean(labels[nearest] == truth))
    model.fit(train, np.eye(10)[labels[:n]])
    return Score(100 * np.mean(model.predict(test).argmax(1) == truth))


def _mean_of(values: Array, labels: Array) -> float:
    return float(values[np.arange(len(values)), labels].mean())


def _reachable(scores: Array, truth: Array) -> float:
    """Return the least log loss of a softmax of these scores over any temperature."""

    def loss(log: float) -> float:
        return -_mean_of(log_softmax(scores / np.exp(log), axis=1), truth)

    return float(minimize_scalar(loss, bounds=(-8, 4), method="bounded").fun)


def _tell(scores: dict[tuple[str, str, str, str], Score], n: int, told: list[str]) -> Section:
    def cells(model: tuple[str, str], field: str, form: str) -> list[str]:
        found = [getattr(scores[(*model, k, d)], field) for k in KINDS for d in DTYPES]
        return ["–" if np.isnan(value) else format(value, form) for value in found]

    columns = [f"{kind}, {dtype}" for kind in KINDS for dtype in DTYPES]
    lost = {}
    for key in ((*model, kind) for model in MODELS for kind in KINDS):
        single, double = (scores[(*key, dtype)].accuracy for dtype in DTYPES)
        lost[key] = double - single
    worst = max(lost, key=lost.__getitem__)
    ratios = {k: s.log_loss / s.reachable for k, s in scores.items() if not np.isnan(s.log_loss)}
    farthest = max(ratios, key=ratios.__getitem__)
    spread = max(
        np.ptp([scores[CLASSIFIER, s, kind, "float64"].log_loss for s in SOLVERS if s != "nystrom"])
        for kind in KINDS
    )
    said = f"Warnings: {'; '.join(told)}." if told else "There were no warnings."
    cost = f"at most {lost[worst]:.2f} points of accuracy ({_named(worst)})"
    return Section(
        TITLE,
        f"Single precision costs {cost if lost[worst] > 0 else 'no accuracy anywhere'}; "
        f"probabilities have a log loss of at most {ratios[farthest]:.2f} times the least that any "
        "temperature reaches on the test images.",
        [
            PROTOCOL.format(n=n, test=TEST),
            Picture(
                _dots(scores),
                "Misread test images by estimator and solver; smaller is better. A ring around a "
                "dot means that both precisions agree.",
                "Test errors of all estimators and solvers on rows and images in both precisions",
            ),
            Table(
                ("accuracy in %", "solver", *columns),
                [(*model, *cells(model, "accuracy", ".2f")) for model in MODELS],
                f"Share of the {TEST} test images read correctly after {n} training images. {said}",
                labels=2,
            ),
            Table(
                ("log loss", "solver", *columns),
                [(*m, *cells(m, "log_loss", ".4f")) for m in MODELS if m[0] == CLASSIFIER],
                "Mean negative logarithm of the probability of the true class. The solvers of "
                f"one model, all but 'nystrom', differ by at most {spread:.4f} in double "
                f"precision. The largest ratio to what the best temperature reaches, "
                f"{ratios[farthest]:.3f}, is that of {_named(farthest)}.",
                labels=2,
            ),
        ],
    )


def _dots(scores: dict[tuple[str, str, str, str], Score]) -> Figure:
    fig = figure(5.2)
    axes = fig.subplots()
    places = np.arange(len(MODELS))[::-1]
    for kind, color, up in zip(KINDS, (BLUE, ORANGE), (0.15, -0.15), strict=True):
        for dtype in DTYPES:
            wrong = [100 - scores[(*model, kind, dtype)].accuracy for model in MODELS]
            single = dtype == "float32"
            axes.plot(
                wrong, places + up, "o", color=color, ms=9 if single else 4.5,
                mfc="none" if single else color, mew=1.4, label=f"{kind}, {dtype}",
            )  # fmt: skip
    axes.set_yticks(places, [f"{name} {solver}".strip() for name, solver in MODELS])
    axes.set_xscale("log")
    ticks(axes.xaxis, [0.5, 1, 2, 5, 10, 20, 50])
    axes.set_xlabel("misread test images in %")
    legend_below(fig, 4)
    return fig


def _named(key: tuple[str, ...]) -> str:
    name, solver, *rest = key
    return ", ".join([f"{name} with solver {solver!r}" if solver else name, *rest])


PROTOCOL = """
<p>How good are the defaults? Every estimator learns from {n} of the digits and reads {test} others,
with each solver it has, in single and in double precision. Rows are the 64 pixels, for the default
kernel; images go through <code>presets.cntk(4, gap=False).ntk</code>. Only the kernel of images,
the name of the solver and the random state are given; the estimators choose ridges and temperatures
from the training images.</p>
<p>Regressors fit ten columns of zeros and ones, and the largest output names the digit.
<code>KernelPCA</code> (20 components) and <code>SpectralEmbedding</code> give coordinates, in which
the nearest training image names it.</p>
"""
