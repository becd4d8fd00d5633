"""Print ``ext/include/kernelcore/coefficients.h``.

Each function is interpolated at Chebyshev points in 60 digits and rounded once. The degrees are
the smallest whose relative error, printed with each polynomial, is below a quarter of the unit
roundoff of its type (a half for the single-precision arccosine, where one more term buys nothing:
the last operations round more than that).
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np

mp.mp.dps = 70


def interpolate(f: Callable, a: mp.mpf, b: mp.mpf, degree: int) -> list[mp.mpf]:
    """Coefficients, lowest first, of the polynomial through ``degree + 1`` Chebyshev points."""
    n = degree + 1
    angles = [mp.pi * (2 * k + 1) / (2 * n) for k in range(n)]
    nodes = [(a + b) / 2 + (b - a) / 2 * mp.cos(t) for t in angles]
    vandermonde = mp.matrix(n, n)
    for i, x in enumerate(nodes):
        for j in range(n):
            vandermonde[i, j] = x**j
    return list(mp.lu_solve(vandermonde, mp.matrix([f(x) for x in nodes])))


def arccos_ratio(delta):
    return mp.sqrt(2) / mp.pi if delta == 0 else mp.acos(1 - delta) / (mp.pi * mp.sqrt(delta))


def kappa1_ratio(delta):
    if delta == 0:
        return 2 * mp.sqrt(2) / (3 * mp.pi)
    theta = mp.acos(1 - delta)
    return (mp.sin(theta) - theta * mp.cos(theta)) / (mp.pi * delta * mp.sqrt(delta))


def rectified(n, delta):
    """g_n of rectified_power.h over sqrt(delta) delta^n, by its series in z = delta/2."""
    c = mp.gamma(n + 1) ** 2 / (mp.gamma(n + mp.mpf(3) / 2) * mp.gamma(n + mp.mpf(1) / 2))
    half = mp.mpf(1) / 2
    return c * half ** (n + half) * mp.hyp2f1(half, half, n + 3 * half, delta / 2)


def sinh_ratio(x):
    return mp.mpf(1) if x == 0 else mp.sinh(mp.sqrt(x)) / mp.sqrt(x)


def arcsin_ratio(z):
    return mp.mpf(1) if z == 0 else mp.asin(mp.sqrt(z)) / mp.sqrt(z)


def arctan_ratio(x):
    return mp.mpf(2) if x == 0 else 2 * mp.atan(mp.sqrt(x)) / mp.sqrt(x)


def exp_tail(r):
    return mp.hyp1f1(1, 3, r) / 2


def sine_tail(x):
    r = mp.sqrt(x)
    return -mp.mpf(1) / 6 if x == 0 else (mp.sin(r) / r - 1) / x


def cosine_tail(x):
    return mp.mpf(1) / 24 if x == 0 else (mp.cos(mp.sqrt(x)) - 1 + x / 2) / x**2


HALF_LOG2 = mp.log(2) / 2
QUARTER_PI2 = mp.pi**2 / 4
TABLE = [
    ("arccos_ratio", "arccos(1 - x) / (pi sqrt x) on [0, 1]", arccos_ratio, 0, 1, 7, 18),
    (
        "kappa1_ratio",
        "(sin t - t cos t) / (pi x sqrt x), cos t = 1 - x, on [0, 1]",
        kappa1_ratio,
        0,
        1,
        6,
        16,
    ),
    (
        "kappa2_ratio",
        "the far side of max(0, x)^2 over x^(5/2) on [0, 1] (rectified_power.h)",
        lambda x: rectified(2, x),
        0,
        1,
        5,
        15,
    ),
    (
        "kappa3_ratio",
        "the far side of max(0, x)^3 over x^(7/2) on [0, 1]",
        lambda x: rectified(3, x),
        0,
        1,
        5,
        14,
    ),
    (
        "artanh_ratio",
        "2 artanh(r)/r, x = r^2, r up to (sqrt 2 - 1)/(sqrt 2 + 1)",
        lambda x: mp.mpf(2) if x == 0 else 2 * mp.atanh(mp.sqrt(x)) / mp.sqrt(x),
        0,
        ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2,
        3,
        8,
    ),
    ("sinh_ratio", "sinh(r)/r, x = r^2, on [0, 9]", sinh_ratio, 0, 9, 5, 10),
    ("cosh_even", "cosh r, x = r^2, on [0, 9]", lambda x: mp.cosh(mp.sqrt(x)), 0, 9, 6, 10),
    ("arcsin_ratio", "arcsin(sqrt x) / sqrt x on [0, 1/4]", arcsin_ratio, 0, mp.mpf("0.25"), 5, 12),
    ("arctan_ratio", "2 arctan(r)/r, x = r^2, on [0, 1]", arctan_ratio, 0, 1, 8, 19),
    (
        "exp_tail",
        "(e^x - 1 - x) / x^2 on [-log(2)/2, log(2)/2]",
        exp_tail,
        -HALF_LOG2,
        HALF_LOG2,
        4,
        10,
    ),
    ("sine_tail", "(sin(r)/r - 1) / x, x = r^2, on [0, pi^2/4]", sine_tail, 0, QUARTER_PI2, 4, 7),
    (
        "cosine_tail",
        "(cos r - 1 + x/2) / x^2, x = r^2, on [0, pi^2/4]",
        cosine_tail,
        0,
        QUARTER_PI2,
        3,
        7,
    ),
]

HEAD = """\
// Polynomial approximations. Written by ext/coefficients.py, which states how; do not edit.
#pragma once

