"""How far a live run has come, in words: tasks done, or the share of a budget; the time left is an estimate."""

from __future__ import annotations

from typing import Literal

from stretto.core.units import format_seconds, format_wait
from stretto.reports.page.view_types import LiveJson
from stretto.runlog import RunInfo, RunLog

_FINISHED = "task-finished"


def live_progress(log: RunLog, info: RunInfo, now_s: float) -> LiveJson | None:
    """Return how far a run has come, None where it has ended or does not say how much there is to do."""
    if info.status != "running":
        return None
    if info.kind == "run":
        return _tasks(log, info, now_s)
    limit = info.settings.get("budget_s" if info.kind == "train" else "time_limit_s")
    if isinstance(limit, (int, float)) and limit > 0:
        return _budget(log, info, float(limit), "training" if info.kind == "train" else "search")
    episodes = info.settings.get("episodes")
    if info.kind == "train" and isinstance(episodes, int) and episodes > 0:
        done = int(_latest(log, info, "episode"))
        return {"share": min(1.0, done / episodes), "text": f"{done:,} of {episodes:,} episodes"}
    return None


def _tasks(log: RunLog, info: RunInfo, now_s: float) -> LiveJson | None:
    total = info.settings.get("num_tasks")
    if not isinstance(total, int) or total < 1:
        return None
    done = min(total, log.count(info.id, _FINISHED))
    text = f"{done:,} of {total:,} tasks"
    began = log.events(info.id, limit=1)
    if 0 < done < total and began:  # the rest at the pace so far: an estimate, and called "about"
        left = (now_s - began[0].at_s) * (total - done) / done
        text += f", about {format_wait(float(f'{max(1.0, left):.{1 if left < 10 else 2}g}'))} left"
    return {"share": done / total, "text": text}


def _budget(log: RunLog, info: RunInfo, limit_s: float, what: Literal["training", "search"]) -> LiveJson:
    spent = _latest(log, info, "seconds" if what == "training" else "elapsed_s")
    share = min(1.0, spent / limit_s)
    return {"share": share, "text": f"{100 * share:.0f} % of {format_seconds(limit_s)} of {what}"}


def _latest(log: RunLog, info: RunInfo, field: str) -> float:
    """Return a field of the last event; zero before the first."""
    value = next((event.fields.get(field) for event in log.events(info.id, info.num_events - 1, limit=1)), 0.0)
    return float(value) if isinstance(value, (int, float)) else 0.0
