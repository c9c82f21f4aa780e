"""The folder of a run on Slurm: a batch script and a log for each task, the run's identity, and its lock.

Nodes and this process must see the folder under the same path. It is all that is needed to resume a run after any of
them died.

Slurm may start a job twice: a controller that crashed continues from a state that is seconds old, and the jobs of a
failed node are requeued. The script itself makes sure that a task runs once: it holds a lock while it runs, exits when
its task has already finished, and refuses to run before the tasks that it depends on. It logs fractions of seconds,
which Slurm does not.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from stretto.core.host.private_files import take_lock
from stretto.core.plan import Discipline, Plan
from stretto.core.units import is_count
from stretto.engines.command_output import read_bounded
from stretto.engines.slurm.engine.job_plan import Slot
from stretto.engines.work import Action, Command, Timed, Work
from stretto.errors import EngineFailure, InvalidInput

#: The script's own exit codes; programs seldom use them.
EXIT_TOO_EARLY = 98
#: Of ``timeout``: the program took too long.
EXIT_TIMEOUT = 124
#: Endings of a task's files: what happened, stdout of its last attempt, stderr of each (with its number behind).
LOG, OUT, ERR = ".log", ".out", ".err"

#: What all tasks of a run have in common; every task's script sources it. Scripts are part of what identifies a run:
#: where their text changes, runs of earlier versions can no longer be resumed.
COMMON = r"""
exec 9>>"$folder/$task.lock"
flock 9 || exit 97
log="$folder/$task.log"
grep -q ' ok$' "$log" 2>/dev/null && exit 0
for other in $needs; do grep -q ' ok$' "$folder/$other.log" 2>/dev/null || exit 98; done
for other in $after; do grep -Eq ' (ok|over)$' "$folder/$other.log" 2>/dev/null || exit 98; done
number=$(grep -c '^start ' "$log" 2>/dev/null); number=${number:-0}
failed=$(grep -c '^end ' "$log" 2>/dev/null); failed=${failed:-0}
while [ "$failed" -lt "$tries" ]; do
    number=$((number + 1))
    echo "start $number $(date +%s.%N) $SLURM_JOB_ID ${SLURMD_NODENAME:-?}" >>"$log"
    (perform) >"$folder/$task.out" 2>"$folder/$task.err$number" </dev/null
    code=$?
    failed=$((failed + 1))
    word=again
    [ "$failed" -lt "$tries" ] || word=over
    [ "$code" -ne 0 ] || word=ok
    echo "end $number $(date +%s.%N) $code $word" >>"$log"
    [ "$code" -ne 0 ] || exit 0
