"""What functions make of single rows and of pairs, by form: variances, tables and duals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._types import Array
from ...program import (
    Closed,
    Code,
    Expansion,
    Form,
    Homogeneous,
    OfSum,
    Op,
    Powers,
    Sampled,
    Unchanged,
    Unit,
)
from .. import accuracy
from ..accuracy import Doubt
from . import calls, cells, dispatch, hermite, kinks, ladder
from .dense import OP

STRIP = 256
COARSE = 1e-12  # tolerances above it are those of single precision
FULL = float(np.finfo(np.float64).eps) / 4
NONE = np.empty((0, 0))
Series = Expansion | Sampled


class Step(NamedTuple):
    """What a function does to rows of given variances.

    ``tables`` have the layout that ``program.h`` gives for the operation; None stands for the
    common one (sd, 1/sd_new, sd/sd_new) and then ``more``, an empty array for none. ``slope``
    multiplies T. ``doubt`` is set where the error of a numerical dual is too large.
    """

    op: Op | None
    variance: Array
    slope: Array
    tables: Array | None = None
    doubt: Doubt | None = None
    more: Array = NONE

    def shares(self) -> Array:
        """Return the tables of a series, (orders, rows): even and odd orders in turn."""
        assert self.op is not None
        assert self.tables is not None
        return ladder.unpacked(self.tables, int(self.op.b))


def step(form: Form, variance: Array, tolerance: float, n_threads: int) -> Step:
    """Return what ``form`` does to rows; Hermite coefficients are good to ``tolerance``."""
    match form:
        case Homogeneous(op, degree, gain, slope):
            with np.errstate(over="ignore"):
                power = variance ** (degree - 1) if degree > 0 else np.zeros_like(variance)
                return Step(op, gain * variance**degree, slope * power, NONE)
        case Closed(op):
            op = kinks.lowered(op, tolerance > COARSE, _closed)
            more = _own_tables(op, variance)
            if op.code == Code.RAMP:
                return Step(op, *kinks.diagonal(op, variance, more), more=more)
            return Step(op, *dual(form, variance, variance, variance, n_threads), more=more)
        case Expansion():
            return _expansion(form, variance)
        case Sampled():
            return _sampled(form, variance, tolerance, n_threads)
        case OfSum(op):
            return Step(op, variance, np.zeros_like(variance), NONE)
        case Powers(op, degree, scale, offset):
            with np.errstate(over="ignore"):
                return Step(op, (scale * variance + offset) ** degree, np.zeros_like(variance))
        case Unit():
            there = variance > 2 / np.finfo(np.float64).max  # else its reciprocal overflows
            inverse = np.divide(1.0, variance, out=np.zeros_like(variance), where=there)
            return Step(None, there.astype(np.float64), inverse)
        case Unchanged():
            return Step(None, variance, np.ones_like(variance))
    raise TypeError(f"form must be one that engines know: got {type(form).__name__}")


def _own_tables(op: Op, variance: Array) -> Array:
    """Return what the operation of a closed form looks up besides the common tables."""
    match op.code:
        case Code.ERF | Code.GELU:
            noise = 0.5 if op.code == Code.ERF else 1.0
            whole = variance + noise
            root = np.sqrt(whole)
            # A share of noise that single precision still tells from none.
            lost = np.maximum(noise / whole, 1e-37)
            share = np.sqrt(variance) / root
            made = [share, lost, 1 / root]
            return np.stack(made if op.code == Code.ERF else [*made, root, lost / (1 + share)])
        case Code.SINE:
            with np.errstate(under="ignore"):
                return np.exp(-variance / 2)[None]
        case Code.RAMP | Code.BENT:
            return kinks.tables(op, variance, _closed)
    return NONE


def _expansion(form: Expansion, variance: Array) -> Step:
    """Return the step of a polynomial."""
    a = _coefficients(form, np.sqrt(variance))
    n = np.arange(len(a))[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        new = (a * a).sum(0)
    # Terms are summed in order: zeros at a row's end, which longer rows need, change nothing.
    derivative = np.add.accumulate(n * a * a, axis=0)[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(variance > 0, derivative / variance, 0.0)
        tables = np.where(new > 0, a / np.sqrt(new), 0.0)
    return Step(Op(Code.SERIES, n=len(a)), new, slope, tables)


def _sampled(form: Sampled, variance: Array, tolerance: float, n_threads: int) -> Step:
    """Return the step of any function, from its interpolants."""
    made = cells.interpolant(form, tolerance)
    sd = np.sqrt(variance)
    found = made(sd, n_threads)
    doubt = accuracy.doubt(form.fn, variance, found.error)
    op = _series_op(found.coefficients, made.each, made.parity)
    return Step(op, found.sd * found.sd, found.slope, found.coefficients, doubt)


def _series_op(tables: Array, each: int, parity: int) -> Op:
    """Return the sum of a series; ``each`` is that of ``ladder``, or 0 for all orders."""
    return Op(Code.SERIES, n=len(tables), a=float(each > 0), b=float(parity))


def _coefficients(form: Expansion, sd: Array) -> Array:
    """Return the Hermite coefficients of a polynomial, (count, rows)."""
    expand = hermite.of_hermites if form.hermite else hermite.of_powers
    with np.errstate(over="ignore", invalid="ignore"):
        return expand(form.coefficients, sd)


def _each(form: Sampled) -> int:
    """Return the ``each`` of ``ladder`` in double precision, or 0 for a series of all orders."""
    return ladder.EACH if cells.laddered(form) else 0


def hermite_shares(form: Expansion, variance: float) -> Array:
    """Return the share of each Hermite polynomial in ``E[phi^2]``."""
    tables = step(form, np.array([variance]), FULL, 1).tables
    assert tables is not None
    return tables[:, 0] ** 2


def dual_error(form: Sampled, variance: Array, n_threads: int) -> Array:
    """Estimate the relative errors of a numerical dual and of its derivative's, (2, rows)."""
    sd, parity = np.sqrt(variance), cells.parity(form)
    return cells.quadrature(form.fn, _each(form), sd, n_threads, parity=parity)[2]


