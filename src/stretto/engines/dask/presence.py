"""Who has registered with a Dask scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from stretto.errors import EngineFailure


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a client of the scheduler at an address."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        yield client


def wait_for_workers(address: str, names: Iterable[str], *, timeout_s: float, check: Callable[[], None]) -> None:
    """Return when workers of all these names are there.

    Parameters
    ----------
    check
        Called every second; raises where there is nothing more to wait for.
    """
    import time

    from distributed import Client

    wanted = set(names)
    deadline = time.monotonic() + timeout_s
    with Client(address, set_as_default=False) as client:
        while True:
            known = client.scheduler_info(n_workers=-1)["workers"].values()
            missing = wanted - {str(worker["name"]) for worker in known}
            if not missing:
                return
            if time.monotonic() > deadline:
                raise EngineFailure(f"no worker for {', '.join(sorted(missing))} within {timeout_s:g} s")
            check()
            time.sleep(0.5)
