"""Kernels and profiles on spheres, as powers of the cosine."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .._types import Array
from ..layers.profiles import Exp, PowerSeries, Profile
from ..series import functions
from ..series.coefficients import Powers, expand, exponential, framed
from ..series.zonal import Frame, Stop, Walk
from ._kernel import Kernel, Product, Scaled, Sum
from ._programs import Gaussian, ProgramKernel


def zonal(kernel: Kernel | Profile, radius: float, dim: int, frame: Any) -> Any:
    """Return a kernel on the sphere of that radius, or a profile, in a ``Frame`` or a ``Cut``.

    Where there is no such function, it is a ``Stop``.
    """
    if isinstance(kernel, Scaled):
        part = zonal(kernel.kernel, radius, dim, frame)
        return part if isinstance(part, Stop) else kernel.factor * part
    if isinstance(kernel, (Sum, Product)):
        left, right = (zonal(one, radius, dim, frame) for one in (kernel.left, kernel.right))
        if isinstance(left, Stop) or isinstance(right, Stop):
            return left if isinstance(left, Stop) else right
        return left + right if isinstance(kernel, Sum) else left * right
    if isinstance(kernel, Profile):
        f: functions.Function | None
        if whole := isinstance(kernel, PowerSeries):  # it need not be positive at 1
            f = functions.Power(kernel.coefficients)
        else:
            f = kernel._series()
        applied = Stop() if f is None else frame.cosine().apply(f)
        if isinstance(applied, Stop):
            return applied
        return applied[0] if whole else float(kernel(1.0)) * applied[0]
    if not isinstance(kernel, ProgramKernel) or kernel._program.input.domain != "rows":
        return Stop()
    walk = Walk(frame, radius, dim)
    made = kernel._program.run(walk) or walk.kernel(kernel._tangent)
    return made if isinstance(made, Stop) else kernel._factor * made


def alike(kernel: Kernel, radius: float, dim: int) -> tuple[float, int]:
    """Return radius and dimension of the smallest space in which the profile is the same."""
    if not isinstance(kernel, ProgramKernel):
        found = {alike(part, radius, dim) for part in kernel._parts}
        return found.pop() if len(found) == 1 else (radius, dim)
    if kernel._program.input.domain != "rows":
        return radius, dim
    return radius / math.sqrt(dim) if kernel._program.input.of == "mean" else radius, 1


def rate_of(kernel: Kernel | Profile, radius: float) -> float:
    """Return s if the kernel is ``exp(s (t - 1))``; 0 if it is another."""
    if isinstance(kernel, Gaussian):
        scaled = radius / kernel.lengthscale
        return scaled * scaled  # may be infinite
    return kernel._rate if isinstance(kernel, Exp) else 0.0


@functools.lru_cache(maxsize=32)
def powers_of(kernel: Kernel | Profile, radius: float, dim: int, reach: int) -> Powers | None:
    """Return the powers of the cosine, to ``reach`` at least; None where there is no series."""
    rate = rate_of(kernel, radius)
    if rate > functions.STEEP:
        return exponential(rate)
    return expand(functools.partial(zonal, kernel, radius, dim), reach)


@functools.lru_cache(maxsize=32)
def null_degrees(kernel: Kernel | Profile, radius: float, dim: int, max_degree: int) -> Array:
    """Return the degrees k such that every a_n with n = k, k + 2, .. is zero."""
    if rate_of(kernel, radius):
        return np.array([], np.int64)
    powers = powers_of(kernel, radius, dim, max_degree + 128)
    if powers is not None:
        exact = powers.exact
        endless = [bool(powers.tail) and powers.nonzero(k) for k in (0, 1)]
        if not powers.closed and not exact[-8:].any():
            return np.array([], np.int64)  # a polynomial of higher degree: nothing is known
    else:
        frame = Frame(max_degree + 256, support=True)
        made = framed(functools.partial(zonal, kernel, radius, dim), frame)
        if made is None:
            return np.array([], np.int64)
        exact, endless = made.taylor, [False, False]
    last = [int(np.flatnonzero(exact[k::2]).max(initial=-1)) * 2 + k for k in (0, 1)]
    null = [k for k in range(max_degree + 1) if k > last[k % 2] and not endless[k % 2]]
    return np.array(null, np.int64)
