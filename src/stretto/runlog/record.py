"""What the run log hands back: runs and the events in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from stretto.errors import InvalidInput

Json: TypeAlias = Any  # None, bool, int, float, str, and lists and dicts (with text keys) of these
Status = Literal["running", "done", "failed", "interrupted"]


@dataclass(frozen=True)
class RunInfo:
    """One run, as the log knows it.

    Attributes
    ----------
    kind
        What was done: ``run``, ``train``, ``steer``, ``replay``, ``plan``, ``rack``.
    settings
        What was asked for: enough to ask for it again.
    status
        ``running`` only while the process that writes the run is alive; a run whose writer
        died without a word is ``interrupted``.
    summary
        What came out; empty until the run has ended.
    """

    id: str
    kind: str
    name: str
    settings: Mapping[str, Json]
    status: Status
    started_s: float
    ended_s: float | None
    summary: Mapping[str, Json]
    num_events: int


@dataclass(frozen=True)
class Event:
    """One thing that happened in a run; ``seq`` rises by one from 1 within the run."""

    seq: int
    at_s: float
    kind: str
    subject: str
    fields: Mapping[str, Json]


def as_json(value: Json) -> str:
    """Write a value as JSON, always in the same way."""
    try:
        return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"cannot be kept in the run log: {error}") from None
