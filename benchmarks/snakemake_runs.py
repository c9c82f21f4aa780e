"""Real runs of Snakemake on two cores: its greedy and ILP schedulers, and Stretto after one run to learn from.

    python benchmarks/snakemake_runs.py [--runs 5] [--only mixed] [--ready 500000] [--reservations 300]

Three workflows are generated: ``wide`` (independent jobs), ``deep`` (chains) and ``mixed`` (chains of samples of very
different size, beside many short jobs that read the larger raw files). Jobs sleep, so that the figures depend on the
order alone. The makespan is from the start of the first job to the end of the last one; schedulers take turns. For each
workflow: the median makespans, Stretto's median divided by each rival's, and 90 % intervals of that ratio by bootstrap
over rounds. The last lines say how the ratios stand to what is asked: 0.85 on ``mixed``, 1.00 on the others.
``--ready N`` measures single decisions with N ready jobs instead, through the plugin's class, with jobs that only hold
what the interface asks for. ``--reservations N`` simulates N random job graphs with and without the reservation for the
first job that does not fit; true durations differ from the expected ones.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCHEDULERS = ("greedy", "ilp", "stretto")
_HEAD = """rule all:
    input: "done.txt"
"""
_WIDE = """
rule work:
    output: "work/{i}.txt"
    params: s=lambda w: 0.1 + 0.05 * (int(w.i) % 7)
    shell: "date +%s.%N >> times; sleep {params.s}; touch {output}; date +%s.%N >> times"
rule gather:
    input: expand("work/{i}.txt", i=range(64))
    output: "done.txt"
    shell: "touch {output}; date +%s.%N >> times"
"""
_DEEP = """
def before(w):
    return f"step/{w.chain}_{int(w.k) - 1}.txt" if int(w.k) else []
rule step:
    input: before
    output: "step/{chain}_{k}.txt"
    shell: "date +%s.%N >> times; sleep 0.25; touch {output}; date +%s.%N >> times"
rule gather:
    input: expand("step/{chain}_15.txt", chain=["a", "b", "c", "d"])
    output: "done.txt"
    shell: "touch {output}; date +%s.%N >> times"
"""
_MIXED = """
SECONDS = {f"s{i}": 0.03 + 0.01 * i for i in range(7)} | {"s7": 1.8}
rule qc:
    input: "raw/{i}.txt"
    output: "qc/{i}.txt"
    shell: "date +%s.%N >> times; sleep 0.15; touch {output}; date +%s.%N >> times"
def before(w):
    steps = ["align", "sort", "dedup", "recal", "call", "annotate"]
    at = steps.index(w.step)
    return f"{steps[at - 1]}/{w.sample}.bam" if at else f"raw/{int(w.sample[1:])}.txt"
rule process:
    input: before
    output: "{step,align|sort|dedup|recal|call|annotate}/{sample}.bam"
    params: s=lambda w: SECONDS[w.sample]
    shell: "date +%s.%N >> times; sleep {params.s}; head -c 25000 /dev/zero > {output}; date +%s.%N >> times"
rule gather:
    input: expand("annotate/{sample}.bam", sample=SECONDS), expand("qc/{i}.txt", i=range(40))
    output: "done.txt"
    shell: "touch {output}; date +%s.%N >> times"