done
exit 1
"""


@dataclass(frozen=True)
class Entry:
    """One line of a task's log.

    Attributes
    ----------
    at_s
        In Unix seconds, by the clock of the node.
    word
        Of an end: ``ok``, ``again`` (it will be tried once more) or ``over`` (it will not).
    """

    kind: str  # start, end, skipped, or done: elsewhere
    attempt: int = 0
    at_s: float = 0.0
    node: str = ""
    exit_code: int = 0
    word: str = ""


def script(
    folder: Path, task: int, action: Action, seconds: float, *, tries: int, needs: Sequence[int], after: Sequence[int]
) -> str:
    """Return the text of a task's batch script.

    Parameters
    ----------
    seconds
        What the task is planned to take, for timed ones.
    needs, after
        Tasks that must have ended well, and tasks that must be over one way or another.
    """
    lines = [
        "#!/bin/sh",
        f"folder={shlex.quote(str(folder))}",
        f"task={task}",
        f"tries={tries}",
        f"needs='{' '.join(map(str, needs))}'",
        f"after='{' '.join(map(str, after))}'",
        "perform() {",
        *(f"    {line}" for line in _perform(action, seconds)),
        "}",
        '. "$folder/common.sh"',
        "",
    ]
    return "\n".join(lines)


def _perform(action: Action, seconds: float) -> list[str]:
    if isinstance(action, Timed):
        return _timed(action, seconds)
    if not isinstance(action, Command):
        raise InvalidInput(
            "the engine slurm runs commands, not Python functions: use commands, or the engine slurm-dask", field="work"
        )
    if any("\0" in word for word in action.argv) or not action.argv:
        raise InvalidInput(f"{action.argv!r} is not a command", field="work")
    lines = [f"cd {shlex.quote(action.cwd)} || return 96"] if action.cwd is not None else []
    lines += [f"export {_variable(name)}={shlex.quote(value)}" for name, value in action.env.items()]
    lines += [_demand(path, "is not there") for path in action.reads]
    limit = f"timeout --kill-after=5 {action.timeout_s:.3f} " if action.timeout_s is not None else ""
    lines.append(f"{limit}{shlex.join(action.argv)} || return $?")
    lines += [_demand(path, "was not made") for path in action.writes]
    return [*lines, "return 0"]


def _timed(action: Timed, seconds: float) -> list[str]:
    duration = seconds * action.scale
    if action.mode == "sleep":
        return [f"exec sleep {duration:.6f}"]
    return [f"last=$(($(date +%s%N) + {round(duration * 1e9)}))", 'while [ "$(date +%s%N)" -lt "$last" ]; do :; done']


def _variable(name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise InvalidInput(f"{name!r} is not a valid name of an environment variable", field="env")
    return name


def _demand(path: str, complaint: str) -> str:
    quoted = shlex.quote(path)
    return f"[ -e {quoted} ] || {{ echo {shlex.quote(f'{path} {complaint}')} >&2; return 95; }}"


def read_log(text: str, source: str = "log of a task") -> list[Entry]:
    """Return the lines of a task's log; a last line that is still being written is left for later."""
    entries = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        words = line.split()
        if not line.endswith("\n") or not words:
            continue
        try:
            entries += _entry(words)
        except ValueError:
            message = f"{line[:80].strip()!r} is not what a task's script writes; restore the line to resume the run"
            raise InvalidInput(message, source=source, line=number) from None
    return entries


def _entry(words: list[str]) -> list[Entry]:
    if words[0] == "start" and len(words) >= 5:
        return [Entry("start", int(words[1]), float(words[2]), node=words[4])]
    if words[0] == "end" and len(words) >= 5:
        return [Entry("end", int(words[1]), float(words[2]), exit_code=int(words[3]), word=words[4])]
    if words[0] == "skipped":
        return [Entry("skipped", word="over")]
    return [Entry("done", word="ok")] if words[0] == "done" else []


_IDENTITY = "run.json"
_COMMON = "common.sh"


