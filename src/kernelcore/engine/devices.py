"""Which GPUs share a Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .. import _check

_chosen: tuple[int, ...] | None = None


def set_devices(numbers: Sequence[int] | Literal["all"] | None) -> None:
    """Let these GPUs share large Gram matrices from now on; None goes back to the default.

    Parameters
    ----------
    numbers : sequence of int, "all", or None
        The numbers that CuPy has for them, which ``kernelcore info`` lists. By default a matrix is
        computed by the device that its points are on.

    Notes
    -----
    The points are copied to every device, and each result travels to the device of the points: 4
    bytes for a float32 entry. That pays for convolutional kernels, whose entries take microseconds;
    for rows it does where devices are joined by more than PCI Express. No value depends on it.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.set_devices("all")  # doctest: +SKIP
    >>> kc.set_devices(None)
    >>> kc.get_devices() is None
    True
    """
    global _chosen
    if numbers is None:
        _chosen = None
        return
    from .gpu import devices

    count = devices.cupy().cuda.runtime.getDeviceCount()
    found = range(count) if isinstance(numbers, str) and numbers == "all" else numbers
    _chosen = _check.device_numbers(found, count)


def get_devices() -> tuple[int, ...] | None:
    """Return the numbers of the GPUs that share Gram matrices; None for that of the points.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.get_devices() is None
    True
    """
    return _chosen
