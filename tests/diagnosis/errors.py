"""Diagnoses."""

import tempfile

import numpy as np
from messages import Case

import kernelcore as kc

X, Y = np.random.default_rng(0).standard_normal((2, 50, 3))
K, CLASSES = kc.Gaussian(1.0), np.arange(50) % 3


def cut(memory):
    try:
        kc.set_memory(memory)
        kc.diagnose(K, np.zeros((3000, 2)), np.zeros(3000), points=2000)
    finally:
        kc.set_memory(None)


def page(path):
    return kc.report.write(kc.diagnose(K, X, CLASSES), path)


FOLDER = tempfile.gettempdir()
CASES = [
    Case(TypeError, "kernel must be a kernel: got str", lambda: kc.diagnose("ntk", X, CLASSES)),
    Case(
        TypeError,
        "candidates[1] must be a kernel: got int",
        lambda: kc.diagnose(K, X, CLASSES, candidates=[K, 3]),
    ),
    Case(
        ValueError,
        "task must be one of None, 'regression', 'classification': got 'both'",
        lambda: kc.diagnose(K, X, CLASSES, task="both"),
    ),
    Case(
        ValueError,
        "X must have at least 40 inputs: got 39",
        lambda: kc.diagnose(K, X[:39], CLASSES[:39]),
    ),
    Case(
        ValueError,
        "X must be finite: X[7, 1] is nan",
        lambda: kc.diagnose(K, np.where(np.arange(150).reshape(50, 3) == 22, np.nan, X), CLASSES),
    ),
    Case(
        ValueError,
        "ridge must not be negative: got -1.0",
        lambda: kc.diagnose(K, X, CLASSES, ridge=-1),
    ),
    Case(
        ValueError,
        "points must be at least 40: got 10",
        lambda: kc.diagnose(K, X, CLASSES, points=10),
    ),
    Case(
        ValueError,
        "y must have one entry per input of X, 50: got shape (49,)",
        lambda: kc.diagnose(K, X, CLASSES[:49]),
    ),
    Case(
        ValueError,
        "y must have one row per row of X, 50, and shape (n,) or (n, r): got shape (49, 3)",
        lambda: kc.diagnose(K, X, Y[:49]),
    ),
    Case(
        ValueError,
        "y must have shape (n,): got shape (50, 3)",
        lambda: kc.diagnose(K, X, Y, task="classification"),
    ),
    Case(
        ValueError,
        "y must have at least two classes: got one class, a",
        lambda: kc.diagnose(K, X, ["a"] * 50),
    ),
    Case(
        ValueError,
        "y must be finite: y[3] is inf",
        lambda: kc.diagnose(
            K, X, np.where(np.arange(50) == 3, np.inf, CLASSES), task="classification"
        ),
    ),
    Case(
        MemoryError,
        "K must fit into memory: 192.0 MB are needed for 6 arrays of 2000 x 2000 float64, the "
        "budget is 100.0 MB; use fewer points or kernelcore.set_memory",
        lambda: cut("100MB"),
    ),
    Case(
        ValueError,
        f"path must name a file in an existing folder: {FOLDER}",
        lambda: page(FOLDER),
    ),
]
