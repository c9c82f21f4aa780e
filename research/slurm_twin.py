"""Submit the same sleep jobs to Slurm's daemons and to the model of Slurm, and compare when they start.

python research/slurm_twin.py --jobs 320 --save twin.json
python research/slurm_twin.py --jobs 320 --repeat 2 --keep logs   # also the daemons against themselves
python research/slurm_twin.py --jobs 320 --again logs             # compare recorded runs with the model as it is now
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from research.slurm_mixes import MIXES, Mix

from stretto.core.csr import Floats
from stretto.core.request import ResourceRequest, components_of
from stretto.core.site import MIB
from stretto.core.site_policy import SchedulerTiming
from stretto.core.trace import Trace
from stretto.engines.slurm.client.client import program
from stretto.engines.slurm.testbed.site_conf import site_settings
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.errors import EngineFailure
from stretto.queues.nodes.slurm_model.parameters import DaemonTiming
from stretto.queues.nodes.slurm_model.replay import replay_like_slurm
from stretto.queues.nodes.validate import check_nodes
from stretto.queues.replay import replay

#: Minutes between two computations of all priorities in the private Slurm.
PRIORITY_PERIOD_MIN = 1
#: What a backfill pass over some dozens of jobs takes on two busy cores, with the thread's late wake-up.
BACKFILL_PASS_S = 0.003
_STAMP = r"^\[(\S+)\] "
_STARTED = re.compile(
    _STAMP + r"(?:sched: Allocate JobId=(\d+) NodeList=(\S+)|.*Started JobId=(\d+) in \S+ on (\S+))", re.MULTILINE
)
_SUBMITTED = re.compile(_STAMP + r"_slurm_rpc_submit_batch_job: JobId=(\d+)", re.MULTILINE)
_ENDED = re.compile(_STAMP + r"_job_complete: JobId=(\d+) done", re.MULTILINE)


@dataclass(frozen=True)
class DaemonLog:
    """What the controller's log says: Unix times by job number."""

    submit: dict[int, float]
    start: dict[int, float]
    nodes: dict[int, str]
    end: dict[int, float]
    backfilled: set[int]

    @classmethod
    def read(cls, path: Path) -> DaemonLog:
        text = path.read_text(errors="replace")
        start, nodes, backfilled = {}, {}, set()
        for stamp, main, main_nodes, other, other_nodes in _STARTED.findall(text):
            job = int(main or other)
            start[job], nodes[job] = _unix(stamp), main_nodes or other_nodes
            if other:
                backfilled.add(job)
        submit, end = ({int(job): _unix(stamp) for stamp, job in p.findall(text)} for p in (_SUBMITTED, _ENDED))
        return cls(submit, start, nodes, end, backfilled)


