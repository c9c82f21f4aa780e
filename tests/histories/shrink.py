"""Shrinks a failing history: whatever can be left out without the failure going away is left out."""

from __future__ import annotations

from dataclasses import replace

from .history import History
from .world import Outcome, play


def shrunk(outcome: Outcome) -> Outcome:
    """Return the outcome of a history that cannot be made shorter by leaving out parts or incidents."""
    best = outcome
    for part in outcome.history.parts:
        rest = tuple(one for one in best.history.parts if one != part)
        best = _better(replace(best.history, parts=rest), best) if rest else best
    size = max(1, len(best.history.incidents) // 2)
    while size >= 1:
        place = 0
        while place < len(best.history.incidents):
            found = _better(best.history.without(range(place, place + size)), best)
            place += size if found is best else 0
            best = found
        size //= 2
    return best


def _better(tried: History, best: Outcome) -> Outcome:
    needs = {"steering": _of_steering, "queue": ("end_a_job",), "run": _of_run}
    gone = {kind for part, kinds in needs.items() if part not in tried.parts for kind in kinds}
    tried = replace(tried, incidents=tuple(one for one in tried.incidents if one.kind not in gone))
    found = play(tried)
    return found if found.rule else best


_of_run = ("lose_device", "join_device", "slow_device", "cancel_run", "rival_run")
_of_steering = (
    *("interrupt_steerer", "switch_off_soon", "stuck", "away", "lost_answers", "broken_answer", "restart_slurm"),
    *(
        "blind",
        "submit_job",
        "cancel_job",
        "hold_job",
        "release_job",
        "resubmit_job",
        "change_job",
        "move_job",
        "operator_sets",
    ),
)


def report(outcome: Outcome) -> str:
    """Return a failing history as lines that can be read, and the command that plays it again."""
    lines = [str(outcome.history), "what happened:", *(f"  {line}" for line in outcome.story[-60:])]
    return "\n".join([*lines, f"broken: {outcome.rule}", f"again:  python -m tests.histories {outcome.history.seed}"])