#include "lanes.h"

namespace kc {
"""


def shared(degrees: tuple[int, int, int]) -> tuple[list, list, list]:
    """N, M, D with N/D = arccos_ratio and M/D = kappa1_ratio at Chebyshev points, D(0) = 1."""
    n, m, d = degrees
    rows, right = [], []
    for f, degree, first, extra in (
        (arccos_ratio, n, 0, d // 2),
        (kappa1_ratio, m, n + 1, d - d // 2),
    ):
        count = degree + 1 + extra
        for k in range(count):
            x = (1 + mp.cos(mp.pi * (2 * k + 1) / (2 * count))) / 2
            row = [mp.mpf(0)] * (n + m + 2 + d)
            row[first : first + degree + 1] = [x**j for j in range(degree + 1)]
            row[n + m + 2 :] = [-f(x) * x ** (j + 1) for j in range(d)]
            rows.append(row)
            right.append(f(x))
    c = list(mp.lu_solve(mp.matrix(rows), mp.matrix(right)))
    return c[: n + 1], c[n + 1 : n + m + 2], [mp.mpf(1), *c[n + m + 2 :]]


def worst(value: Callable, f: Callable) -> str:
    grid = [mp.mpf(k) / 500 for k in range(501)]
    return mp.nstr(max(abs(value(x) / f(x) - 1) for x in grid), 2)


def emit_both() -> None:
    """Print both ratios over one denominator: fewer operations, where a division is cheap."""
    p, q = interpolate(arccos_ratio, 0, 1, 6), interpolate(kappa1_ratio, 0, 1, 5)
    n, m, d = shared((8, 7, 6))
    errors = [
        worst(lambda x: mp.polyval(p[::-1], x), arccos_ratio),
        worst(lambda x: mp.polyval(q[::-1], x), kappa1_ratio),
        worst(lambda x: mp.polyval(n[::-1], x) / mp.polyval(d[::-1], x), arccos_ratio),
        worst(lambda x: mp.polyval(m[::-1], x) / mp.polyval(d[::-1], x), kappa1_ratio),
    ]

    def call(c: list, digits: int, suffix: str) -> str:
        return "horner(x, " + ", ".join(mp.nstr(v, digits) + suffix for v in c) + ")"

    print(f"""
// arccos_ratio = arccos / below and kappa1_ratio = kappa1 / below on [0, 1], at their cheapest.
// float: below = 1, errors {errors[0]}, {errors[1]}; double: errors {errors[2]}, {errors[3]}
template <class V>
struct ratios {{
    V arccos, kappa1, below;
}};
template <class V>
KC_HD ratios<V> short_ratios(V x) {{
    if constexpr (is_single<V>)
        return {{{call(p, 10, "f")}, {call(q, 10, "f")}, V(1)}};
    else
        return {{{call(n, 19, "")}, {call(m, 19, "")}, {call(d, 19, "")}}};
}}""")


def acute(degrees: tuple[int, int, int]) -> tuple[list, list, list, mp.mpf]:
    """N, M, D with N/D = arccos_ratio, M/D = kappa1_ratio for u >= 0, and the error they leave.

