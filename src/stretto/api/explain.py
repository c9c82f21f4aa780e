"""``stretto.explain``: which order MARS followed when a job arrived, and the estimates behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stretto.api.inputs import MachineLike, TraceLike, cut_window, machine_of, trace_of
from stretto.api.options import MARS, MarsOptions, mars_settings
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.result import Watch
from stretto.queues.setup import notes_of, why_left_out

if TYPE_CHECKING:
    from stretto.queues.mars.replay import MarsReplay
    from stretto.queues.mars.selector import Choice

_ROW = "row:"


@dataclass(frozen=True, eq=False)
class Explanation:
    """What mars followed when a job arrived, and why.

    Attributes
    ----------
    job, row
        The job by its id in the trace, and by its row.
    followed
        The order or network that was followed.
    choice
        The comparison behind it, None where nothing had been compared yet.
    """

    job: int
    row: int
    followed: str
    choice: Choice | None
    notes: tuple[str, ...]
    replay: MarsReplay

    @property
    def reason(self) -> str:
        """Why it was followed, in a sentence."""
        from stretto.queues.mars.run_record import reason_of

        return "nothing had been compared yet" if self.choice is None else reason_of(self.choice)

    def to_json(self) -> dict[str, object]:
        """Return what ``stretto explain --output json`` prints."""
        from stretto.queues.mars.run_record import rival_fields

        choice = self.choice
        return {
            "job": self.job,
            "row": self.row,
            "followed": self.followed,
            "measure": self.replay.cost.measure,
            "choice": None if choice is None else {**vars(choice), "rival": rival_fields(choice)},
            "notes": list(self.notes),
        }


class StoppedBefore(InvalidInput):
    """The replay was stopped before the job arrived."""


def explain(
    trace: TraceLike,
    machine: MachineLike | None = None,
    *,
    job: str | int | None = None,
    window: tuple[int, int] | None = None,
    mars: MarsOptions | None = None,
    seed: int = 0,
    watch: Watch | None = None,
) -> Explanation:
    """Say which order mars followed when a job arrived, and why.

    Parameters
    ----------
    machine
        A number of processors, by default as recorded.
    job
        Its id in the trace, or ``row:N`` counted from 0; by default the last one.

    Examples
    --------
    >>> import stretto
    >>> found = stretto.explain("trace:lublin?num_jobs=200&num_procs=64", job="row:150")
    >>> found.row
    150
    """
    from stretto.queues.mars.replay import play_mars

    settings = mars_settings(MARS, mars)
    jobs = cut_window(trace_of(trace), window)
    place = machine_of(jobs, machine)
    if not isinstance(place, int):
        raise InvalidInput(
            "strategy 'mars' works on one plain machine: give its number of processors instead of pools",
            field="machine",
        )
    fits = jobs.fits(place)
    rows = np.flatnonzero(fits)
    row = None if job is None else row_of(str(job), jobs)
    if row is not None and not fits[row]:
        reason = "; ".join(why_left_out(jobs.take([row]), place, fits[[row]]))
        raise InvalidInput(f"job {name_of(row, jobs)} (row:{row}) is not in the replay: {reason}", field="job")
    found = play_mars(jobs, place, settings=settings, watch=watch, seed=seed)
    at = found.trace.num_jobs - 1 if row is None else int(np.searchsorted(rows, row))
    if at >= found.trace.num_jobs:
        raise StoppedBefore(f"interrupted after {found.trace.num_jobs:,} jobs, before job {job} arrived")
    choice = next((one for one in reversed(found.choices) if one.job <= at), None)
    row = int(rows[at])
    followed = found.candidates[int(found.chosen[at])]
    return Explanation(name_of(row, jobs), row, followed, choice, notes_of(jobs, place, fits), found)


def replay_notes(jobs: Trace, machine: MachineLike | None) -> tuple[str, ...]:
    """Return which jobs a replay on one plain machine leaves out, and why."""
    place = machine_of(jobs, machine)
    return notes_of(jobs, place, jobs.fits(place)) if isinstance(place, int) else ()


def row_of(text: str, trace: Trace) -> int:
    """Return the row of the job that is meant; rows count from 0, and where there are no ids a number is a row."""
    number = text.removeprefix(_ROW)
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        raise InvalidInput(f"{text!r} is neither a job id such as 1204 nor a row such as row:12", field="job")
    if text.startswith(_ROW) or not _has_ids(trace):
        if int(number) >= trace.num_jobs:
            raise InvalidInput(f"there is no row {number}: the rows are 0..{trace.num_jobs - 1}", field="job")
        return int(number)
    return int(_rows_of_id(int(number), trace)[0])


def repeated_rows(text: str, trace: Trace) -> list[int]:
    """Return the rows that share a job id, where there are several."""
    if text.startswith(_ROW) or not (text.isascii() and text.isdecimal()) or not _has_ids(trace):
        return []
    rows = _rows_of_id(int(text), trace)
    return rows.tolist() if len(rows) > 1 else []


def name_of(row: int, trace: Trace) -> int:
    """Return the number by which people know a job."""
    return int(trace.job_id[row]) if trace.job_id is not None and _has_ids(trace) else row


def _has_ids(trace: Trace) -> bool:
    return trace.job_id is not None and bool(np.any(trace.job_id >= 0))


def _rows_of_id(job_id: int, trace: Trace) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    assert trace.job_id is not None
    rows = np.flatnonzero(trace.job_id == job_id)
    if len(rows):
        return rows
    known = np.unique(trace.job_id[trace.job_id >= 0])
    at = int(np.searchsorted(known, job_id))
    near = " or ".join(str(one) for one in known[max(0, at - 1) : at + 1])
    raise InvalidInput(f"{trace.name!r} has no job {job_id}; did you mean {near}? A row is named as row:N", field="job")
