"""The batch script of a task, and the file in which it writes down what it did.

Slurm may start a job twice: a controller that crashed goes on from a state that is seconds old, and a node that
failed has its jobs requeued. The script itself sees to it that a task runs once: it holds a lock while it runs, leaves
when its task has ended well before, and refuses to run before what it depends on. Its times have fractions of
seconds, which Slurm's have not.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stretto.engines.work import Action, Command, Timed
from stretto.errors import InvalidInput

#: The script's own exit codes; programs seldom use them.
EXIT_TOO_EARLY = 98
#: Of ``timeout``: the program took too long.
EXIT_TIMEOUT = 124
#: Endings of a task's files: what happened, stdout of its last attempt, stderr of each (with its number behind).
LOG, OUT, ERR = ".log", ".out", ".err"

#: What all tasks of a run have in common; every task's script sources it.
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
        raise InvalidInput("Slurm runs commands, not Python functions: use another engine, or a command", field="work")
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
        raise InvalidInput(f"{name!r} is not a name of a variable", field="env")
    return name


def _demand(path: str, complaint: str) -> str:
    quoted = shlex.quote(path)
    return f"[ -e {quoted} ] || {{ echo {shlex.quote(f'{path} {complaint}')} >&2; return 95; }}"


def read_log(text: str) -> list[Entry]:
    """Return the lines of a task's log; a last line that is still being written is left for later."""
    entries = []
    for line in text.splitlines(keepends=True):
        words = line.split()
        if not line.endswith("\n") or not words:
            continue
        if words[0] == "start" and len(words) >= 5:
            entries.append(Entry("start", int(words[1]), float(words[2]), node=words[4]))
        elif words[0] == "end" and len(words) >= 5:
            entries.append(Entry("end", int(words[1]), float(words[2]), exit_code=int(words[3]), word=words[4]))
        elif words[0] == "skipped":
            entries.append(Entry("skipped", word="over"))
        elif words[0] == "done":
            entries.append(Entry("done", word="ok"))
    return entries