"""
WORKFLOWS = {"wide": _HEAD + _WIDE, "deep": _HEAD + _DEEP, "mixed": _HEAD + _MIXED}


def write_workflow(place: Path, name: str) -> None:
    """Write the Snakefile and the raw files of a workflow."""
    (place / "raw").mkdir(parents=True)
    (place / "Snakefile").write_text(WORKFLOWS[name])
    for number in range(40):
        (place / "raw" / f"{number}.txt").write_bytes(b"0" * 100_000)


def run_once(folder: Path, scheduler: str) -> float:
    """Run a workflow from its beginning, with what Snakemake and Stretto keep of earlier runs; return the makespan."""
    for path in folder.iterdir():
        if path.is_dir() and path.name not in (".snakemake", "raw"):
            shutil.rmtree(path)
        elif path.name in ("times", "done.txt"):
            path.unlink()
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--scheduler", scheduler, "--quiet", "all"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    times = [float(line) for line in (folder / "times").read_text().split()]
    return max(times) - min(times)


def ratio_interval(ours: list[float], theirs: list[float], draws: int = 4000) -> tuple[float, float]:
    """Return a 90 % interval of the ratio of medians, by bootstrap over rounds."""
    rng, found = random.Random(0), []
    for _ in range(draws):
        picked = [rng.randrange(len(ours)) for _ in ours]
        found.append(statistics.median(ours[i] for i in picked) / statistics.median(theirs[i] for i in picked))
    found.sort()
    return found[draws // 20], found[-draws // 20]


def measure_runs(names: list[str], runs: int) -> None:
    """Print the median makespan of each scheduler on each workflow, and how Stretto's stand to the others'."""
    verdicts = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            places = {scheduler: Path(folder) / scheduler for scheduler in SCHEDULERS}
            for place in places.values():
                write_workflow(place, name)
            unlearned = run_once(places["stretto"], "stretto")
            makespans: dict[str, list[float]] = {scheduler: [] for scheduler in SCHEDULERS}
            for _ in range(runs):
                for scheduler in SCHEDULERS:
                    makespans[scheduler].append(run_once(places[scheduler], scheduler))
        median = {scheduler: statistics.median(values) for scheduler, values in makespans.items()}
        row = {
            "workflow": name,
            "runs": runs,
            **{f"{key}_s": round(value, 3) for key, value in median.items()},
            "stretto_first_run_s": round(unlearned, 3),
            **{
                f"over_{rival}": [
                    round(value, 4)
                    for value in (
                        median["stretto"] / median[rival],
                        *ratio_interval(makespans["stretto"], makespans[rival]),
                    )
                ]
                for rival in ("greedy", "ilp")
            },
            "all": {key: [round(value, 2) for value in values] for key, values in makespans.items()},
        }
        print(json.dumps(row), flush=True)
        asked = 0.85 if name == "mixed" else 1.0
        for rival in ("greedy", "ilp"):
            ratio, low, high = row[f"over_{rival}"]  # type: ignore[misc]
            word = "yes" if ratio <= asked else "no"
            verdicts.append(f"{name:6} over {rival:6} {ratio:.3f} ({low:.3f} to {high:.3f}), asked {asked:.2f}: {word}")
    print("\n".join(verdicts))


class PlainJob:
    """A job that holds what the interface for schedulers names, and nothing else."""

    __slots__ = ("input", "name", "output", "priority", "scheduler_resources", "wildcards_dict")

    def __init__(self, number: int, num_rules: int) -> None:
        self.name = f"rule{number % num_rules}"
        self.input, self.output, self.priority = (), (f"out/{number}",), 0
        self.wildcards_dict = {"i": str(number)}
        self.scheduler_resources = {
            "_cores": 1 + number % 4,
            "_nodes": 1,
            "mem_mb": 1000 * (1 + number % 7),
            "_job_count": 1,
        }


class PlainDag:
    """Independent jobs."""

    def __init__(self, jobs: list[PlainJob]) -> None:
        self.jobs, self.done = jobs, set[PlainJob]()

    def needrun_jobs(self) -> list[PlainJob]:
        return [job for job in self.jobs if job not in self.done]

    def job_dependencies(self, job: PlainJob) -> tuple[PlainJob, ...]:
        return ()

    def finished(self, job: PlainJob) -> bool:
        return job in self.done


def measure_decisions(num_ready: int, decisions: int = 30) -> None:
    """Print the seconds per decision with very many ready jobs, of Stretto and of Snakemake's greedy scheduler."""
    from snakemake.scheduling.greedy import Scheduler as Greedy
    from snakemake.scheduling.greedy import SchedulerSettings as GreedySettings

    from snakemake_scheduler_plugin_stretto import Scheduler, SchedulerSettings

    jobs = [PlainJob(number, 50) for number in range(num_ready)]
    dag, logger = PlainDag(jobs), logging.getLogger("benchmark")
    begin = time.process_time()
    stretto = Scheduler(dag, SchedulerSettings(no_log=True), logger)
    row: dict[str, object] = {"ready": num_ready, "prepare_cpu_s": round(time.process_time() - begin, 3)}
    ready, times = set(jobs), []
    free = {"_cores": 64, "_nodes": 2**62, "mem_mb": 256_000, "_job_count": 2**62}
    for _ in range(decisions):
        begin = time.process_time()
        chosen = stretto.select_jobs(ready, [], free, {})
        times.append(time.process_time() - begin)
        assert chosen
        ready = ready.difference(chosen)
        dag.done.update(chosen)
        free = dict(free)
    row |= {"first_cpu_s": round(times[0], 3), "median_cpu_s": round(statistics.median(times[1:]), 3)}
    row["largest_cpu_s"] = round(max(times), 3)
    greedy = Greedy(dag, GreedySettings(), logger)
    begin = time.process_time()
    greedy.select_jobs(list(ready), [], free, {})
    row["greedy_cpu_s"] = round(time.process_time() - begin, 3)
    print(json.dumps(row))


