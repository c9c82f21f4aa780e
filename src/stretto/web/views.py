"""Views of runs that have not changed since they were made: few, and together not large."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

#: A run in one state: its id, number of events, status, end.
Key: TypeAlias = tuple[str, int, str, float | None]
MAX_VIEWS = 16
MAX_BYTES = 32 * 2**20


class Views:
    """The latest views; the oldest go when there are too many or they hold too much."""

    def __init__(self) -> None:
        self._views: OrderedDict[Key, bytes] = OrderedDict()
        self.num_bytes = 0

    def __len__(self) -> int:
        return len(self._views)

    def get(self, key: Key) -> bytes | None:
        """Return the view of a run in this state, None where it has to be made."""
        return self._views.get(key)

    def keep(self, key: Key, view: bytes) -> None:
        """Keep a view; one that is larger than all may be together is not kept."""
        if key in self._views or len(view) > MAX_BYTES:
            return
        self._views[key] = view
        self.num_bytes += len(view)
        while len(self._views) > MAX_VIEWS or self.num_bytes > MAX_BYTES:
            _, oldest = self._views.popitem(last=False)
            self.num_bytes -= len(oldest)
