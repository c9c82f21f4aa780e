"""What a training led to, and how an episode on a rack went."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stretto.core.answers.plan import how_good
from stretto.core.answers.words import change
from stretto.core.units import format_count, format_percent, format_seconds

if TYPE_CHECKING:
    from stretto.api.rack import RackResult
    from stretto.api.train_result import TrainingResult


def training_answer(result: TrainingResult) -> str:
    """Say how long was trained, what that is better or worse than, and how far from optimal at most."""
    verb = "Interrupted after training for" if result.is_interrupted else "Trained for"
    return f"{verb} {_rounded(result.seconds)}: {_outcome(result)}."


def _rounded(seconds: float) -> str:
    return format_seconds(round(seconds)) if seconds >= 10 else format_seconds(float(f"{seconds:.2g}"))


def _outcome(result: TrainingResult) -> str:
    if result.outcome is not None:
        return _plan(result)
    return _queue(result) if result.num_jobs else _rack(result)


def _plan(result: TrainingResult) -> str:
    outcome, judged = result.outcome, result.judged
    assert outcome is not None
    best = judged.best_other
    compared = change(outcome.makespan_s, judged.others[best], "shorter than", "longer than")
    among = f", the best of {format_count(len(judged.others), 'heuristic')}" if len(judged.others) > 1 else ""
    return f"the plan is {compared} that of {best}{among}; {how_good(outcome.problem, outcome.gap)}"


def _queue(result: TrainingResult) -> str:
    judged, best = result.judged, result.judged.best_other
    uses, held = judged.uses, result.trainer.num_held_out  # type: ignore[attr-defined]
    low, high = 1.0 - uses["with / without, high"], 1.0 - uses["with / without, low"]
    span = f" (95 %: {100 * low:,.1f} to {format_percent(high)} lower)" if low != high else ""
    compared = change(uses["mars"], judged.others[best])
    network = change(uses["mars"], uses["mars without it"], "lower than", "higher than")
    return (
        f"on the last {format_count(held, 'job')}, the mean bounded slowdown of mars with the network is "
        f"{'as high as' if network == 'equal to' else network} without it{span}, "
        f"and {compared} {best}, the best fixed strategy"
    )


def _rack(result: TrainingResult) -> str:
    judged, best = result.judged, result.judged.best_other
    held = result.trainer.num_held_out  # type: ignore[attr-defined]
    start = "" if math.isnan(judged.untrained) else f", and {change(judged.trained, judged.untrained)} untrained"
    return (
        f"on {format_count(held, 'held-out stream')}, the mean job completion time is "
        f"{change(judged.trained, judged.others[best])} {best}, the best rule{start}"
    )


def rack_answer(done: RackResult) -> str:
    """Say how fast jobs were completed, and how far the estimated load was from the truth."""
    summary, begin = done.summary, "Stopped early: " if done.is_stopped else ""
    mean, worst = summary["mean_completion_s"], summary["p99_completion_s"]
    if mean is None or worst is None:
        return f"{begin}no job was completed on {done.case}."
    jobs = format_count(int(summary["num_jobs"] or 0), "job")
    told = f"{done.label} completed {jobs} on {done.case} in {format_seconds(mean)} on average"
    error, held = summary["belief_error"], summary["coverage_95"]
    if error is None or held is None:
        return f"{begin}{told}, p99 {format_seconds(worst)}."
    return (
        f"{begin}{told}, p99 {format_seconds(worst)}; estimated load was {format_percent(error)} of capacity off, and "
        f"{format_percent(held)} of its 95 % intervals hold the true load."
    )
