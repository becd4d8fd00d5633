"""Classical kernels from their definitions, entry by entry, in mpmath.

Each function returns f(a, b) for rows a, b given as lists of mpf; ``entries`` makes the matrix.
"""

import mpmath as mp
import numpy as np

from . import duals


def entries(f, x, y):
    """f(row of x, row of y) for all pairs; rows are lists of the exact mpf the numbers are."""
    exact = [[[mp.mpf(float(v)) for v in row] for row in a] for a in (x, y)]
    return np.array([[f(a, b) for b in exact[1]] for a in exact[0]], dtype=object).reshape(
        len(x), len(y)
    )


def squared(a, b):
    return mp.fsum((p - q) ** 2 for p, q in zip(a, b, strict=True))


def inner(a, b):
    return mp.fsum(p * q for p, q in zip(a, b, strict=True))


def gaussian(lengthscale):
    return lambda a, b: mp.exp(-squared(a, b) / (2 * mp.mpf(lengthscale) ** 2))


def laplacian(lengthscale, norm=2):
    def value(a, b):
        if norm == 1:
            distance = mp.fsum(abs(p - q) for p, q in zip(a, b, strict=True))
        else:
            distance = mp.sqrt(squared(a, b))
        return mp.exp(-distance / mp.mpf(lengthscale))

    return value


def cauchy(lengthscale):
    return lambda a, b: mp.fprod(
        1 / (1 + ((p - q) / mp.mpf(lengthscale)) ** 2) for p, q in zip(a, b, strict=True)
    )


def matern(nu, lengthscale):
    """Rasmussen and Williams (4.14), with the Bessel function also where a finite sum exists."""
    nu = mp.mpf(nu)

    def value(a, b):
        r = mp.sqrt(2 * nu * squared(a, b)) / mp.mpf(lengthscale)
        return 2 ** (1 - nu) / mp.gamma(nu) * r**nu * mp.besselk(nu, r) if r else mp.mpf(1)

    return value


def polynomial(degree, scale=1.0, offset=1.0):
    return lambda a, b: (mp.mpf(scale) * inner(a, b) + mp.mpf(offset)) ** degree


def arc_cosine(order):
    """Cho and Saul (2009): |a|^n |b|^n J_n(theta) / pi, which is 2 E[max(0, x)^n max(0, y)^n]."""

    def value(a, b):
        with mp.workdps(duals.GUARD):
            return 2 * duals.orthant(order, inner(a, a), inner(b, b), inner(a, b))

    return value


def arc_cosine_integral(order):
    """The same by their integral for J_n, where the angle is not small:

    J_n = n! sin^(2n+1)(theta) int_0^(pi/2) cos^n(phi) / (1 - cos(theta) cos(phi))^(n+1) dphi.
    """

    def value(a, b):
        p, q = mp.sqrt(inner(a, a)), mp.sqrt(inner(b, b))
        cosine = inner(a, b) / (p * q)
        integral = mp.quad(
            lambda phi: mp.cos(phi) ** order / (1 - cosine * mp.cos(phi)) ** (order + 1),
            [0, mp.pi / 8, mp.pi / 4, mp.pi / 2],
        )
        angular = mp.factorial(order) * mp.sqrt(1 - cosine**2) ** (2 * order + 1) * integral
        return (p * q) ** order * angular / mp.pi

    return value
