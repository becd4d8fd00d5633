"""What is done to images: noise in frequencies, shifts, deformations, flips, whitening."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..linalg import eigh, norm
from ._covariates import Seed

RADIUS = 27.0
"""Of the corner of high frequencies that Ghorbani et al. fill with noise, for 28 x 28 pixels."""
SCALES = (0.4, 40.0)
"""The standard deviations, in pixels, of the bells that smooth a random field."""


def _images(images: ArrayLike, name: str = "images") -> Array:
    """Return images of shape (n, H, W, C) in float64, or float32 where they are."""
    x = _check.real_array(images, name)
    if x.dtype != np.float32:
        x = x.astype(np.float64)
    return _check.shaped(x.ndim == 4 and x.size > 0, x, name, "have shape (n, H, W, C), not empty")


def frequency_noise(
    images: ArrayLike, level: float, *, radius: float = RADIUS, seed: Seed = None
) -> Array:
    """Fill the high frequencies of images with noise, as Ghorbani et al. (2020) do.

    The mean of each image is taken out. Its coefficients in the orthonormal cosine basis get
    normal noise where they lie within ``radius`` of the highest frequency, of ``level`` times the
    norm of the image in all; and the image is scaled to the norm ``sqrt(number of entries)``.

    Parameters
    ----------
    images : array of shape (n, H, W, C)
    level : float
        epsilon, the norm of the noise over that of the image without its mean.
    radius : float
        27 in the paper, for 28 x 28 pixels.
    seed : int, numpy.random.Generator or None

    Returns
    -------
    array of the shape of images

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X, _ = kc.data.digits()
    >>> noisy = kc.data.frequency_noise(X.reshape(-1, 8, 8, 1), 1.0, radius=7, seed=0)
    >>> bool(np.allclose((noisy**2).sum((1, 2, 3)), 64))
    True
    """
    from scipy.fft import dctn, idctn

    x = _images(images)
    level = _check.non_negative(level, "level")
    radius = _check.positive(radius, "radius")
    rng = _check.generator(seed, "seed")
    height, width = x.shape[1:3]
    i, j = np.ogrid[:height, :width]
    mask = np.hypot(i - (height - 1), j - (width - 1)) <= radius
    waves = dctn(x - x.mean((1, 2, 3), keepdims=True), axes=(1, 2), norm="ortho")
    size = _sizes(waves)
    noise = mask[..., None] * np.asarray(rng.standard_normal(x.shape), x.dtype)
    waves += level * size * noise / _sizes(noise)
    _check.every(size.ravel() > 0, size.ravel(), "images", "not be constant")
    out = idctn(waves, axes=(1, 2), norm="ortho")
    return out * (math.sqrt(x[0].size) / _sizes(out))


def _sizes(x: Array) -> Array:
    return norm(x.reshape(len(x), -1), axis=1).reshape(-1, 1, 1, 1)


def deform(images: ArrayLike, tau: ArrayLike) -> Array:
    """Return images whose values are taken from elsewhere: ``x(u - tau(u))``.

    Values between pixels are bilinear, and zero beyond the border.

    Parameters
    ----------
    images : array of shape (n, H, W, C)
    tau : array of shape (H, W, 2) or (2,)
        The displacement at each pixel, along both axes, in pixels; one for all is a translation.

    Returns
    -------
    array of the shape of images

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> image = np.arange(9.0).reshape(1, 3, 3, 1)
    >>> kc.data.deform(image, [1.0, 0.0])[0, :, :, 0]
    array([[0., 0., 0.],
           [0., 1., 2.],
           [3., 4., 5.]])
    """
    from scipy.ndimage import map_coordinates

    x = _images(images)
    shape = x.shape[1:3]
    t = _check.finite_array(tau, "tau")
    fine = t.shape in ((2,), (*shape, 2))
    _check.shaped(fine, t, "tau", f"have shape (2,) or {(*shape, 2)}")
    places = np.indices(shape) - np.moveaxis(np.broadcast_to(t, (*shape, 2)), -1, 0)
    out = np.empty_like(x)
    for n, c in np.ndindex(len(x), x.shape[-1]):
        out[n, :, :, c] = map_coordinates(x[n, :, :, c], places, order=1)
    return out


class Deformation(NamedTuple):
    """A smooth random displacement, and how large it is; made by ``deformation``.

    Attributes
    ----------
    tau : array of shape (H, W, 2)
    size, gradient : float
        The largest norm of tau, and the largest operator norm of its derivative, by differences.
    scale : float
        The standard deviation in pixels of the bell by which the field was smoothed.
    """

    tau: Array
    size: float
    gradient: float
    scale: float


def slope_of(tau: Array) -> float:
    """Return the largest operator norm of the derivative of a displacement, by differences."""
    rows, columns = np.gradient(tau, axis=(0, 1))
    jacobian = np.stack([rows, columns], axis=-1)
    a = np.einsum("...ji,...jk->...ik", jacobian, jacobian)
    half = (a[..., 0, 0] + a[..., 1, 1]) / 2
    product = a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] ** 2
    return math.sqrt(float((half + np.sqrt(np.maximum(half**2 - product, 0))).max()))


def deformation(
    shape: tuple[int, int], size: float, gradient: float | None = None, *,
    scale: float = 3.0, seed: Seed = None,
) -> Deformation:  # fmt: skip
    """Draw a smooth displacement of a given size, and of a given gradient if asked.

    White noise is smoothed by a Gaussian bell and multiplied, so that the largest displacement is
    ``size``. With ``gradient`` the bell is the one with which its derivative has that norm, too.

    Parameters
    ----------
    shape : (H, W)
        At least two pixels along each axis.
    size : float
        The supremum of the norm of tau, in pixels.
    gradient : float, optional
        The supremum of the operator norm of its derivative; below 1 no pixels change places.
    scale : float
        The standard deviation of the bell, in pixels, where no gradient is given.
    seed : int, numpy.random.Generator or None

    Returns
    -------
    Deformation

    Examples
    --------
    >>> import kernelcore as kc
    >>> d = kc.data.deformation((28, 28), size=2.0, gradient=0.5, seed=0)
    >>> d.tau.shape, round(d.size, 6), round(d.gradient, 6)
    ((28, 28, 2), 2.0, 0.5)
    """
    from scipy.ndimage import gaussian_filter

    height, width = (_check.count(s, f"shape[{k}]", least=2) for k, s in enumerate(shape))
    size = _check.positive(size, "size")
    noise = _check.generator(seed, "seed").standard_normal((height, width, 2))

    def field(scale: float) -> Array:
        tau = gaussian_filter(noise, (scale, scale, 0), mode="reflect")
        return tau * (size / norm(tau, axis=2).max())

    if gradient is None:
        scale = _check.positive(scale, "scale")
    else:
        gradient = _check.positive(gradient, "gradient")
        low, high = np.log(SCALES)
        steepest, flattest = (slope_of(field(s)) for s in SCALES)
        rule = f"be from {flattest:.3g} to {steepest:.3g} for this size and seed"
        _check.must(flattest <= gradient <= steepest, "gradient", rule, gradient)
        for _ in range(60):
            middle = (low + high) / 2
            steep = slope_of(field(math.exp(middle))) > gradient
            low, high = (middle, high) if steep else (low, middle)
        scale = math.exp((low + high) / 2)
    tau = field(scale)
    return Deformation(tau, float(norm(tau, axis=2).max()), slope_of(tau), scale)


def flips(images: ArrayLike, axis: int = 2) -> Array:
    """Return images and then their mirror images: shape (2 n, ...).

    ``axis`` 2 swaps left and right, 1 top and bottom.

    Parameters
    ----------
    images : array of shape (n, H, W, C)
    axis : int, default 2
        Of this array.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.data.flips([[[[1.0], [2.0]]]]).ravel()
    array([1., 2., 2., 1.])
    """
    x = _images(images)
    axis = _check.count(axis, "axis", least=1)
    return np.concatenate([x, np.flip(x, _check.at_most(axis, 2, "axis", "that of columns"))])


class Whitening:
    """ZCA whitening, fitted to a sample: ``(x - mean) V (L + epsilon)^(-1/2) V'``.

    L and V are the eigenvalues and eigenvectors of the covariance of the sample. Whitened points
    stay as near to the given ones as any with covariance 1 can be.

    Parameters
    ----------
    X : array of shape (n, ...)
        Rows, signals or images; each input counts as one vector.
    epsilon : float
        What is added to the eigenvalues, times their mean.

    Attributes
    ----------
    mean : array of shape (d,)
    matrix : array of shape (d, d)

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = kc.data.gaussian(5000, 2, seed=0) @ [[2.0, 0.0], [1.0, 0.5]]
    >>> np.cov(kc.data.Whitening(X, epsilon=0)(X).T).round(6)
    array([[ 1., -0.],
           [-0.,  1.]])
    """

    def __init__(self, X: ArrayLike, epsilon: float = 1e-3) -> None:
        x = np.asarray(_check.some_rows(_check.finite_array(X, "X"), "X"), np.float64)
        epsilon = _check.non_negative(epsilon, "epsilon")
        self.shape = x.shape[1:]
        x = x.reshape(len(x), -1)
        self.mean = x.mean(0)
        centred = x - self.mean
        values, vectors = eigh(centred.T @ centred / max(1, len(x) - 1))
        values = np.maximum(values, 0) + epsilon * values.mean()
        least = float(values.min())
        _check.must(least > 0, "epsilon", "be positive for a covariance of lower rank", epsilon)
        self.matrix = (vectors / np.sqrt(values)) @ vectors.T

    def __call__(self, X: ArrayLike) -> Array:
        """Whiten inputs of the shape that it was fitted to."""
        x = _check.finite_array(X, "X")
        _check.shaped(x.shape[1:] == self.shape, x, "X", f"have inputs of shape {self.shape}")
        return ((x.reshape(len(x), -1) - self.mean) @ self.matrix).reshape(x.shape)
