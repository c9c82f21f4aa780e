"""Who brings workers to an elastic run, and takes them away again."""

from __future__ import annotations

import time
from typing import Any, Protocol

from stretto.engines.background import Clerk

#: How long a worker that was told to end may take.
_GONE_S = 30.0


class Crew(Protocol):
    """Starts and ends workers by name; whether they came or went is heard from Dask itself."""

    def grow(self, name: str) -> None:
        """Have a worker of this name started, and do not wait for it."""
        ...

    def shrink(self, name: str, address: str) -> None:
        """Have a worker bring its data elsewhere and end."""
        ...


class SpecCrew:
    """Workers of a cluster that is ours.

    A clerk does one thing after the other: a worker of some name comes only after the last one of that name has gone.
    """

    def __init__(self, client: Any, cluster: Any, recipe: dict[str, Any]) -> None:
        self._client, self._cluster, self._recipe = client, cluster, recipe
        self._clerk = Clerk()

    def grow(self, name: str) -> None:
        self._clerk.ask(self._start, name)

    def shrink(self, name: str, address: str) -> None:
        self._clerk.ask(self._retire, name, address)  # moving data takes a while, and the run goes on

    def _start(self, name: str) -> None:
        self._cluster.worker_spec[name] = self._recipe
        self._correct()

    def _retire(self, name: str, address: str) -> None:
        # The cluster itself would end a worker with its data: that goes first.
        if not self._client.retire_workers([address], close_workers=False):
            return
        self._cluster.worker_spec.pop(name, None)
        self._correct()
        deadline = time.monotonic() + _GONE_S
        while name in self._cluster.workers and time.monotonic() < deadline:
            time.sleep(0.01)

    def _correct(self) -> None:
        """Have the cluster look at its list and start or end workers."""
        self._cluster.scale(len(self._cluster.worker_spec))
