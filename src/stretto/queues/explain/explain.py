"""Explain one job of a replay: its wait, what would have shortened it, and what a selector followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.csr import Floats
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.explain.alternatives import JobAlternative, alternatives_of
from stretto.queues.explain.order import Rows, key_at
from stretto.queues.explain.processors import ProcessorView
from stretto.queues.explain.stretches import JobWait
from stretto.queues.explain.wait import MachineView, wait_of
from stretto.queues.replay import Machine, RuleArguments, replay_told
from stretto.queues.result import QueueResult, Watch
from stretto.queues.selected import SelectorReplay, SelectorSettings
from stretto.queues.setup import notes_on, why_left_out
from stretto.queues.strategies import StrategyLike


@dataclass(frozen=True, eq=False)
class ExplainedJob:
    """A job's wait in a replay, and the replay.

    Attributes
    ----------
    told
        What a selector tells of the replay; None for a fixed strategy.
    zero_s
        The time of the trace at which the replay begins.
    """

    wait: JobWait
    alternatives: tuple[JobAlternative, ...]
    result: QueueResult
    told: SelectorReplay | None
    zero_s: float


class StoppedBefore(InvalidInput):
    """The replay was stopped before the job arrived."""


@dataclass(frozen=True)
class _Replay:
    """Replays a trace by one set of rules; jobs are known by their rows."""

    machine: Machine
    strategy: StrategyLike
    settings: SelectorSettings | None
    seed: int
    rules: RuleArguments

    def run(self, trace: Trace, watch: Watch | None = None) -> tuple[QueueResult, SelectorReplay | None, Rows]:
        """Return the outcome and the row of each job that was replayed."""
        tagged = replace(trace, job_id=np.arange(trace.num_jobs, dtype=np.int32))
        result, told = replay_told(
            tagged,
            self.machine,
            strategy=self.strategy,
            seed=self.seed,
            settings=self.settings,
            watch=watch,
            **self.rules,
        )
        assert result.trace.job_id is not None
        return result, told, result.trace.job_id.astype(np.intp)


def explain_job(
    trace: Trace,
    machine: Machine,
    row: int | None,
    *,
    name: str = "",
    strategy: StrategyLike = "fcfs",
    seed: int = 0,
    settings: SelectorSettings | None = None,
    watch: Watch | None = None,
    with_alternatives: bool = True,
    **rules: object,
) -> ExplainedJob:
    """Replay a trace and say why a job of it waited.

    Parameters
    ----------
    row
        The job's row in the trace; None = the last that was replayed.
    name
        What the job is called in errors.
    rules
        As for :func:`stretto.queues.replay.replay`.
    """
    given: RuleArguments = rules  # type: ignore[assignment]
    how = _Replay(machine, strategy, settings, seed, given)
    result, told, rows = how.run(trace, watch)
    at = len(rows) - 1 if row is None else int(np.searchsorted(rows, row))
    if row is not None and (at == len(rows) or rows[at] != row):
        if at == len(rows) and _num_unplayed(told):
            raise StoppedBefore(f"interrupted after {len(rows):,} jobs, before job {name} arrived")
        raise InvalidInput(f"job {name} (row:{row}) is not in the replay: {_why_not(trace, machine, row)}", field="job")
    zero = float(trace.submit_s[rows[0]])
    key = key_at(result, strategy, zero, given)
    wait = wait_of(result, at, rows, _view(result, at, given), key)
    found: Sequence[JobAlternative] = ()
    if with_alternatives and not _num_unplayed(told):
        found = alternatives_of(trace, wait, result, machine, lambda changed: how.run(changed)[::2])
    return ExplainedJob(wait, tuple(found), result, told, zero)


def _num_unplayed(told: SelectorReplay | None) -> int:
    """Return how many jobs a selector that was stopped has left over."""
    count: int = 0 if told is None else getattr(told, "num_unplayed", 0)
    return count


def _view(result: QueueResult, index: int, rules: RuleArguments) -> MachineView:
    if result.site is not None:
        from stretto.queues.explain.site_view import SiteView

        return SiteView(result, index, result.site)
    return ProcessorView(result, index, _expected(result, rules))


def _expected(result: QueueResult, rules: RuleArguments) -> Floats | None:
    """Return how long the scheduler expects jobs to run, where reservations follow from that alone."""
    if rules.get("backfill", "easy") not in ("easy", "easy-sjbf") or rules.get("tie", "batch") != "batch":
        return None
    estimates = {"user": result.trace.estimate_s, "perfect": result.trace.run_s}
    return estimates.get(rules.get("estimates", "user"))


def _why_not(trace: Trace, machine: Machine, row: int) -> str:
    if isinstance(machine, Site):
        try:
            return "; ".join(notes_on(trace.take([row]), machine))
        except InvalidInput as error:  # which says why the only job cannot run
            return error.message
    return "; ".join(why_left_out(trace.take([row]), machine, np.zeros(1, np.bool_)))
