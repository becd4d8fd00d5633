"""Error messages, room by room: each module holds a list ``CASES``, which test_errors.py runs."""

from typing import NamedTuple


class Case(NamedTuple):
    """A call, the kind of its error, and the whole message."""

    kind: type
    message: str
    call: object
