"""Run SAGA's schedulers on an instance; this file runs inside SAGA's own environment.

python saga_worker.py INSTANCE.json RESULT.json POLICY [POLICY ...]
"""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from importlib.metadata import version
from typing import Any

#: Our name of a policy -> the name of SAGA's class.
SCHEDULERS = {
    "heft": "HeftScheduler",
    "cpop": "CpopScheduler",
    "peft": "PEFTScheduler",
    "minmin": "MinMinScheduler",
    "maxmin": "MaxMinScheduler",
    "sufferage": "SufferageScheduler",
    "mct": "MCTScheduler",
    "met": "METScheduler",
    "olb": "OLBScheduler",
    "etf": "ETFScheduler",
    "fcp": "FCPScheduler",
    "flb": "FLBScheduler",
    "bil": "BILScheduler",
}


def build(instance: dict[str, Any]) -> tuple[Any, Any]:
    """Make SAGA's network and task graph; touch its lazily made indices, which count as building."""
    from saga import Network, TaskGraph

    devices = [f"d{i}" for i in range(len(instance["speed"]))]
    links = [
        (a, b, math.inf if i == j else instance["bandwidth"][i][j])
        for i, a in enumerate(devices)
        for j, b in enumerate(devices[: i + 1])
    ]
    network = Network.create(list(zip(devices, instance["speed"], strict=True)), links)
    tasks = [f"t{i}" for i in range(len(instance["work"]))]
    edges = [(tasks[u], tasks[v], size) for u, v, size in instance["edges"]]
    graph = TaskGraph.create(list(zip(tasks, instance["work"], strict=True)), edges)
    assert network.graph is not None
    assert graph.graph is not None
    network.get_node(devices[0])
    network.get_edge(devices[0], devices[-1])
    graph.get_task(tasks[0])
    graph.in_edges(tasks[0])
    graph.out_edges(tasks[0])
    graph.get_dependency(edges[0][0], edges[0][1])
    return network, graph


def run(name: str, network: Any, graph: Any, num_tasks: int) -> dict[str, Any]:
    """Time one scheduler and return its schedule by task."""
    import saga.schedulers

    scheduler = getattr(saga.schedulers, SCHEDULERS[name])()
    begin = time.process_time()
    schedule = scheduler.schedule(network, graph)
    cpu_s = time.process_time() - begin
    device: list[int] = [-1] * num_tasks
    start, finish = [0.0] * num_tasks, [0.0] * num_tasks
    for node, row in schedule.items():
        for item in row:
            if item.name.startswith("t"):  # not SAGA's own super source and sink
                task = int(item.name[1:])
                device[task], start[task], finish[task] = int(node[1:]), item.start, item.end
    return {"cpu_s": cpu_s, "claimed_s": schedule.makespan, "device": device, "start": start, "finish": finish}


def main() -> None:
    """Read the instance, run each policy, write all results."""
    logging.disable(logging.WARNING)
    with open(sys.argv[1]) as file:
        instance = json.load(file)
    import saga.schedulers

    begin = time.process_time()
    network, graph = build(instance)
    result: dict[str, Any] = {
        "version": version("anrg-saga"),
        "python": sys.version.split()[0],
        "build_s": time.process_time() - begin,
        "runs": {},
        "skipped": {},
    }
    for name in sys.argv[3:]:
        if not hasattr(saga.schedulers, SCHEDULERS.get(name, "")):
            result["skipped"][name] = f"SAGA {result['version']} has no scheduler like {name}"
            continue
        result["runs"][name] = run(name, network, graph, len(instance["work"]))
    with open(sys.argv[2], "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
