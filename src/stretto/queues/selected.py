"""What a selector is told, and what it returns of a replay."""

from __future__ import annotations

from typing import Protocol

from stretto.core.csr import Floats
from stretto.core.trace import Trace


class SelectorSettings(Protocol):
    """What an operator sets of a selector."""

    def spec(self) -> dict[str, object]:
        """Return what is not the default, by name."""
        ...


class SelectorReplay(Protocol):
    """What every selector returns of a replay."""

    @property
    def trace(self) -> Trace: ...
    @property
    def start_s(self) -> Floats: ...
    @property
    def num_dropped(self) -> int: ...
