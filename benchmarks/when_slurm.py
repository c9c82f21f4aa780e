"""Predicted starts on a live Slurm queue, by Stretto and by ``squeue --start``, against what then happened.

Real daemons, invented nodes; the jobs sleep for seconds and ask for minutes. The first jobs end before anybody asks:
they are all that is known. When at least 200 jobs wait and Slurm has predicted them, both predictions are noted at the
same moment. Run with

    python benchmarks/when_slurm.py [--jobs 330] [--seed 1]
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

import numpy as np

from stretto.api import when_slurm
from stretto.api.options.slurm import SlurmPlace
from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed

NUM_NODES = 4
LEAST_WAITING = 200
#: Jobs that have started before anybody asks.
LEAST_STARTED = 40
SCRIPT = '#!/bin/sh\ndate +%s.%N >"$1.start"\nsleep "$2"\n'


def submit_all(client: SlurmClient, folder: Path, count: int, seed: int) -> dict[int, Path]:
    """Submit jobs whose users ask for minutes; return the file of each that will hold its start."""
    rng = np.random.default_rng(seed)
    script = folder / "sleep.sh"
    script.write_text(SCRIPT)
    kinds = rng.integers(0, 4, count)
    run = np.array([1.0, 2.0, 3.0, 5.0])[kinds] * rng.lognormal(0.0, 0.3, count)
    found = {}
    for job in range(count):
        options = {
            "output": "/dev/null",
            "time": int([1, 2, 5, 10][kinds[job]]),
            "nodes": int(rng.choice([1, 1, 1, 2, 4])),
            "exclusive": True,
        }
        mark = folder / str(job)
        number = client.submit(Submission(str(script), (str(mark), f"{run[job]:.2f}"), options))
        found[number] = mark.with_suffix(".start")
    return found


def slurm_says(client: SlurmClient, patience_s: float = 180.0) -> dict[int, float]:
    """Wait until Slurm has predicted enough of its waiting jobs; return the predicted starts."""
    deadline = time.time() + patience_s
    while True:
        known = {job.job_id: job.start_s for job in client.queue() if job.is_pending and not math.isnan(job.start_s)}
        ahead = {number: start for number, start in known.items() if start > 0}
        if len(ahead) >= LEAST_WAITING or time.time() > deadline:
            return ahead
        time.sleep(2.0)


def main() -> None:
    """Play the queue and print the errors of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=330)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="when-") as place:
        folder = Path(place) / "jobs"
        folder.mkdir()
        bed = Testbed.up(Path(place) / "bed", TestbedSpec(num_nodes=NUM_NODES, cpus_per_node=1))
        try:
            client = SlurmClient(bed.commands)
            marks = submit_all(client, folder, options.jobs, options.seed)
            while sum(mark.exists() for mark in marks.values()) < LEAST_STARTED:
                time.sleep(0.5)
            theirs = slurm_says(client)
            begin = time.time()
            answer = when_slurm(place=SlurmPlace(conf=bed.conf))
            took = time.time() - begin
            ours = {int(one.job): one for one in answer.starts}
            both = [number for number in ours if number in theirs]
            print(f"{len(ours)} jobs wait, {len(both)} predicted by both; learned from {answer.start.num_learned}")
            print(f"all answers took {took:.1f} s", flush=True)
            while not all(marks[number].exists() for number in both):
                time.sleep(1.0)
            time.sleep(0.5)
            actual = np.array([float(marks[number].read_text()) for number in both])
        finally:
            left = bed.down()
    assert not left, left
    slurm_error = np.abs(np.array([theirs[number] for number in both]) - actual)
    our_error = np.abs(np.array([ours[number].likely_s for number in both]) - actual)
    inside = np.mean([ours[n].low_s <= start <= ours[n].high_s for n, start in zip(both, actual, strict=True)])
    print(f"median absolute error: squeue --start {np.median(slurm_error):.1f} s, stretto {np.median(our_error):.1f} s")
    print(f"90th percentile: {np.quantile(slurm_error, 0.9):.1f} s, {np.quantile(our_error, 0.9):.1f} s")
    print(f"in the 90 % intervals: {inside:.2f}")


if __name__ == "__main__":
    main()
