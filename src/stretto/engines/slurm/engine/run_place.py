"""Which folder a run lives in when nobody says: that of the same work and plan, if it was left unfinished here."""

from __future__ import annotations

import hashlib
from pathlib import Path

from stretto.core.plan import Discipline, Plan
from stretto.engines.slurm.engine.task_script import LOG, read_log
from stretto.engines.work import Work

_PREFIX = "stretto-run-"


def place_of(work: Work, plan: Plan, discipline: Discipline, base: Path) -> Path:
    """Return the folder to run in.

    A run that was cut short, by a crash of this process for one, is taken up: its jobs may still be in the queue. One
    that ended, well or not, is over, and a new folder stands beside it.
    """
    stem = f"{_PREFIX}{fingerprint(work, plan, discipline)}"
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
    """Say whether all tasks of a run have ended well, or one was given up."""
    last = []
    for task in range(num_tasks):
        try:
            entries = read_log((folder / f"{task}{LOG}").read_text())
        except FileNotFoundError:
            entries = []
        last.append(entries[-1].word if entries else "")
    return "over" in last or all(word == "ok" for word in last)
