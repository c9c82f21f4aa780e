"""Write the files of this folder that the README names; they are in the repository, and this says where they come from.

Usage: python examples/make_files.py
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np

import stretto
from stretto.files.traces.swf import FORMAT as SWF
from stretto.queues.workloads.lublin import lublin

HERE = Path(__file__).parent
#: The benchmark set: one graph of each shape, with as many tasks as an exact solver or a reader can follow.
BENCHMARK: dict[str, dict[str, int]] = {
    "cholesky": {"num_tiles": 5},
    "fft": {},
    "montage": {"num_images": 8},
    "epigenomics": {},
    "gaussian-elimination": {},
    "random-dag": {"num_tasks": 40, "seed": 1},
}


def main() -> None:
    """Write two graphs, a benchmark set, a log of jobs, and an export of Slurm's accounting."""
    stretto.save(stretto.workloads.generate("montage", num_images=12), HERE / "workflow.json")
    stretto.save(stretto.workloads.generate("ffnn"), HERE / "graph.json")
    (HERE / "benchmark").mkdir(exist_ok=True)
    for name, size in BENCHMARK.items():
        stretto.save(stretto.workloads.generate(name, **size), HERE / "benchmark" / f"{name}.json")
    jobs = lublin(num_jobs=1500, num_procs=128, load=0.95, seed=7)
    _write(HERE / "jobs.swf.gz", SWF.write(jobs))
    _write(HERE / "sacct.txt.gz", accounting(lublin(num_jobs=1200, num_procs=128, load=0.85, seed=11)).encode())


def accounting(jobs: stretto.Trace) -> str:
    """Return jobs as `sacct --parsable2` prints them, as a site that serves in order of submission ran them."""
    rng = np.random.default_rng(5)
    user = rng.choice(12, jobs.num_jobs, p=np.arange(12, 0, -1) / 78)
    limit_min = np.ceil(jobs.run_s * rng.choice([1.2, 2.0, 4.0, 10.0], jobs.num_jobs) / 300) * 5
    start_s = jobs.submit_s + stretto.replay(jobs, 128, strategy="fcfs").wait_s
    rows = ["JobID|User|Partition|Submit|Start|End|State|NCPUS|NNodes|Timelimit"]
    for job in range(jobs.num_jobs):
        times = (jobs.submit_s[job], start_s[job], start_s[job] + jobs.run_s[job])
        stamps = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_767_600_000 + at_s)) for at_s in times]
        minutes = int(limit_min[job])
        limit = f"{minutes // 1440}-{minutes % 1440 // 60:02}:{minutes % 60:02}:00"
        partition = "long" if minutes > 720 else "batch"
        procs = int(jobs.num_procs[job])
        row = [4000 + job, f"user{user[job]:02}", partition, *stamps, "COMPLETED", procs, -(-procs // 16), limit]
        rows.append("|".join(map(str, row)))
    return "\n".join(rows) + "\n"


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, mtime=0))  # the same bytes every time


if __name__ == "__main__":
    main()
