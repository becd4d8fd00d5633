"""Dimensions of a spectrum at a ridge, and of spiked inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..spectrum import Spectrum
from ._levels import Levels, levels


def effective_dimension(spectrum: Spectrum | ArrayLike, ridge: ArrayLike) -> Array:
    """Return ``sum mu/(mu + ridge)``, the trace of ``T (T + ridge)^-1``.

    Parameters
    ----------
    spectrum : Spectrum or array of shape (levels,)
    ridge : array_like
        The ridge on the scale of the eigenvalues mu, those of K/n: ridge regression with
        ``K + r I`` has ``ridge = r/n``.

    Returns
    -------
    array of float64, of the shape of ridge
        The eigenvalues that are not listed count as ``tail/ridge``: an upper bound, too large by at
        most a factor of ``1 + mu/ridge`` with the largest such eigenvalue mu. The rank at ridge 0.

    Examples
    --------
    >>> import kernelcore as kc
    >>> float(kc.theory.effective_dimension([1.0, 0.5, 0.25], 0.5).round(4))
    1.5
    """
    of, ridge = levels(spectrum), _check.amounts(ridge, "ridge")
    return _at(of, ridge, lambda log_c: of.sums(log_c)[0])


def degrees_of_freedom(spectrum: Spectrum | ArrayLike, ridge: ArrayLike) -> Array:
    """Return ``sum (mu/(mu + ridge))^2``.

    Parameters
    ----------
    spectrum : Spectrum or array of shape (levels,)
    ridge : array_like
        As in ``effective_dimension``.

    Returns
    -------
    array of float64, of the shape of ridge
        The eigenvalues that are not listed are left out: they would add at most
        ``tail mu/ridge^2`` with the largest such eigenvalue mu. The rank at ridge 0.

    Examples
    --------
    >>> import kernelcore as kc
    >>> float(kc.theory.degrees_of_freedom([1.0, 0.5, 0.25], 0.5).round(4))
    0.8056
    """
    of, ridge = levels(spectrum), _check.amounts(ridge, "ridge")

    def squares(log_c: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(of.log_count + 2 * of.log_learned(log_c)[0]).sum(-1)

    return _at(of, ridge, squares)


def _at(of: Levels, ridge: Array, total: Callable[[Array], Array]) -> Array:
    shape = (ridge.size, len(of.log_mu))
    _check.room("all levels at all ridges", shape, np.float64, 5, ("fewer of them",))
    log_ridge = np.log(np.where(ridge > 0, ridge, 1.0))
    return np.where(ridge > 0, total(log_ridge), of.rank)[()]


def spiked_dimension(dim: ArrayLike, signal_dim: ArrayLike, snr: ArrayLike) -> Array:
    """Return ``max(d_s, d/snr)``, the dimension that kernels see in spiked covariates.

    Parameters
    ----------
    dim, signal_dim, snr : array_like
        d, d_s, and the ratio snr_c of the variances of signal and other coordinates.

    Returns
    -------
    array of float64
        To learn polynomials of degree l in the signal, a kernel needs ``spiked_dimension**l``
        samples and a network ``signal_dim**l`` (Ghorbani, Mei, Misiakiewicz and Montanari 2020).

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.theory.spiked_dimension(1024, 16, [1, 16, 256])
    array([1024.,   64.,   16.])
    """
    dim, signal_dim, snr = _check.together(
        dim=_check.amounts(dim, "dim", zero=False),
        signal_dim=_check.amounts(signal_dim, "signal_dim", zero=False),
        snr=_check.amounts(snr, "snr", zero=False),
    )
    return np.maximum(signal_dim, dim / snr)
