"""The commands with which the tasks of a run have finished, so that a resumption notices when they were edited."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection

from stretto.engines.work import Command, Work
from stretto.runlog import Run, RunLog

COMMANDS = "commands.json"
_NUM_NAMED = 3


def keep_commands(run: Run, work: Work, done: Collection[int] = ()) -> None:
    """Keep a digest of each task's command; of those that are done, the one they finished with."""
    before = _kept(run.log, run.id)
    names = {task: work.graph.task_name(task) for task in range(work.graph.num_tasks)}
    kept = {name: before[name] if task in done and name in before else now for task, name, now in _digests(work, names)}
    run.attach(COMMANDS, json.dumps(kept).encode())


def edited_commands(log: RunLog, run_id: str, work: Work, done: Collection[int]) -> str | None:
    """Return a notice about tasks that finished with another command than they have now, None where there are none."""
    before = _kept(log, run_id)
    names = {task: work.graph.task_name(task) for task in done}
    edited = [name for _, name, now in _digests(work, names) if before.get(name, now) != now]
    if not edited:
        return None
    shown = ", ".join(repr(name) for name in edited[:_NUM_NAMED])
    more = f" and {len(edited) - _NUM_NAMED:,} more" if len(edited) > _NUM_NAMED else ""
    noun, verb = ("task", "was") if len(edited) == 1 else ("tasks", "were")
    return (
        f"{noun} {shown}{more} {verb} edited after finishing: the earlier result is kept, and the new command does not"
        " run; to run it, start a new run (stretto run WORKFLOW)"
    )


def _digests(work: Work, names: dict[int, str]) -> list[tuple[int, str, str]]:
    found = ((task, name, work.actions[task]) for task, name in names.items())
    return [(task, name, _digest(action)) for task, name, action in found if isinstance(action, Command)]


def _digest(action: Command) -> str:
    text = json.dumps([action.argv, action.cwd, dict(sorted(action.env.items()))])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _kept(log: RunLog, run_id: str) -> dict[str, str]:
    data = log.artifact(run_id, COMMANDS)
    return {} if data is None else dict(json.loads(data))
