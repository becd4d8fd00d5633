"""Two folders of results: what changed beyond noise."""

from __future__ import annotations

import math
from os import PathLike
from typing import NamedTuple

from ._base import Claim, Result
from ._run import saved

EXACT = 1e-9
"""Relative: numbers without an error that differ by less are the same but for rounding."""


class Change(NamedTuple):
    """One claim in two folders; None where one of them does not have it."""

    name: str
    text: str
    one: Claim | None
    other: Claim | None

    @property
    def beyond(self) -> bool:
        """Whether it is there and not there, holds and fails, or moved by more than its noise."""
        if self.one is None or self.other is None or self.one.holds != self.other.holds:
            return True
        noise = 2 * math.hypot(self.one.error, self.other.error)
        apart = abs(self.one.measured - self.other.measured)
        size = max(abs(self.one.measured), abs(self.other.measured))
        return not apart <= max(noise, EXACT * size)

    def __str__(self) -> str:
        mark = "CHANGED" if self.beyond else "same"
        return f"{mark:<8s} {self.name}: {self.text}: {_told(self.one)} -> {_told(self.other)}"


def _told(claim: Claim | None) -> str:
    if claim is None:
        return "none"
    error = f" ± {claim.error:.2g}" if claim.error else ""
    return f"{claim.measured:.4g}{error}, {'holds' if claim.holds else 'fails'}"


def compare(a: str | PathLike[str], b: str | PathLike[str]) -> list[Change]:
    """Return the claims of both folders, those that changed first.

    Claims are the same if their experiment and their place in its list are.
    """
    found = []
    one, other = _claims(a), _claims(b)
    for key in dict.fromkeys([*one, *other]):
        claims = one.get(key), other.get(key)
        text = next(claim.text for claim in claims if claim is not None)
        found.append(Change(key[0], text, *claims))
    return sorted(found, key=lambda change: not change.beyond)


def _claims(folder: str | PathLike[str]) -> dict[tuple[str, int], Claim]:
    from . import load

    results = (one.outcome for one in saved(folder) if isinstance(one.outcome, Result))
    return {
        (result.name, k): claim
        for result in results
        for k, claim in enumerate(load(result.name).claims(result))
    }
