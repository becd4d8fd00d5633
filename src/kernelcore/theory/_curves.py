"""Predicted errors of ridge regression, with a kernel or with random features.

With N features phi_j(x)/sqrt(N), whose kernel K_N tends to K, and K_N + ridge I, the deterministic
equivalent (Simon et al. 2023, "More is better"; Defilippis, Loureiro and Misiakiewicz 2024) is

    n = z + ridge/kappa,   N = z + N kappa/c,   z = sum_i L_i,   L_i = mu_i/(mu_i + c).

Let a = n - z and b = N - z, the samples and the features that are left over. Then a b = ridge N/c
and a - b = n - N, so a and b are explicit in c, and one equation in c remains. With q = sum L_i^2,
s = z - q, u = b/(b + s), v = s/(b + s) and m_i = 1 - L_i the published error becomes

    excess = [n sum_i m_i (u m_i + v) f_i^2 + s_0^2 (u q + v z)] / (a + u s),

a sum of positive terms over a sum of positive terms: nothing cancels, not even at the peak n = N
where a = b -> 0 with the ridge. N = infinity has u = 1, v = 0, a = ridge/c, which is the equation
of kernel ridge regression, n = sum_i L_i + ridge/c and excess = [sum m_i^2 f_i^2 + g s_0^2]/(1-g)
with g = q/n (Bordelon, Canatar and Pehlevan 2020; Simon et al. 2021); s_0^2 is the variance of the
noise. n = infinity has b = 0, so that u = 0, v = 1, N = sum_i L_i, and excess = sum m_i f_i^2: what
N features cannot approximate.

Eigenvalues that are not listed, tail in sum, are taken to be infinitely many and infinitely small:
they add tail/c to z and to s and nothing to q, as a ridge does for kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..spectrum import Spectrum
from ._levels import Levels, falling, levels, noise_as_deviation

ENTRIES = 2**20
"""The most numbers in a block of an (n, levels) array."""


class Modes(NamedTuple):
    """What the self-consistent equation predicts, by n; made by ``modes``.

    Attributes
    ----------
    c : array
        The resolution: levels with eigenvalues above c are learned. Zero where all of them are.
    learnability : array of shape n.shape + (levels,)
        ``L = mu/(mu + c)``: the mean prediction has L times the target's coefficient.
    g : array
        ``sum L^2 / n``; 1/(1 - g) is the factor by which overfitting multiplies a kernel's error.
    bias, variance : arrays
        ``sum (1 - L)^2 f^2``, the error of the mean prediction, and the mean squared deviation of
        single predictions from it.
    error : array
        Their sum: the mean squared error on new inputs, less the variance of the noise.
    train_error : array
        The mean squared residual on the noisy labels.
    """

    c: Array
    learnability: Array
    g: Array
    bias: Array
    variance: Array
    error: Array
    train_error: Array


def left_over(log_c: Array, n: Array, features: Array, ridge: Array) -> tuple[Array, Array, Array]:
    """Return a, b, and minus the derivative of both in log c: a b = ridge N/c, a - b = n - N."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        wide = np.isinf(features)
        pull = np.where(ridge > 0, ridge * np.exp(-log_c), 0.0)  # a, where features are infinite
        product = pull * np.where(wide, 1.0, features)
        gap = n - np.where(wide, n, features)
        root = np.hypot(gap, 2 * np.sqrt(product))
        large = (np.abs(gap) + root) / 2
        small = np.where(large > 0, product / large, 0.0)
        slope = np.where(root > 0, product / root, 0.0)
        a = np.where(wide, pull, np.where(gap > 0, large, small))
        b = np.where(wide, np.inf, np.where(gap > 0, small, large))
        return a, b, np.where(wide, pull, slope)


