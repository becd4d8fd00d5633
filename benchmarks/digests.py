"""Record what the package computes, to the last bit, and compare two records.

    python benchmarks/digests.py record OUT.json [--level v1|v3] [--only PREFIX ...]
    python benchmarks/digests.py compare A.json B.json

A case is drawn from a seed of its own: its kind and its number. It has some outputs, each made by
one call of the public interface. Of every array the record has a SHA-256 of type, dtype, shape and
bytes, and some of its numbers; of an exception its type and message; and all warnings in their
order. Record before a change and after it, on one machine and with the same libraries: the bits of
results that come from BLAS depend on both. All work is done by one thread; every eighth case of a
Gram matrix is repeated with two, which must change nothing.

``compare`` has exit status 1 if anything differs. A record takes some minutes on one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("record", help="compute all cases and write their digests")
    one.add_argument("out", type=Path)
    one.add_argument("--level", choices=("v1", "v3", "v4"), help="CPU level; the best by default")
    one.add_argument("--only", nargs="+", default=[""], help="how the names of cases begin")
    two = commands.add_parser("compare", help="list the cases that differ in two records")
    two.add_argument("a", type=Path)
    two.add_argument("b", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    ARGUMENTS = arguments()
    # The libraries read these when they are loaded.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
    if getattr(ARGUMENTS, "level", None):
        os.environ["KERNELCORE_CPU_LEVEL"] = ARGUMENTS.level

import numpy as np  # noqa: E402

import kernelcore as kc  # noqa: E402

Array = np.ndarray
Outputs = dict[str, Callable[[], object]]

WHOLE, PART = 64, 16
"""Arrays of so many numbers are stored as well; of larger ones so many numbers, evenly spaced."""
MACHINE = ("version", "level", "cpu", "blas", "python", "numpy", "scipy")
"""What ``kernelcore.info()`` says of where numbers come from."""
TWICE = 8
"""One in so many cases of Gram matrices is computed with two threads as well, and large enough."""
COLUMNS = ("cases", "outputs", "errors", "warnings", "2 threads", "seconds")


class Case(NamedTuple):
    """What is computed, in words and as functions; ``twice``: with two threads as well."""

    description: str
    outputs: Outputs
    twice: bool = False


class Kind(NamedTuple):
    """``count`` draws of a case, in each of the dtypes."""

    make: Callable[..., Case]
    count: int
    dtypes: tuple[str, ...]


KINDS: dict[str, Kind] = {}
FLOATS = ("float32", "float64")


def kind(count: int, dtypes: tuple[str, ...] = FLOATS):
    """Register ``make(draw, number, dtype)``, or without a dtype where there are none."""

    def register(make: Callable[..., Case]) -> Callable[..., Case]:
        KINDS[make.__name__] = Kind(make, count, dtypes)
        return make

    return register


# ---- drawing


class Draw:
    """Random choices; numbers have three digits, so that they can be read."""

    def __init__(self, kind: str, number: int) -> None:
        self.rng = np.random.default_rng([*kind.encode(), number])

    def whole(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def number(self, low: float, high: float) -> float:
        return round(float(self.rng.uniform(low, high)), 3)

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one(self, options: Sequence):
        return options[self.whole(0, len(options) - 1)]

    def numbers(self, count: int, low: float, high: float) -> list[float]:
        return [self.number(low, high) for _ in range(count)]

    def normal(self, *shape: int, dtype: str = "float64") -> Array:
        return self.rng.standard_normal(shape).astype(dtype)

    def points(self, n: int, shape: tuple[int, ...], dtype: str) -> Array:
        """Normal ones; half of the time with zeros, a copy, its negative and a neighbour."""
        x = self.normal(n, *shape) * self.one((1.0, 1.0, 1.0, 0.05, 2.0))
        if n >= 5 and self.chance(0.5):
            x[1], x[2], x[3] = 0, x[0], -x[0]
            x[4] = x[0] * (1 + 1e-6 * self.normal(*shape))
        return x.astype(dtype)

    def pair(self, n: int, m: int, shape: tuple[int, ...], dtype: str) -> tuple[Array, Array]:
        """X and Y; half of the time they have a point in common."""
        x, y = self.points(n, shape, dtype), self.points(m, shape, dtype)
        if self.chance(0.5):
            y[-1] = x[0]
        return x, y

    def valid(self, make: Callable[[], object]):
        """The first result of ``make`` that is not refused."""
        for _ in range(999):
            try:
                return make()
            except ValueError:
                continue
        return make()


class Named:
    """A function that prints as its name; the repr of others has an address."""

    def __init__(self, name: str, fn: Callable[[Array], Array]) -> None:
        self.name, self.fn = name, fn

    def __call__(self, x: Array) -> Array:
        return self.fn(x)

    def __repr__(self) -> str:
        return self.name


SMOOTH = (
    Named("softsign", lambda x: x / np.sqrt(1 + x * x)),
    Named("arctan", np.arctan),
    Named("wavelet", lambda x: x * np.exp(-x * x / 2)),
    Named("log_cosh", lambda x: np.logaddexp(x, -x) - math.log(2)),
    Named("half_plus_sin", lambda x: x / 2 + np.sin(x)),
)
ROUGH = (  # these give warnings, or errors
    Named("modulus", np.abs),
    Named("steep", lambda x: np.tanh(30 * x)),
    Named("unbounded", lambda x: np.exp(x * x)),
)
OF_COSINE = (
    Named("geometric", lambda u: 1 / (1.5 - u)),
    Named("exponential", lambda u: np.exp(2 * u)),
    Named("even", lambda u: 1 / (2 - u * u)),
    Named("root", lambda u: 2 - np.sqrt(1 - u)),
)

PLAIN = (
    kc.Relu, kc.Abs, kc.Step, kc.Sign, kc.Erf, kc.Gelu, kc.Sin, kc.Cos, kc.Exp, kc.GaussianBump,
    kc.Elu, kc.Selu, kc.Identity, kc.Tanh, kc.Sigmoid, kc.Silu, kc.Softplus,
)  # fmt: skip
MAKERS: tuple[Callable[..., object], ...] = (
    lambda draw, shift: kc.LeakyRelu(draw.number(-0.6, 0.9), shift=shift),
    lambda draw, shift: kc.RectifiedPower(draw.whole(0, 3), shift=shift),
    lambda draw, shift: kc.Monomial(draw.whole(0, 3), shift=shift),
    lambda draw, shift: kc.Hermite(draw.whole(0, 4), shift=shift),
    lambda draw, shift: kc.PowerSeries(draw.numbers(draw.whole(1, 4), -0.6, 0.6), shift=shift),
    lambda draw, shift: kc.OneKink(shift, draw.numbers(3, -0.5, 0.5), draw.numbers(3, -0.5, 0.5)),
    *(lambda draw, shift, of=of: of(shift=shift) for of in PLAIN),
    lambda draw, shift: kc.Activation(draw.one(SMOOTH), shift=shift),
)
ACTIVATIONS = len(MAKERS)
NUMERICAL = 5
"""The last ones take quadratures for every row: they are drawn less often."""


def activation(draw: Draw, which: int | None = None, shift: float | None = None):
    """One of all, or the one of that number; shifted one time in four."""
    if which is None:
        closed = ACTIVATIONS - NUMERICAL
        which = draw.whole(0, closed - 1) if draw.chance(0.96) else draw.whole(closed, closed + 4)
    if shift is None:
        shift = draw.number(-1.2, 1.2) if draw.chance(0.25) else 0.0
    return MAKERS[which % ACTIVATIONS](draw, shift)


PROFILES: tuple[Callable[[Draw], object], ...] = (
    lambda draw: kc.profiles.Exp(draw.number(0.4, 2.0)),
    lambda draw: kc.profiles.Kappa0(),
    lambda draw: kc.profiles.Kappa1(),
    lambda draw: kc.profiles.Power(draw.whole(0, 6)),
    lambda draw: kc.profiles.PowerSeries(draw.numbers(draw.whole(2, 7), 0.0, 1.0)),
    lambda draw: draw.numbers(draw.whole(2, 7), 0.0, 1.0),
    lambda draw: kc.profiles.Fitted(draw.one(OF_COSINE[:3])),
    lambda draw: kc.profiles.Fitted(OF_COSINE[3], max_degree=draw.whole(20, 60)),
    lambda draw: draw.one(OF_COSINE[:3]),
)


def profile(draw: Draw, which: int | None = None):
    """A profile, a sequence of coefficients or a function."""
    which = draw.whole(0, len(PROFILES) - 1) if which is None else which % len(PROFILES)
    return PROFILES[which](draw)


def weights(draw: Draw) -> dict[str, object]:
    """Of Dense or Conv."""
    return {
        "w_std": draw.number(0.6, 1.7),
        "b_std": draw.number(0.0, 0.7) if draw.chance(0.5) else 0.0,
        "trainable": draw.chance(0.8),
    }


def dense(draw: Draw):
    return kc.Dense(**weights(draw))


def some_map(draw: Draw):
    return kc.Project() if draw.chance(0.25) else kc.DotProduct(profile(draw))


def residual(draw: Draw, weights: Callable[[Draw], object], nested: bool = True):
    """A branch of activations and weights, beside nothing, weights, or all kinds of layers."""
    branch = [of(draw) for of in (activation, weights) * draw.whole(1, 2)]
    if nested and draw.chance(0.3):
        branch[:0] = [weights(draw), residual(draw, weights, nested=False)]
    shortcut = draw.one(
        ((), (), weights(draw), (activation(draw), weights(draw)), (weights(draw), some_map(draw)))
    )
    return kc.Residual(*branch, shortcut=shortcut)


def row_network(draw: Draw, featured: int | None = None, most: int = 5):
    """Up to ``most`` blocks of layers, the first with the activation ``featured``."""

    def make():
        layers = []
        if draw.chance(0.3):
            layers.append(kc.Input(sum=draw.chance(0.7)))
        if draw.chance(0.1):
            layers.append(some_map(draw))
        layers += [dense(draw), activation(draw, featured)]
        for _ in range(draw.whole(0, most - 1)):
            layers.append(dense(draw))
            block = draw.one(("plain", "plain", "plain", "residual", "map"))
            if block == "plain":
                layers.append(activation(draw))
            elif block == "map":
                layers.append(some_map(draw))
            else:
                layers.append(residual(draw, dense))
        if draw.chance(0.85):
            layers.append(dense(draw))
        net = kc.Sequential(*layers)
        net.nngp  # noqa: B018  -- raises ValueError where layers do not fit
        return net

    return draw.valid(make)


# ---- activations and profiles


@kind(3 * ACTIVATIONS + len(ROUGH), ())
def activations(draw: Draw, number: int) -> Case:
    """Values and duals; of every activation without a shift, then with one, twice."""
    if number < 3 * ACTIVATIONS:
        shift = 0.0 if number < ACTIVATIONS else draw.number(-1.5, 1.5)
        phi = activation(draw, number, shift)
    else:
        phi = kc.Activation(ROUGH[number - 3 * ACTIVATIONS])
    x = np.concatenate([[0.0, -0.0, phi.shift, -phi.shift], 2 * draw.normal(40)])
    v1, v2 = np.exp(draw.normal(2, 20))
    v1[:3], v2[1:4] = 0.0, 0.0
    v2[4:8] = v1[4:8]
    cosine = draw.rng.uniform(-1, 1, 20)
    cosine[4:8] = 1, -1, 1 - 1e-9, 1.01
    cov = cosine * np.sqrt(v1 * v2)
    outputs: Outputs = {
        "call": lambda: phi(x),
        "call, float32": lambda: phi(x.astype(np.float32)),
        "call of integers": lambda: phi([[-1, 0, 2]]),
        "dual": lambda: phi.dual(v1, v2, cov),
        "dual, float32": lambda: phi.dual(np.float32(1.3), np.float32(0.4), np.float32(0.2)),
        "dual of numbers": lambda: phi.dual(1, 2.0, [[0.5], [-0.7]]),
        "dual at large variance": lambda: phi.dual(500.0, 500.0, 100.0),
        "dual of a negative variance": lambda: phi.dual(1.0, -1.0, 0.0),
    }
    if isinstance(phi, kc.Activation):
        outputs["dual_error"] = lambda: phi.dual_error(v1[:6])
        outputs["dual_error of the slope"] = lambda: phi.dual_error(v1[:6], slope=True)
    return Case(f"{phi!r}", outputs)


@kind(3 * len(PROFILES), ())
def profiles(draw: Draw, number: int) -> Case:
    p = kc.profiles.as_profile(profile(draw, number))
    u = np.concatenate([[1.0, -1.0, 0.0], draw.rng.uniform(-1, 1, 29)])
    return Case(
        f"{p!r}",
        {
            "call": lambda: p(u),
            "derivative": lambda: p.derivative(u),
            "beyond": lambda: p(1.5),
            "coefficients": lambda: getattr(p, "coefficients", None),
            "error": lambda: getattr(p, "error", None),
        },
    )


# ---- networks of rows


def of_network(net, X: Array, Y: Array) -> Outputs:
    # Terms are networks of their own: of few inputs.
    return {
        "parameters": lambda: repr(net.parameters(deep=True)),
        "nngp(X)": lambda: net.nngp(X),
        "nngp(X, Y)": lambda: net.nngp(X, Y),
        "nngp.diag(X)": lambda: net.nngp.diag(X),
        "ntk(X)": lambda: net.ntk(X),
        "ntk(X, Y)": lambda: net.ntk(X, Y),
        "ntk.diag(X)": lambda: net.ntk.diag(X),
        "kernels(X)": lambda: net.kernels(X),
        "kernels(X, Y)": lambda: net.kernels(X, Y),
        "ntk.terms(X)": lambda: net.ntk.terms(X[:2]),
        "ntk.terms(X, Y)": lambda: net.ntk.terms(X[:1], Y[:1]),
    }


def of_profile(kernel, draw: Draw) -> Outputs:
    u = np.concatenate([[1.0, -1.0, 0.0], draw.rng.uniform(-1, 1, 13)])
    radius, dim = draw.number(0.3, 3.0), draw.whole(1, 9)
    return {
        "profile": lambda: kernel().profile(u),
        "profile in a dimension": lambda: kernel().profile(u, dim=dim),
        "profile at a radius": lambda: kernel().profile(u, radius=radius, dim=dim),
    }


def said(X: Array, Y: Array) -> str:
    return f"X {X.shape}, Y {Y.shape}, {X.dtype}"


@kind(4 * ACTIVATIONS)
def rows(draw: Draw, number: int, dtype: str) -> Case:
    net = row_network(draw, number)
    twice = number % TWICE == 0
    n, m = (draw.whole(60, 80), 50) if twice else (draw.whole(5, 12), 3)
    X, Y = draw.pair(n, m, (draw.one((1, 2, 3, 5, 8, 17, 40)),), dtype)
    outputs = of_network(net, X, Y)
    for name in ("nngp", "ntk"):
        of = of_profile(partial(getattr, net, name), draw)
        outputs |= {f"{name}.{what}": call for what, call in of.items()}
    return Case(f"{net!r}; {said(X, Y)}", outputs, twice)


# ---- kernels and their algebra


CLASSICAL: tuple[Callable[[Draw], object], ...] = (
    lambda draw: kc.Gaussian(draw.number(0.3, 3.0)),
    lambda draw: kc.Laplacian(draw.number(0.3, 3.0)),
    lambda draw: kc.Matern(draw.whole(0, 4) + 0.5, draw.number(0.3, 3.0)),
    lambda draw: kc.Matern(draw.number(0.3, 4.0), draw.number(0.3, 3.0)),
    lambda draw: kc.Polynomial(draw.whole(1, 5), draw.number(0.1, 1.0), draw.number(0.0, 1.0)),
    lambda draw: kc.ArcCosine(draw.whole(0, 3)),
    lambda draw: kc.Laplacian(draw.number(0.3, 3.0), norm=1),
    lambda draw: kc.Cauchy(draw.number(0.3, 3.0)),
)
OF_DIFFERENCE = (0, 1, 2, 3, 6, 7)
OF_ANGLE = 6
"""The first ones have a profile."""


def classical(draw: Draw, which: int | None = None, count: int = len(CLASSICAL)):
    """One of the first ``count``, or the one of that number."""
    return CLASSICAL[draw.whole(0, count - 1) if which is None else which % count](draw)


def angular(draw: Draw, which: int | None = None):
    return classical(draw, which, OF_ANGLE)


def network_kernel(draw: Draw, most: int = 3):
    def make():
        net = row_network(draw, most=most)
        return net.ntk if draw.chance(0.5) else net.nngp

    return draw.valid(make)


def algebra(draw: Draw, depth: int, leaf: Callable[[], object]):
    """Sums, products, multiples, quotients and powers of what ``leaf`` makes."""
    if depth == 0:
        return leaf()
    left = algebra(draw, draw.whole(0, depth - 1), leaf)
    how = draw.one(("+", "+", "*", "*", "multiple", "quotient", "power", "sum"))
    if how == "multiple":
        return draw.number(0.0, 3.0) * left
    if how == "quotient":
        return left / draw.number(0.5, 3.0)
    if how == "power":
        return left ** draw.whole(1, 3)
    right = algebra(draw, depth - 1, leaf)
    if how == "sum":
        return sum([left, right, leaf()])
    return left + right if how == "+" else left * right


def of_kernel(kernel, X: Array, Y: Array) -> Outputs:
    return {
        "parameters": lambda: repr(kernel.parameters(deep=True)),
        "k(X)": lambda: kernel(X),
        "k(X, Y)": lambda: kernel(X, Y),
        "k.diag(X)": lambda: kernel.diag(X),
    }


@kind(80)
def kernels(draw: Draw, number: int, dtype: str) -> Case:
    def leaf():
        return network_kernel(draw) if draw.chance(0.3) else classical(draw)

    if number < 2 * len(CLASSICAL):
        kernel = classical(draw, number)
    else:
        kernel = algebra(draw, draw.whole(1, 3), leaf)
    twice = number % TWICE == 0
    n, m = (draw.whole(100, 150), 60) if twice else (draw.whole(5, 12), 3)
    X, Y = draw.pair(n, m, (draw.one((1, 2, 3, 5, 8, 17, 40)),), dtype)
    outputs = of_kernel(kernel, X, Y) | of_profile(lambda: kernel, draw)
    outputs["k(x, y)"] = lambda: kernel(X[0], Y[0])
    return Case(f"{kernel!r}; {said(X, Y)}", outputs, twice)


@kind(6, ())
def calls(draw: Draw, number: int) -> Case:
    """Every kind of input that is taken or refused."""
    net = kc.presets.mlp(2, b_std=0.1)
    kernel = (
        net.ntk, net.nngp, kc.Gaussian(1.5), 2.0 * net.ntk + kc.Laplacian(1.0, norm=1),
        kc.Matern(1.2, 0.7) * kc.ArcCosine(2), kc.CyclicConvolution(2, 3, kc.profiles.Kappa1()),
    )[number]  # fmt: skip
    X, Y = draw.normal(9, 4) / 4, draw.normal(5, 4) / 4
    bad = X.copy()
    bad[3, 2] = np.nan
    wide, square = np.zeros((9, 8)), X[:4].copy()
    wide[:, ::2] = X
    inputs = {
        "list": (X.tolist(),),
        "integers": (np.arange(12).reshape(3, 4) % 2,),
        "booleans": (np.eye(4, dtype=bool),),
        "columns first": (np.asfortranarray(X), Y.T.copy().T),
        "strided": (wide[::2, ::2],),
        "no rows": (X[:0],),
        "no rows of Y": (X, Y[:0]),
        "one row": (X[:1],),
        "half precision": (X.astype(np.float16),),
        "two dtypes": (X.astype(np.float32), Y),
        "large": (1e30 * X.astype(np.float32),),
        "small": (1e-30 * X.astype(np.float32),),
        "complex": (X + 1j,),
        "text": (X.astype(str),),
        "not a number": (bad,),
        "infinite": (X, np.full_like(Y, np.inf)),
        "one axis": (X[0],),
        "three axes": (X[None],),
        "no columns": (X[:, :0],),
        "other columns": (X, Y[:, :3]),
    }
    outputs: Outputs = {name: partial(kernel, *given) for name, given in inputs.items()}
    outputs |= {
        "out": lambda: kernel(X, Y, out=np.ones((9, 5))),
        "out of a wrong shape": lambda: kernel(X, Y, out=np.ones((5, 9))),
        "out of a wrong dtype": lambda: kernel(X, Y, out=np.ones((9, 5), np.float32)),
        "out that is X": lambda: kernel(square, out=square),
        "no threads": lambda: kernel(X, n_threads=0),
        "cosine beyond 1": lambda: kernel.profile([0.5, 1.5]),
        "negative radius": lambda: kernel.profile([0.5], radius=-1.0),
        "negative multiple": lambda: -1.0 * kernel,
        "zeroth power": lambda: kernel**0,
        "repr": lambda: repr(3 * (kernel + kernel) * kernel / 2),
    }
    return Case(f"{kernel!r}", outputs)


# ---- signals and images


def sizes(draw: Draw, axes: int, low: int, high: int):
    return tuple(draw.whole(low, high) for _ in range(axes))


def conv(draw: Draw, axes: int, stride: int | None = None, padding: str | None = None):
    filter_size = sizes(draw, axes, 1, 3)
    if axes == 2 and draw.chance(0.5):
        filter_size = draw.whole(1, 3)
    if stride is None:
        stride = sizes(draw, axes, 1, 2) if draw.chance(0.3) else 1
    if padding is None:
        padding = draw.one(("same", "valid", "circular"))
    return kc.Conv(filter_size, stride, padding, **weights(draw))


def pool(draw: Draw, axes: int):
    if draw.chance(0.4):
        return kc.GaussianPool(1 if draw.chance(0.5) else sizes(draw, axes, 1, 2))
    stride = sizes(draw, axes, 1, 2) if draw.chance(0.5) else None
    return kc.AvgPool(sizes(draw, axes, 1, 3), stride, draw.one(("same", "valid", "circular")))


def spatial_residual(draw: Draw, axes: int):
    if draw.chance(0.7):
        return residual(draw, lambda draw: conv(draw, axes, 1, draw.one(("same", "circular"))))
    side = partial(conv, draw, axes, 2, "same")
    return kc.Residual(activation(draw), side(), shortcut=side())


def spatial_network(draw: Draw, axes: int, shape: tuple[int, ...], featured: int | None = None):
    """Up to four blocks of layers and a readout, for inputs of that shape."""

    def make():
        layers = [kc.Input(sum=True)] if draw.chance(0.25) else []
        if draw.chance(0.1):
            layers.append(some_map(draw))
        if draw.chance(0.1):
            layers.append(pool(draw, axes))
        layers += [conv(draw, axes), activation(draw, featured)]
        for _ in range(draw.whole(0, 3)):
            block = draw.one(("conv", "conv", "dense", "pool", "pool", "residual", "map"))
            if block == "pool":
                layers.append(pool(draw, axes))
                continue
            layers.append(dense(draw) if block == "dense" else conv(draw, axes))
            if block == "residual":
                layers.append(spatial_residual(draw, axes))
            else:
                layers.append(some_map(draw) if block == "map" else activation(draw))
        layers.append(kc.GlobalAvgPool() if draw.chance(0.5) else kc.Flatten(draw.chance(0.5)))
        if draw.chance(0.7):
            layers.append(dense(draw))
            if draw.chance(0.3):
                layers += [activation(draw), dense(draw)]
        net = kc.Sequential(*layers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            net.nngp.diag(np.ones((1, *shape)))  # raises ValueError where no positions are left
        return net

    return draw.valid(make)


def spatial(draw: Draw, number: int, dtype: str, axes: int, low: int, high: int) -> Case:
    twice = number % TWICE == 0
    low, high = (high, 2 * high) if twice else (low, high)
    shape = (*sizes(draw, axes, low, high), draw.whole(1, 3))
    net = spatial_network(draw, axes, shape, number)
    X, Y = draw.pair(draw.whole(60, 70) if twice else draw.whole(2, 5), 2, shape, dtype)
    outputs = of_network(net, X, Y)
    if number % 8 == 1:
        other = spatial_network(draw, axes, shape)
        mixed = 0.5 * net.nngp * other.nngp + other.nngp**2
        outputs |= {f"mixed {name}": call for name, call in of_kernel(mixed, X, Y).items()}
    if number % 8 == 2:
        outputs["profile"] = lambda: net.nngp.profile(0.5)
        outputs["other channels"] = lambda: net.nngp(X, Y[..., :0])
        outputs["rows"] = lambda: net.nngp(X[..., 0])
        outputs["not a number"] = lambda: net.nngp(np.where(X == X[0], np.nan, X))
    return Case(f"{net!r}; {said(X, Y)}", outputs, twice)


@kind(2 * ACTIVATIONS)
def signals(draw: Draw, number: int, dtype: str) -> Case:
    return spatial(draw, number, dtype, 1, 3, 9)


@kind(2 * ACTIVATIONS)
def images(draw: Draw, number: int, dtype: str) -> Case:
    return spatial(draw, number, dtype, 2, 2, 6)


@kind(30)
def presets(draw: Draw, number: int, dtype: str) -> Case:
    which = ("cntk", "cntk", "ckn", "myrtle", "mlp")[number % 5]
    turn = number // 5
    shape: tuple[int, ...] = (*sizes(draw, 2, 4, 7), 3)
    if which == "cntk":
        axes = 1 + number % 2
        net = kc.presets.cntk(draw.whole(2, 5), draw.chance(0.5), draw.chance(0.5), axes=axes)
        shape = shape[2 - axes :]
    elif which == "myrtle":
        net = kc.presets.myrtle((5, 7, 10)[turn % 3], ("relu", "exp")[turn // 3])
        shape = (32, 32, 3)
    elif which == "ckn" and turn < 3:
        net, shape = kc.presets.ckn(turn + 1), (32, 32, 3)
    elif which == "ckn":
        net = kc.presets.ckn((3, draw.whole(1, 3)), (1, 2), [profile(draw, turn), profile(draw)])
        shape = (*sizes(draw, 2, 8, 11), 2)
    else:
        phi = activation(draw)
        net = kc.presets.mlp(draw.whole(0, 4), phi, draw.number(0.8, 1.5), draw.number(0.0, 0.5))
        shape = (6,)
    large = shape[0] == 32
    X, Y = draw.pair(2 if large else 6, 1 if large else 3, shape, dtype)
    outputs = of_network(net, X, Y)
    if large:
        outputs = {name: outputs[name] for name in ("nngp(X)", "nngp(X, Y)", "nngp.diag(X)")}
    return Case(f"presets.{which}: {net!r}; {said(X, Y)}", outputs)


@kind(54)
def cyclic(draw: Draw, number: int, dtype: str) -> Case:
    d = draw.whole(3, 16)
    patch, width = draw.whole(1, d), draw.one((1, 2, d, draw.whole(1, d)))
    if number % 3 == 2:
        of = algebra(draw, draw.whole(0, 1), lambda: draw.one((classical, network_kernel))(draw))
    else:
        of = profile(draw, number // 3 * 2 + number % 3)
    kernel = kc.CyclicConvolution(patch, min(width, d), of)
    if draw.chance(0.2):
        kernel = draw.one((2.0 * kernel, kernel + kc.Gaussian(2.0), kernel * kernel))
    twice = number % TWICE == 0
    X, Y = draw.pair(draw.whole(150, 180) if twice else draw.whole(5, 20), 7, (d,), dtype)
    shape = draw.one(("signs", "signs", "bounded", "any"))
    if shape == "signs":
        X, Y = (np.where(a < 0, -1, 1).astype(dtype) for a in (X, Y))
    elif shape == "bounded":
        X, Y = (np.clip(a, -1, 1) for a in (X, Y))
    return Case(f"{kernel!r}; {shape}, {said(X, Y)}", of_kernel(kernel, X, Y), twice)


# ---- spectra


def fields(of, *names: str) -> dict[str, object]:
    """Attributes by name."""
    return {name: getattr(of, name) for name in names}


LEVELS = ("log_eigenvalues", "eigenvalues", "multiplicities", "trace", "tail", "mass", "error")


def of_cosine(draw: Draw, number: int):
    """A kernel, a profile, coefficients or a function, and a radius that fits them."""
    which = number % 6
    if which == 0:
        net = kc.presets.mlp(draw.whole(1, 3), activation(draw, number // 6))
        return (net.ntk, net.nngp)[number // 6 % 2], None
    if which == 1:
        return network_kernel(draw, 2), None
    if which == 2:
        return angular(draw, number // 6), draw.number(0.5, 2.0) if draw.chance(0.5) else None
    if which == 3:
        leaf = partial(draw.one((angular, partial(network_kernel, most=2))), draw)
        return algebra(draw, draw.whole(1, 2), leaf), draw.one((None, 1.0, 1.5))
    if which == 4:
        return profile(draw, number // 6), None
    net = kc.presets.mlp(draw.whole(1, 2), b_std=draw.number(0.0, 0.5))
    return net.ntk + draw.number(0.1, 2.0) * angular(draw, number // 6), 1.0


@kind(6 * ACTIVATIONS, ())
def sphere(draw: Draw, number: int) -> Case:
    kernel, radius = of_cosine(draw, number)
    dim = draw.one((2, 3, 4, 5, 10, 30, 100, 1000, 10**6))
    degree = draw.one((0, 5, 12, 25, 40, 70, 150))
    power = np.abs(draw.normal(degree + 1))
    names = (*LEVELS, "log_multiplicities", "resolved", "radius")
    s = cache(lambda: kc.spectrum.sphere(kernel, dim, degree, radius=radius))
    outputs: Outputs = {
        "spectrum": lambda: fields(s(), *names),
        "repr": lambda: repr(s()),
        "call": lambda: s()([1.0, 0.5, -0.2, -1.0]),
        "decay": lambda: s().decay(),
        "decay of one parity": lambda: s().decay(first=2, parity=0),
        "asymptotic_tail": lambda: s().asymptotic_tail(),
        "rkhs_norm": lambda: s().rkhs_norm(power),
    }
    if isinstance(kernel, kc.Kernel):
        outputs["null_degrees"] = lambda: kernel.null_degrees(12)
    return Case(f"{kernel!r}; dim {dim}, max_degree {degree}, radius {radius}", outputs)


@kind(42, ())
def hypercube(draw: Draw, number: int) -> Case:
    kernel, _ = of_cosine(draw, number)
    dim = draw.one((1, 2, 5, 9, 16, 40, 120))
    power = np.abs(draw.normal(dim + 1))
    s = cache(lambda: kc.spectrum.hypercube(kernel, dim))
    return Case(
        f"{kernel!r}; dim {dim}",
        {
            "spectrum": lambda: fields(s(), *LEVELS, "noise", "resolved"),
            "repr": lambda: repr(s()),
            "rkhs_norm": lambda: s().rkhs_norm(power),
        },
    )


@kind(27, ())
def cyclic_spectra(draw: Draw, number: int) -> Case:
    d = draw.whole(3, 14)
    of = profile(draw, number // 2) if number % 2 else network_kernel(draw)
    kernel = kc.CyclicConvolution(draw.whole(1, d), draw.whole(1, d), of)
    if draw.chance(0.2):
        kernel = draw.number(0.5, 2.0) * kernel
    sets = [[i, (i + 1) % d, (i + 2) % d] for i in range(d)]
    coefficients = draw.numbers(d, -1.0, 1.0)
    s = cache(lambda: kc.spectrum.cyclic(kernel, d))
    names = (*LEVELS, "noise", "resolved", "degrees", "shifts", "gains")
    return Case(
        f"{kernel!r}; dim {d}",
        {
            "spectrum": lambda: fields(s(), *names),
            "repr": lambda: repr(s()),
            "target_power": lambda: s().target_power(sets, coefficients),
        },
    )


@kind(30, ())
def spiked(draw: Draw, number: int) -> Case:
    kernel, _ = of_cosine(draw, number)
    dim = draw.one((2, 5, 12, 40, 100))
    signal, snr = draw.whole(1, min(dim - 1, 6)), draw.one((0.5, 1.0, 4.0, 20.0))
    degree = draw.one((0, 2, 5, 9))
    s = cache(lambda: kc.spectrum.spiked(kernel, dim, signal, snr, max_degree=degree))
    return Case(
        f"{kernel!r}; dim {dim}, signal_dim {signal}, snr {snr}, max_degree {degree}",
        {
            "spectrum": lambda: fields(s(), *LEVELS, "noise", "resolved", "degrees", "nodes"),
            "repr": lambda: repr(s()),
            "target_power": lambda: s().target_power([0.5] * min(degree + 1, 2)),
        },
    )


@kind(8)
def gram_spectra(draw: Draw, number: int, dtype: str) -> Case:
    kernel = classical(draw, number)
    X = draw.normal(draw.whole(20, 130), 3, dtype=dtype)
    y = draw.normal(len(X), dtype=dtype)
    rank = draw.whole(1, 5)
    s = cache(lambda: kc.spectrum.gram(kernel(X)))
    few = cache(lambda: kc.spectrum.gram(kernel(X), rank))
    levels = LEVELS[:-1]
    names = (*levels, "eigenvectors")
    return Case(
        f"{kernel!r}; X {X.shape}, rank {rank}, {dtype}",
        {
            "whole": lambda: fields(s(), *names),
            "target_power": lambda: s().target_power(y),
            "decay": lambda: s().decay([0.0, 0.3, 5.0]),
            "few": lambda: fields(few(), *names),
            "no vectors": lambda: fields(kc.spectrum.gram(kernel(X), vectors=False), *levels),
        },
    )


@kind(8, ())
def harmonics(draw: Draw, number: int) -> Case:
    dim, degree = draw.whole(2, 9), draw.whole(0, 6)
    X = draw.normal(60, dim)
    y, t = X[:, 0] * X[:, -1] + 0.1 * draw.normal(60), draw.rng.uniform(-1, 1, 9)
    power = draw.numbers(degree + 1, 0.0, 1.0)
    return Case(
        f"dim {dim}, degree {degree}",
        {
            "legendre": lambda: kc.spectrum.legendre(dim, degree, t),
            "multiplicity": lambda: kc.spectrum.multiplicity(dim, 10 * degree),
            "log_multiplicities": lambda: kc.spectrum.log_multiplicities(dim, 20),
            "degree_power": lambda: kc.spectrum.degree_power(X, y, degree),
            "projection": lambda: kc.spectrum.projection(X, y, degree, X[:7]),
            "RandomFunction": lambda: kc.spectrum.RandomFunction(dim, power, seed=number)(X),
        },
    )


@kind(40, ())
def theory(draw: Draw, number: int) -> Case:
    which = number % 4
    net = kc.presets.mlp(draw.whole(1, 3), draw.one((None, kc.Erf(), kc.Tanh())))
    dim = draw.whole(3, 20)
    if which == 0:
        s = kc.spectrum.sphere(net.ntk, dim, draw.whole(8, 40))
        text = f"sphere({s.kernel!r}, dim={dim}), {len(s)} levels"
    elif which == 1:
        s = kc.spectrum.hypercube(net.nngp, dim)
        text = f"hypercube({s.kernel!r}, dim={dim})"
    elif which == 2:
        s = kc.spectrum.spiked(kc.ArcCosine(1), dim, 2, 5.0, max_degree=4)
        text = f"spiked(ArcCosine(1), dim={dim}, signal_dim=2, snr=5.0)"
    else:
        exponent = draw.number(1.1, 3.0)
        s = np.arange(1.0, draw.whole(20, 200)) ** -exponent
        text = f"{len(s)} eigenvalues k^-{exponent}"
    power = np.abs(draw.normal(len(s) + draw.whole(0, 1)))
    n, times = [1.0, 7.0, 50.0, 1e3, np.inf], [0.0, 0.1, 3.0, 1e3, np.inf]
    ridge, noise = draw.one((0.0, 1e-3, 0.5)), draw.one((0.0, 0.1))
    features, norm = draw.one((5, 40, 300)), np.exp(draw.normal(6))
    degree, patch, pool = draw.whole(1, 4), draw.whole(1, dim), draw.whole(1, dim)
    of = kc.theory
    keywords = {"noise_variance": noise}
    return Case(
        f"{text}; {len(power)} powers, ridge {ridge}, noise {noise}, {features} features",
        {
            "learning_curve": lambda: of.learning_curve(s, power, n, ridge, **keywords),
            "random_features_curve": lambda: of.random_features_curve(
                s, power, n, features, ridge, **keywords
            ),
            "gradient_flow_curve": lambda: of.gradient_flow_curve(
                s, power, n[:4], times[:4], ridge=ridge, **keywords
            ),
            "modes": lambda: of.modes(s, power, n, ridge, features=features, **keywords),
            "effective_dimension": lambda: of.effective_dimension(s, [0.0, 1e-6, 0.1, 2.0]),
            "degrees_of_freedom": lambda: of.degrees_of_freedom(s, [0.0, 1e-6, 0.1, 2.0]),
            "approximation": lambda: of.approximation(s, power, norm),
            "approximation_rate": lambda: of.approximation_rate(s, power),
            "approximation_rate, default": lambda: of.approximation_rate(s),
            "staircase": lambda: of.staircase([1, 10, 1e4], dim, power[:4], features=features),
            "sample_complexity": lambda: of.sample_complexity(degree, dim, patch, pool),
            "spiked_dimension": lambda: of.spiked_dimension(dim, [1, 2], [0.5, 8.0]),
        },
    )


# ---- solvers


class Problem(NamedTuple):
    """A system of equations, and how it came about."""

    kernel: object
    X: Array
    Z: Array
    K: Array
    y: Array
    ridge: float
    seed: int


def direct(p: Problem, draw: Draw) -> Outputs:
    solve, singular = kc.solvers.ridge, np.ones_like(p.K)
    weights = np.exp(draw.normal(len(p.X)))
    ridges = [0.0, 1e-4, p.ridge, 10.0]
    path = cache(lambda: kc.solvers.RidgePath(p.K, p.y))
    weighted = cache(lambda: kc.solvers.RidgePath(p.K, p.y, sample_weight=weights))
    outputs: Outputs = {
        "ridge": lambda: solve(p.K, p.y, p.ridge),
        "ridge in place": lambda: solve(p.K.copy(), p.y, p.ridge, overwrite_K=True),
        "ridge of a singular matrix": lambda: solve(singular, p.y),
        "ridge by pseudo-inverse": lambda: solve(singular, p.y, 0.0, on_singular="pinv"),
        "interpolate": lambda: kc.solvers.interpolate(p.K, p.y),
        "rkhs_inner": lambda: kc.solvers.rkhs_inner(p.y, p.K),
        "rkhs_inner of two": lambda: kc.solvers.rkhs_inner(p.y, p.K, 2 * p.y + 1),
        "eigen": lambda: fields(path(), "eigenvalues", "eigenvectors", "cutoff"),
        "predict": lambda: path().predict(p.kernel(p.Z, p.X), ridges),
    }
    for of, name in ((path, "path"), (weighted, "weighted")):
        for method in (
            "alpha", "degrees_of_freedom", "fitted", "gcv", "log_marginal_likelihood", "loo",
            "loo_error", "rkhs_norm",
        ):  # fmt: skip
            outputs[f"{name}.{method}"] = lambda of=of, method=method: getattr(of(), method)(ridges)
        for criterion in ("loo", "gcv", "likelihood"):
            outputs[f"{name}.best({criterion})"] = lambda of=of, c=criterion: of().best(c)
    return outputs


def flows(p: Problem, draw: Draw) -> Outputs:
    times, net = [0.0, 0.2, 4.0, np.inf], kc.presets.mlp(1, b_std=0.2)
    cross, solvers = p.kernel(p.Z, p.X), kc.solvers
    signs = np.where(p.y < 0, -1.0, 1.0)
    classes = (p.y.reshape(len(p.y), -1)[:, 0] > 0).astype(int)
    descend = partial(solvers.kernel_gradient_descent, p.K, iterations=12)
    outputs: Outputs = {
        "gradient_flow": lambda: solvers.gradient_flow(p.K, p.y, times, K_test=cross),
        "gradient_flow with a ridge": lambda: solvers.gradient_flow(
            p.K, p.y, times, K_test=cross, f0=p.y / 2, f0_test=cross @ p.y, ridge=p.ridge
        ),
        "ensemble_flow": lambda: solvers.ensemble_flow(
            net.ntk(p.X), net.nngp(p.X), p.y, times, ntk_test=net.ntk(p.Z, p.X),
            nngp_test=net.nngp(p.Z, p.X), nngp_test_test=net.nngp(p.Z),
        ),
        "descent, square": lambda: descend(p.y),
        "descent, square with momentum": lambda: descend(p.y, momentum=0.5, f0=p.y / 2),
        "descent, logistic": lambda: descend(signs, loss="logistic"),
        "descent, squared_hinge": lambda: descend(signs, loss="squared_hinge"),
        "descent, softmax": lambda: descend(classes, loss="softmax"),
        "descent, stopped early": lambda: descend(
            p.y, K_validation=cross, y_validation=p.y[: len(p.Z)], patience=3
        ),
        "descent of wrong labels": lambda: descend(p.y, loss="logistic"),
    }  # fmt: skip
    return outputs


def iterative(p: Problem, draw: Draw) -> Outputs:
    solvers, rank = kc.solvers, draw.whole(5, 15)
    given = {"ridge": p.ridge, "seed": p.seed}
    preconditioners = {
        "none": lambda: None,
        "nystrom": lambda: solvers.nystrom_preconditioner(p.K, rank=rank, **given),
        "nystrom, uniform": lambda: solvers.nystrom_preconditioner(
            p.K, rank=rank, method="uniform", **given
        ),
        "nystrom of a kernel": lambda: solvers.nystrom_preconditioner(
            p.kernel, p.X, rank=rank, block=4, **given
        ),
        "eigenpro": lambda: solvers.eigenpro_preconditioner(
            p.K, rank=rank, subsample=len(p.K) - 5, **given
        ),
        "block_jacobi": lambda: solvers.block_jacobi(p.K, block=13, ridge=p.ridge),
    }
    blocks = partial(solvers.RowBlocks, p.kernel, p.X, max_memory=40 * len(p.X) * p.K.itemsize)
    few = {"max_iter": 40}
    outputs: Outputs = {}
    for name, make in preconditioners.items():
        for solver in (solvers.conjugate_gradients, solvers.richardson, solvers.gradient_descent):
            outputs[f"{solver.__name__}, {name}"] = lambda solver=solver, make=make: solver(
                p.K, p.y, p.ridge, preconditioner=make(), **few
            )
        outputs[f"largest_eigenvalue, {name}"] = lambda make=make: solvers.largest_eigenvalue(
            p.K, p.ridge, preconditioner=make()
        )
        if name != "none":
            outputs[f"solve, {name}"] = lambda make=make: make().solve(p.y)
    outputs |= {
        "landweber": lambda: solvers.landweber(p.K, p.y, p.ridge, **few),
        "momentum": lambda: solvers.gradient_descent(p.K, p.y, p.ridge, momentum=0.7, **few),
        "initial": lambda: solvers.conjugate_gradients(p.K, p.y, p.ridge, initial=p.y, **few),
        "blocks": lambda: solvers.conjugate_gradients(blocks(), p.y, p.ridge, **few),
        "blocks @ y": lambda: blocks() @ p.y,
        "scaled blocks @ y": lambda: blocks(scale=np.arange(1.0, 1 + len(p.X))) @ p.y,
        "diagonal": lambda: blocks().diagonal(),
        "columns": lambda: blocks().columns([3, 0, 7]),
    }
    return outputs


def low_rank(p: Problem, draw: Draw) -> Outputs:
    solvers, rank = kc.solvers, draw.whole(4, 16)
    weights = np.exp(draw.normal(len(p.X)))
    factor = partial(solvers.randomly_pivoted_cholesky, rank=rank, seed=p.seed)
    outputs: Outputs = {
        "randomly_pivoted_cholesky": lambda: factor(p.K),
        "the same of a kernel": lambda: factor(p.kernel, p.X),
        "the same by blocks": lambda: factor(p.K, block=3),
    }

    def nystrom(centres=rank, **options):
        model = solvers.nystrom_ridge(
            p.kernel, p.X, p.y, p.ridge, centres=centres, seed=p.seed, **options
        )
        names = ("centres", "alpha", "indices", "solver", "residuals")
        return fields(model, *names) | {"predict": model.predict(p.Z)}

    for method in ("uniform", "leverage", "rpcholesky"):
        for solver in ("auto", "cg", "direct"):
            outputs[f"nystrom_ridge, {method}, {solver}"] = partial(
                nystrom, method=method, solver=solver
            )
    outputs["nystrom_ridge, weighted"] = partial(nystrom, sample_weight=weights)
    outputs["nystrom_ridge of given centres"] = partial(nystrom, centres=p.X[:rank])
    step = partial(solvers.eigenpro, p.kernel, p.X, p.y, seed=p.seed)
    outputs |= {
        "eigenpro": lambda: step(p.ridge, epochs=4),
        "eigenpro to a tolerance": lambda: step(p.ridge, tol=1e-2),
        "eigenpro without a ridge": lambda: step(epochs=3, rank=5, subsample=30, batch=8),
        "eigenpro, weighted": lambda: step(p.ridge, epochs=3, sample_weight=weights),
        "eigenpro, initial": lambda: step(p.ridge, epochs=2, initial=p.y),
    }
    return outputs


SOLVERS = (direct, flows, iterative, low_rank)


@kind(6 * len(SOLVERS))
def solvers(draw: Draw, number: int, dtype: str) -> Case:
    of = SOLVERS[number % len(SOLVERS)]
    kernel = draw.one(
        (
            kc.Laplacian(draw.number(0.5, 2.0)), kc.Matern(1.5, draw.number(0.5, 2.0)),
            kc.Gaussian(draw.number(0.5, 2.0)), kc.presets.mlp(2, b_std=0.1).ntk,
        )
    )  # fmt: skip
    n = draw.whole(40, 70)
    X, Z = draw.normal(n, 4, dtype=dtype), draw.normal(9, 4, dtype=dtype)
    y = draw.normal(*((n,) if number // len(SOLVERS) % 2 else (n, 2)), dtype=dtype)
    p = Problem(kernel, X, Z, kernel(X), y, draw.one((1e-3, 0.1, 1.0)), number)
    description = f"{of.__name__}: {kernel!r}, ridge {p.ridge}; {said(X, Z)}, y {y.shape}"
    return Case(description, of(p, draw))


# ---- estimators


def regressors(draw: Draw, number: int, X: Array, Z: Array, y: Array):
    names = ("alpha_", "dual_coef_", "ridge_", "rkhs_norm_", "n_iter_", "history_", "X_fit_")
    solver = ("auto", "cholesky", "eigen", "cg", "eigenpro", "nystrom")[number % 6]
    ridge = draw.one(("loo", "gcv", "likelihood", 0.0, 1e-2, 1.0))
    model = kc.KernelRegressor(
        draw.one((None, kc.Laplacian(2.0), kc.presets.mlp(1, b_std=0.3).nngp)), ridge, solver,
        centres=draw.one((None, 12)), random_state=number, tol=draw.one((None, 1e-2)),
    )  # fmt: skip
    weights = draw.one((None, np.arange(len(X)) % 3 + 0.0, np.exp(draw.normal(len(X)))))
    fit = cache(lambda: model.fit(X, y, weights))
    return model, {
        "fit": lambda: fields(fit(), *names),
        "predict": lambda: fit().predict(Z),
        "score": lambda: fit().score(X, y),
    }


def classifiers(draw: Draw, number: int, X: Array, Z: Array, y: Array):
    names = (
        "alpha_", "ridge_", "rkhs_norm_", "n_iter_", "history_", "classes_", "temperature_",
        "offsets_",
    )  # fmt: skip
    images, digits = kc.data.digits()
    part = slice(number * 20, number * 20 + 70)
    X, labels = images[part].astype(X.dtype) / 16, digits[part] % 4
    solver = ("auto", "cholesky", "eigen", "cg", "eigenpro", "nystrom")[number % 6]
    net = kc.presets.mlp(2, b_std=0.1)
    if number % 4 == 3:
        X = X.reshape(-1, 8, 8, 1)
        net = kc.presets.cntk(3)
    model = kc.KernelClassifier(
        net.ntk, draw.one(("loo", "gcv", "likelihood", 1e-2, 0.3)), solver=solver,
        targets=draw.one(("one_hot", "centred", "simplex")),
        probabilities=draw.one(("softmax", "calibrated", None)),
        class_weight=draw.one((None, "balanced")), random_state=number,
    )  # fmt: skip
    fit = cache(lambda: model.fit(X[:50], labels[:50]))
    return model, {
        "fit": lambda: {name: getattr(fit(), name, None) for name in names},
        "predict": lambda: fit().predict(X[50:]),
        "decision_function": lambda: fit().decision_function(X[50:]),
        "predict_proba": lambda: fit().predict_proba(X[50:]),
        "score": lambda: fit().score(X[50:], labels[50:]),
    }


def processes(draw: Draw, number: int, X: Array, Z: Array, y: Array):
    net = kc.presets.mlp(1, b_std=0.3)
    kernel, initial = draw.one(((kc.Gaussian(1.5), None), (net.ntk, net.nngp), (None, None)))
    noise = draw.one(("likelihood", 0.0, 0.1, np.linspace(0.01, 1, len(X)).tolist()))
    model = kc.GaussianProcess(kernel, noise, initial)
    fresh = kc.GaussianProcess(kernel, noise, initial)
    fit = cache(lambda: model.fit(X, y))
    return model, {
        "fit": lambda: fields(fit(), "noise_variance_", "alpha_", "rkhs_norm_", "y_fit_"),
        "predict": lambda: fit().predict(Z),
        "predict with std": lambda: fit().predict(Z, return_std=True),
        "predict with cov": lambda: fit().predict(Z, return_cov=True),
        "sample_y": lambda: fit().sample_y(Z, 3, random_state=number),
        "likelihood": lambda: fit().log_marginal_likelihood(),
        "likelihood of others": lambda: fit().log_marginal_likelihood([0.1, 1.0], gradient=True),
        "prior": lambda: fresh.predict(Z, return_std=True),
        "sample of the prior": lambda: fresh.sample_y(Z, 2, random_state=number),
    }


def embeddings(draw: Draw, number: int, X: Array, Z: Array, y: Array):
    kernel = draw.one((kc.Gaussian(1.5), kc.Laplacian(2.0), kc.ArcCosine(0)))
    count = draw.one((1, 2, 5))
    if number % 2:
        model = kc.KernelPCA(draw.one((None, count)), kernel)
        names = ("eigenvalues_", "eigenvectors_", "explained_variance_ratio_")
    else:
        method, alpha = draw.one(("laplacian", "diffusion")), draw.one((0.0, 0.5, 1.0))
        model = kc.SpectralEmbedding(count, kernel, method, t=draw.one((1.0, 2.0)), alpha=alpha)
        names = ("eigenvalues_", "embedding_")
    fit = cache(lambda: model.fit(X))
    outputs: Outputs = {
        "fit": lambda: fields(fit(), *names),
        "transform": lambda: fit().transform(Z),
        "fit_transform": lambda: model.fit_transform(X),
    }
    if number % 2:
        outputs["inverse_transform"] = lambda: fit().inverse_transform(fit().transform(Z))
    return model, outputs


def smoothers(draw: Draw, number: int, X: Array, Z: Array, y: Array):
    kernel = draw.one((None, kc.Gaussian(0.05), kc.Laplacian(1.0, norm=1), kc.Cauchy(1.0)))
    model = kc.KernelSmoother(kernel, draw.one(("nearest", "mean")))
    weights = draw.one((None, np.arange(len(X)) % 3 + 0.0))
    fit = cache(lambda: model.fit(X, y, weights))
    return model, {
        "predict": lambda: fit().predict(Z),
        "far away": lambda: fit().predict(1e3 * Z),
        "score": lambda: fit().score(X, y),
    }


def precomputed(draw: Draw, number: int, X: Array, Z: Array, y: Array):
    kernel = draw.one((kc.Gaussian(1.5), kc.presets.mlp(2).ntk))
    K, cross = kernel(X), kernel(Z, X)
    solver = ("auto", "cg", "eigenpro")[number % 3]
    model = kc.KernelRegressor("precomputed", 0.1, solver, random_state=number)
    process, pca = kc.GaussianProcess("precomputed", 0.1), kc.KernelPCA(2, "precomputed")
    return model, {
        "KernelRegressor": lambda: model.fit(K, y).predict(cross),
        "GaussianProcess": lambda: process.fit(K, y).predict(cross),
        "GaussianProcess with std": lambda: process.predict(cross, return_std=True),
        "KernelPCA": lambda: pca.fit(K).transform(cross),
        "KernelSmoother": lambda: kc.KernelSmoother("precomputed").fit(K, y).predict(cross),
    }


ESTIMATORS = (regressors, regressors, classifiers, processes, embeddings, smoothers, precomputed)


@kind(12 * len(ESTIMATORS))
def estimators(draw: Draw, number: int, dtype: str) -> Case:
    of = ESTIMATORS[number % len(ESTIMATORS)]
    n = draw.whole(30, 60)
    X, Z = draw.normal(n, 3, dtype=dtype), draw.normal(8, 3, dtype=dtype)
    y = np.sin(2 * X[:, 0]) + 0.1 * draw.normal(n, dtype=dtype)
    if draw.chance(0.4):
        y = np.stack([y, X[:, 1] ** 2], axis=1)
    model, outputs = of(draw, number // len(ESTIMATORS), X, Z, y)
    # Every parameter, whatever scikit-learn is set to print.
    parameters = ", ".join(f"{k}={v!r}" for k, v in model.get_params(deep=False).items())
    description = f"{type(model).__name__}({parameters}); {said(X, Z)}, y {y.shape}"
    return Case(description, outputs)


# ---- random features


def transformer(draw: Draw, number: int):
    which, seed, count = number % 5, number, 2 * draw.whole(1, 20)
    if which == 0:
        return kc.features.FourierFeatures(
            classical(draw, draw.one(OF_DIFFERENCE)), count, kind=draw.one(("cos_sin", "cos")),
            orthogonal=draw.chance(0.3), seed=seed,
        )  # fmt: skip
    if which == 1:
        return kc.features.ArcCosineFeatures(
            draw.whole(0, 3), count, weights=draw.one(("normal", "sphere")),
            orthogonal=draw.chance(0.3), seed=seed,
        )  # fmt: skip
    phi = activation(draw, number // 5)
    if which == 2:
        return kc.features.NetworkFeatures(
            phi, count, w_std=draw.number(0.5, 1.5), b_std=draw.one((0.0, 0.4)),
            orthogonal=draw.chance(0.3), seed=seed,
        )  # fmt: skip
    if which == 3:
        derivative = np.cos if type(phi) is kc.Activation else None
        return kc.features.TangentFeatures(
            draw.whole(1, 20), phi, layers=draw.one(("both", "first", "second")),
            w_std=draw.one((None, 1.2)), b_std=draw.one((0.0, 0.4)),
            readout=draw.one(("signs", "normal")), derivative=derivative, seed=seed,
        )  # fmt: skip
    inner = draw.one(
        (kc.features.NetworkFeatures(phi, count), kc.features.FourierFeatures(n_features=8))
    )
    return kc.features.ConvolutionalFeatures(
        inner, patch=draw.whole(1, 5), pool=draw.whole(1, 5), seed=seed
    )


@kind(5 * ACTIVATIONS)
def features(draw: Draw, number: int, dtype: str) -> Case:
    f = transformer(draw, number)
    X, Y = draw.pair(draw.whole(6, 25), 5, (5,), dtype)
    y = draw.normal(len(X), dtype=dtype)
    fitted = cache(lambda: f.fit(X))
    drawn = ("weights_", "phases_", "biases_", "readout_", "n_features_out_")

    def regression(solver: str = "auto", **options):
        model = kc.features.ridge_features(fitted(), X, y, 0.1, solver=solver, **options)
        return fields(model, "coefficients", "solver", "norm") | {"predict": model.predict(Y)}

    return Case(
        f"{f!r}; {said(X, Y)}",
        {
            "drawn": lambda: {name: getattr(fitted(), name, None) for name in drawn},
            "kernel_": lambda: repr(fitted().kernel_),
            "transform": lambda: fitted().transform(Y),
            "fit_transform": lambda: f.fit_transform(X),
            "gram(X)": lambda: fitted().gram(X),
            "gram(X, Y)": lambda: fitted().gram(X, Y),
            "ridge, primal": partial(regression, "primal"),
            "ridge, dual": partial(regression, "dual"),
            "ridge, bounded": partial(regression, bound=0.5),
            "feature_error": lambda: kc.features.feature_error(f, X, 3, seed=number),
        },
    )


# ---- recording


def leaves(name: str, value: object) -> Iterator[tuple[str, object]]:
    """The parts of what a call returns, by name."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = value._asdict().items()
    elif isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, (tuple, list)) and not all(isinstance(x, (int, float)) for x in value):
        parts = enumerate(value)
    else:
        yield name, value
        return
    for key, part in parts:
        yield from leaves(f"{name}: {key}", part)


