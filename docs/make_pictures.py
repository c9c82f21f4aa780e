"""Draw the pictures of the documents with Stretto's own code: ``python docs/make_pictures.py [FOLDER]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import stretto
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.graphs.simulator import simulate
from stretto.queues.compare import compare_strategies
from stretto.queues.workloads.lublin import lublin
from stretto.reports.gantt.draw import draw_gantt
from stretto.reports.page.view_types import Titled
from stretto.reports.plots.canvas import saved
from stretto.reports.plots.queues import draw_comparison, draw_replay
from stretto.reports.racks.belief import belief_map, sample_fields
from stretto.reports.racks.heat import intervals
from stretto.reports.racks.show import RackShow
from stretto.reports.racks.topology import rack_topology

PICTURES = Path(__file__).resolve().parent / "pictures"


def gaps(folder: Path) -> None:
    """Draw one graph by three policies, each with the bound that none can beat."""
    graph = stretto.workloads.generate("cholesky", num_tiles=7)
    for policy in ("round-robin", "heft", "annealing"):
        result = stretto.plan(graph, "cpu:4,gpu:2@12GB/s", policy=policy, time_limit_s=1.0)
        title = f"{policy}: {result.makespan_s * 1e3:.1f} ms, gap {result.gap:.0%}"
        path = folder / f"gap-{policy}.svg"
        draw_gantt(result.problem, result.schedule, path, title=title, lower_bound_s=result.lower_bound_s)


def disciplines(folder: Path) -> None:
    """Draw one plan under both disciplines: a device that grabs a long task delays the critical one."""
    build = stretto.GraphBuilder("grab")
    feed = build.task("feed", 1.0)
    long = build.task("long", 4.0)
    critical = build.task("critical", 2.0)
    last = build.task("last", 3.0)
    build.edge(feed, critical, 0.0)
    build.edge(critical, last, 0.0)
    problem = Problem.of(build.graph(), stretto.Cluster.parse("cpu:2"))
    plan = Plan(
        np.array([1, 0, 0, 1], dtype=np.int32), np.array([feed, critical, long, last], dtype=np.int32), "sequence"
    )
    for discipline in ("sequence", "work-conserving"):
        schedule = simulate(problem, plan, discipline=discipline)
        title = f"{discipline}: {schedule.makespan_s:g} s"
        draw_gantt(problem, schedule, folder / f"discipline-{discipline}.svg", title=title)


def queues(folder: Path) -> None:
    """Draw a queue under a strategy, and strategies side by side."""
    trace = lublin(600, seed=3, num_procs=64, load=0.9)
    with tempfile.TemporaryDirectory() as name:
        drawn = Path(name)
        draw_replay(stretto.replay(trace, 64, strategy="fcfs"), drawn)
        comparison = compare_strategies(trace, 64, ["fcfs", "sjf", "saf", "wfp3"])
        draw_comparison(comparison, drawn)
        for path in sorted((drawn / "timeline.svg", drawn / "strategies.svg")):
            (folder / f"queue-{path.name}").write_bytes(path.read_bytes())


def beliefs(folder: Path) -> None:
    """Draw the estimated load of a rack at its busiest moment, beside the real load."""
    show = RackShow("small-rack", "srpt-belief", stream=0, seed=0)
    events = [sample_fields(sample) for sample, _ in show.moments() if sample is not None]
    belief = belief_map(rack_topology(show.model), events)
    assert belief is not None
    view = Titled(name="small-rack", settings={"policy": "srpt-belief"})
    (folder / "belief.svg").write_bytes(saved(intervals(view, belief), "svg"))


def main() -> None:
    """Draw everything into the folder of pictures, or into the one that is named."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (gaps, disciplines, queues, beliefs):
        draw(folder)
    for path in sorted(folder.glob("*.svg")):
        print(f"{path.name} {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
