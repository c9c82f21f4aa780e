"""Replay a log with AccaSim; this file runs inside AccaSim's own environment.

    python accasim_worker.py LOG.swf NUM_PROCS RESULT.json

Each method runs twice: once without output files, for the time, and once with them, for the waits.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from datetime import datetime
from typing import Any

#: AccaSim 1.1.3 imports this name from where it stood before Python 3.10.
collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]


def simulate(method: str, log: str, machine: str, folder: str, *, writes: bool) -> tuple[float, list[str]]:
    """Run one method; return CPU seconds and the files that were written."""
    from accasim.base import scheduler_class
    from accasim.base.allocator_class import FirstFit
    from accasim.base.simulator_class import Simulator

    dispatcher = getattr(scheduler_class, method)(FirstFit())
    with contextlib.redirect_stdout(io.StringIO()):
        simulator = Simulator(
            log,
            machine,
            dispatcher,
            scheduling_output=writes,
            statistics_output=False,
            show_statistics=False,
            RESULTS_FOLDER_PATH=folder,
        )
        begin = time.process_time()
        simulator.start_simulation()
        spent = time.process_time() - begin
    return spent, [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]


def waits(paths: list[str]) -> dict[str, float]:
    """Return the wait of each job, by its number, from the file that AccaSim wrote."""
    found = {}
    for path in paths:
        if not os.path.basename(path).startswith("sched-"):
            continue
        with open(path) as file:
            for line in file:
                before, _, after = line.strip().split("__")
                job, _, queued = before.split(";")
                found[job] = (moment(after.split(";")[0]) - moment(queued)).total_seconds()
    return found


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def main() -> None:
    """Run the methods, write times and waits."""
    log, num_procs, target = sys.argv[1:]
    runs: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        machine = os.path.join(folder, "machine.json")
        with open(machine, "w") as file:
            groups = {"groups": {"node": {"core": 1}}, "resources": {"node": int(num_procs)}}
            json.dump({**groups, "equivalence": {"processor": {"core": 1}}}, file)
        for method in ("FirstInFirstOut", "ShortestJobFirst", "EASYBackfilling"):
            results = os.path.join(folder, method)
            os.makedirs(results)
            cpu_s, _ = simulate(method, log, machine, results, writes=False)
            _, paths = simulate(method, log, machine, results, writes=True)
            runs[method] = {"cpu_s": cpu_s, "wait_s": waits(paths)}
    with open(target, "w") as file:
        json.dump({"runs": runs, "python": sys.version.split()[0]}, file)


if __name__ == "__main__":
    main()