    The error is that of kappa0 = 1 - sqrt(x) N/D and of kappa1 = 1 - x + x sqrt(x) M/D, relative to
    each, at its smallest largest: least squares whose weights follow the error (Lawson 1961).
    """
    n, m, d = degrees
    nodes = [(1 - mp.cos(mp.pi * (k + mp.mpf(1) / 2) / 48)) / 2 for k in range(48)]
    points = []  # x, value, what an error of the value counts, first and number of its numerator
    for x in nodes:
        root, p, q = mp.sqrt(x), arccos_ratio(x), kappa1_ratio(x)
        points.append((x, p, root / (1 - root * p), 0, n + 1))
        points.append((x, q, x * root / (1 - x + x * root * q), n + 1, m + 1))
    weights, below = [mp.mpf(1)] * len(points), [mp.mpf(1)] * len(points)
    best = None
    for _ in range(12):
        rows, right = [], []
        for (x, f, count, first, terms), w, b in zip(points, weights, below, strict=True):
            scale = mp.sqrt(w) * count / b
            row = [mp.mpf(0)] * (n + m + 2 + d)
            row[first : first + terms] = [scale * x**j for j in range(terms)]
            row[n + m + 2 :] = [-scale * f * x ** (j + 1) for j in range(d)]
            rows.append(row)
            right.append(scale * f)
        c = list(mp.lu_solve(mp.matrix(rows), mp.matrix(right)))
        bottom = [mp.mpf(1), *c[n + m + 2 :]]
        below = [mp.polyval(bottom[::-1], x) for x, *_ in points]
        errors = [
            abs(mp.polyval(c[first : first + terms][::-1], x) / b - f) * count
            for (x, f, count, first, terms), b in zip(points, below, strict=True)
        ]
        if best is None or max(errors) < best[3]:
            best = (c[: n + 1], c[n + 1 : n + m + 2], bottom, max(errors))
        total = sum(w * e for w, e in zip(weights, errors, strict=True))
        weights = [w * e / total for w, e in zip(weights, errors, strict=True)]
    return best


def emit_acute() -> None:
    single, double = acute((6, 5, 0)), acute((6, 6, 6))

    def call(c: list, digits: int, suffix: str) -> str:
        return "horner(x, " + ", ".join(mp.nstr(v, digits) + suffix for v in c) + ")"

    p, q = (call(c, 10, "f") for c in single[:2])
    three = ", ".join(call(c, 19, "") for c in double[:3])
    print(f"""
// The same for u >= 0, where errors count relative to kappa0 >= 1/2 and kappa1 >= 1/pi.
// float: {mp.nstr(single[3], 2)}; double: {mp.nstr(double[3], 2)}
template <class V>
KC_HD ratios<V> acute_ratios(V x) {{
    if constexpr (is_single<V>)
        return {{{p}, {q}, V(1)}};
    else
        return {{{three}}};
}}""")


def emit(name: str, claim: str, f: Callable, a, b, *degrees: int) -> None:
    a, b = mp.mpf(a), mp.mpf(b)
    print(f"\n// {claim}", end="")
    bodies = []
    for kind, degree, digits, suffix in (
        ("float", degrees[0], 10, "f"),
        ("double", degrees[1], 19, ""),
    ):
        c = interpolate(f, a, b, degree)
        grid = [a + (b - a) * k / 500 for k in range(501)]
        error = max(abs(mp.polyval(c[::-1], x) / f(x) - 1) for x in grid)
        print(f"; {kind}: degree {degree}, error {mp.nstr(error, 2)}", end="")
        bodies.append(", ".join(mp.nstr(v, digits) + suffix for v in c))
    print(
        f"\ntemplate <class V>\nKC_HD V {name}(V x) {{\n"
        f"    if constexpr (is_single<V>)\n        return horner(x, {bodies[0]});\n"
        f"    else\n        return horner(x, {bodies[1]});\n}}"
    )


def emit_sector() -> None:
    """Print ``int_0^1 e^(-z x^2/2) / (1 + b x^2) dx / (2 pi)`` for normal.h, by least squares.

