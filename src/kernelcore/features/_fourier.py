"""Random Fourier features of kernels of a difference (Rahimi and Recht 2008).

k(x - y) = E cos(w'(x - y)), w from the spectral density of the kernel
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np

from .. import _check
from .._types import Array
from ..engine import backend_of, offer
from ..kernels import Cauchy, Gaussian, Kernel, Laplacian, Matern
from ..linalg import namespace_of
from ._transformer import Transformer, multiply, normal_rows, seeded_class

Stationary = Gaussian | Laplacian | Cauchy | Matern
KINDS = ("cos_sin", "cos")


class Spectral(NamedTuple):
    """A spectral density at lengthscale 1.

    One that is rotation invariant is drawn as normal rows times independent factors
    ``mix(rng, m)``; any other is a product over coordinates, drawn by ``axes(rng, m, d)``.
    """

    mix: Callable[[np.random.Generator, int], Array] | None
    axes: Callable[[np.random.Generator, int, int], Array] | None
    second: float  # E w_1^2, which may be infinite


def _student(nu: float) -> Spectral:
    """Return the multivariate t of 2 nu degrees of freedom: normal over sqrt of gamma(nu)/nu."""

    def mix(rng: np.random.Generator, m: int) -> Array:
        # With small nu draws below 1e-300 occur: no angle of such a frequency can be represented.
        return 1 / np.sqrt(np.maximum(rng.gamma(nu, 1 / nu, m), 1e-300))

    return Spectral(mix, None, nu / (nu - 1) if nu > 1 else math.inf)


def spectral(kernel: Kernel) -> Spectral:
    """Return the spectral density of a kernel of a difference."""
    if isinstance(kernel, Gaussian):
        return Spectral(lambda rng, m: np.ones(m), None, 1.0)
    if isinstance(kernel, Matern):
        return _student(kernel.nu)
    if isinstance(kernel, Laplacian) and kernel.norm == 2:
        return _student(0.5)
    if isinstance(kernel, Laplacian):
        return Spectral(None, lambda rng, m, d: rng.standard_cauchy((m, d)), math.inf)
    if isinstance(kernel, Cauchy):
        return Spectral(None, lambda rng, m, d: rng.laplace(size=(m, d)), 2.0)
    raise TypeError(f"kernel must be Gaussian, Laplacian, Cauchy or Matern: got {kernel!r}")


def frequencies(
    kernel: Stationary, m: int, d: int, rng: np.random.Generator, orthogonal: bool = False
) -> Array:
    """Draw m frequencies in d dimensions from the spectral density of a kernel."""
    density = spectral(kernel)
    if density.mix is not None:
        w = normal_rows(m, d, rng, orthogonal) * density.mix(rng, m)[:, None]
    elif orthogonal:
        raise ValueError(
            f"orthogonal must be False for {kernel!r}: it is not rotation invariant, and no "
            "direction of its frequencies can be turned"
        )
    else:
        _check.room("weights_", (m, d), np.float64, 2, ("fewer features",))
        w = density.axes(rng, m, d)  # type: ignore[misc]  # it has axes where it has no mix
    return w / kernel.lengthscale


@seeded_class
@dataclass(repr=False, eq=False)
class FourierFeatures(Transformer):
    """Random Fourier features of a Gaussian, Laplacian, Cauchy or Matern kernel.

    Parameters
    ----------
    kernel : Kernel, optional
        ``Gaussian(1.0)`` by default.
    n_features : int
        N, the number of columns of the result.
    kind : {"cos_sin", "cos"}
        ``sqrt(2/N) [cos w'x, sin w'x]`` with N/2 frequencies w, so that ``k(x, x) = 1`` exactly; or
        ``sqrt(2/N) cos(w'x + b)`` with N frequencies and phases b uniform in [0, 2 pi).
    orthogonal : bool
        Make directions orthogonal within blocks of d frequencies, with lengths from the same law
        (Yu et al. 2016). The features stay unbiased, and the error is smaller for the Gaussian
        kernel. The kernel must be rotation invariant.
    seed : int, numpy.random.Generator or None

    Attributes
    ----------
    weights_ : array of shape (N/2, d) or (N, d)
        The frequencies.
    phases_ : array of shape (N,)
        With kind "cos".

    Notes
    -----
    The variance of an entry of ``Z @ Z.T`` is ``(1 + k(2D))/2 - k(D)^2`` over N/2 for "cos_sin",
    and that plus 1/2 over N for "cos". Beyond the rounding of ``w'x``, each sine and cosine has an
    absolute error of 3 u; in float32 angles beyond 2^21, which have no correct digit left, count as
    2^21.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((4, 3))
    >>> Z = kc.features.FourierFeatures(kc.Gaussian(2.0), 4096, seed=0).fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - kc.Gaussian(2.0)(X)).max() < 0.05)
    True
    """

    kernel: Stationary | None = None
    n_features: int = 1000
    _: KW_ONLY
    kind: str = "cos_sin"
    orthogonal: bool = False
    seed: int | np.random.Generator | None = None

    def _draw(self, d: int, rng: np.random.Generator) -> dict[str, Array]:
        kernel = Gaussian(1.0) if self.kernel is None else self.kernel
        n = _check.count(self.n_features, "n_features", least=1)
        both = _check.choice(self.kind, "kind", KINDS) == "cos_sin"
        _check.unless(both and n % 2 > 0, "n_features", "even for kind 'cos_sin'", n)
        m = n // 2 if both else n
        orthogonal = _check.flag(self.orthogonal, "orthogonal")
        w = frequencies(kernel, m, d, rng, orthogonal)
        self._limit(kernel, n)
        arrays = {"weights_": w}
        if not both:
            arrays["phases_"] = rng.uniform(0, 2 * np.pi, m)
        return arrays

    def _block(self, x: Array, out: Array, arrays: dict[str, Array]) -> None:
        w, xp = arrays["weights_"], namespace_of(x)
        scale = math.sqrt(2 / self.n_features_out_)
        waves = backend_of(x).loops if xp is np else offer(x, "loops")
        m = w.shape[0]
        if waves is None:  # another library's own functions
            z = x @ w.T
            if "phases_" in arrays:
                out[...] = scale * xp.cos(z + arrays["phases_"])
            else:
                out[:, :m], out[:, m:] = scale * xp.cos(z), scale * xp.sin(z)
            return
        multiply(x, w.T, out, columns=slice(0, m))
        if "phases_" in arrays:
            waves.shifted_cosines(out, arrays["phases_"], scale)
        else:
            waves.cosines_and_sines(out, scale)

    def _variance(self, X: Array) -> Array | None:
        k, twice = self.kernel_(X), self.kernel_(2 * X)
        one = (1 + twice) / 2 - k**2
        n = self.n_features_out_
        return one / (n // 2) if self.kind == "cos_sin" else (one + 0.5) / n

    def _largest(self) -> tuple[int, float] | None:
        if self.orthogonal:
            return None  # the terms are not independent
        n = self.n_features_out_
        return (n // 2, 1.0) if self.kind == "cos_sin" else (n, 2.0)
