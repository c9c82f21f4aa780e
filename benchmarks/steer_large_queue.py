"""CPU time of one look of a steering layer at a queue of 50,000 waiting jobs, and how it grows with the queue.

Slurm's programs are replaced by recorded answers (squeue's JSON with 108 fields for each job, sprio's lines), so what
is measured is our part: reading the answers, ordering, labels, tags and the run log. Telling Slurm is counted in calls
and charged at so many milliseconds each (``--call-ms``; 4 to 7 were measured on a testbed). Between two looks, 1 % of
the jobs leave the queue and as many come.

    nice -n 15 python benchmarks/steer_large_queue.py --jobs 12500,25000,50000 --strategy saf
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger import record

from stretto.api.options.slurm import SteerOptions
from stretto.api.steer import make_order, warm_up_promises
from stretto.engines.slurm.client.client import Commands, SlurmClient
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings
from stretto.queues.live_order import warm_up
from stretto.runlog import RunLog

#: What squeue 22.05 says of a job besides what is set below; the values do not matter, their number does.
_UNUSED = {f"field_{number}": ("", 0, None, "a longer text of a field")[number % 4] for number in range(96)}
_NODE = {"name": "n1", "cpus": 4096, "real_memory": 1, "state": "idle", "partitions": ["all"]}
_NOW_S = 1_795_000_000


@dataclass(frozen=True)
class RecordedCommands(Commands):
    """Programs of a Slurm that answer from memory."""

    jobs: list[dict[str, Any]] = field(default_factory=list)
    factors: dict[int, int] = field(default_factory=dict)
    comments: dict[int, str] = field(default_factory=dict)
    calls: list[Sequence[str]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, words: Sequence[str], **options: Any) -> str:
        """Answer, without counting the time that it takes to make the answer."""
        began = time.process_time()
        text = self._answer(words)
        self.seconds["answers"] = self.seconds.get("answers", 0.0) + time.process_time() - began
        return text

    def _answer(self, words: Sequence[str]) -> str:
        if words[0] == "squeue":
            jobs = [entry | {"admin_comment": self.comments.get(entry["job_id"], "")} for entry in self.jobs]
            return json.dumps({"jobs": jobs, "errors": []})
        if words[0] == "sprio":
            return "".join(f"{job}|{site}|{1000 + site}|1000|0|0|0|0|0|0|\n" for job, site in self.factors.items())
        if words[:3] == ["scontrol", "show", "nodes"]:
            return json.dumps({"nodes": [_NODE], "errors": []})
        if words[:2] == ["scontrol", "update"]:
            self.calls.append(words)
            values = dict(word.split("=", 1) for word in words[2:])
            self.factors[int(values["jobid"])] = int(values["sitefactor"])
            self.comments[int(values["jobid"])] = values["admincomment"]
            return ""
        raise AssertionError(words)


def job(number: int, rng: random.Random) -> dict[str, Any]:
    """Return a waiting job as squeue writes it."""
    return _UNUSED | {
        "job_id": number,
        "name": f"job-{number}",
        "user_name": f"user-{rng.randrange(300)}",
        "job_state": "PENDING",
        "state_reason": "Priority",
        "partition": "all",
        "admin_comment": "",
        "submit_time": _NOW_S - rng.randrange(500_000),
        "time_limit": rng.randrange(10, 3000),
        "cpus": rng.randrange(1, 257),
        "node_count": 1,
        "priority": 1000,
    }


def measure(
    num_jobs: int, strategy: str, num_looks: int, depth: int, folder: Path, *, is_promised: bool = False
) -> dict[str, float]:
    """Return medians over looks, after the first, of CPU seconds and of calls that tell Slurm something."""
    rng = random.Random(num_jobs)
    commands = RecordedCommands(jobs=[job(number, rng) for number in range(1, num_jobs + 1)])
    commands.factors.update((number, 0) for number in range(1, num_jobs + 1))
    order = make_order(strategy, 5.0)
    warm_up(order)
    order = SteerOptions(interval="30s", backfill="promise" if is_promised else None).promised(order)
    warm_up_promises(order)
    settings = SteerSettings(is_applied=True, budget_s=600.0, depth=depth)
    rows: list[dict[str, float]] = []
    with RunLog.open(folder / f"runs-{num_jobs}.db") as log:
        store = LabelStore(folder / "none.json", is_tagged=True)
        layer = Steerer(SlurmClient(commands), order, store, lambda: False, settings, run=log.start("steer", "x", {}))
        layer.clock = lambda: float(_NOW_S + 30 * len(rows))
        for _ in range(num_looks):
            commands.calls.clear()
            commands.seconds.clear()
            began = time.process_time()
            step = layer.step()
            assert not step.fallback, step.fallback
            total = time.process_time() - began - commands.seconds["answers"]
            rows.append({"cpu_s": total, "calls": len(commands.calls)})
            for _ in range(num_jobs // 100):  # as many come as go
                number = commands.jobs[-1]["job_id"] + 1
                gone = commands.jobs.pop(rng.randrange(len(commands.jobs)))["job_id"]
                del commands.factors[gone]
                commands.jobs.append(job(number, rng))
                commands.factors[number] = 0
    first, later = rows[0], rows[1:]
    found = {key: statistics.median(row[key] for row in later) for key in first}
    found |= {"first_cpu_s": first["cpu_s"], "first_calls": first["calls"]}
    found["log_mb_per_look"] = (folder / f"runs-{num_jobs}.db").stat().st_size / 1e6 / num_looks
    return {"jobs": num_jobs, **found}


def main() -> None:
    """Print a line of JSON for each length of the queue, and how the time grows from the first to the last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="12500,25000,50000")
    parser.add_argument("--strategy", default="saf")
    parser.add_argument("--promise", action="store_true", help="inside promises, with the usual slack")
    parser.add_argument("--looks", type=int, default=4)
    parser.add_argument("--depth", type=int, default=200)
    parser.add_argument("--call-ms", type=float, default=7.0, help="time to tell Slurm one label")
    parser.add_argument("--ledger", action="store_true", help="add the result to benchmarks/ledger.jsonl")
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for num_jobs in map(int, given.jobs.split(",")):
            row = measure(num_jobs, given.strategy, given.looks, given.depth, Path(folder), is_promised=given.promise)
            row["tell_s"] = row["calls"] * given.call_ms / 1e3
            row["round_s"] = row["cpu_s"] + row["tell_s"]
            rows.append(row)
            print(json.dumps({key: round(value, 3) for key, value in row.items()}), flush=True)
    times, growth = rows[-1]["jobs"] / rows[0]["jobs"], rows[-1]["cpu_s"] / rows[0]["cpu_s"]
    print(f"{times:g} times the jobs take {growth:.2f} times the CPU time")
    if given.ledger:
        claim = f"steer/{rows[-1]['jobs']:.0f}-{given.strategy}{'-promise' if given.promise else ''}"
        text = f"{rows[-1]['jobs']:,.0f} waiting jobs, {given.strategy}, depth {given.depth}"
        record(f"{claim}/cpu", rows[-1]["cpu_s"], "s", instances=text)
        record(f"{claim}/calls", rows[-1]["calls"], "calls", instances=text)
        record(f"{claim}/cpu-growth", growth, "ratio", baseline=f"{rows[0]['jobs']:,.0f} jobs", instances=text)


if __name__ == "__main__":
    main()