def solve(of: Levels, n: Array, features: Array, ridge: Array) -> Array:
    """Solve for log c, for one-dimensional arrays; -inf where all eigenvalues are learned.

    The left side of z + min(a, b) = min(n, N) falls with c. Newton's method is used on the
    logarithms of both sides, in log c.
    """
    least = np.minimum(n, features)
    log_c = np.full(len(n), -np.inf)
    # With infinitely many samples no ridge counts.
    todo = np.flatnonzero((of.rank > least) | (ridge > 0) & np.isfinite(n))
    if not len(todo) or of.trace + ridge.max() == 0:
        return log_c
    n, features, ridge, least = n[todo], features[todo], ridge[todo], least[todo]
    with np.errstate(divide="ignore", over="ignore"):
        # At high z <= min(n, N)/2, so (n - z)(N - z) >= n N/4 >= ridge N/c = a b. At low one of
        # tail/c, a and the sum over listed levels is all of the right side by itself.
        high = np.log(np.maximum(2 * of.trace / least, 4 * ridge / n)) + 1e-9
        low = np.maximum(np.log(of.tail / least), np.log(ridge / n)) - 1e-9
    listed = of.log_mu[of.log_mu > -np.inf]
    if len(listed):
        # Here 1 - L < 1e-17 everywhere.
        low = np.where(of.rank > least, np.maximum(low, listed.min() - 40), low)
    low = np.minimum(low, high - 1e-9)

    def off(x: Array, which: Array) -> tuple[Array, Array]:
        z, s = of.sums(x)
        a, b, slope = left_over(x, n[which], features[which], ridge[which])
        total = z + np.minimum(a, b)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return np.log(total / least[which]), (s + slope) / total

    log_c[todo] = falling(off, low, high, np.log((of.trace + ridge) / least))
    return log_c


def _block(
    of: Levels, power: Array, n: Array, features: Array, ridge: Array, noise_variance: Array
) -> Modes:
    log_c = solve(of, n, features, ridge)
    c = np.exp(log_c)
    everything = np.isneginf(log_c)  # c = 0: L is 1 except on levels whose eigenvalue is zero
    finite = np.where(everything, 0.0, log_c)
    learned, left = of.log_learned(finite)
    zero = np.isneginf(of.log_mu)
    learned[everything] = np.where(zero, -np.inf, 0.0)
    left[everything] = np.where(zero, 0.0, -np.inf)
    m = np.exp(left)
    z, s = of.sums(finite)
    with np.errstate(over="ignore"):
        q = np.exp(of.log_count + 2 * learned).sum(-1)
    z, s = np.where(everything, q, z), np.where(everything, 0.0, s)
    a, b, _ = left_over(finite, n, features, ridge)
    endless = np.isinf(n)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        a, b = np.where(everything, n - z, a), np.where(everything, features - z, b)
        kernel = np.isinf(b) | (b + s == 0)
        u, v = np.where(kernel, 1.0, b / (b + s)), np.where(kernel, 0.0, s / (b + s))
        squares = m**2 @ power[:-1] + power[-1]
        mixed = m @ power[:-1] + power[-1]
        top = n * (u * squares + v * mixed) + noise_variance * (u * q + v * z)
        error = np.where(top > 0, top / (a + u * s), 0.0)
        error = np.where(endless, mixed, error)
        variance = np.maximum(0.0, error - squares)
        share = np.where(endless, 1.0, a / n)
        train = np.where(a > 0, share**2 * (error + noise_variance), 0.0)
        g = np.where(endless, 0.0, q / n)
    return Modes(c, np.exp(learned), g, squares, variance, error, train)


