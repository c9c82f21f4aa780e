"""``stretto.explain``: why a job waited, what would have let it start earlier, and which order mars followed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Unpack, cast

from stretto.api.inputs import MachineLike, TraceLike, cut_window, machine_of, trace_of
from stretto.api.options import MarsOptions, mars_settings
from stretto.core.trace import Trace
from stretto.core.units import format_percent
from stretto.queues.explain.alternatives import JobAlternative
from stretto.queues.explain.document import alternative_fields, wait_fields
from stretto.queues.explain.explain import StoppedBefore, explain_job
from stretto.queues.explain.names import Clock, JobNames
from stretto.queues.explain.promised import PromisedStart, promised_start
from stretto.queues.explain.sentences import WaitWords
from stretto.queues.explain.stretches import JobWait
from stretto.queues.replay import RuleArguments, check_rules
from stretto.queues.result import QueueResult, Watch
from stretto.queues.setup import notes_on
from stretto.queues.strategies import StrategyLike

if TYPE_CHECKING:
    from stretto.queues.mars.replay import MarsReplay
    from stretto.queues.mars.selector import Choice

__all__ = ["Explanation", "StoppedBefore", "explain", "repeated_rows", "replay_notes"]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a job waited.

    Attributes
    ----------
    job, row
        The job by its id in the trace, and by its row.
    wait
        What it waited for, stretch by stretch.
    alternatives
        Changes of this job alone, each replayed, the largest saving first.
    result
        The replay.
    promise
        The latest start that the job was promised, and the earlier promises that were met while it waited; None where
        nothing was promised.
    followed, choice, replay
        Of the strategy ``mars``: what it followed when the job arrived, the comparison behind it (None where nothing
        had been compared yet), and all that it did. None for other strategies.
    """

    job: int | str
    row: int
    wait: JobWait
    alternatives: tuple[JobAlternative, ...]
    result: QueueResult
    names: JobNames
    clock: Clock
    notes: tuple[str, ...]
    promise: PromisedStart | None = None
    followed: str | None = None
    choice: Choice | None = None
    replay: MarsReplay | None = None

    @cached_property
    def words(self) -> WaitWords:
        """Writes the stretches as sentences."""
        return WaitWords(self.names, self.clock, is_selector=self.result.spec["strategy"] in ("mars", "portfolio"))

    @property
    def answer(self) -> str:
        """Why the job waited, in one sentence."""
        return self.words.answer(self.wait)

    @property
    def reason(self) -> str:
        """Why mars followed what it did, in a sentence."""
        from stretto.queues.mars.run_record import reason_of

        return "nothing had been compared yet" if self.choice is None else reason_of(self.choice)

    @property
    def so_far(self) -> str:
        """What the queue has cost so far against the operator's policy, in a sentence; empty where nothing is known."""
        if self.choice is None or self.replay is None:
            return ""
        more = f"{format_percent(abs(self.choice.regret))} {'less' if self.choice.regret < 0 else 'more'}"
        return f"So far the queue has cost {more} than {self.replay.candidates[0]} would have."

    @property
    def promise_words(self) -> str:
        """What the job was promised, in sentences; empty where nothing was."""
        if self.promise is None:
            return ""
        names = {one.index: str(self._name(one.index)) for one in self.promise.earlier[:3]}
        return self.promise.sentences(str(self.job), self.clock, names)

    def _name(self, index: int) -> int | str:
        """Return the name of a job of the replay, whose ids are rows of the trace."""
        assert self.result.trace.job_id is not None
        return self.names.of(int(self.result.trace.job_id[index]))

    def _promise_fields(self) -> dict[str, object]:
        if self.promise is None:
            return {}
        met = [
            {"job": self._name(one.index), "start_s": one.start_s, "promised_s": one.due_s}
            for one in self.promise.earlier
        ]
        return {"promise": {"promised_s": self.promise.due_s, "start_s": self.promise.start_s, "earlier": met}}

    def to_json(self) -> dict[str, object]:
        """Return what ``stretto explain --output json`` prints."""
        return {
            "job": self.job,
            "row": self.row,
            "answer": self.answer,
            "wait": wait_fields(self.wait, self.result, self.names, self.words, self.clock),
            "alternatives": [alternative_fields(one) for one in self.alternatives],
            **self._promise_fields(),
            **self._choice_fields(),
            "notes": list(self.notes),
        }

    def _choice_fields(self) -> dict[str, object]:
        from stretto.queues.mars.run_record import rival_fields

        if self.replay is None:
            return {}
        choice = self.choice
        return {
            "followed": self.followed,
            "measure": self.replay.cost.measure,
            "choice": None if choice is None else {**vars(choice), "rival": rival_fields(choice)},
        }


def explain(
    trace: TraceLike,
    machine: MachineLike | None = None,
    *,
    job: str | int | None = None,
    strategy: StrategyLike = "fcfs",
    window: tuple[int, int] | None = None,
    mars: MarsOptions | None = None,
    seed: int = 0,
    alternatives: bool = True,
    watch: Watch | None = None,
    **rules: Unpack[RuleArguments],
) -> Explanation:
    """Say why a job waited in a replay, and what would have let it start earlier.

    Parameters
    ----------
    machine
        As for :func:`replay`.
    job
        Its id in the trace, such as ``4711`` or ``123_4``, or ``row:N`` counted from 0; by default the last one.
    strategy, rules
        As for :func:`replay`: ``backfill``, ``estimates``, ``kill`` and so on. For ``mars`` the answer also holds which
        order was followed when the job arrived, and why.
    alternatives
        Whether to replay changes of the job: a smaller time limit, fewer processors, other partitions.
    watch
        Told by a selector how many jobs of how many have arrived; False stops it there.

    Examples
    --------
    >>> import stretto
    >>> found = stretto.explain("trace:lublin?num_jobs=200&num_procs=64&load=1.2", job="row:57", strategy="sjf")
    >>> found.answer[:58]
    'Job 58 waited 20.8 h for 8 processors: for 14.1 h too few '
    """
    check_rules(strategy, **rules)
    settings = mars_settings(strategy, mars)
    whole = trace_of(trace)
    jobs = cut_window(whole, window)
    place = machine_of(jobs, machine)
    names = JobNames(jobs)
    row = None if job is None else names.row(str(job))
    found = explain_job(
        jobs,
        place,
        row,
        name=str(row if row is None else names.of(row)),
        strategy=strategy,
        seed=seed,
        settings=settings,
        watch=watch,
        with_alternatives=alternatives,
        **rules,
    )
    origin = jobs.origin_unix_s
    at = found.wait.index
    followed, choice, replay = None, None, None
    if settings is not None:
        replay = cast("MarsReplay", found.told)
        choice = next((one for one in reversed(replay.choices) if one.job <= at), None)
        followed = replay.candidates[int(replay.chosen[at])]
    return Explanation(
        job=names.of(found.wait.row),
        row=found.wait.row,
        wait=found.wait,
        alternatives=found.alternatives,
        result=found.result,
        names=names,
        clock=Clock(None if origin is None else origin + found.zero_s),
        notes=found.result.notes,
        promise=promised_start(found.result, at),
        followed=followed,
        choice=choice,
        replay=replay,
    )


def replay_notes(jobs: Trace, machine: MachineLike | None) -> tuple[str, ...]:
    """Return which jobs a replay leaves out, and why."""
    place = machine_of(jobs, machine)
    return notes_on(jobs, place)


def repeated_rows(text: str, trace: Trace) -> list[int]:
    """Return the rows that share a job id, where there are several."""
    rows = JobNames(trace).rows(text)
    return rows if len(rows) > 1 else []
