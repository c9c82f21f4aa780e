"""Write ``schedule_in_a_notebook.ipynb`` from the cells below: ``python examples/make_notebook.py``.

A notebook is hard to review as a file; this is what to edit. The tests run it, and check that it is up to date.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("schedule_in_a_notebook.ipynb")

#: Markdown, then code, in turns.
CELLS = (
    """# Scheduling in a notebook

Plan a graph, see the schedule, compare policies, and replay a queue. It takes a few seconds.""",
    """import stretto

graph = stretto.workloads.generate("cholesky", num_tiles=6)
cluster = "cpu:4,gpu:1@12GB/s"
result = stretto.plan(graph, cluster, policy="heft")
print(f"{graph.num_tasks} tasks in {result.makespan_s * 1e3:.1f} ms, gap {result.gap:.0%}")""",
    "The schedule. The red line is the bound that no schedule can beat.",
    """from IPython.display import SVG

from stretto.reports.gantt.draw import draw_gantt

draw_gantt(result.problem, result.schedule, "schedule.svg", lower_bound_s=result.lower_bound_s)
SVG("schedule.svg")""",
    "Would another policy do better? `compare` plans with each, and ranks them.",
    """policies = ["round-robin", "heft", "peft", "annealing"]
for line in stretto.compare([graph], cluster, policies, time_limit_s=1.0).summary():
    print(f"{line.policy:>12}  {line.mean_ratio:.3f} x best, gap {line.mean_gap:.1%}, {line.plan_seconds:.3f} s")""",
    "What if run times are off by a third, and transfers share the links?",
    """times = [stretto.simulate(result, noise=0.3, contention="fair", seed=seed).makespan_s for seed in range(30)]
print(f"{min(times) * 1e3:.1f} to {max(times) * 1e3:.1f} ms instead of {result.makespan_s * 1e3:.1f}")""",
    "A queue: a thousand generated jobs on 64 processors, under three orders.",
    """from stretto.queues.metrics import measure
from stretto.queues.workloads.lublin import lublin

trace = lublin(1000, seed=1, num_procs=64, load=0.9)
for strategy in ("fcfs", "sjf", "saf"):
    metrics = measure(stretto.replay(trace, 64, strategy=strategy))
    print(f"{strategy}: mean bounded slowdown {metrics.bounded_slowdown.mean:.1f}")""",
)


def notebook() -> dict[str, Any]:
    """Return the notebook, without outputs and with ids that stay the same."""
    cells = []
    for number, source in enumerate(CELLS):
        kind = "code" if number % 2 else "markdown"
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell | {"source": source.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def text() -> str:
    """Return the notebook as its file."""
    return json.dumps(notebook(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
