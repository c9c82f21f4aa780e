"""Write the files of this folder that the README names; they are in the repository, and this says where they come from.

Usage: python examples/make_files.py
"""

from __future__ import annotations

import gzip
from pathlib import Path

import stretto
from stretto.files.traces.swf import FORMAT as SWF
from stretto.queues.workloads.lublin import lublin

HERE = Path(__file__).parent


def main() -> None:
    """Write two graphs and a log of jobs."""
    stretto.save(stretto.workloads.generate("montage", num_images=12), HERE / "workflow.json")
    stretto.save(stretto.workloads.generate("ffnn"), HERE / "graph.json")
    jobs = lublin(num_jobs=1500, num_procs=128, load=0.95, seed=7)
    (HERE / "jobs.swf.gz").write_bytes(gzip.compress(SWF.write(jobs), mtime=0))  # the same bytes every time


if __name__ == "__main__":
    main()
