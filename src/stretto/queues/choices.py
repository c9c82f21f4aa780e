"""What a replay followed from when on, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Choices that are told one by one; beyond them every k-th is.
_NUM_CHOICES = 2000


def choices_of(found: Any, strategy: str) -> list[dict[str, Any]]:
    """Return the choices behind a replay.

    Parameters
    ----------
    found
        What a selector returned; None where the strategy was a fixed one, which needs no reasons.
    """
    if found is None:
        return [{"at_s": 0.0, "chosen": strategy, "reason": "a fixed strategy"}]
    told = getattr(found, "choices", None)
    rows = _told(told) if told is not None else _followed(found)
    return rows[:: max(1, len(rows) // _NUM_CHOICES)]


def _told(choices: Any) -> list[dict[str, Any]]:
    """Return choices that come with the estimates behind them."""
    from stretto.queues.mars.journal import reason_of, rival_fields

    return [
        {
            "at_s": one.time_s,
            "job": one.job,
            "chosen": one.chosen,
            "reason": reason_of(one),
            "cost": dict(one.cost),
            **({} if one.rival is None else {"rival": rival_fields(one)}),
        }
        for one in choices
    ]


def _followed(found: Any) -> list[dict[str, Any]]:
    """Return the changes of a selector that keeps only what it followed."""
    chosen = np.asarray(found.chosen)
    order = np.argsort(found.start_s, kind="stable")
    names = np.asarray(found.strategies)[chosen[order]]
    new = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]]))
    reason = "did best in simulated futures of the present queue"
    return [
        {
            "at_s": float(found.start_s[order[place]]),
            "job": int(order[place]),
            "chosen": str(names[place]),
            "reason": reason,
        }
        for place in new.tolist()
    ]
