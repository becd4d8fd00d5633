"""How far the inner products of random features are from the kernel, as measured and by theory."""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import numpy as np

from .. import _check, _keywords
from .._types import Array, ArrayLike
from ..engine.progress import Progress
from ._fourier import FourierFeatures, spectral
from ._transformer import Transformer


class FeatureError(NamedTuple):
    """Errors of ``Z @ Z.T`` as an estimate of the kernel matrix; made by ``feature_error``.

    Attributes
    ----------
    rms : float
        The measured root mean square over draws and entries.
    theory_rms : float
        The same by the variance of each entry, for independent features; nan where there is no
        formula.
    sup : float
        The measured largest error of a draw, as a mean over draws.
    union_bound : float
        A bound that at most half of all draws exceed, by Hoeffding's inequality over all pairs of
        these rows; nan where terms are not bounded or not independent.
    uniform_bound : float
        The same over all pairs of points as far apart as these rows, by Rahimi and Recht (2008),
        ``P <= 2^8 (s diam / e)^2 exp(-m e^2 / (4 (d + 2)))`` for m frequencies, ``s^2 = E|w|^2``.
        For "cos_sin" features; infinite where ``E|w|^2`` is.
    bias : float
        The largest of ``|mean error| / standard error`` over entries: about 3 to 4 without bias.
    """

    rms: float
    theory_rms: float
    sup: float
    union_bound: float
    uniform_bound: float
    bias: float


@_keywords.synonyms(rng="seed")
def feature_error(
    features: Transformer, X: ArrayLike, n_draws: int = 10, *,
    seed: int | np.random.Generator | None = 0, progress: bool = False,
) -> FeatureError:  # fmt: skip
    """Return measured and theoretical errors of random features on the pairs of rows of X.

    Parameters
    ----------
    features : Transformer
        Fitted or not: new features are drawn with its parameters.
    X : array of shape (n, d), or of signals or images
    n_draws : int, at least 2
    seed : int, numpy.random.Generator or None
        The seed of the draws; that of ``features`` is ignored.
    progress : bool
        Write a line to stderr every two seconds.

    Returns
    -------
    FeatureError

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((20, 3))
    >>> error = kc.features.feature_error(kc.features.FourierFeatures(n_features=512), X, 50)
    >>> bool(abs(error.rms / error.theory_rms - 1) < 0.1), error.sup < error.union_bound
    (True, True)
    """
    _check.an_instance(features, Transformer, "features", "a Transformer")
    x = _check.some_rows(features._host(X), "X").astype(np.float64, copy=False)
    n_draws = _check.count(n_draws, "n_draws", least=2)
    rng = _check.generator(seed, "seed")
    one = copy.copy(features).set_params(seed=rng)
    told = Progress("feature_error, draws", n_draws, _check.flag(progress, "progress"))
    arrays = 2 * n_draws + 4  # the errors, a copy of them, and what the variance is made of
    _check.room("errors of all draws", (len(x), len(x)), np.float64, arrays, ("fewer points",))
    limit = one.fit(x).kernel_
    _check.must(limit is not None, "features", "tend to a kernel", repr(features))
    want = limit(x)
    e = np.empty((n_draws, *want.shape))
    for k in range(n_draws):
        np.subtract(one.fit(x).gram(x), want, out=e[k])
        told.at(k + 1)
    variance = one._variance(x)
    deviation = e.std(0, ddof=1) / math.sqrt(n_draws)
    # The diagonals of cos_sin have no error but rounding, and so say nothing about a bias.
    counts = deviation > 1e-12 * np.abs(want).max()
    bias = np.abs(e.mean(0))[counts] / deviation[counts]
    # 2 pairs exp(-m e^2 / (2 b^2)) = 1/2 for m terms in [-b, b]
    m, b = one._largest() or (1, math.nan)
    pairs = len(x) * (len(x) + 1) / 2
    return FeatureError(
        rms=float(np.sqrt((e**2).mean())),
        theory_rms=math.nan if variance is None else math.sqrt(max(0.0, float(variance.mean()))),
        sup=float(np.abs(e).max((1, 2)).mean()),
        union_bound=b * math.sqrt(2 * math.log(4 * pairs) / m),
        uniform_bound=_uniform(one, x),
        bias=float(bias.max(initial=0.0)),
    )


def _uniform(features: Transformer, x: Array) -> float:
    """Return the e at which Rahimi and Recht's bound of the probability is 1/2."""
    from scipy.special import lambertw

    if not isinstance(features, FourierFeatures):
        return math.nan
    if features.kind != "cos_sin" or features.orthogonal:
        return math.nan
    m, d = features.n_features_out_ // 2, x.shape[1]
    kernel = features.kernel_
    spread = spectral(kernel).second * d / kernel.lengthscale**2  # E |w|^2
    if not math.isfinite(spread):
        return math.inf
    square = np.maximum((x**2).sum(1)[:, None] + (x**2).sum(1) - 2 * x @ x.T, 0.0)
    reach = spread * float(square.max())
    if reach == 0:
        return 0.0
    # 2^8 reach/e^2 exp(-t) = 1/2 for t = m e^2/(4 (d + 2)) gives t exp(t), and Lambert's W gives t.
    t = float(lambertw(2**7 * reach * m / (d + 2)).real)
    return math.sqrt(4 * (d + 2) * t / m)
