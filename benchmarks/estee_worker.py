"""Run estee's simulator on an instance; this file runs inside estee's own environment.

    python estee_worker.py INSTANCE.json RESULT.json

estee's devices are equal and its data is in megabytes: the instance says so already.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

MEGA = 1e6


def build(instance: dict[str, Any]) -> Any:
    """Make estee's task graph: one output per task."""
    from estee.common import TaskGraph

    graph = TaskGraph()
    tasks = [
        graph.new_task(duration=work, cpus=1, output_size=size / MEGA)
        for work, size in zip(instance["work"], instance["output"], strict=True)
    ]
    for source, target, _ in instance["edges"]:
        tasks[target].add_input(tasks[source])
    return graph


def run(model: str, instance: dict[str, Any]) -> dict[str, float]:
    """Simulate the graph under one network model, with estee's own b-level scheduler."""
    from estee import simulator
    from estee.schedulers import BlevelGtScheduler

    graph = build(instance)
    network = getattr(simulator, model)(bandwidth=instance["nic_bytes_per_s"] / MEGA)
    workers = [simulator.Worker(cpus=1) for _ in instance["speed"]]
    simulation = simulator.Simulator(graph, workers, BlevelGtScheduler(), network)
    begin = time.process_time()
    makespan_s = simulation.run()
    return {"cpu_s": time.process_time() - begin, "makespan_s": float(makespan_s)}


def main() -> None:
    """Read the instance, run both network models, write the results."""
    with open(sys.argv[1]) as file:
        instance = json.load(file)
    runs = {"none": run("SimpleNetModel", instance), "fair": run("MaxMinFlowNetModel", instance)}
    with open(sys.argv[2], "w") as file:
        json.dump({"runs": runs, "python": sys.version.split()[0]}, file)


if __name__ == "__main__":
    main()