class RunFolder:
    """The folder of a run, locked by one process at a time.

    Attributes
    ----------
    key
        Part of the names of the jobs of this run.
    began_s
        When the run was first started, in Unix seconds.
    slots
        Of the devices, as they were when the run started; None before that.
    """

    def __init__(self, path: Path, *, patience_s: float = 10.0) -> None:
        self.path = path.resolve()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self.path / "run.lock", os.O_RDWR | os.O_CREAT, 0o600)
        # A killed process may have left an sbatch that still holds the lock for a moment.
        if not take_lock(self._lock, fcntl.LOCK_EX, patience_s=patience_s):
            os.close(self._lock)
            raise EngineFailure(f"another process is running the work in {self.path}; wait for it, or end it")
        self.key, self.began_s, self._digest, self.slots = self._identity()
        self._sizes: dict[int, int] = {}

    @property
    def lock_fd(self) -> int:
        """The lock; a process that inherits it holds the folder, too."""
        return self._lock

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def write_scripts(self, scripts: list[str], slots: Sequence[Slot]) -> None:
        """Write the scripts of all tasks, and the slots; raise where the folder belongs to different work."""
        digest = hashlib.sha256("\0".join(scripts).encode()).hexdigest()
        if self._digest == digest:
            return
        if self._digest:
            raise InvalidInput(
                "holds a run of different work or of a different plan; choose another folder",
                source=str(self.path),
                field="folder",
            )
        (self.path / _COMMON).write_text(COMMON)
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
        return int(tail) if head == f"stretto-{self.key}" and is_count(tail) else None

    def changed(self) -> list[int]:
        """Return the tasks whose logs have grown since the last call."""
        found = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                stem, dot, ending = entry.name.partition(".")
                if ending != "log" or not dot or not is_count(stem):
                    continue
                size = entry.stat().st_size
                if self._sizes.get(int(stem)) != size:
                    self._sizes[int(stem)] = size
                    found.append(int(stem))
        return sorted(found)

    def entries(self, task: int) -> list[Entry]:
        """Return the log of a task's script."""
        try:
            path = self.path / f"{task}{LOG}"
            return read_log(path.read_text(errors="replace"), str(path))
        except FileNotFoundError:
            return []

    def output(self, task: int, max_bytes: int = 1 << 20) -> bytes:
        """Return what the last attempt wrote to stdout: all of it, or its beginning and its end."""
        return read_bounded(self.path / f"{task}{OUT}", max_bytes)

    def complaint(self, task: int, attempt: int) -> str:
        """Return the end of what an attempt wrote to stderr."""
        try:
            text = (self.path / f"{task}{ERR}{attempt}").read_bytes()[-300:].decode(errors="replace")
        except FileNotFoundError:
            return ""
        return " ".join(text.split())

    def note_done(self, task: int) -> None:
        """Log that a task was finished elsewhere."""
        if not any(entry.word == "ok" for entry in self.entries(task)):
            with open(self.path / f"{task}{LOG}", "a") as log:
                log.write("done ok\n")

    def is_locked(self, task: int) -> bool:
        """Say whether the task's script is running somewhere, as far as file locks show."""
        try:
            lock = os.open(self.path / f"{task}.lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            return not take_lock(lock, fcntl.LOCK_EX)
        finally:
            os.close(lock)  # releases it, too

    def skip(self, task: int) -> None:
        """Log that a task will not run; tasks that only wait for its turn may start."""
        with open(self.path / f"{task}{LOG}", "a") as log:
            log.write("skipped over\n")

    def _identity(self) -> tuple[str, float, str, list[Slot] | None]:
        try:
            known = json.loads((self.path / _IDENTITY).read_text())
            slots = [Slot(**slot) for slot in known["slots"]]
            return str(known["key"]), float(known["began_s"]), str(known["digest"]), slots
        except FileNotFoundError:
            return secrets.token_hex(4), time.time(), "", None
        except (ValueError, KeyError, TypeError):
            raise InvalidInput(
                "is damaged: this run cannot be resumed; choose another folder", source=str(self.path / _IDENTITY)
            ) from None

    def _keep_identity(self) -> None:
        """Write the identity at once or not at all."""
        draft = self.path / f"{_IDENTITY}.new"
        slots = [vars(slot) for slot in self.slots or ()]
        known = {"key": self.key, "began_s": self.began_s, "digest": self._digest, "slots": slots}
        draft.write_text(json.dumps(known))
        os.replace(draft, self.path / _IDENTITY)


def run_folder_for(work: Work, plan: Plan, discipline: Discipline, base: Path) -> Path:
    """Return the folder to run in when the user names none.

    An unfinished run of the same work and plan, for example after a crash of this process, is resumed: its jobs may
    still be in the queue. If that run has ended, successfully or not, a new folder is made beside it.
    """
    stem = f"stretto-run-{fingerprint(work, plan, discipline)}"
    number = 1
    while (base / f"{stem}-{number}").exists():
        if not _is_over(base / f"{stem}-{number}", work.graph.num_tasks):
            break
        number += 1
    return base / f"{stem}-{number}"


def fingerprint(work: Work, plan: Plan, discipline: Discipline) -> str:
    """Return a short digest of what is to be done, where and in which order."""
    digest = hashlib.sha256(discipline.encode())
    for action, parents in zip(work.actions, work.parents, strict=True):
        digest.update(f"{action!r} {parents!r}\0".encode())
    for column in (plan.assignment, plan.order, work.graph.work_s):
        digest.update(column.tobytes())
    return digest.hexdigest()[:10]


def _is_over(folder: Path, num_tasks: int) -> bool:
    """Say whether all tasks of a run have finished, or one has failed for good."""
    last = []
    for task in range(num_tasks):
        try:
            path = folder / f"{task}{LOG}"
            entries = read_log(path.read_text(errors="replace"), str(path))
        except FileNotFoundError:
            entries = []
        last.append(entries[-1].word if entries else "")
    return "over" in last or all(word == "ok" for word in last)
