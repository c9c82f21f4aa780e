"""The run log: start, find, follow and resume runs."""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any

from stretto.errors import InvalidInput, UnknownName
from stretto.runlog.place import default_path, output_folder
from stretto.runlog.record import Event, Json, RunInfo, as_json
from stretto.runlog.run import Run
from stretto.runlog.schema import connect
from stretto.runlog.writer import Writer, evidence, is_alive, this_process, verdict

_PAST_ALL = 2**63 - 1
_COLUMNS = "id, kind, name, settings, status, started_s, ended_s, summary, num_events, host, pid, pid_started"


class RunLog(AbstractContextManager["RunLog"]):
    """Every run and its events in one SQLite file; many processes may read and write it at once.

    Open it again after a fork: connections must not be shared between processes.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self.path = path
        self.clock = clock
        self._connection = connection
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        is_read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> RunLog:
        """Open the log at a path, or the user's own; it is made when it does not exist."""
        place = default_path() if path is None else Path(path)
        return cls(place, connect(place, is_read_only=is_read_only), clock)

    @classmethod
    def open_or_remark(cls, remark: Callable[[str], None]) -> RunLog | None:
        """Open the user's own log; where that fails, say so and return None: what runs can do without it."""
        try:
            return cls.open()
        except InvalidInput as error:
            remark(f"this is not kept in the run log: {error}")
            return None

    def close(self) -> None:
        """Let go of the file, once nobody is writing."""
        with self._lock:
            self._connection.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, kind: str, name: str, settings: Mapping[str, Json], *, run_id: str | None = None) -> Run:
        """Begin a run; its id sorts by the time of its start."""
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self.clock()))
        chosen = run_id or f"{stamp}-{secrets.token_hex(3)}"
        row = (chosen, kind, name, as_json(settings), "running", self.clock(), *this_process())
        with self.transaction() as connection:
            try:
                connection.execute(
                    "INSERT INTO runs (id, kind, name, settings, status, started_s, host, pid, pid_started)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
            except sqlite3.IntegrityError:
                raise InvalidInput(f"there is a run {chosen!r} already", source=str(self.path)) from None
        return Run(self, chosen)

    def resume(self, run_id: str, *, force: bool = False) -> Run:
        """Resume a run that ended or whose writer died; refused while another process writes it.

        Parameters
        ----------
        force
            Go on although it cannot be seen from here whether the writer is dead. One that is alive keeps its run.
        """
        with self.transaction() as connection:
            info = self.check_free(run_id, force=force)
            connection.execute(
                "UPDATE runs SET status='running', ended_s=NULL, host=?, pid=?, pid_started=? WHERE id=?",
                (*this_process(), info.id),
            )
        return Run(self, info.id)

    def check_free(self, run_id: str, *, force: bool = False) -> RunInfo:
        """Return a run that can be resumed; raise InvalidInput, with who holds it, where another process writes it."""
        info, writer = self._find(run_id)
        if info.status == "running" and writer != this_process():
            _refuse_second_writer(info, writer, force=force)
        return info

    def run(self, run_id: str) -> RunInfo:
        """Return a run by its id, by an unambiguous beginning of it, or the ``latest``."""
        return self._find(run_id)[0]

    def runs(self, kind: str | None = None, status: str | None = None, limit: int = 100) -> list[RunInfo]:
        """Return the latest runs, the newest first, in the order of their starts whatever the clock said."""
        # What is called running may be interrupted; all else is as it was written.
        written = {"interrupted": ("running", "interrupted")}.get(status or "", (status,))
        among = "" if status is None else f" AND status IN ({','.join('?' * len(written))})"
        query = (
            f"SELECT rowid, {_COLUMNS} FROM runs WHERE kind = coalesce(?, kind) AND rowid < ?{among}"
            " ORDER BY rowid DESC LIMIT ?"
        )
        found: list[RunInfo] = []
        last = _PAST_ALL
        while len(found) < limit:  # page by page: a log may hold more runs than memory
            values = (kind, last, *(() if status is None else written), limit)
            rows = self._rows(query, values)
            infos = [self._info(row[1:]) for row in rows]
            found += [info for info in infos if status is None or info.status == status]
            if len(rows) < limit:
                break
            last = rows[-1][0]
        return found[:limit]

    def tally(self) -> Counter[tuple[str, str]]:
        """Return how many runs of each kind there are in each status."""
        query = "SELECT kind, status, count(*) FROM runs WHERE status <> 'running' GROUP BY kind, status"
        with self._lock:
            rows = self._rows(query)
            begun = self._rows(f"SELECT {_COLUMNS} FROM runs WHERE status = 'running'")
        found = Counter({(kind, status): count for kind, status, count in rows})
        found.update((info.kind, info.status) for info in map(self._info, begun))
        return found

    def events(
        self, run_id: str, after: int = 0, kinds: Sequence[str] | None = None, limit: int | None = None
    ) -> list[Event]:
        """Return events of a run in order, those with a ``seq`` above ``after``."""
        chosen = "" if kinds is None else f" AND kind IN ({','.join('?' * len(kinds))})"
        query = (
            f"SELECT seq, at_s, kind, subject, fields FROM events WHERE run_id=? AND seq>?{chosen} ORDER BY seq LIMIT ?"
        )
        values = (run_id, after, *(kinds or ()), -1 if limit is None else limit)
        rows = self._rows(query, values)
        with self._refusing_damage():
            return [Event(seq, at_s, kind, subject, json.loads(fields)) for seq, at_s, kind, subject, fields in rows]

    def count(self, run_id: str, kind: str) -> int:
        """Return how many events of a kind a run has."""
        with self._lock:
            query = "SELECT count(*) FROM events WHERE run_id=? AND kind=?"
            return int(self._connection.execute(query, (run_id, kind)).fetchone()[0])

    def latest_event(self, run_id: str, kind: str) -> Event | None:
        """Return the last event of a kind, None where there is none."""
        query = "SELECT seq, at_s, subject, fields FROM events WHERE run_id=? AND kind=? ORDER BY seq DESC LIMIT 1"
        with self._lock:
            row = self._connection.execute(query, (run_id, kind)).fetchone()
        if row is None:
            return None
        seq, at_s, subject, fields = row
        return Event(seq, at_s, kind, subject, json.loads(fields))

    def event_counts(self, run_id: str) -> Counter[str]:
        """Return how many events of each kind a run has."""
        query = "SELECT kind, count(*) FROM events WHERE run_id=? GROUP BY kind"
        with self._lock:
            return Counter(dict(self._connection.execute(query, (run_id,)).fetchall()))

    def artifact(self, run_id: str, name: str) -> bytes | None:
        """Return what was attached to a run under a name."""
        rows = self._rows("SELECT content FROM artifacts WHERE run_id=? AND name=?", (run_id, name))
        return bytes(rows[0][0]) if rows else None

    def artifacts(self, run_id: str) -> list[str]:
        """Return the names of what was attached to a run."""
        return [row[0] for row in self._rows("SELECT name FROM artifacts WHERE run_id=? ORDER BY name", (run_id,))]

    def fingerprint(self, run_id: str) -> str:
        """Return a digest of what happened in a run, without when: equal for runs that decided alike."""
        digest = sha256()
        for event in self.events(run_id):
            digest.update(as_json([event.kind, event.subject, event.fields]).encode())
        return digest.hexdigest()

    def delete(self, run_id: str) -> None:
        """Forget a run with all its events."""
        info = self.run(run_id)
        with self.transaction() as connection:
            connection.execute("DELETE FROM runs WHERE id=?", (info.id,))
        shutil.rmtree(output_folder(self.path, info.id), ignore_errors=True)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the log for one atomic change; nested ones join the outermost."""
        with self._lock:
            if self._connection.in_transaction:
                yield self._connection
                return
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException as error:
                # A commit that failed leaves its transaction open: later ones would join it and be lost with it.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise UnwritableLog(f"cannot be written: {error}", source=str(self.path)) from error
                raise

    def _find(self, run_id: str) -> tuple[RunInfo, Writer]:
        order = f"SELECT {_COLUMNS} FROM runs"
        if run_id == "latest":
            rows = self._rows(f"{order} ORDER BY rowid DESC LIMIT 1")
        else:
            # All ids that begin so stand together in the index. Two are enough to know that it is ambiguous.
            rows = self._rows(f"{order} WHERE id >= ? AND id < ? ORDER BY id LIMIT 2", (run_id, f"{run_id}\U0010ffff"))
            rows = [row for row in rows if row[0] == run_id] or rows
        if len(rows) != 1 or not run_id:
            raise UnknownName("run", run_id, [info.id for info in self.runs(limit=20)])
        return self._info(rows[0]), Writer(*rows[0][9:12])

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, self._refusing_damage():
            return self._connection.execute(query, values).fetchall()

    def _info(self, row: tuple[Json, ...]) -> RunInfo:
        with self._refusing_damage():
            return _info(row)

    @contextmanager
    def _refusing_damage(self) -> Iterator[None]:
        """Turn what SQLite and JSON say of a file that is no longer whole into an error for people."""
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            message = f"cannot be read: {error}; if the file is damaged, restore it from a copy or remove it"
            raise InvalidInput(message, source=str(self.path)) from error


class UnwritableLog(InvalidInput):
    """The log could not be written this time: a full disk, a lock that is never released."""


def _refuse_second_writer(info: RunInfo, writer: Writer, *, force: bool) -> None:
    run_id = info.id
    words = f"train --continue {run_id}" if info.kind == "train" else f"run --resume {run_id}"
    if verdict(writer) == "alive":
        raise InvalidInput(
            f"is being written by process {writer.pid} on this machine, which is alive: end it first (kill"
            f" {writer.pid})",
            field=f"run {run_id}",
        )
    if not force:
        raise InvalidInput(
            f"is being written by {evidence(writer)}. Whether that process is alive cannot be seen from here. If you"
            f" know that it is not:  stretto {words} --force",
            field=f"run {run_id}",
        )


def _info(row: tuple[Json, ...]) -> RunInfo:
    run_id, kind, name, settings, status, started_s, ended_s, summary, num_events, *writer = row
    if status == "running" and not is_alive(Writer(*writer)):
        status = "interrupted"
    return RunInfo(
        run_id, kind, name, json.loads(settings), status, started_s, ended_s, json.loads(summary), num_events
    )
