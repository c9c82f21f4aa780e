"""The tables of the run log, and how a connection to them is opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from stretto.core.host.private_files import make_private_file, make_private_folder, tighten
from stretto.errors import InvalidInput
from stretto.runlog.place import default_path

VERSION = 1
#: Writers wait this long for one another before they give up.
_BUSY_S = 30.0

_TABLES = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    settings TEXT NOT NULL,
    status TEXT NOT NULL,
    started_s REAL NOT NULL,
    ended_s REAL,
    summary TEXT NOT NULL DEFAULT '{}',
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    pid_started TEXT NOT NULL,
    num_events INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_by_start ON runs (started_s DESC);
CREATE TABLE events (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    at_s REAL NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    fields TEXT NOT NULL,
    is_unique INTEGER NOT NULL,
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
CREATE INDEX events_by_kind ON events (run_id, kind, seq);
CREATE UNIQUE INDEX events_once ON events (run_id, kind, subject) WHERE is_unique;
CREATE TABLE artifacts (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (run_id, name)
);
"""


def connect(path: Path, *, is_read_only: bool) -> sqlite3.Connection:
    """Open the log, with its tables made when the file is new.

    With a write-ahead log and ``synchronous=NORMAL`` a committed event survives the death of
    any process. A power cut may take the last few, never the consistency of the file.
    """
    source = str(path)
    try:
        if is_read_only:
            if not path.exists():
                raise InvalidInput("there is no run log here yet", source=source)
            _keep_private(path)
            connection = _open(f"{path.resolve().as_uri()}?mode=ro")
        else:
            if path == default_path() or not path.parent.exists():
                make_private_folder(path.parent)
            make_private_file(path)
            _keep_private(path)
            connection = _open(path.resolve().as_uri())
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA foreign_keys=ON")
            _make_tables(connection)
        _check_version(connection, source)
    except (sqlite3.Error, OSError) as error:
        raise InvalidInput(f"cannot be used as a run log: {error}", source=source) from None
    return connection


def _keep_private(path: Path) -> None:
    """Take away what others may do with a log from before; SQLite gives new companions the mode of the log itself."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-ends", f"{path.name}-jobs"):
        tighten(path.with_name(name))


def _open(uri: str) -> sqlite3.Connection:
    # Autocommit: transactions are opened by hand, where they begin is then plain to see.
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)


def _make_tables(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA user_version").fetchone()[0]:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have made them while this one waited for the lock.
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _check_version(connection: sqlite3.Connection, source: str) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != VERSION:
        raise InvalidInput(f"is a run log of version {found}; this Stretto reads version {VERSION}", source=source)