def _unix(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def options_of(request: ResourceRequest, limit_s: float) -> list[str]:
    """Return a request as options of ``sbatch``."""
    words = [f"--ntasks={request.num_tasks}", f"--cpus-per-task={request.cpus_per_task}"]
    words.append(f"--time={math.ceil(limit_s / 60)}")
    if request.max_nodes is not None:
        words.append(f"--nodes={request.min_nodes}-{request.max_nodes}")
    elif request.min_nodes > 1:
        words.append(f"--nodes={request.min_nodes}")
    words += [f"--partition={','.join(request.partitions)}"] if request.partitions else []
    words += [f"--ntasks-per-node={request.tasks_per_node}"] if request.tasks_per_node else []
    words += [f"--mem={math.ceil(request.memory_bytes_per_node / MIB)}M"] if request.memory_bytes_per_node else []
    gpus = ",".join(f"gpu:{kind}:{count}" for kind, count in request.gpus_per_node.items())
    words += [f"--gres={gpus}"] if gpus else []
    words += ["--exclusive"] if request.is_exclusive else []
    return words


class Daemons:
    """A private Slurm that takes the jobs of a mix."""

    def __init__(self, bed: Testbed) -> None:
        self.bed = bed
        self.log = bed.folder / "log" / "slurmctld.log"
        self.script = bed.folder / "jobs" / "sleep.sh"
        self.script.write_text('#!/bin/sh\nexec sleep "$1"\n')
        self.environment = {"PATH": "/usr/bin:/bin", "SLURM_CONF": str(bed.conf)}

    def submit(self, options: Sequence[str], sleep_s: float) -> int:
        words = [program("sbatch"), "--parsable", "--output=/dev/null", "--chdir=/", *options, str(self.script)]
        done = subprocess.run(
            [*words, f"{sleep_s:g}"], env=self.environment, capture_output=True, text=True, check=False, timeout=30.0
        )
        if done.returncode:
            raise EngineFailure(f"sbatch {' '.join(options)}: {done.stderr.strip()}")
        return int(done.stdout.strip().partition(";")[0])

    def wait(self, jobs: Sequence[int], timeout_s: float) -> DaemonLog:
        """Wait until jobs have ended, by the log; the daemons are not asked."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            log = DaemonLog.read(self.log)
            if all(job in log.end for job in jobs):
                return log
            time.sleep(0.5)
        left = sum(job not in log.end for job in jobs)
        raise EngineFailure(f"{left} jobs have not ended after {timeout_s:g} s; see {self.log}")

    def overhead_s(self, num_jobs: int = 3, num_rounds: int = 3) -> float:
        """Return the median of what a job takes beyond its sleep, from allocation to completion.

        Several rounds show several turns of the background loop, and so its period.
        """
        sleeps = [1.0 + 0.3 * i for i in range(num_jobs)]  # their ends must be told apart
        beyond = []
        for _ in range(num_rounds):
            jobs = [self.submit(["--ntasks=1", "--time=1"], sleep_s) for sleep_s in sleeps]
            log = self.wait(jobs, 60.0)
            beyond += [log.end[job] - log.start[job] - sleep_s for job, sleep_s in zip(jobs, sleeps, strict=True)]
        return float(np.median(beyond))

    def epilog_s(self, begin: float) -> float:
        """Return the median time from a job's completion to the pass of the main scheduler that follows its epilog."""
        text = self.log.read_text(errors="replace")
        passes = [_unix(stamp) for stamp in re.findall(_STAMP + r".*Running job scheduler", text, re.MULTILINE)]
        ends = [time for time in DaemonLog.read(self.log).end.values() if time < begin]
        after = [min((p - end for p in passes if p >= end), default=math.inf) for end in ends]
        return float(np.median(after)) if after and np.median(after) < 0.5 else 0.0

    def timing(self, begin: float, overhead_s: float, scheduler: SchedulerTiming) -> DaemonTiming:
        """Return when the daemons' loops turn, from what the log says before the first submission."""
        text = self.log.read_text(errors="replace")

        def times(pattern: str) -> list[float]:
            found = re.findall(_STAMP + pattern, text, re.MULTILINE)
            return [_unix(stamp) - begin for stamp in found if _unix(stamp) < begin] or [0.0]

        ends = [time - begin for time in DaemonLog.read(self.log).end.values()]
        passes = times(r".*Running job scheduler")
        passes = [p for p in passes if all(not 0 <= p - end < 0.2 for end in ends)]
        # Passes are a whole number of turns apart; a turn takes a little more than a second.
        turns = [gap / round(gap) for gap in np.diff(passes).tolist() if 0.5 < gap < 30.0]
        started = times(r".*slurmctld version .* started")[-1]
        full = times(r".*Running job scheduler for full queue")[-1]
        period = 60.0 * PRIORITY_PERIOD_MIN
        return DaemonTiming(
            tick_s=float(np.median(turns)) if turns else 1.0,
            first_tick_s=passes[-1],
            first_backfill_s=times(r".*backfill: _attempt_backfill: beginning")[-1] + scheduler.bf_interval_s,
            first_full_pass_s=(full or started) + scheduler.sched_interval_s,
            backfill_pass_s=BACKFILL_PASS_S,
            complete_s=self.epilog_s(begin),
            launch_s=overhead_s,
            priority_period_s=period,
            first_priority_s=started + period * math.ceil(-started / period),
            clock_s=begin,
        )


@dataclass(frozen=True)
class Recorded:
    """What the daemons did with a mix; seconds from the first planned submission.

    ``submit_s`` is when the controller took a job, up to some tenths of a second after ``sbatch`` was called.
    """

    submit_s: Floats
    start_s: Floats
    run_s: Floats
    nodes: list[str]
    num_backfilled: int
    timing: DaemonTiming


def run_daemons(
    mix: Mix,
    folder: Path,
    debug_flags: str = "",
    beside: Callable[[Testbed], AbstractContextManager[object]] | None = None,
) -> Recorded:
    """Start a private Slurm with the site of a mix, submit its jobs in time, and return what happened.

    Parameters
    ----------
    beside
        What goes on beside the daemons while they have jobs: a steerer, say.
    """
    settings = site_settings(mix.site, priority_period_min=PRIORITY_PERIOD_MIN)
    # With an epilog, the end of a job runs the main scheduler; without one that depends on a race in slurmd.
    settings |= {
        "Epilog": program("true"),
        "SlurmctldDebug": "debug",
        **({"DebugFlags": debug_flags} if debug_flags else {}),
    }
    bed = Testbed.up(folder, site=mix.site, settings=settings)
    try:
        daemons = Daemons(bed)
        overhead = daemons.overhead_s()
        time.sleep(2.0)
        scheduler = mix.site.policy.scheduler or SchedulerTiming()
        soon = time.time() + 0.2
        found = daemons.timing(soon, overhead, scheduler)
        # Between two turns of the background loop: which of two events comes first should not be a matter of a hair.
        begin = soon + (found.first_tick_s + 0.5 * found.tick_s) % found.tick_s
        timing = daemons.timing(begin, overhead, scheduler)
        trace, jobs = mix.jobs, []
        with nullcontext() if beside is None else beside(bed):
            for job in range(trace.num_jobs):
                time.sleep(max(0.0, begin + float(trace.submit_s[job]) - time.time()))
                request = components_of(trace.requests[job])[0]
                jobs.append(daemons.submit(options_of(request, float(trace.estimate_s[job])), float(trace.run_s[job])))
            log = daemons.wait(jobs, 600.0)
    finally:
        bed.down()
    return recorded_by(log, jobs, begin, timing)


def recorded_by(log: DaemonLog, jobs: Sequence[int], begin: float, timing: DaemonTiming) -> Recorded:
    """Return what a log says about jobs."""
    return Recorded(
        np.array([log.submit[job] - begin for job in jobs]),
        np.array([log.start[job] - begin for job in jobs]),
        np.array([log.end[job] - log.start[job] for job in jobs]),
        [log.nodes[job] for job in jobs],
        sum(job in log.backfilled for job in jobs),
        timing,
    )


@dataclass(frozen=True)
class Agreement:
    """How near a replay comes to the daemons."""

    rank_correlation: float
    median_difference_s: float
    p90_difference_s: float
    mean_wait_s: float
    recorded_mean_wait_s: float
    share_on_same_nodes: float


def ranks(values: Floats) -> Floats:
    """Return ranks, with the mean of their ranks for equal values."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse], dtype=np.float64)


def agreement(start_s: Floats, nodes: Sequence[str], recorded: Recorded) -> Agreement:
    """Compare starts and nodes with what the daemons did."""
    difference = np.abs(start_s - recorded.start_s)
    return Agreement(
        float(np.corrcoef(ranks(start_s), ranks(recorded.start_s))[0, 1]),
        float(np.median(difference)),
        float(np.quantile(difference, 0.9)),
        float(np.mean(start_s - recorded.submit_s)),
        float(np.mean(recorded.start_s - recorded.submit_s)),
        float(np.mean([mine == theirs for mine, theirs in zip(nodes, recorded.nodes, strict=True)])),
    )


def host_list(names: Sequence[str]) -> str:
    """Return node names ``n01, n02`` as Slurm writes them: ``n[01-02]``."""
    numbers = sorted(int(name[1:]) for name in names)
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    text = ",".join(f"{a:02d}" if a == b else f"{a:02d}-{b:02d}" for a, b in spans)
    return f"n[{text}]" if len(numbers) > 1 else f"n{text}"


def as_taken(mix: Mix, recorded: Recorded) -> tuple[Trace, DaemonTiming]:
    """Return the jobs at the times at which the controller took them, and its timing from the first of them on."""
    first = float(recorded.submit_s[0])
    jobs = replace(mix.jobs, submit_s=recorded.submit_s - first)
    names = ("first_tick_s", "first_backfill_s", "first_full_pass_s", "first_priority_s")
    moved = {name: getattr(recorded.timing, name) - first for name in names}
    return jobs, replace(recorded.timing, clock_s=recorded.timing.clock_s + first, **moved)


def compare(mix: Mix, recorded: Recorded) -> dict[str, Agreement]:
    """Replay a mix by the model, once with the planned run times and once with the recorded ones, and by EASY."""
    planned, timing = as_taken(mix, recorded)
    as_recorded = replace(planned, run_s=recorded.run_s)
    results = {
        "model": replay_like_slurm(planned, mix.site, timing=timing),
        "model, recorded run times": replay_like_slurm(as_recorded, mix.site, timing=replace(timing, launch_s=0.0)),
        "EASY": replay(as_recorded, mix.site),
    }
    found = {}
    for name, result in results.items():
        check_nodes(mix.site, result)
        nodes = [host_list(result.nodes_of(job)) for job in range(planned.num_jobs)]
        found[name] = agreement(result.start_s + recorded.submit_s[0], nodes, recorded)
    return found


def between(first: Recorded, second: Recorded) -> Agreement:
    """Compare two runs of the daemons with the same jobs: no model can be nearer to one of them than they are."""
    return agreement(first.start_s, first.nodes, second)


def read_again(folder: Path, num_jobs: int) -> Recorded:
    """Return what an earlier run with ``--keep`` recorded; the jobs of the mix are the last of its log."""
    timing = DaemonTiming(**json.loads((folder / "timing.json").read_text()))
    log = DaemonLog.read(folder / "log" / "slurmctld.log")
    return recorded_by(log, sorted(log.submit)[-num_jobs:], timing.clock_s, timing)


def table(rows: Mapping[str, Mapping[str, Agreement]]) -> str:
    lines = [f"{'mix':8} {'replay':27} {'rank':>7} {'median':>8} {'p90':>8} {'wait':>8} {'Slurm':>8} {'nodes':>6}"]
    for mix, found in rows.items():
        for name, a in found.items():
            figures = f"{a.rank_correlation:7.4f} {a.median_difference_s:7.2f}s {a.p90_difference_s:7.2f}s "
            waits = f"{a.mean_wait_s:7.1f}s {a.recorded_mean_wait_s:7.1f}s {a.share_on_same_nodes:6.0%}"
            lines.append(f"{mix:8} {name:27} {figures}{waits}")
    return "\n".join(lines)


def _one_run(mix: Mix, folder: Path, options: argparse.Namespace) -> Recorded:
    """Run the daemons once, or read what an earlier run left."""
    if options.again is not None:
        return read_again(folder, mix.jobs.num_jobs)
    recorded = run_daemons(mix, folder, options.debug_flags)
    if options.keep is not None:
        (folder / "timing.json").write_text(json.dumps(asdict(recorded.timing)))
    return recorded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=320, help="Jobs per mix.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mix", choices=list(MIXES), action="append", help="One of the mixes; default: all.")
    parser.add_argument("--save", type=Path, help="A JSON file for the figures.")
    parser.add_argument("--keep", type=Path, help="A folder in which records and logs stay.")
    parser.add_argument("--repeat", type=int, default=1, help="Runs of each mix on the daemons.")
    parser.add_argument("--again", type=Path, help="A folder of --keep: compare its runs, start no daemons.")
    parser.add_argument("--debug-flags", default="", help="DebugFlags of the controller, for --keep.")
    options = parser.parse_args()
    rows: dict[str, dict[str, Agreement]] = {}
    with tempfile.TemporaryDirectory(prefix="twin-", ignore_cleanup_errors=True) as scratch:
        for name in options.mix or MIXES:
            mix = MIXES[name](options.jobs, options.seed)
            runs = [
                _one_run(mix, (options.again or options.keep or Path(scratch)) / f"{name}-{number}", options)
                for number in range(options.repeat)
            ]
            for number, recorded in enumerate(runs):
                row = f"{name}-{number}"
                rows[row] = compare(mix, recorded)
                if number:
                    rows[row]["daemons, first run"] = between(runs[0], recorded)
                print(table({row: rows[row]}), f"\nbackfilled: {recorded.num_backfilled}", flush=True)
    if options.save is not None:
        figures = {mix: {name: asdict(a) for name, a in found.items()} for mix, found in rows.items()}
        options.save.write_text(json.dumps({"jobs": options.jobs, "seed": options.seed, "mixes": figures}, indent=1))


if __name__ == "__main__":
    main()