# ---- duals of pairs


def dual(form: Form, v1: Array, v2: Array, cov: Array, n_threads: int) -> tuple[Array, Array]:
    """Return ``E[phi phi]`` and ``E[phi' phi']`` for flat arrays of variances and covariances."""
    match form:
        case Homogeneous(op, degree, gain):
            none = np.empty((0, len(v1)))
            u, t = _single(op, none, none, v1, v2, cov)
            s1, s2 = np.sqrt(v1), np.sqrt(v2)
            u, t = gain * u, gain * t
            with np.errstate(over="ignore", under="ignore"):
                if degree == 0:
                    return u, np.zeros_like(u)
                # The correlation comes first: a zero stays zero whatever overflows later.
                power = degree - 1
                return u * s1**degree * s2**degree, t * s1**power * s2**power
        case Closed(op):
            return _closed(op, v1, v2, cov)
        case Unchanged() | Expansion((_, 1.0), hermite=False):
            most = np.sqrt(v1) * np.sqrt(v2)
            shift = 0.0 if isinstance(form, Unchanged) else form.coefficients[0]
            return np.clip(cov, -most, most) + shift**2, np.ones_like(cov)
    assert isinstance(form, Series)
    value, slope = _sum(form, v1, v2, cov, n_threads)
    null = (v1 == 0) | (v2 == 0)
    if null.any():
        # E[phi' phi'] is a limit there, taken where quadrature still resolves it.
        least = 1e-10
        w1, w2 = np.where(v1 == 0, least, v1)[null], np.where(v2 == 0, least, v2)[null]
        both = (v1 == 0)[null] & (v2 == 0)[null]
        slope[null] = _sum(form, w1, w2, np.where(both, least, cov[null]), n_threads)[1]
    return value, slope


def _closed(op: Op, v1: Array, v2: Array, cov: Array) -> tuple[Array, Array]:
    op = kinks.lowered(op, False, _closed)
    none = np.ones_like(v1)  # raw results are not divided by anything
    x = y = np.stack([np.sqrt(v1), none, none, *_own_tables(op, v1)])
    if v2 is not v1:
        y = np.stack([np.sqrt(v2), none, none, *_own_tables(op, v2)])
    return _single(op, x, y, v1, v2, cov)


def _sum(form: Series, v1: Array, v2: Array, cov: Array, n_threads: int) -> tuple[Array, Array]:
    variance = np.concatenate([v1, v2])
    sd, each, parity = np.sqrt(variance), 0, ladder.NEITHER
    if isinstance(form, Sampled):
        each, parity = _each(form), cells.parity(form)
        a, _, error = cells.quadrature(form.fn, each, sd, n_threads, parity=parity)
        doubt = accuracy.doubt(form.fn, variance, error)
        if doubt is not None:
            accuracy.tell([doubt], tangent=True)
    else:
        a = _coefficients(form, sd)
    # Divided by its largest coefficient a row neither overflows nor underflows.
    size = np.maximum(np.abs(a).max(0), np.finfo(float).tiny)
    a = ladder.packed(a / size, parity)
    x, y = np.ascontiguousarray(a[:, : len(v1)]), np.ascontiguousarray(a[:, len(v1) :])
    value, slope = _single(_series_op(a, each, parity), x, y, v1, v2, cov)
    p, q = size[: len(v1)], size[len(v1) :]
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        return value * p * q, slope * (p / np.sqrt(v1)) * (q / np.sqrt(v2))


def _single(
    op: Op, x_tables: Array, y_tables: Array, a: Array, c: Array, k: Array
) -> tuple[Array, Array]:
    """Run one operation on flat arrays; return both outputs of the driver, not normalised."""
    u, delta = _correlations(a, c, k)
    t = np.zeros_like(u)
    record = np.array([(int(op.code), op.n, 0, 0, op.a, op.b, op.c, 0.0)], OP)
    coefficients = np.array(op.coefficients, np.float64)
    x = padded(x_tables)
    y = x if y_tables is x_tables else padded(y_tables)
    dispatch.driver("dense").pairs(
        calls.Program(record.view(np.uint8), coefficients), (x, y), (u, delta, t),
        np.empty((1, 0)), raw=True,
    )  # fmt: skip
    return u[: len(a)], t[: len(a)]


def _correlations(a: Array, c: Array, k: Array) -> tuple[Array, Array]:
    """Return u and 1 - |u|, padded, u the correlation, for flat variances and covariances."""
    if a is c and a is k:  # variances: correlations with itself
        one = padded(np.ones_like(a))
        return one, np.zeros_like(one)
    # Powers of two bring every product into range without rounding.
    i, j = np.frexp(a)[1] // 2, np.frexp(c)[1] // 2
    a, c, k = np.ldexp(a, -2 * i), np.ldexp(c, -2 * j), np.ldexp(np.ldexp(k, -i), -j)
    a, c, k = padded(a), padded(c), padded(k)
    u, delta = np.empty_like(a), np.empty_like(a)
    dispatch.driver("dense").correlate(a, c, k, u, delta)
    return u, delta


def padded(x: Array) -> Array:
    """Return a copy whose length is a multiple of STRIP, padded with zeros."""
    n = -(-x.shape[-1] // STRIP) * STRIP
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])
