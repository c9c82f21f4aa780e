"""A Gantt chart in a terminal: one line per device, one block per stretch of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stretto.core.problem import Problem
    from stretto.core.schedule import Schedule

_MOST_DEVICES = 16
_FULL, _PART, _IDLE = "█", "▒", "·"


def text_gantt(problem: Problem, schedule: Schedule, *, width: int = 60) -> RenderableType:
    """Return lines of blocks: full where a device works most of that time, grey where some, a dot where none.

    A node works as much as the share of its cores that tasks hold.
    """
    import numpy as np
    from rich.console import Group
    from rich.text import Text

    from stretto.core.metrics import shares_held
    from stretto.core.units import format_seconds
    from stretto.reports.plots.colors import PALETTE, REST, by_frequency

    graph = problem.graph
    codes = graph.category if graph.category is not None else np.zeros(problem.num_tasks, dtype=np.int32)
    colour, _ = by_frequency(codes, max(1, len(graph.categories or ())))
    step_s = schedule.makespan_s / width or 1.0
    names = [device.name for device in problem.cluster.devices[:_MOST_DEVICES]]
    margin = max(map(len, names))
    lines = []
    held = shares_held(problem, schedule)
    for device, name in enumerate(names):
        busy = np.zeros((len(PALETTE) + 1, width))
        for task in np.flatnonzero(schedule.device == device):
            row = busy[min(int(colour[task]), len(PALETTE))]
            _add(row, schedule.start_s[task], schedule.finish_s[task], step_s, float(held[task]))
        line = Text(f"  {name:<{margin}} ", no_wrap=True)
        for column in range(width):
            share, most = float(busy[:, column].sum()), int(busy[:, column].argmax())
            block = _FULL if share > 0.5 else _PART if share > 0.05 else _IDLE
            line.append(block, (*PALETTE, REST)[most] if share > 0.05 else "dim")
        lines.append(line)
    rest = problem.num_devices - len(names)
    end = format_seconds(schedule.makespan_s)
    lines.append(Text(f"  {'':<{margin}} 0{end:>{width - 1}}", style="dim"))
    if rest > 0:
        lines.append(Text(f"  and {rest:,} more devices", style="dim"))
    return Group(*lines)


def _add(busy: object, start_s: float, finish_s: float, step_s: float, share: float) -> None:
    """Add the share of each column that lies between two moments, times the share of the device that is held."""
    import numpy as np

    assert isinstance(busy, np.ndarray)
    edges = np.arange(len(busy)) * step_s
    inside = np.clip(np.minimum(edges + step_s, finish_s) - np.maximum(edges, start_s), 0.0, None)
    busy += share * inside / step_s
