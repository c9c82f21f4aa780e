"""One run of many tasks that take no time, recorded as any run is, and the memory of the process that drives it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from soak_memory import NUM_SAMPLES, Watch

#: Chains beside each other; each task reads the one before it.
_NUM_CHAINS = 100
#: A result has times and a digest for every task, and where tasks take no time, events wait to be written.
#: Dask's scheduler, here in the same process, keeps each task from which data that is still wanted could be made again.
MOST_BYTES_PER_TASK = {"tasks": 1_000, "dask-tasks": 12_000}


def tasks(num_tasks: float, engine_name: str = "local") -> dict[str, Any]:
    """Run so many tasks on two devices, with a run log."""
    from stretto.core.cluster import Cluster
    from stretto.core.graph import TaskGraph
    from stretto.core.plan import Plan
    from stretto.engines.driver.events import Event, TaskFinished
    from stretto.engines.engine import RunOptions, make_engine
    from stretto.engines.session import run_recorded
    from stretto.engines.work import Work
    from stretto.runlog import RunLog

    n = int(num_tasks)
    graph = TaskGraph.from_edges(np.ones(n), np.arange(n - _NUM_CHAINS), np.arange(_NUM_CHAINS, n), 8.0, name="many")
    work = Work.timed(graph, scale=0.0)
    plan = Plan(np.arange(n, dtype=np.int32) % 2, np.arange(n, dtype=np.int32), "work-conserving")
    watch, num_ended = Watch(), 0

    def count(event: Event) -> None:
        nonlocal num_ended
        if isinstance(event, TaskFinished):
            num_ended += 1
            if num_ended % (n // NUM_SAMPLES) == 0:
                watch.look(num_ended)

    begin_s, begin_cpu_s = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as folder, RunLog.open(Path(folder) / "runs.db") as log:
        options = RunOptions(keep="none", on_event=count)
        engine, cluster = make_engine(engine_name), Cluster.parse("cpu:2")
        session = run_recorded(log, engine, work, plan, cluster, options, settings={})
        session.result.check()
        recorded = sum(1 for _ in log.events(session.run_id, kinds=["task-finished"]))
    return {
        "tasks": n,
        "ended": num_ended,
        "recorded": recorded,
        "seconds": round(time.monotonic() - begin_s, 1),
        "cpu_us_per_task": round(1e6 * (time.process_time() - begin_cpu_s) / n, 1),
        "bytes_per_task": round((watch.samples[-1] - watch.samples[0]) / n),
        "bytes": watch.samples,
    }
