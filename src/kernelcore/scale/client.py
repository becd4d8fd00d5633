"""The cluster that Gram matrices are computed on where a call names none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

_client: Any = None


def set_client(client: Any) -> None:
    """Compute large Gram matrices on a cluster of Dask from now on.

    ``gram``, ``GramOperator``, solvers that are given a kernel, and estimators use it, as far as no
    other client is passed to them.

    Parameters
    ----------
    client : dask.distributed.Client or None
        None means this process alone, as at first.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.set_client(None)
    >>> kc.get_client() is None
    True
    """
    global _client
    if client is not None:
        from . import cluster

        cluster.checked(client)
    _client = client


def get_client() -> Any:
    """Return the client that ``set_client`` was given, or None.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.get_client() is None
    True
    """
    return _client


def resolve(client: Any) -> Any:
    """Return a client that is connected, or None; False stands for none whatever is set."""
    if client is None:
        client = _client
    if client is None or client is False:
        return None
    from . import cluster

    return cluster.checked(client)


@contextlib.contextmanager
def at(address: str | None) -> Iterator[Any]:
    """Connect to the scheduler at an address for a while; there is no client where it is None."""
    if address is None:
        yield None
        return
    from . import cluster

    with cluster.connected_to(address) as client:
        yield client
