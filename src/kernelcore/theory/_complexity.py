"""How complex a fit is: norms in the RKHS, Rademacher complexities, and Bartlett's R_A of networks.

The ball of radius B in an RKHS has the empirical Rademacher complexity

    E_s sup_(|f| <= B) (1/n) sum_i s_i f(x_i) = (B/n) E_s sqrt(s' K s) <= B sqrt(trace K) / n

over signs s. Networks ``x -> A_L phi(.. phi(A_1 x))`` have (Bartlett, Foster and Telgarsky 2017)

    R_A = prod_i rho_i |A_i| (sum_i (|A_i' - M_i'|_(2,1) / |A_i|)^(2/3))^(3/2),

|A| the spectral norm, rho the Lipschitz constant of phi, M_i a reference such as the weights at the
start, and the (2,1)-norm the sum over units of the norms of their weights; the error on new points
is then bounded by ``|X| R_A / (n margin)``, up to logarithms.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..linalg import eigh, norm, resolution
from ..networks import Network
from ..program import Apply, Weights

FAR = 30.0
"""The argument to which the slope of an activation is looked at, in steps of 1/1024."""


class KernelComplexity(NamedTuple):
    """The result of ``kernel_complexity``.

    Attributes
    ----------
    norm : float or array of shape (r,)
        ``sqrt(alpha' K alpha)`` of the fit, ``sqrt(y' K^-1 y)`` without a ridge, for each output.
    rademacher : float or array of shape (r,)
        ``norm sqrt(trace K) / n``, which bounds the Rademacher complexity of the ball of that
        radius.
    margins : array of shape (n,)
        ``y f`` of one output, and the score of the class less the largest other one of several.
    normalised_margins : array of shape (n,)
        The same over the bound, or the root of the sum of its squares over outputs.
    """

    norm: Any
    rademacher: Any
    margins: Array
    normalised_margins: Array


class NetworkComplexity(NamedTuple):
    """The result of ``network_complexity``.

    Attributes
    ----------
    spectral_norms : array of shape (layers,)
        ``|A_i|``.
    distances : array of shape (layers,)
        The (2,1)-norms of ``A_i' - M_i'``.
    spectral_complexity : float
        R_A.
    head_norm : float or array of shape (outputs,)
        ``|a|``, the norm of the weights of each output, which multiply hidden units.
    rademacher : float or array of shape (outputs,)
        ``|a| sqrt(sum_i |h(x_i)|^2) / n``, h the last hidden units: the bound for all heads of that
        norm on these units.
    margins : array of shape (n,)
        ``y f`` of one output, and the score of the class less the largest other one of several.
    normalised_margins : array of shape (n,)
        ``margins n / (R_A |X|)``, ``|X|`` the Frobenius norm: the larger, the better the bound.
    """

    spectral_norms: Array
    distances: Array
    spectral_complexity: float
    head_norm: Any
    rademacher: Any
    margins: Array
    normalised_margins: Array


def kernel_complexity(K: ArrayLike, y: ArrayLike, ridge: float = 0.0) -> KernelComplexity:
    """Return the norm of a kernel's fit, its Rademacher bound and its margins.

    Parameters
    ----------
    K : array of shape (n, n)
        Symmetric positive semi-definite.
    y : array of shape (n,) or (n, r)
        Labels, or codes of classes: the largest of a row is its class.
    ridge : float
        That of the fit; 0 is the interpolant of least norm, without directions that K does not
        resolve.

    Notes
    -----
    Labels that say something of the inputs have smaller norms than random ones, though both are
    fitted; margins in units of the bound tell them apart.

    Examples
    --------
    >>> import kernelcore as kc
    >>> found = kc.theory.kernel_complexity([[2.0, 0.0], [0.0, 2.0]], [1.0, -1.0])
    >>> print(found.norm, found.rademacher, found.margins)
    1.0 1.0 [1. 1.]
    """
    _check.on_the_host(K, "K")
    K = np.asarray(_check.gram(K, "K"), np.float64)
    ridge, n = _check.non_negative(ridge, "ridge"), len(K)
    y = _check.targets(y, "y", n, np.dtype(np.float64), least=1)
    values, vectors = eigh(K)
    known = values > resolution(n, np.finfo(np.float64).eps) * max(float(values[-1]), 0.0)
    values = np.where(known, values, 0.0)
    share = np.divide(1.0, values + ridge, out=np.zeros(n), where=known)
    along = (vectors.T @ y.reshape(n, -1)) * share[:, None]
    size = np.sqrt(values @ np.square(along))
    bound = size * math.sqrt(max(float(np.trace(K)), 0.0)) / n
    fitted = (vectors * values) @ along
    found = margins(fitted, y.reshape(n, -1))
    whole = float(norm(bound)) or 1.0
    if y.ndim == 1:
        return KernelComplexity(float(size[0]), float(bound[0]), found, found / whole)
    return KernelComplexity(size, bound, found, found / whole)


def network_complexity(
    network: Network, X: ArrayLike, y: ArrayLike, reference: Network | None = None
) -> NetworkComplexity:
    """Return Bartlett's R_A of a network, the bound through its head, and its margins.

    Parameters
    ----------
    network : Network
        Of rows: layers of weights without biases, with activations between them that are zero at
        zero and have a bounded slope. It must not be doubled.
    X : array of shape (n, d)
    y : array of shape (n,) or (n, k)
        Of one output -1 and 1; of several, classes 0 to k - 1, or codes whose largest entry is the
        class.
    reference : Network, optional
        M, of the same shape: the network before training, for example; zero by default.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> y = np.sign(X[:, 0])
    >>> start = kc.presets.mlp(1).sample(50, seed=0, shape=3)
    >>> f = kc.networks.train(start, X, y, steps=500).network
    >>> found = kc.theory.network_complexity(f, X, y, reference=start)
    >>> bool(found.spectral_complexity < kc.theory.network_complexity(f, X, y).spectral_complexity)
    True
    """
    _check.an_instance(network, Network, "network", "a Network")
    X = np.asarray(_check.rows(X, "X"), np.float64)
    n, matrices, phis = len(X), _matrices(network, "network"), _activations(network)
    base = [0.0 * A for A in matrices]
    if reference is not None:
        _check.an_instance(reference, Network, "reference", "a Network")
        base = _matrices(reference, "reference")
        shapes, others = [A.shape for A in matrices], [A.shape for A in base]
        rule = f"have weights of the shapes of those of network, {shapes}"
        _check.must(shapes == others, "reference", rule, others)
    labels = _labels(y, n, network.outputs)
    h = X
    for A, phi in zip(matrices, phis, strict=False):
        h = np.asarray(phi(h @ A.T))
    f = h @ matrices[-1].T
    sizes = np.array([norm_of(A) for A in matrices])
    distances = np.array([norm(A - M, axis=1).sum() for A, M in zip(matrices, base, strict=True)])
    ratios = np.divide(distances, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
    steep = math.prod(_steepest(phi) for phi in phis)
    complexity = steep * float(np.prod(sizes)) * float((ratios ** (2 / 3)).sum()) ** 1.5
    heads = norm(matrices[-1], axis=1)
    bound = heads * float(norm(h)) / n
    found = margins(f, labels)
    unit = complexity * float(norm(X)) / n or 1.0
    single = network.outputs == 1
    head, rademacher = (float(a[0]) if single else a for a in (heads, bound))
    return NetworkComplexity(sizes, distances, complexity, head, rademacher, found, found / unit)


def norm_of(A: Array) -> float:
    """Return the largest singular value, from the smaller of both products."""
    G = A @ A.T if A.shape[0] <= A.shape[1] else A.T @ A
    return math.sqrt(max(float(eigh(G)[0][-1]), 0.0))


def margins(f: Array, y: Array) -> Array:
    """Return ``y f`` of one column, and of several the score of the class less the next one."""
    if f.shape[1] == 1:
        return (f * y)[:, 0]
    at = np.arange(len(f)), y.argmax(1)
    own = f[at]
    others = f.copy()
    others[at] = -np.inf
    return own - others.max(1)


def _labels(y: ArrayLike, n: int, outputs: int) -> Array:
    labels = _check.targets(y, "y", n, np.dtype(np.float64), least=1, of="X")
    if outputs == 1:
        signs = _check.every(np.abs(labels) == 1, labels, "y", "be -1 or 1 for one output")
        return signs.reshape(n, -1)
    if labels.ndim == 1:
        fine = np.isin(labels, np.arange(outputs))
        rule = f"be a class from 0 to {outputs - 1}"
        return np.eye(outputs)[_check.every(fine, labels, "y", rule).astype(int)]
    return _check.shaped(labels.shape[1] == outputs, labels, "y", f"have {outputs} columns")


def _matrices(network: Network, name: str) -> list[Array]:
    """Return what layers multiply by: matrices of shape (units, fan-in)."""
    nodes = network.program.nodes[1:]
    plain = all(isinstance(node, Weights) and node.window is None for node in nodes[::2])
    plain &= all(isinstance(node, Apply) for node in nodes[1::2]) and len(nodes) % 2 == 1
    kinds = ", ".join(node.kind for node in nodes)
    _check.must(plain, name, "be layers of weights with activations between them", kinds)
    _check.must(not network.doubled, name, "not be doubled", "two networks")
    biases = [k for k, at in enumerate(network.weights) if at.b is not None]
    _check.must(not biases, name, "have no biases", f"some in layers {biases}")
    scales = [step.scale for step in network._weighs()]
    scales[0] *= network._made.entry
    scales[-1] *= network.alpha
    return [
        scale * at.w.T.astype(np.float64) for scale, at in zip(scales, network.weights, strict=True)
    ]


def _activations(network: Network) -> list[Any]:
    phis = [node.function for node in network.program if isinstance(node, Apply)]
    for phi in phis:
        rule = "have activations that are zero at zero"
        at_zero = float(np.asarray(phi(np.zeros(1)))[0])
        _check.must(at_zero == 0, "network", rule, f"{phi!r}, {at_zero:.3g} there")
    return phis


def _steepest(phi: Any) -> float:
    """Return the Lipschitz constant of an activation; refuse jumps, and slopes without bound."""
    x = np.arange(-FAR, FAR + 1e-9, 1 / 1024)
    slope = np.abs(np.asarray(phi.derivative(x)))
    inner = slope[np.abs(x) <= FAR / 2].max()
    # a function that jumps rises faster than its slope says
    rise = np.abs(np.diff(np.asarray(phi(x)))).max() * 1024
    fine = bool(slope.max() <= inner * (1 + 1e-6) and rise <= slope.max() * (1 + 1e-6))
    _check.must(fine, "network", "have activations of bounded slope", repr(phi))
    return float(slope.max())