@noise_as_deviation("features")
def modes(
    spectrum: Spectrum | ArrayLike,
    target_power: ArrayLike,
    n: ArrayLike,
    ridge: ArrayLike = 0.0,
    *,
    noise_variance: ArrayLike = 0.0,
    features: ArrayLike = np.inf,
    learnability: bool = True,
) -> Modes:
    """Compute everything that the self-consistent equation predicts for ridge regression.

    Parameters
    ----------
    spectrum : Spectrum or array of shape (levels,)
        The spectrum of the kernel with respect to the distribution of the inputs, or its
        eigenvalues, with multiplicity one. The ``tail`` of a Spectrum acts as a ridge.
    target_power : array of shape (levels,) or (levels + 1,)
        Power of the target on each level, all its eigenfunctions together. One more entry is the
        power on all levels that are not listed, which is never learned and acts as noise.
    n : array_like
        Number of samples, real and positive; at infinity, the limit of many samples, neither ridge
        nor noise counts.
    ridge : array_like
        The ridge that is added to the Gram matrix, ``K + ridge I``; 0 interpolates.
    noise_variance : array_like
        Variance of the labels around the target.
    features : array_like
        Number N of random features; by default infinite, which is the kernel itself.
    learnability : bool
        False leaves that array out (None), which saves memory on long spectra.

    Returns
    -------
    Modes
        Arrays of the shape that n, ridge, noise_variance and features broadcast to.

    Notes
    -----
    The relative error of c is ``4e-16 |log c|``; the errors are sums of positive terms and lose no
    more. Predictions are exact for Gaussian eigenfunctions as n grows; for kernels on spheres and
    cubes they are off by a few per cent at n of a few tens, and by less above. The work is some 10
    to 30 passes over the levels per entry.

    Examples
    --------
    >>> import kernelcore as kc
    >>> m = kc.theory.modes([1.0, 0.25], [1.0, 1.0], n=1.0)
    >>> m.c, m.learnability  # sum L = n
    (array(0.5), array([0.66666667, 0.33333333]))
    """
    of = levels(spectrum)
    power = _check.power(target_power, "target_power", len(of.log_mu))
    n, ridge, noise_variance, features = _check.together(
        n=_check.amounts(n, "n", zero=False, infinite=True),
        ridge=_check.amounts(ridge, "ridge"),
        noise_variance=_check.amounts(noise_variance, "noise_variance"),
        features=_check.amounts(features, "features", zero=False, infinite=True),
    )
    if learnability:
        shape = (n.size, len(of.log_mu))
        _check.room("learnability", shape, np.float64, 2, ("learnability=False",))
    count = max(1, ENTRIES // len(of.log_mu))
    flat = [a.ravel() for a in (n, features, ridge, noise_variance)]
    parts = []
    for start in range(0, max(1, n.size), count):
        part = _block(of, power, *(a[start : start + count] for a in flat))
        parts.append(part if learnability else part._replace(learnability=np.empty((0,))))
    whole = Modes(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    shaped: list[Any] = [
        field.reshape(n.shape + field.shape[1:]) if len(field) == n.size else None
        for field in whole
    ]
    return Modes(*shaped)


@noise_as_deviation()
def learning_curve(
    spectrum: Spectrum | ArrayLike,
    target_power: ArrayLike,
    n: ArrayLike,
    ridge: ArrayLike = 0.0,
    *,
    noise_variance: ArrayLike = 0.0,
) -> Array:
    """Predict the test error of kernel ridge regression from spectrum and target.

    Parameters
    ----------
    spectrum, target_power, n, ridge, noise_variance
        As in ``modes``.

    Returns
    -------
    array of float64, of the shape of n
        Mean squared error on new inputs, less the variance of the noise, in the mean over training
        sets.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> power_law = np.arange(1.0, 1001.0) ** -2
    >>> target = np.zeros(1000)
    >>> target[:3] = 1 / 3
    >>> kc.theory.learning_curve(power_law, target, [1, 10, 100], ridge=1e-3).round(4)
    array([0.8105, 0.0224, 0.    ])

    A Gram matrix and labels predict the error with fewer samples of the same kind:

    >>> X = np.random.default_rng(0).standard_normal((400, 5))
    >>> whole = kc.spectrum.empirical(kc.Gaussian(2.0)(X))
    >>> power = whole.target_power(np.sin(X[:, 0]))
    >>> error = kc.theory.learning_curve(whole, power, [10, 40, 160], ridge=1e-2)
    >>> bool(error[0] > 3 * error[2])
    True
    """
    return random_features_curve(
        spectrum, target_power, n, np.inf, ridge, noise_variance=noise_variance
    )


@noise_as_deviation()
def random_features_curve(
    spectrum: Spectrum | ArrayLike,
    target_power: ArrayLike,
    n: ArrayLike,
    features: ArrayLike,
    ridge: ArrayLike = 0.0,
    *,
    noise_variance: ArrayLike = 0.0,
) -> Array:
    """Predict the test error of ridge regression on N random features.

    The features are ``phi_j(x)/sqrt(N)``, phi_j drawn independently so that
    ``E phi(x) phi(x') = k(x, x')``, the kernel with that spectrum; the fit is kernel ridge
    regression with ``K_N + ridge I``, ``K_N(x, x') = sum_j phi_j(x) phi_j(x') / N``. A ridge
    ``|f|^2`` in front of a mean over n samples, as in ``(1/n) sum (.)^2 + lambda |w|^2``, is
    ``ridge = n lambda``.

    Parameters
    ----------
    spectrum, target_power, n, ridge, noise_variance
        As in ``modes``.
    features : array_like
        N; it broadcasts with n. At infinity the result is that of ``learning_curve``.

    Returns
    -------
    array of float64, of the shape of n and features together
        Mean squared error on new inputs, less the variance of the noise, in the mean over training
        sets and features. It is infinite where ``n = features`` and the ridge is zero. At infinite
        n it is the part that N features cannot approximate.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> power_law = np.arange(1.0, 1001.0) ** -2
    >>> target = power_law / power_law.sum()
    >>> n = np.array([25, 50, 100])
    >>> kc.theory.random_features_curve(power_law, target, n, 50, ridge=1e-4).round(3)
    array([0.113, 0.333, 0.056])
    """
    return modes(
        spectrum, target_power, n, ridge,
        noise_variance=noise_variance, features=features, learnability=False,
    ).error[()]  # fmt: skip
