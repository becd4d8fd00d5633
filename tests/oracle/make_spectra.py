"""Write spectra.npz, eigenvalues on spheres: ``python -m oracle.make_spectra`` in tests/.

The kernel f(x . y) on the unit sphere of R^p with the uniform probability measure has

    mu_k = Gamma(p/2) / (sqrt(pi) Gamma((p-1)/2)) int_0^pi f(cos a) P_k(cos a) sin(a)^(p-2) da,

P_k the Legendre polynomial in p dimensions, P_k(1) = 1. Two ways lead there, and share only the
definitions of the kernels:

- Points: a kernel with a kink at t = 1 is analytic in the angle on [0, pi]. A double exponential
  substitution makes the ends vanish, and the trapezoidal rule converges exponentially at every p.
- Series: f = sum_n a_n t^n has a_n >= 0 only, and t^n has an explicit mu_k >= 0, so nothing
  cancels however small mu_k is. Kernels analytic beyond |t| = 1 take this way, the others where p
  is so large that the sum is short.

Every value is found twice, by other nodes and precision or by the other way, and by a closed form
where there is one; the table is written when all agree to AGREE. With gmpy2 this takes ten minutes.
"""

import numpy as np
from mpmath import mp

from . import duals
from .spectra import TABLE

DEGREES = (*range(11), 13, 17, 20, 31, 40, 50, 75, 76, 100, 150, 151, 200, 250, 299, 300)
GRIDS = (  # dimensions, digits (those of 1 / mu and 30 more), step
    ((2, 3, 4, 5, 8, 10, 20), 210, 2.5e-3),
    ((50, 100, 300), 310, 2e-3),
    ((1000, 3000), 560, 8e-4),
)
TERMS, SERIES_DIGITS = 1000, 80
AGREE = mp.mpf("1e-25")
SHIFT = mp.mpf(0.5)  # of relu_shift
# Even (0) or odd (1) degrees that vanish from some degree on: f is a polynomial of smaller degree
# and of that parity, plus a function of the other parity, since kappa_n(t) -+ kappa_n(-t) = t^n
# (n = 0, 1), and likewise 1 + 2 t^2 for arccos2. Erf is odd, and so are its kernels.
ZEROS = {
    "kappa0": (0, 2), "kappa1": (1, 3), "ntk1": (1, 3), "arccos2": (0, 4),
    "erf1": (0, 0), "erf2": (0, 0), "erfntk1": (0, 0),
}  # fmt: skip


def each(function):
    return np.frompyfunc(function, 1, 1)


def vanishes(name, k):
    parity, start = ZEROS.get(name, (0, np.inf))
    return k >= start and k % 2 == parity


# ---- the kernels, of t as Points or as Series


def kernels(space):
    """The kernels by name; space has t, and functions of what can be made of it."""
    t = nngp = ntk = space.t
    table = {}
    for depth in range(1, 6):
        k0, nngp = space.kappas(nngp)
        ntk = ntk * k0 + nngp
        if depth == 1:
            table |= {"kappa0": k0, "kappa1": nngp, "arccos2": t * nngp * 3 + k0 * (1 - t * t)}
        else:
            table[f"nngp{depth}"] = nngp
        table[f"ntk{depth}"] = ntk

    bias = mp.mpf(1) / 100
    q, k, ntk = mp.mpf(1), t, t * 0
    for weight in (1, 2):
        q, k = weight * q + bias, k * weight + bias
        ntk = k + ntk * weight
        k0, k1 = space.kappas(k / q)
        q, k, ntk = q / 2, k1 * (q / 2), ntk * k0 / 2
    table["bias2"] = k * 2 + bias + ntk * 2

    q = 2 / mp.pi * mp.asin(mp.mpf(2) / 3)
    table["erf1"] = erf = space.asin(t * 2 / 3) * (2 / mp.pi)
    table["erf2"] = space.asin(erf * (2 / (1 + 2 * q))) * (2 / mp.pi)
    table["erfntk1"] = erf + t * (4 / mp.pi) * space.power(9 - t * t * 4, -0.5)
    table["exp1"] = space.exp(t - 1)
    table["exp2"] = space.exp(t * 4 - 4)
    table["laplace"] = space.exp(space.power(2 - t * 2, 0.5) * -1)
    return table


