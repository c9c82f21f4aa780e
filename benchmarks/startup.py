"""How long a user waits for the first word: ``python benchmarks/startup.py [--runs 7]``.

Each command runs in a process of its own with the caches of an earlier run. CPU time is less moved by other
programs than wall time; both are printed, with the load of the machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

STRETTO = [sys.executable, "-m", "stretto.cli.main"]
#: What is measured, and how long it may take on a quiet machine, in seconds of wall time.
COMMANDS = {
    "import stretto": ([sys.executable, "-c", "import stretto"], 0.1),
    "stretto --help": ([*STRETTO, "--help"], 0.3),
    "stretto plan, 100 tasks": ([*STRETTO, "plan", "workload:random-dag?num_tasks=100", "-c", "cpu:4,gpu:2"], 1.5),
    "stretto replay, 1,000 jobs": ([*STRETTO, "replay", "trace:lublin?num_jobs=1000&num_procs=64"], 1.5),
}


def measure(words: list[str]) -> tuple[float, float]:
    """Return wall and CPU seconds of one run."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    wall_s, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure everything, less what bare Python takes for the import."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    bare = [measure([sys.executable, "-c", "pass"]) for _ in range(runs)]
    base_wall, base_cpu = (statistics.median(column) for column in zip(*bare, strict=True))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, medians of {runs}, bare Python {base_wall:.3f} s")
    print(f"{'':<28} {'wall':>8} {'CPU':>8} {'target':>8}")
    for name, (words, target_s) in COMMANDS.items():
        measure(words)  # fills the caches
        wall_s, cpu_s = (
            statistics.median(column) for column in zip(*(measure(words) for _ in range(runs)), strict=True)
        )
        if name.startswith("import"):
            wall_s, cpu_s = wall_s - base_wall, cpu_s - base_cpu
        print(f"{name:<28} {wall_s:>6.3f} s {cpu_s:>6.3f} s {target_s:>6.1f} s")


if __name__ == "__main__":
    main()
