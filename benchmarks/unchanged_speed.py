"""Speed without capacities or memory limits, beside an earlier commit: planners, searches, simulator and bounds.

    python benchmarks/unchanged_speed.py [--commit REVISION] [--rounds 9] [--only TEXT]

The earlier commit is checked out into a temporary worktree; without ``--commit`` it is the one before nodes that pack
were added. Both versions run in processes of their own that take turns, with the same instances and seeds, and only CPU
time counts. For each item: the ratio of medians (now over before; 1.05 means 5 % slower) with a 90 % interval by
bootstrap over rounds. Compiled code is warm before the first round.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The file that came with nodes that pack, perhaps under another name.
_FIRST = "src/stretto/core/nodes/packing.py"
ALLOWED = 1.05


def items() -> dict[str, Callable[[], object]]:
    """Return what is measured, by name; only names that both versions have are used."""
    import stretto
    from stretto import catalog, registry
    from stretto.core.planner import Budget
    from stretto.graphs.bounds.bound import bound
    from stretto.graphs.simulator import simulate

    large = stretto.problem(stretto.workloads.random_dag(num_tasks=5000, ccr=1.0, seed=1), "cpu:24,gpu:8@1GB/s")
    small = stretto.problem(stretto.workloads.random_dag(num_tasks=200, ccr=1.0, seed=2), "cpu:6,gpu:2@1GB/s")
    middle = stretto.problem(stretto.workloads.random_dag(num_tasks=1000, ccr=1.0, seed=3), "cpu:12,gpu:4@1GB/s")

    def planned(name: str, problem: object, **params: object) -> Callable[[], object]:
        planner = registry.construct("policy", name, catalog.PLANNERS, params)
        return lambda: planner.plan(problem, Budget(seed=1, num_threads=1))

    found: dict[str, Callable[[], object]] = {}
    for name in ("heft", "peft", "cpop", "mcp", "hlfet", "fcp", "mct", "round-robin"):
        found[f"{name}, 5,000 x 32"] = planned(name, large)
    for name in ("etf", "dls", "minmin", "sufferage", "flb", "bil", "lookahead"):
        found[f"{name}, 1,000 x 16"] = planned(name, middle)
    for name, evaluations in (("annealing", 20_000), ("lns", 8_000), ("tabu", 1_500), ("genetic", 8_000)):
        found[f"{name}, 200 x 8"] = planned(name, small, max_evaluations=evaluations)
    plan = planned("heft", large)()
    for discipline in ("sequence", "work-conserving"):
        for contention in ("none", "fifo"):
            found[f"simulate {discipline}, {contention}"] = lambda d=discipline, c=contention: simulate(  # type: ignore[misc]
                large,
                plan,
                discipline=d,
                contention=c,  # type: ignore[arg-type]
            )
    found["bound, 200 x 8"] = lambda: bound(small)
    return found


def measure(only: str) -> None:
    """Serve one line of JSON per line read: CPU seconds of each item."""
    wanted = {name: call for name, call in items().items() if only in name}
    repeats = {}
    for name, call in wanted.items():
        call()
        begin = time.process_time()
        call()
        repeats[name] = max(1, int(0.05 / max(1e-6, time.process_time() - begin)))
    print(json.dumps(list(wanted)), flush=True)
    for _ in sys.stdin:
        row = {}
        for name, call in wanted.items():
            begin = time.process_time()
            for _ in range(repeats[name]):
                call()
            row[name] = (time.process_time() - begin) / repeats[name]
        print(json.dumps(row), flush=True)


class Version:
    """One version in a process of its own."""

    def __init__(self, source: Path, only: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(Path(__file__).resolve()), "--measure", "--only", only]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=source
        )
        self.names = self._read()

    def _read(self) -> object:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a version ended early: see its error above")
        return json.loads(line)

    def round(self) -> dict[str, float]:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        found = self._read()
        assert isinstance(found, dict)
        return found

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def interval(now: list[float], before: list[float], draws: int = 2000) -> tuple[float, float]:
    """Return a 90 % interval of the ratio of medians, by bootstrap over rounds."""
    rng, found = random.Random(0), []
    for _ in range(draws):
        at = [rng.randrange(len(now)) for _ in now]
        found.append(statistics.median(now[i] for i in at) / statistics.median(before[i] for i in at))
    found.sort()
    return found[draws // 20], found[-draws // 20]


def earlier_commit() -> str:
    """Return the parent of the commit that added nodes that pack."""
    command = ["git", "log", "--format=%H", "--follow", "--", _FIRST]
    added = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return f"{added[-1]}^"


def compare(commit: str, rounds: int, only: str) -> None:
    """Print the ratio of each item."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "earlier"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(place), commit], cwd=ROOT, check=True)
        try:
            versions = [Version(place, only), Version(ROOT, only)]
            assert versions[0].names == versions[1].names
            found = [[version.round() for version in versions] for _ in range(rounds)]
            for version in versions:
                version.end()
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], cwd=ROOT, check=True)
    slower = 0
    print(f"CPU time now over {commit}, {rounds} rounds in turn")
    for name in found[0][0]:
        before, now = [row[0][name] for row in found], [row[1][name] for row in found]
        ratio = statistics.median(now) / statistics.median(before)
        low, high = interval(now, before)
        slower += ratio > ALLOWED
        print(f"{name:36} {1e3 * statistics.median(now):9.2f} ms  {ratio:.3f} ({low:.3f} to {high:.3f})")
    print(f"{slower} of {len(found[0][0])} items are more than 5 % slower")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(given.only)
    else:
        compare(given.commit or earlier_commit(), given.rounds, given.only)


if __name__ == "__main__":
    main()
