"""One run that is being written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stretto.errors import InvalidInput
from stretto.runlog.record import Json, Status, as_json

if TYPE_CHECKING:
    from stretto.runlog.log import RunLog


class Run:
    """The pen for one run: what it records has happened once the call returns, whatever dies afterwards."""

    def __init__(self, log: RunLog, run_id: str) -> None:
        self.log = log
        self.id = run_id

    def record(self, kind: str, subject: str = "", **fields: Json) -> int:
        """Append an event and return its number."""
        return self._append(kind, subject, fields, is_unique=False)

    def record_once(self, kind: str, subject: str, **fields: Json) -> bool:
        """Append an event unless this run has one of the same kind and subject; tell whether it was new.

        This is what keeps a reward from being counted twice, or a task from being called
        finished twice, when a process dies between doing a thing and saying so.
        """
        with self.log.transaction() as connection:
            found = connection.execute(
                "SELECT 1 FROM events WHERE run_id=? AND kind=? AND subject=? AND is_unique", (self.id, kind, subject)
            ).fetchone()
            if found is None:
                self._append(kind, subject, fields, is_unique=True)
            return found is None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Record many events as one: all of them survive, or none."""
        with self.log.transaction():
            yield

    def attach(self, name: str, content: bytes) -> None:
        """Keep a file with the run; a later one of the same name takes its place."""
        with self.log.transaction() as connection:
            connection.execute(
                "INSERT INTO artifacts (run_id, name, content) VALUES (?, ?, ?)"
                " ON CONFLICT (run_id, name) DO UPDATE SET content=excluded.content",
                (self.id, name, content),
            )

    def finish(self, status: Status = "done", summary: Mapping[str, Json] | None = None) -> None:
        """Close the run with what came out of it."""
        with self.log.transaction() as connection:
            connection.execute(
                "UPDATE runs SET status=?, ended_s=?, summary=? WHERE id=?",
                (status, self.log.clock(), as_json(summary or {}), self.id),
            )

    def _append(self, kind: str, subject: str, fields: Mapping[str, Json], *, is_unique: bool) -> int:
        text = as_json(fields)
        with self.log.transaction() as connection:
            row = connection.execute(
                "UPDATE runs SET num_events = num_events + 1 WHERE id=? RETURNING num_events", (self.id,)
            ).fetchone()
            if row is None:
                raise InvalidInput("is not in the log any more", field=f"run {self.id}")
            connection.execute(
                "INSERT INTO events (run_id, seq, at_s, kind, subject, fields, is_unique) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (self.id, row[0], self.log.clock(), kind, subject, text, is_unique),
            )
        return int(row[0])