class Points:
    """Values at the nodes (i + offset) step in x, the angle being pi / (1 + exp(-pi sinh x))."""

    def __init__(self, least_dim, step, offset):
        least = mp.mpf(10) ** -mp.dps
        reach = int(mp.asinh(mp.dps) / step)
        x = (np.arange(-reach, reach + 1) + mp.mpf(offset)) * mp.mpf(step)
        growth = each(mp.exp)(mp.pi * each(mp.sinh)(x))
        angle, rest = mp.pi * growth / (1 + growth), mp.pi / (1 + growth)
        sine = each(mp.sin)(np.minimum(angle, rest))
        weight = step * angle * rest * each(mp.cosh)(x)
        keep = weight * sine ** (least_dim - 2) > least
        self.angle, self.rest, self.sine, self.weight = (
            a[keep] for a in (angle, rest, sine, weight)
        )
        self.t = each(mp.cos)(self.angle)

    def kappas(self, u):
        u = np.clip(u, -1, 1)
        k0 = 1 - each(mp.acos)(u) / mp.pi
        return k0, u * k0 + each(mp.sqrt)(1 - u * u) / mp.pi

    asin = staticmethod(each(mp.asin))
    exp = staticmethod(each(mp.exp))

    def power(self, u, a):
        return each(lambda x: mp.power(max(x, 0), a))(u)

    def spectrum(self, values, p, degrees):
        """mu_k of each kernel in values, {(name, k): mu}."""
        factor = mp.gamma(mp.mpf(p) / 2) / (mp.sqrt(mp.pi) * mp.gamma(mp.mpf(p - 1) / 2))
        weight = factor * self.weight * self.sine ** (p - 2)
        keep = weight > mp.mpf(10) ** -mp.dps
        weight, t = weight[keep], self.t[keep]
        values = {name: v[keep] for name, v in values.items()}
        table, last, here = {}, 0 * t, 1 + 0 * t
        for k in range(max(degrees) + 1):
            if k in degrees:
                terms = weight * here
                table |= {(name, k): mp.fdot(terms, v) for name, v in values.items()}
            scale = max(k + p - 2, 1)  # P_1 = t P_0 at p = 2 as well
            last, here = here, ((scale + k) * t * here - k * last) / scale
        return table


class Series:
    """Power series in t, of TERMS terms."""

    def __init__(self, c):
        self.c = np.array(c)

    @property
    def t(self):
        return Series([mp.mpf(n == 1) for n in range(TERMS)])

    def __add__(self, other):
        if isinstance(other, Series):
            return Series(self.c + other.c)
        return Series([self.c[0] + other, *self.c[1:]])

    def __mul__(self, other):
        if isinstance(other, Series):
            return Series([mp.fdot(self.c[: n + 1], other.c[n::-1]) for n in range(TERMS)])
        return Series(self.c * other)

    def __truediv__(self, number):
        return Series(self.c / number)

    def __sub__(self, number):
        return self + -number

    def __rsub__(self, number):
        return self * -1 + number

    def solve(self, start, factor):
        """The series r with n r_n = sum_{j>0} factor(n, j) c_j r_(n-j), and r_0 = start."""
        r = [start]
        for n in range(1, TERMS):
            r.append(mp.fdot((factor(n, j) * self.c[j], r[n - j]) for j in range(1, n + 1)) / n)
        return Series(r)

    def exp(self, u):
        return u.solve(mp.exp(u.c[0]), lambda n, j: j)

    def power(self, u, a):
        return (u / u.c[0]).solve(mp.power(u.c[0], a), lambda n, j: (a + 1) * j - n)

    def integral(self, u, start):
        """Of self with respect to u."""
        du = Series([*(u.c * np.arange(TERMS))[1:], mp.mpf(0)])
        return Series([start, *(self * du).c[:-1] / np.arange(1, TERMS)])

    def asin(self, u):
        return self.power(1 - u * u, -0.5).integral(u, mp.asin(u.c[0]))

    def kappas(self, u):
        at = u.c[0]
        k0 = self.asin(u) / mp.pi + mp.mpf(1) / 2
        return k0, k0.integral(u, at * k0.c[0] + mp.sqrt(1 - at * at) / mp.pi)

    def mu(self, p, k):
        """t^n has mu_k = n! Gamma(p/2) / (2^n ((n-k)/2)! Gamma((n+k+p)/2)); nan if too slow."""
        terms, half = [], mp.mpf(p) / 2
        factor = mp.factorial(k) * mp.gamma(half) / (mp.gamma(k + half) * 2**k)
        for n in range(k, TERMS, 2):
            terms.append(factor * self.c[n])
            factor *= mp.mpf((n + 1) * (n + 2)) / ((n - k + 2) * (n + k + p))
        total = mp.fsum(terms)
        return total if terms[-1] * TERMS < AGREE * total / 100 else mp.nan


# ---- the eigenvalues


def shifted_relu(points, p):
    """E[relu(x + b) relu(y + b)] from f'', a density: f' has p mu_(k+1) at degree k in p + 2."""
    density = points.exp(-(SHIFT**2) / 2 / each(mp.sin)(points.rest / 2) ** 2) / (2 * mp.pi)
    degrees = [k - 2 for k in DEGREES if k >= 2]
    table = points.spectrum({"": density / points.sine}, p + 4, degrees)
    return {("relu_shift", k + 2): mu / (p * (p + 2)) for (_, k), mu in table.items()}


