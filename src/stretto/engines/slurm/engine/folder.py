"""The folder of a run on Slurm: its scripts, its logs, its identity and its lock.

Nodes and this process must see it under the same path. It is all that is needed to go on with a run after any of them
died.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from stretto.engines.kept_output import kept_file
from stretto.engines.slurm.engine import task_script
from stretto.engines.slurm.engine.slots import Slot
from stretto.engines.slurm.engine.task_script import Entry
from stretto.engines.slurm.testbed.daemons import wait_until
from stretto.errors import EngineFailure, InvalidInput

_IDENTITY = "run.json"
_COMMON = "common.sh"


class RunFolder:
    """The folder, held by one process at a time.

    Attributes
    ----------
    key
        Ties jobs to this run, in their names.
    began_s
        When the run was first started, in Unix seconds.
    slots
        Of the devices, as the run was started with; None before that.
    """

    def __init__(self, path: Path, *, patience_s: float = 10.0) -> None:
        self.path = path.resolve()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self.path / "run.lock", os.O_RDWR | os.O_CREAT, 0o600)
        # When a process was killed, an sbatch of its may be about to end, and holds the folder until it has.
        if not wait_until(lambda: _is_taken(self._lock), timeout_s=patience_s):
            os.close(self._lock)
            raise EngineFailure(f"another process follows the run in {self.path}")
        self.key, self.began_s, self._digest, self.slots = self._identity()
        self._sizes: dict[int, int] = {}

    @property
    def lock_fd(self) -> int:
        """The lock; whoever inherits it holds the folder too."""
        return self._lock

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def write_scripts(self, scripts: list[str], slots: Sequence[Slot]) -> None:
        """Write the scripts of all tasks, and the slots; raise where the folder belongs to other work."""
        digest = hashlib.sha256("\0".join(scripts).encode()).hexdigest()
        if self._digest == digest:
            return
        if self._digest:
            raise InvalidInput("holds the run of other work, or of another plan", source=str(self.path), field="folder")
        (self.path / _COMMON).write_text(task_script.COMMON)
        for task, text in enumerate(scripts):
            self.script(task).write_text(text)
        self._digest, self.slots = digest, list(slots)
        self._keep_identity()

    def script(self, task: int) -> Path:
        return self.path / f"{task}.sh"

    def job_name(self, task: int) -> str:
        """Return the name by which a job of this run is found again."""
        return f"stretto-{self.key}-{task}"

    def task_of(self, job_name: str) -> int | None:
        """Return the task of a job, or None where it is none of this run's."""
        head, _, tail = job_name.rpartition("-")
        return int(tail) if head == f"stretto-{self.key}" and tail.isdigit() else None

    def changed(self) -> list[int]:
        """Return the tasks whose logs have grown since the last call."""
        found = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                stem, dot, ending = entry.name.partition(".")
                if ending != "log" or not dot or not stem.isdigit():
                    continue
                size = entry.stat().st_size
                if self._sizes.get(int(stem)) != size:
                    self._sizes[int(stem)] = size
                    found.append(int(stem))
        return sorted(found)

    def entries(self, task: int) -> list[Entry]:
        """Return what a task's script has written down."""
        try:
            return task_script.read_log((self.path / f"{task}{task_script.LOG}").read_text())
        except FileNotFoundError:
            return []

    def output(self, task: int, max_bytes: int = 1 << 20) -> bytes:
        """Return what the last attempt wrote to stdout: all of it, or its beginning and its end."""
        return kept_file(self.path / f"{task}{task_script.OUT}", max_bytes)

    def complaint(self, task: int, attempt: int) -> str:
        """Return the last words that an attempt wrote to stderr."""
        try:
            text = (self.path / f"{task}{task_script.ERR}{attempt}").read_bytes()[-300:].decode(errors="replace")
        except FileNotFoundError:
            return ""
        return " ".join(text.split())

    def note_done(self, task: int) -> None:
        """Write down that a task ended well elsewhere."""
        if not any(entry.word == "ok" for entry in self.entries(task)):
            with open(self.path / f"{task}{task_script.LOG}", "a") as log:
                log.write("done ok\n")

    def is_locked(self, task: int) -> bool:
        """Say whether the task's script is at work somewhere, as far as locks reach."""
        try:
            lock = os.open(self.path / f"{task}.lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            return not _is_taken(lock)
        finally:
            os.close(lock)  # gives it back, too

    def skip(self, task: int) -> None:
        """Write down that a task will not run; those that only wait for its turn to pass may go on."""
        with open(self.path / f"{task}{task_script.LOG}", "a") as log:
            log.write("skipped over\n")

    def _identity(self) -> tuple[str, float, str, list[Slot] | None]:
        try:
            known = json.loads((self.path / _IDENTITY).read_text())
            slots = [Slot(**slot) for slot in known["slots"]]
            return str(known["key"]), float(known["began_s"]), str(known["digest"]), slots
        except FileNotFoundError:
            return secrets.token_hex(4), time.time(), "", None
        except (ValueError, KeyError, TypeError):
            raise InvalidInput("is damaged", source=str(self.path / _IDENTITY)) from None

    def _keep_identity(self) -> None:
        """Write the identity at once or not at all."""
        draft = self.path / f"{_IDENTITY}.new"
        slots = [vars(slot) for slot in self.slots or ()]
        known = {"key": self.key, "began_s": self.began_s, "digest": self._digest, "slots": slots}
        draft.write_text(json.dumps(known))
        os.replace(draft, self.path / _IDENTITY)


def _is_taken(lock: int) -> bool:
    """Take a lock if it is free; say whether we have it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