def digest(value: object) -> dict[str, str]:
    """Of an array or number; of anything else its text."""
    if isinstance(value, kc.Kernel):
        value = repr(value)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        return {"text": without_addresses(repr(array.tolist()))}
    form = f"{type(value).__name__} {array.dtype} {array.shape}"
    content = hashlib.sha256(f"{form}\n".encode() + array.tobytes()).hexdigest()
    flat = array.ravel()
    kept = flat if flat.size <= WHOLE else flat[:: -(-flat.size // PART)]
    return {"sha256": content, "form": form, "values": " ".join(float(x).hex() for x in kept)}


def without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]{6,}", "0x..", text)


def called(name: str, call: Callable[[], object]) -> tuple[dict[str, dict], list[str]]:
    """The digests of what a call returns or raises, and its warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = {part: digest(value) for part, value in leaves(name, call())}
        except Exception as error:  # whatever it is, it is what the user sees
            found = {name: {"error": f"{type(error).__name__}: {without_addresses(str(error))}"}}
    return found, [
        f"{name}: {w.category.__name__}: {without_addresses(str(w.message))}" for w in heard
    ]


def computed(case: Case) -> dict[str, object]:
    outputs: dict[str, dict] = {}
    said: list[str] = []
    for name, call in case.outputs.items():
        found, heard = called(name, call)
        outputs |= found
        said += heard
    return {"description": case.description, "outputs": outputs, "warnings": said}


def made(name: str, number: int, given: tuple[str, ...]) -> Case:
    try:
        return KINDS[name].make(Draw(name, number), number, *given)
    except Exception as error:
        return Case(f"not made: {type(error).__name__}: {without_addresses(str(error))}", {})


def record(path: Path, only: Sequence[str]) -> int:
    found: dict[str, dict] = {}
    counts: dict[str, Counter[str]] = {}
    for name, (_, count, dtypes) in KINDS.items():
        for number, given in product(range(count), [(dtype,) for dtype in dtypes] or [()]):
            full = "-".join([name, f"{number:03}", *given])
            if not full.startswith(tuple(only)):
                continue
            began = time.process_time()
            kc.set_threads(1)
            case = made(name, number, given)
            found[full] = computed(case)
            if case.twice:
                kc.set_threads(2)
                if lines := differences(found[full], computed(made(name, number, given))):
                    raise AssertionError(f"{full} depends on the number of threads: {lines}")
            parts, heard = found[full]["outputs"].values(), found[full]["warnings"]
            failed = sum("error" in part for part in parts)
            spent = time.process_time() - began
            line = (1, len(parts), failed, len(heard), case.twice, spent)
            counts.setdefault(name, Counter()).update(dict(zip(COLUMNS, line, strict=True)))
    info = {key: str(value) for key, value in kc.info().items() if key in MACHINE}
    path.write_text(json.dumps({"info": info, "cases": found}, indent=1) + "\n", encoding="utf-8")
    tell(counts)
    return 0


def tell(counts: dict[str, Counter[str]]) -> None:
    """Print counts per kind, and their sums."""
    counts = {**counts, "all": sum(counts.values(), Counter())}
    print(f"{'':16}" + "".join(f"{title:>10}" for title in COLUMNS))
    for name, line in counts.items():
        print(f"{name:16}" + "".join(f"{round(line[title]):10}" for title in COLUMNS))


# ---- comparing


def differences(a: dict, b: dict) -> list[str]:
    """What two records of a case do not share."""
    lines = []
    if a["description"] != b["description"]:
        lines.append(f"description: now {b['description']}")
    for name in {**a["outputs"], **b["outputs"]}:
        one, two = a["outputs"].get(name), b["outputs"].get(name)
        if one is None or two is None:
            lines.append(f"{name}: only in the {'second' if one is None else 'first'}")
        elif without_values(one) != without_values(two):
            lines.append(f"{name}: {difference(one, two)}")
    if a["warnings"] != b["warnings"]:
        for which, one, two in (("first", a, b), ("second", b, a)):
            only = Counter(one["warnings"]) - Counter(two["warnings"])
            lines += [f"warning, only in the {which}: {text}" for text in only.elements()]
        if sorted(a["warnings"]) == sorted(b["warnings"]):
            lines.append("warnings: the same in another order")
    return lines


def without_values(leaf: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in leaf.items() if key != "values"}


def difference(one: dict[str, str], two: dict[str, str]) -> str:
    if not ("form" in one and one.get("form") == two.get("form")):
        return " became ".join(
            leaf.get("form") or leaf.get("error") or leaf.get("text", "") for leaf in (one, two)
        )
    x, y = (np.array([float.fromhex(v) for v in leaf["values"].split()]) for leaf in (one, two))
    gap = relative(x, y)
    if not gap.size or gap.max() == 0:
        return f"{one['form']}, equal where values were stored"
    worst = int(gap.argmax())
    return (
        f"{one['form']}, largest relative difference {gap[worst]:.3g} ({x[worst]} became "
        f"{y[worst]}), {np.count_nonzero(gap)} of {gap.size} stored values differ"
    )


def relative(x: Array, y: Array) -> Array:
    """Relative differences; infinite where one of the two is not finite, and the other not it."""
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        gap = np.abs(x - y) / np.maximum(np.maximum(np.abs(x), np.abs(y)), np.finfo(float).tiny)
    return np.where(same, 0.0, np.where(np.isfinite(gap), gap, np.inf))


def compare(a: Path, b: Path) -> int:
    one, two = (json.loads(path.read_text(encoding="utf-8")) for path in (a, b))
    for key in {**one["info"], **two["info"]}:
        values = one["info"].get(key), two["info"].get(key)
        if values[0] != values[1]:
            print(f"recorded with another {key}: {values[0]} | {values[1]}")
    first, second = one["cases"], two["cases"]
    equal = different = 0
    for name in {**first, **second}:
        if name not in first or name not in second:
            lines = [f"only in the {'second' if name not in first else 'first'}"]
        else:
            lines = differences(first[name], second[name])
        if not lines:
            equal += 1
            continue
        different += 1
        print(f"{name}: {(first.get(name) or second[name])['description']}")
        print("".join(f"    {line}\n" for line in lines), end="")
    print(f"{equal} cases are equal, {different} differ")
    return int(different > 0)


if __name__ == "__main__":
    if ARGUMENTS.command == "record":
        sys.exit(record(ARGUMENTS.out, ARGUMENTS.only))
    sys.exit(compare(ARGUMENTS.a, ARGUMENTS.b))