def shifted_relu_itself(points):
    """Values f(0) + f'(0) t + int_0^t (t - u) f''(u) du, for degrees that f'' does not know."""
    below = mp.ncdf(SHIFT)
    values = (SHIFT * below + mp.npdf(SHIFT)) ** 2 + below**2 * points.t
    half = (mp.pi / 2 - points.angle) / 2
    for node, weight in duals._gauss_legendre(150):
        u = each(mp.cos)(mp.pi / 2 - half * (1 + node))
        density = points.exp(-(SHIFT**2) / (1 + u)) / (2 * mp.pi)
        values += weight * half * (points.t - u) * density
    return values


def by_points(dims, digits, step, offset):
    table = {}
    with mp.workdps(digits):
        points = Points(dims[0], step, offset)
        values = kernels(points)
        for p in dims:
            spectrum = points.spectrum(values, p, DEGREES) | shifted_relu(points, p)
            table |= {(name, p, k): mu for (name, k), mu in spectrum.items()}
    with mp.workdps(40):
        points = Points(dims[0], 2 * step, offset)
        values = {"relu_shift": shifted_relu_itself(points)}
        for p in dims:
            for (name, k), mu in points.spectrum(values, p, range(4)).items():
                key = name, p, k
                table[key] = agree(key, table[key], mu) if k >= 2 else mu
    return table


def by_series():
    with mp.workdps(SERIES_DIGITS):
        return {
            (name, p, k): series.mu(p, k)
            for name, series in kernels(Series([])).items()
            for dims, _, _ in GRIDS
            for p in dims
            for k in DEGREES
        }


def homogeneous(n, p, k):
    """Order n of Cho and Saul, k - n odd: 2 E|w|^2n lambda^2, lambda that of max(0, t)^n."""
    if k <= n or (k - n) % 2 == 0:
        return mp.mpf(0)
    half = mp.mpf(1) / 2
    root = mp.gamma(half * p) / mp.sqrt(mp.pi) * mp.factorial(n) * mp.gamma(k - n) / 2**k
    root /= mp.gamma(half * (k - n + 1)) * mp.gamma(half * (k + p + n))
    return 2 * mp.fprod(p + 2 * j for j in range(n)) * root**2


def closed(name, p, k):
    if name in (orders := {"kappa0": 0, "kappa1": 1, "arccos2": 2}) and k > orders[name]:
        return homogeneous(orders[name], p, k)
    if name == "ntk1" and k >= 2:  # kappa1 + t kappa0
        low, high = homogeneous(0, p, k - 1), homogeneous(0, p, k + 1)
        return homogeneous(1, p, k) + (k * low + (k + p - 2) * high) / (2 * k + p - 2)
    if name in (rates := {"exp1": mp.mpf(1), "exp2": mp.mpf(4)}):
        c, order = rates[name], mp.mpf(p) / 2 - 1
        bessel = mp.besseli(k + order, c)
        return mp.exp(-c) * mp.gamma(order + 1) * (2 / c) ** order * bessel
    return mp.nan


# ---- the table


def agree(key, *values):
    """The first of the values that are known; there have to be others, and all equal."""
    first, *others = (v for v in values if not mp.isnan(v))
    if not others or first <= 0 or max(abs(v - first) for v in others) > AGREE * first:
        raise ArithmeticError(f"{key}: {[mp.nstr(v, 30) for v in values]}")
    return first


def settle(points, series, floor):
    """One table of several; points know values above floor."""
    table = {}
    for key in points[0]:
        if not vanishes(key[0], key[2]):
            known = [t[key] if t[key] > floor else mp.nan for t in points]
            table[key] = agree(key, series.get(key, mp.nan), *known, closed(*key))
    for name, p, k in points[0]:
        if vanishes(name, k):
            least = min(table[name, p, j] for j in DEGREES if (name, p, j) in table)
            if max(abs(t[name, p, k]) for t in points) > max(AGREE * least, floor * AGREE):
                raise ArithmeticError(f"{name}, {p}, {k} does not vanish")
            table[name, p, k] = mp.mpf(0)
    return table


def main():
    table, series = {}, by_series()
    for dims, digits, step in GRIDS:
        print(*dims, flush=True)
        points = [by_points(dims, digits + 20 * i, step, i / 2) for i in (0, 1)]
        table |= settle(points, series, mp.mpf(10) ** (30 - digits))
    keys = sorted(table)
    with mp.workprec(53):
        split = [mp.frexp(+table[key]) for key in keys]
    np.savez_compressed(
        TABLE,
        kernel=np.array([name for name, _, _ in keys]),
        dim=np.array([p for _, p, _ in keys]),
        degree=np.array([k for _, _, k in keys]),
        mantissa=np.array([2 * float(m) for m, _ in split]),
        exponent=np.array([int(e) - 1 if m else 0 for m, e in split]),
    )


if __name__ == "__main__":
    main()
