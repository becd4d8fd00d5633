"""Triangles and products, and what every namespace has: against products in float64."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelcore import linalg

BOTH = pytest.mark.parametrize("lower", [False, True])


def half(a, lower):
    return np.tril(a) if lower else np.triu(a)


def triangle(rng, n, dtype):
    """Both triangles filled: entries that must not be read are not small."""
    return (rng.uniform(-1, 1, (n, n)) / n + 2 * np.eye(n)).astype(dtype)


@BOTH
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 4)])
def test_triangular_solve(rng, library, dtype, eps, lower, transpose, shape):
    t, b = triangle(rng, 7, dtype), rng.standard_normal(shape).astype(dtype)
    full = half(t, lower).astype(float)
    want = np.linalg.inv(full.T if transpose else full) @ b
    for overwrite in (False, len(shape) == 2):
        given = library(b.copy())
        x = linalg.triangular_solve(
            library(t), given, lower=lower, transpose=transpose, overwrite=overwrite
        )
        # 7 u of the triangle (Higham 2002, 8.5), whose condition is below 4
        assert_allclose(library.back(x, dtype), want, atol=4 * 7 * eps * np.abs(want).max())
        assert x.shape == shape
        if library.namespace is np:
            assert np.shares_memory(x, given) is overwrite
            assert overwrite or (given == b).all()


@BOTH
def test_triangular_inverse(rng, library, dtype, eps, lower):
    t = triangle(rng, 12, dtype)
    inverse = library.back(linalg.triangular_inverse(library(t), lower=lower), dtype)
    product = half(inverse, lower).astype(float) @ half(t, lower)
    assert_allclose(product, np.eye(12), atol=12 * eps * 4)


def test_triangular_square(rng, library, dtype, eps):
    t = triangle(rng, 9, dtype)
    square = np.triu(library.back(linalg.triangular_square(library(t)), dtype))
    upper = np.triu(t).astype(float)
    assert_allclose(square, np.triu(upper @ upper.T), atol=9 * eps * 5)


@BOTH
@pytest.mark.parametrize("order", ["C", "F"])
def test_gram_product(rng, library, dtype, eps, lower, order):
    x = np.array(rng.uniform(-1, 1, (20, 6)), dtype, order=order)
    start = np.array(rng.uniform(-1, 1, (6, 6)), dtype, order="F")
    want = x.T.astype(float) @ x
    got = library.back(linalg.gram_product(library(x), lower=lower), dtype)
    assert_allclose(half(got, lower), half(want, lower), atol=21 * eps * 20)
    total = library(start.copy(order="F"))
    got = library.back(linalg.gram_product(library(x), total, lower=lower), dtype)
    assert_allclose(half(got, lower), half(start + want, lower), atol=21 * eps * 20)
    if library.namespace is np:
        assert np.shares_memory(got, total)


@BOTH
def test_symmetric_product(rng, library, dtype, eps, lower):
    a, x = rng.uniform(-1, 1, (8, 8)).astype(dtype), rng.uniform(-1, 1, 8).astype(dtype)
    full = half(a, lower).astype(float)
    full = full + full.T - np.diag(full.diagonal())
    got = library.back(linalg.symmetric_product(library(a), library(x), lower=lower), dtype)
    assert_allclose(got, full @ x, atol=9 * eps * 8)


@pytest.mark.parametrize("shape", [(9, 4), (3, 5, 5)])
def test_qr(rng, library, dtype, eps, shape):
    a = rng.uniform(-1, 1, shape).astype(dtype)
    q, r = (library.back(x, dtype) for x in linalg.qr(library(a)))
    assert_allclose(q @ r, a, atol=40 * eps)
    unit = np.broadcast_to(np.eye(shape[-1]), (*shape[:-2], shape[-1], shape[-1]))
    assert_allclose(np.swapaxes(q, -1, -2) @ q, unit, atol=40 * eps)
    assert_array_equal(r, np.triu(r))


def test_lstsq(rng, library, dtype, eps):
    """The rest is orthogonal to the columns; where they depend on each other x is the shortest."""
    a, b = rng.uniform(-1, 1, (20, 3)), rng.uniform(-1, 1, 20).astype(dtype)
    x = library.back(linalg.lstsq(library(a.astype(dtype)), library(b)), dtype)
    assert_allclose(a.T @ (a @ x - b), 0, atol=500 * eps)
    twice = np.concatenate([a, a], axis=1).astype(dtype)
    found = library.back(linalg.lstsq(library(twice), library(b)), dtype)
    assert_allclose(found, np.tile(x / 2, 2), atol=500 * eps)


@pytest.mark.parametrize(("axis", "keepdims"), [(None, False), (1, False), (1, True), (0, False)])
def test_norm(rng, library, dtype, eps, axis, keepdims):
    x = rng.standard_normal((5, 30)).astype(dtype)
    got = library.read(linalg.norm(library(x), axis=axis, keepdims=keepdims))
    want = np.sqrt((x.astype(float) ** 2).sum(axis, keepdims=keepdims))
    assert_allclose(got, want, rtol=160 * eps)
    assert got.shape == want.shape