def simulated_makespan(
    parents: list[list[int]], needs: list[int], times: tuple[list[float], list[float]], cores: int, *, holds: bool
) -> float:
    """Run a graph of jobs by the plugin's table; ``times`` are the true and the expected seconds."""
    import numpy as np

    from stretto.integrations.snakemake.job_network import topological_order, upward_ranks
    from stretto.integrations.snakemake.ready_table import ReadyTable

    true_s, expected_s = times[0], np.array(times[1])
    jobs = [PlainJob(number, 1) for number in range(len(parents))]
    for job, need in zip(jobs, needs, strict=True):
        job.scheduler_resources = {"_cores": need}
    rank = upward_ranks(parents, topological_order(parents), expected_s)
    table = ReadyTable(("_cores",), jobs, {job: number for number, job in enumerate(jobs)}, [0.0] * len(jobs))
    now, free, done, ends, waiting = 0.0, cores, set[int](), dict[int, tuple[float, float]](), set(range(len(jobs)))
    while len(done) < len(jobs):
        ready = {jobs[number] for number in waiting if done.issuperset(parents[number])}
        table.enter(table.fresh(ready))
        running = [(due - now, np.array([float(needs[number])])) for number, (_, due) in ends.items()]
        for row in table.select(rank, {"_cores": free}, expected_s, running if holds else []):
            ends[row] = (now + true_s[row], now + float(expected_s[row]))
            free -= needs[row]
            waiting.discard(row)
        first = min(ends, key=lambda number: ends[number])
        now, _ = ends.pop(first)
        free += needs[first]
        done.add(first)
    return now


def measure_reservations(graphs: int) -> None:
    """Print the makespan with reservations relative to the one without, over random graphs of jobs."""
    ratios = []
    for seed in range(graphs):
        rng = random.Random(seed)
        count, cores, width = rng.choice([60, 120, 200]), rng.choice([4, 8, 16]), rng.choice([3, 8, 20])
        parents = [sorted(rng.sample(range(max(0, i - width), i), min(i, rng.randint(0, 2)))) for i in range(count)]
        rules = [(rng.choice([1, 1, 1, 2, 4, cores]), rng.lognormvariate(0, 1)) for _ in range(5)]
        chosen = [rng.choice(rules) for _ in range(count)]
        times = ([seconds * rng.lognormvariate(0, 0.3) for _, seconds in chosen], [seconds for _, seconds in chosen])
        needs = [min(need, cores) for need, _ in chosen]
        held, filled = (simulated_makespan(parents, needs, times, cores, holds=holds) for holds in (True, False))
        ratios.append(held / filled)
    ratios.sort()
    row = {"graphs": graphs, "mean": statistics.mean(ratios), "median": statistics.median(ratios)}
    row |= {"p5": ratios[graphs // 20], "p95": ratios[-graphs // 20], "better": sum(ratio < 0.999 for ratio in ratios)}
    row["worse"] = sum(ratio > 1.001 for ratio in ratios)
    print(json.dumps({key: round(value, 4) for key, value in row.items()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=sorted(WORKFLOWS), action="append")
    parser.add_argument("--ready", type=int)
    parser.add_argument("--reservations", type=int)
    given = parser.parse_args()
    if given.ready:
        measure_decisions(given.ready)
    elif given.reservations:
        measure_reservations(given.reservations)
    else:
        measure_runs(given.only or list(WORKFLOWS), given.runs)


if __name__ == "__main__":
    main()
