"""Linear algebra: whose arrays, and matrices without a factor."""

import sys
from unittest import mock

import array_api_strict
import numpy as np
from messages import Case

from kernelcore import linalg

STRICT = array_api_strict.asarray([1.0, 2.0])
LIBRARY = "arrays must be of one library that follows the array API standard: got "
MEAN = "K must have a diagonal of positive, finite mean to be factored: got "


def without_compat():
    with mock.patch.dict(sys.modules, {"array_api_compat": None}):
        return linalg.norm(STRICT)


CASES = [
    Case(
        ImportError,
        "linear algebra with arrays that are not NumPy's needs array-api-compat; install it with: "
        "pip install 'kernelcore[gpu]'",
        without_compat,
    ),
    Case(
        TypeError,
        LIBRARY + "array_api_strict.Array and numpy.ndarray",
        lambda: linalg.namespace_of(STRICT, np.ones(2)),
    ),
    Case(TypeError, LIBRARY + "builtins.list", lambda: linalg.norm([3.0, 4.0])),
    Case(
        ValueError,
        MEAN + "0.0",
        lambda: linalg.cholesky(np.zeros((2, 2)), on_indefinite="jitter"),
    ),
    Case(ValueError, MEAN + "-1.0", lambda: linalg.cholesky(-np.eye(2), on_indefinite="jitter")),
    Case(
        np.linalg.LinAlgError,
        "K + ridge I must be positive definite: its first 2 rows and columns are not, and its "
        "smallest eigenvalue is -0.5; a ridge larger by 0.55 would do and damp what lies along "
        "eigenvalues below it, a pseudo-inverse leaves that out",
        lambda: linalg.cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.5),
    ),
    Case(
        np.linalg.LinAlgError,
        "K + ridge I must be positive definite: its first 2 rows and columns are not, and its "
        "smallest eigenvalue is -1; a ridge larger by 1.1 would do and damp what lies along "
        "eigenvalues below it, remedy leaves that out",
        lambda: linalg.cholesky(
            array_api_strict.asarray([[1.0, 2.0], [2.0, 1.0]]), remedy="remedy"
        ),
    ),
]
