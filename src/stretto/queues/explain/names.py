"""How people name jobs, users and times of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput

_ROW = "row:"
_DAY_S = 86400.0


class JobNames:
    """The names of the jobs of a trace: their own, such as ``123_4``, their numbers, or their rows."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._texts = _job_names(trace)
        self.has_ids = trace.job_id is not None and bool(np.any(trace.job_id >= 0))

    def of(self, row: int) -> int | str:
        """Return the name by which people know a job."""
        text = self._texts.get(row)
        if text is not None:
            return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else text
        return int(self.trace.job_id[row]) if self.trace.job_id is not None and self.has_ids else row

    def user(self, row: int) -> str | None:
        """Return the name of a job's user; None where it is not known."""
        return None if self.trace.user is None else self.user_named(int(self.trace.user[row]))

    def user_named(self, number: int) -> str | None:
        return name_of_number(self.trace, "user_names", number)

    def row(self, text: str) -> int:
        """Return the row of the job that is meant; rows count from 0, and where there are no ids a number is a row."""
        rows = self.rows(text)
        return rows[0]

    def rows(self, text: str) -> list[int]:
        """Return all rows that a name stands for; raise where there is none."""
        named = [row for row, name in self._texts.items() if name == text]
        if named:
            return named
        number = text.removeprefix(_ROW)
        if not (number.isascii() and number.isdecimal() and len(number) < 19):
            if self._texts:
                raise InvalidInput(f"{self.trace.name!r} has no job {text!r}; a row is named as row:N", field="job")
            raise InvalidInput(f"{text!r} is neither a job id such as 1204 nor a row such as row:12", field="job")
        if text.startswith(_ROW) or not self.has_ids:
            if int(number) >= self.trace.num_jobs:
                raise InvalidInput(f"there is no row {number}: the rows are 0..{self.trace.num_jobs - 1}", field="job")
            return [int(number)]
        return self._rows_of_id(int(number))

    def _rows_of_id(self, job_id: int) -> list[int]:
        assert self.trace.job_id is not None
        rows = np.flatnonzero(self.trace.job_id == job_id)
        if len(rows):
            return [int(row) for row in rows]
        known = np.unique(self.trace.job_id[self.trace.job_id >= 0])
        at = int(np.searchsorted(known, job_id))
        near = " or ".join(str(one) for one in known[max(0, at - 1) : at + 1])
        message = f"{self.trace.name!r} has no job {job_id}; did you mean {near}? A row is named as row:N"
        raise InvalidInput(message, field="job")


def name_of_number(trace: Trace, kind: str, number: int) -> str | None:
    """Return the name behind a number of a column, or the number as text; None = not known."""
    if number == UNKNOWN:
        return None
    names = trace.meta.get(kind, ())
    return str(names[number]) if 0 <= number < len(names) else str(number)


def _job_names(trace: Trace) -> dict[int, str]:
    """Return the names by row, where the source has names that are no numbers (arrays, heterogeneous jobs)."""
    given = trace.meta.get("job_names")
    if isinstance(given, Mapping) and trace.job_id is not None:
        by_id = {int(key): str(name) for key, name in given.items()}
        return {row: by_id[number] for row, number in enumerate(trace.job_id.tolist()) if number in by_id}
    if given is not None and not isinstance(given, Mapping) and len(given) == trace.num_jobs:
        return {row: str(name) for row, name in enumerate(given)}
    return {}


class Clock:
    """Writes times of a replay: by the calendar (UTC) where the trace has one, otherwise by days since its begin.

    Parameters
    ----------
    zero_unix_s
        The Unix time of the replay's time zero; None = not known.
    """

    def __init__(self, zero_unix_s: float | None) -> None:
        self.zero_unix_s = zero_unix_s

    def at(self, time_s: float, *, beside_s: float | None = None) -> str:
        """Write a time; without its day where it falls on the same day as another time."""
        shift = self.zero_unix_s or 0.0
        hour = _hour(time_s + shift)
        if beside_s is not None and (time_s + shift) // _DAY_S == (beside_s + shift) // _DAY_S:
            return hour
        if self.zero_unix_s is None:
            return f"day {int(time_s // _DAY_S) + 1}, {hour}"
        return f"{datetime.fromtimestamp(time_s + shift, UTC):%Y-%m-%d} {hour}"


def _hour(time_s: float) -> str:
    minutes = int(time_s % _DAY_S // 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
