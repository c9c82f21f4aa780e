"""Which tasks of a workflow need not run: the content of their inputs, their command and their outputs are as before.

What was run is remembered beside the workflow, in ``.stretto/outputs.jsonl``: per task a digest of its command and of
the content of what it reads, and digests of what it wrote. A task that writes nothing always runs, and so does every
task that waits for one that runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from stretto.engines.driver.events import Event, TaskFinished
from stretto.engines.work import Command, Work

RECORD = Path(".stretto") / "outputs.jsonl"
_CHUNK_BYTES = 1 << 20


class ContentDigests:
    """Digests of files and folders; one that has not changed since is not read again."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int, int], str] = {}

    def of(self, path: str) -> str | None:
        """Return the digest of a file, or of all files of a folder with their names; None where there is none."""
        try:
            if os.path.isdir(path):
                return self._folder(path)
            found = os.stat(path)
            key = (path, found.st_ino, found.st_size, found.st_mtime_ns)
            if key not in self._known:
                self._known[key] = _file_digest(path)
            return self._known[key]
        except OSError:
            return None

    def _folder(self, path: str) -> str:
        state = hashlib.blake2b(digest_size=16)
        for parent, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                full = os.path.join(parent, name)
                state.update(f"{os.path.relpath(full, path)}\0{self.of(full)}\0".encode())
        return f"folder:{state.hexdigest()}"


def _file_digest(path: str) -> str:
    state = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while data := file.read(_CHUNK_BYTES):
            state.update(data)
    return state.hexdigest()


class OutputRecord:
    """Remembers what tasks have written, and finds those that need not run; digests are made in a thread of its own.

    Parameters
    ----------
    home
        The directory of the workflow.
    """

    def __init__(self, work: Work, home: Path) -> None:
        self.work, self.home, self.path = work, home, home / RECORD
        self._digests = ContentDigests()
        self._pool = ThreadPoolExecutor(1, "stretto-outputs")

    def __enter__(self) -> OutputRecord:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True)

    def up_to_date(self) -> dict[int, object]:
        """Return the tasks that need not run, with the output that stands for each: none."""
        known, fresh = self._read(), set[int]()
        for task in self.work.graph.topo.tolist():
            entry = known.get(self.work.graph.task_name(task))
            is_held = all(parent in fresh for parent in self.work.parents[task])
            if entry is not None and is_held and entry == self._entry(task):
                fresh.add(task)
        return dict.fromkeys(sorted(fresh), b"")

    def on_event(self, event: Event) -> None:
        """Remember a task that has finished."""
        if isinstance(event, TaskFinished):
            self._pool.submit(self._remember, event.task)

    def _remember(self, task: int) -> None:
        entry = self._entry(task)
        if entry is None:
            return
        with contextlib.suppress(OSError):  # a folder that cannot be written to: everything runs the next time
            self.path.parent.mkdir(exist_ok=True)
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps([self.work.graph.task_name(task), entry]) + "\n")

    def _read(self) -> dict[str, dict[str, object]]:
        """Return the last entry of each task; lines that were cut short are left out."""
        known: dict[str, dict[str, object]] = {}
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return {}
        for line in lines:
            with contextlib.suppress(ValueError, TypeError):
                name, entry = json.loads(line)
                known[str(name)] = entry
        return known

    def _entry(self, task: int) -> dict[str, object] | None:
        """Return what is to be compared of a task; None where it writes nothing, or something is missing."""
        command = self.work.actions[task]
        if not isinstance(command, Command) or not command.writes:
            return None
        cwd = command.cwd or "."
        reads = {name: self._digests.of(os.path.join(cwd, name)) for name in command.reads}
        writes = {name: self._digests.of(os.path.join(cwd, name)) for name in command.writes}
        if None in reads.values() or None in writes.values():
            return None
        told = [command.argv, os.path.relpath(cwd, self.home), dict(sorted(command.env.items()))]
        digest = hashlib.blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()
        return {"command": digest, "reads": reads, "writes": writes}