    The denominator is that of the rule of Gauss and Legendre with 4 nodes; powers z^i b^j with
    i/8 + j/6 <= 1.
    """
    nodes, weights = np.polynomial.legendre.leggauss(60)
    squares, weights = ((nodes + 1) / 2) ** 2, weights / (4 * np.pi)
    poles = ((np.polynomial.legendre.leggauss(4)[0] + 1) / 2) ** 2
    unit = (1 + np.cos(np.pi * (np.arange(40) + 0.5) / 40)) / 2
    z, b = (g.ravel() for g in np.meshgrid(4 * unit, unit, indexing="ij"))
    want = (weights * np.exp(-np.outer(z, squares) / 2) / (1 + np.outer(b, squares))).sum(1)
    below = np.prod(1 + np.outer(b, poles), 1)
    degrees = [int(8 * (1 - j / 6) + 1e-9) for j in range(7)]
    chebyshev = np.polynomial.chebyshev
    place = [(i, j) for j in range(7) for i in range(degrees[j] + 1)]
    vz, vb = chebyshev.chebvander(z / 2 - 1, 8), chebyshev.chebvander(2 * b - 1, 6)
    basis = np.stack([vz[:, i] * vb[:, j] / below for i, j in place], 1)
    found = np.linalg.lstsq(basis, want, rcond=None)[0]
    error = np.abs((basis @ found - want) * np.sqrt(b)).max()
    c = np.zeros((9, 7))
    for (i, j), value in zip(place, found, strict=True):
        c[i, j] = value

    def powers(series: np.ndarray, middle: float) -> np.ndarray:
        p = np.polynomial.Polynomial(chebyshev.cheb2poly(series))
        return p(np.polynomial.Polynomial([-1.0, middle])).coef

    c = np.stack([np.pad(p := powers(col, 0.5), (0, 9 - len(p))) for col in c.T], 1)
    c = np.stack([np.pad(p := powers(row, 2.0), (0, 7 - len(p))) for row in c])

    def call(x: str, values: np.ndarray) -> str:
        return f"horner({x}, " + ", ".join(mp.nstr(mp.mpf(v), 10) + "f" for v in values) + ")"

    rows = [call("z", c[: degrees[j] + 1, j]) for j in range(7)]
    bottom = np.polynomial.polynomial.polyfromroots(-1 / poles) * np.prod(poles)
    lines = [f"    V sum = {rows[-1]};"]
    lines += [f"    sum = fma(sum, b, {row});" for row in rows[-2::-1]]
    print(f"""
// int_0^1 e^(-z x^2/2) / (1 + b x^2) dx / (2 pi) for z in [0, 4], b in [0, 1], for float only;
// error {error:.1e}
template <class V>
KC_HD V sector_ratio(V z, V b) {{""")
    print("\n".join(lines))
    print(f"    return sum / {call('b', bottom)};\n}}")


NEAR = 3  # NEAR_SQUARE of kinks.py


def near_angle(delta):
    theta = mp.acos(1 - delta)
    return (theta / mp.sin(theta) if delta else mp.mpf(1)) / mp.pi


def near_line(z):
    g = mp.sqrt(NEAR - z)
    return (mp.erf(g / mp.sqrt(2)) / (2 * g) if g else mp.npdf(0)) * mp.npdf(0)


def near_density(z):
    return mp.exp((z - NEAR) / 2) / (2 * mp.pi)


def emit_near() -> None:
    """Print what ramp.h computes of corners near the origin, in float, as two chains each."""
    print("\n// For ramp.h, in float only: r^2 up to near_square.")
    print(f"constexpr int near_square = {NEAR};")
    for name, claim, f, top, degree in (
        ("near_angle", "arccos(1 - x) / (pi sqrt(1 - (1 - x)^2)) on [0, 1]", near_angle, 1, 9),
        ("near_line", "(1/2 - Q(g)) / (g sqrt(2 pi)), g^2 = near_square - x", near_line, NEAR, 6),
        ("near_density", "e^(-r^2/2) / (2 pi), r^2 = near_square - x", near_density, NEAR, 7),
    ):
        c = interpolate(f, mp.mpf(0), mp.mpf(top), degree)
        grid = [mp.mpf(top) * k / 500 for k in range(501)]
        error = max(abs(mp.polyval(c[::-1], x) / f(x) - 1) for x in grid)
        body = ", ".join(mp.nstr(v, 10) + "f" for v in c)
        print(
            f"\n// {claim}; degree {degree}, error {mp.nstr(error, 2)}\ntemplate <class V>\n"
            f"KC_HD V {name}(V x) {{\n    return horner_twice(x, {body});\n}}"
        )


if __name__ == "__main__":
    print(HEAD, end="")
    for row in TABLE:
        emit(*row)
    emit_both()
    emit_acute()
    emit_sector()
    emit_near()
    print("\n}  // namespace kc")
