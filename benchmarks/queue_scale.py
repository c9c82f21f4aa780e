"""How a replay of a queue grows with the number of jobs, beside an earlier commit in the same run.

    python benchmarks/queue_scale.py --jobs 10000,100000 --strategies mars --against 1d5345c
    python benchmarks/queue_scale.py --jobs 1000000 --strategies fcfs,saf,mars --load 0.7
    python benchmarks/queue_scale.py --log RICC-2010-2.swf.gz --strategies mars

Every figure is that of a process of its own, with kernels compiled and the trace read before the clock begins. CPU time
(user, all threads) says what the work is, whatever else the machine does; the memory is the most that the process held.
The digest of all starts says whether two versions did the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
#: Runs in a child with the sources of either version, so that it uses only what both have.
_CHILD = """
import hashlib, json, resource, sys, time
from stretto.queues.replay import replay
from stretto.files.traces.load import load_trace
from stretto.queues.workloads.lublin import lublin

request = json.loads(sys.argv[1])
if request["log"] is None:
    trace = lublin(request["jobs"], seed=0, num_procs=256, load=request["load"])
else:
    trace = load_trace(request["log"])
procs = request["procs"] or trace.max_procs
replay(trace.take(slice(0, 2000)), procs, strategy=request["strategy"])
before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_utime, time.perf_counter()
result = replay(trace, procs, strategy=request["strategy"])
after = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "jobs": trace.num_jobs,
    "user_s": after.ru_utime - before,
    "wall_s": time.perf_counter() - begin,
    "peak_gb": after.ru_maxrss / 1e6,
    "starts": hashlib.sha256(result.start_s.tobytes()).hexdigest()[:12],
}))
"""


def measure(source: Path, request: dict[str, object], limit_s: float) -> dict[str, float | str]:
    """Replay in a process with these sources; None of its figures where it takes too long."""
    command = [sys.executable, "-P", "-c", _CHILD, json.dumps(request)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit_s, check=True)
    except subprocess.TimeoutExpired:
        return {}
    found: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return found


def unpack(commit: str, folder: Path) -> Path:
    """Write the sources of a commit into a folder."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=_ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="10000,100000", help="numbers of generated jobs")
    parser.add_argument("--load", type=float, default=0.8, help="of the generated queue on 256 processors")
    parser.add_argument("--log", help="a recorded log in place of generated jobs")
    parser.add_argument("--procs", type=int, help="processors, where a log does not say")
    parser.add_argument("--strategies", default="mars")
    parser.add_argument("--against", metavar="COMMIT", help="an earlier commit, measured after each of ours")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds after which a replay is given up")
    args = parser.parse_args()
    counts = [0] if args.log else [int(part) for part in args.jobs.split(",")]
    print("| strategy | jobs | version | user s | us per job | wall s | peak GB | starts |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        versions = {"here": _ROOT / "src"}
        if args.against:
            versions[args.against] = unpack(args.against, Path(folder))
        for strategy in args.strategies.split(","):
            for count in counts:
                for name, source in versions.items():
                    request = {"jobs": count, "load": args.load, "log": args.log, "procs": args.procs}
                    found = measure(source, {**request, "strategy": strategy}, args.limit)
                    print(_row(strategy, count, name, found, args.limit), flush=True)


def _row(strategy: str, count: int, version: str, found: dict[str, float | str], limit_s: float) -> str:
    if not found:
        return f"| {strategy} | {count:,} | {version} | more than {limit_s:,.0f} s of wall time | | | | |"
    jobs, user_s = int(found["jobs"]), float(found["user_s"])
    cells = (
        f"{user_s:.1f} | {user_s / jobs * 1e6:.0f} | {found['wall_s']:.1f} | {found['peak_gb']:.2f} | {found['starts']}"
    )
    return f"| {strategy} | {jobs:,} | {version} | {cells} |"


if __name__ == "__main__":
    main()
