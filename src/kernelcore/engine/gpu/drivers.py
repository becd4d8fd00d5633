"""Drivers on a device: compiled for what a program needs, loaded once, launched on the stream."""

from __future__ import annotations

import collections
import functools
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..cpu.dispatch import load
from ..progress import Watch
from . import compile

BLOCK = 256
"""The threads of a block: ``block_threads`` in ext/gpu."""
PLAIN_BYTES = 48 * 1024
"""The shared memory that a kernel has without asking for more."""

PAUSE = 2e-4
"""Seconds between two looks at a launch that is not done."""


class Needs(NamedTuple):
    """What a driver is compiled for, as bits: see ``ext/gpu/device.h``."""

    ops: int = 0
    wants: int = 0
    kinds: int = 0

    def defines(self, bits: int) -> tuple[str, ...]:
        """Return the macros, for numbers of so many bits."""
        return (
            f"KC_OPS={self.ops:#x}ull", f"KC_WANTS={self.wants}", f"KC_KINDS={self.kinds}",
            f"KC_REALS={bits // 32}",
        )  # fmt: skip


def mask(codes: Iterable[int]) -> int:
    """Return the bits of operations, of which negative ones are none."""
    return functools.reduce(int.__or__, (1 << int(c) for c in codes if c >= 0), 0)


@functools.cache
def _module(driver: str, device: int, arch: str, defines: tuple[str, ...]) -> Any:
    return load("cupy").RawModule(path=str(compile.cubin(driver, arch, defines)))


def launch(
    name: str, dtype: Any, needs: Needs, blocks: tuple[int, ...], *args: Any, shared_bytes: int = 0
) -> None:
    """Run the kernel of that name for a dtype on the current device and stream.

    Arrays are passed as pointers, of which None is null, and structs by value.
    """
    bits = 8 * dtype.itemsize
    device = load("cupy").cuda.Device()
    module = _module(
        name.partition("_")[0], device.id, f"sm_{device.compute_capability}", needs.defines(bits)
    )
    function = module.get_function(f"{name}_f{bits}")
    if shared_bytes > PLAIN_BYTES:
        function.max_dynamic_shared_size_bytes = shared_bytes
    function(blocks, (BLOCK,), args, shared_mem=shared_bytes)


class Launches:
    """Launches in flight on the current stream, and who is told of those that are done.

    Few of them wait at a time, and the host looks at them from Python: so an interrupt is heard,
    and leaves little behind that the device has yet to do.
    """

    def __init__(self, watch: Watch | None) -> None:
        self._watch = watch
        self._events: collections.deque[tuple[Any, float]] = collections.deque()

    def add(self, fraction: float) -> None:
        """Count the last launch; when it is done, so much of the work is."""
        event = load("cupy").cuda.Event(disable_timing=True)
        event.record()
        self._events.append((event, fraction))

    def wait(self, most: int) -> None:
        """Wait until so many are left, at most."""
        while len(self._events) > most:
            event, fraction = self._events.popleft()
            while not event.done:
                time.sleep(PAUSE)
            if self._watch is not None:
                self._watch(fraction)
