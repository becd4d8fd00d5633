"""Predicted errors of ridge regression, with a kernel or with random features.

With N features phi_j(x)/sqrt(N), whose kernel K_N tends to K, and K_N + ridge I, the deterministic
equivalent (Simon et al. 2023, "More is better"; Defilippis, Loureiro and Misiakiewicz 2024) is

    n = z + ridge/kappa,   N = z + N kappa/c,   z = sum_i L_i,   L_i = mu_i/(mu_i + c).

Let a = n - z and b = N - z, the samples and the features that are left over. Then a b = ridge N/c
and a - b = n - N, so a and b are explicit in c, and one equation in c remains. With q = sum L_i^2,
s = z - q, u = b/(b + s), v = s/(b + s) and m_i = 1 - L_i the published error becomes

    excess = [n sum_i m_i (u m_i + v) f_i^2 + s_0^2 (u q + v z)] / (a + u s),

a sum of positive terms over a sum of positive terms: nothing cancels, also not at the peak n = N
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
from ._levels import Levels, levels, noise_as_deviation
from ._root import falling

ENTRIES = 2**20
"""Numbers in a block: what (n, levels) arrays are cut to."""


class Modes(NamedTuple):
    """What the self-consistent equation says; arrays of the shape of n.

    Attributes
    ----------
    c : array
        The resolution: levels with eigenvalues above c are learned. Zero where all of them are.
    learnability : array of shape n.shape + (levels,)
        ``L = mu/(mu + c)``: the mean prediction has L times the target's coefficient.
    g : array
        ``sum L^2 / n``; 1/(1 - g) is the factor by which overfitting multiplies a kernel's error.
    bias, variance : arrays
        ``sum (1 - L)^2 f^2``, the error of the mean prediction, and that of single ones around it.
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
    """a, b, and minus the derivative of both in log c: a b = ridge N/c, a - b = n - N."""
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
    """The logarithm of c, of one-dimensional arrays; -inf where all eigenvalues are learned.

    z + min(a, b) = min(n, N) has a left side that falls with c. Newton's method on the logarithms
    of both sides in log c.
    """
    least = np.minimum(n, features)
    log_c = np.full(len(n), -np.inf)
    # Without end of the samples no ridge counts.
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
    everything = np.isneginf(log_c)  # c = 0: L is 1 but on levels whose eigenvalue is zero
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
    """Everything that the self-consistent equation predicts of ridge regression.

    Parameters
    ----------
    spectrum : Spectrum or array of shape (levels,)
        Of the kernel, with respect to the distribution of the inputs; an array is of eigenvalues
        with multiplicity one. What a Spectrum leaves out (its ``tail``) acts as a ridge.
    target_power : array of shape (levels,) or (levels + 1,)
        Power of the target on each level, all its eigenfunctions together. One more entry is the
        power on everything that is not listed, which is never learned and acts as noise.
    n : array_like
        Samples, real and positive; infinity is the limit of many, where no ridge and no noise
        counts any more.
    ridge : array_like
        As it is added to the Gram matrix, ``K + ridge I``; 0 interpolates.
    noise_variance : array_like
        Of the labels around the target.
    features : array_like
        Number N of random features; infinite, the kernel itself, by default.
    learnability : bool
        False leaves that array out (None), which saves memory on long spectra.

    Returns
    -------
    Modes
        Of the shape that n, ridge, noise_variance and features broadcast to.

    Notes
    -----
    c is right to ``4e-16 |log c|``, relative; errors are sums of positive terms and lose no more.
    Exact for Gaussian eigenfunctions as n grows; for kernels on spheres and cubes a few per cent at
    n of a few tens, and better above. Work: some 10 to 30 passes over the levels per entry.

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
    """The test error of kernel ridge regression, predicted from spectrum and target.

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

    From a Gram matrix and labels: what would fewer samples of the same kind have given?

    >>> X = np.random.default_rng(0).standard_normal((400, 5))
    >>> whole = kc.spectrum.empirical(kc.Gaussian(2.0)(X))
    >>> power = whole.target_power(np.sin(X[:, 0]))
    >>> error = kc.theory.learning_curve(whole, power, [10, 40, 160], ridge=1e-2)
    >>> bool(error[0] > 3 * error[2])
    True
    """
    return modes(
        spectrum, target_power, n, ridge, noise_variance=noise_variance, learnability=False
    ).error[()]


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
    """The test error of ridge regression on N random features.

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
        N; it broadcasts with n. Infinite is ``learning_curve``.

    Returns
    -------
    array of float64, of the shape of n and features together
        Mean squared error on new inputs, less the variance of the noise, in the mean over training
        sets and features. Infinite where ``n = features`` and the ridge is zero. At n = infinity
        what N features cannot approximate.

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
    found = modes(
        spectrum, target_power, n, ridge,
        noise_variance=noise_variance, features=features, learnability=False,
    )  # fmt: skip
    return found.error[()]
