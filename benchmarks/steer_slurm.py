"""What steering a live Slurm queue is worth: the same jobs, first by Slurm alone, then steered.

Real daemons, invented nodes; the jobs sleep, and time is short: a second here stands for about a minute there, and the
bounded slowdown is bounded by one second in place of ten. Run with

    python benchmarks/steer_slurm.py [--jobs 50] [--seed 1] [--strategies saf,portfolio,mars] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stretto.api.steer import make_order
from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.queues.live_order import warm_up

BOUND_S = 1.0
NUM_NODES = 4
SCRIPT = """#!/bin/sh
date +%s.%N >"$1.start"
sleep "$2"
date +%s.%N >"$1.end"
"""


@dataclass(frozen=True)
class Jobs:
    """Sleepers: when they are submitted, for how long they sleep, what their users ask for, on how many nodes."""

    arrival_s: list[float]
    run_s: list[float]
    limit_min: list[int]
    num_nodes: list[int]

    @staticmethod
    def draw(count: int, seed: int) -> Jobs:
        """Draw jobs whose lengths differ much and whose users ask for up to three times too much."""
        rng = np.random.default_rng(seed)
        run = np.clip(rng.lognormal(0.0, 1.1, count), 0.2, 10.0)
        limit = np.ceil(run * rng.uniform(1.0, 3.0, count))
        nodes = rng.choice([1, 1, 1, 2, 4], count)
        arrival = np.sort(rng.uniform(0.0, 0.15 * count, count))
        return Jobs(arrival.tolist(), run.tolist(), [int(x) for x in limit], [int(x) for x in nodes])


def play(bed: Testbed, jobs: Jobs, folder: Path, strategy: str) -> dict[str, float]:
    """Submit the jobs at their times, wait for the last, and return how they fared."""
    client = SlurmClient(bed.commands)
    folder.mkdir()
    script = folder / "sleep.sh"
    script.write_text(SCRIPT)
    switch = folder / "off"
    steerer = None
    if strategy != "slurm":
        order = make_order(strategy, 1.0)
        warm_up(order)
        store = LabelStore(folder / "store.json", conf=str(bed.conf))
        steerer = Steerer(client, order, store, switch, SteerSettings(is_applied=True, interval_s=0.5))
        thread = threading.Thread(target=steerer.follow, args=(lambda step: None,))
        thread.start()
    submitted = []
    began = time.time()
    for job, arrival in enumerate(jobs.arrival_s):
        time.sleep(max(0.0, began + arrival - time.time()))
        options = {"output": "/dev/null", "time": jobs.limit_min[job], "nodes": jobs.num_nodes[job], "exclusive": True}
        submitted.append(time.time())
        client.submit(Submission(str(script), (str(folder / str(job)), f"{jobs.run_s[job]:.3f}"), options))
    while len(list(folder.glob("*.end"))) < len(submitted):
        time.sleep(0.2)
    if steerer is not None:
        switch.touch()
        thread.join()
    return measure(folder, submitted)


def measure(folder: Path, submitted: list[float]) -> dict[str, float]:
    """Return means over all jobs, by the clock inside them."""
    start = np.array([float((folder / f"{job}.start").read_text()) for job in range(len(submitted))])
    end = np.array([float((folder / f"{job}.end").read_text()) for job in range(len(submitted))])
    wait, run = start - np.array(submitted), end - start
    slowdown = np.maximum(1.0, (wait + run) / np.maximum(run, BOUND_S))
    unscaled = np.maximum(1.0, (wait + run) / np.maximum(run, 10.0))
    return {
        "mean_bounded_slowdown": float(slowdown.mean()),
        "bounded_by_10_s": float(unscaled.mean()),
        "p95_bounded_slowdown": float(np.quantile(slowdown, 0.95)),
        "mean_wait_s": float(wait.mean()),
        "max_wait_s": float(wait.max()),
        "makespan_s": float(end.max() - min(submitted)),
    }


def main() -> None:
    """Play the same jobs by Slurm alone and by each strategy, on one testbed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strategies", default="saf,portfolio,mars")
    parser.add_argument("--out")
    options = parser.parse_args()
    jobs = Jobs.draw(options.jobs, options.seed)
    rows = {}
    with tempfile.TemporaryDirectory(prefix="steer-") as place:
        bed = Testbed.up(Path(place) / "bed", TestbedSpec(num_nodes=NUM_NODES, cpus_per_node=1))
        try:
            for strategy in ("slurm", *options.strategies.split(",")):
                rows[strategy] = play(bed, jobs, Path(place) / strategy, strategy)
                gain = 1.0 - rows[strategy]["mean_bounded_slowdown"] / rows["slurm"]["mean_bounded_slowdown"]
                rows[strategy]["gain"] = gain
                shown = ", ".join(f"{key} {value:.3g}" for key, value in rows[strategy].items())
                print(f"{strategy:10} {shown}", flush=True)
        finally:
            left = bed.down()
    assert not left, left
    if options.out:
        document = {"jobs": options.jobs, "seed": options.seed, "bound_s": BOUND_S, "rows": rows}
        Path(options.out).write_text(json.dumps(document, indent=1) + "\n")
    assert not math.isnan(rows["slurm"]["gain"])


if __name__ == "__main__":
    main()
