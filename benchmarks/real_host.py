"""Placing real tasks on two cores that are shared with loads which nobody announced.

Measures the mean completion time (and the makespan) of compute-bound and memory-bound numpy tasks, all submitted at
once, on two pinned cores. On one core a hidden process computes in phases; on the other a hidden process copies memory
in phases, half of the time. The phases are seeded, and equal for all contenders of a repetition; the order of the
contenders rotates. Every task does a fixed number of rounds, and its seconds alone are measured first and told to
everybody. `symphony` and `mct-belief` start without any knowledge of contention in every repetition; with `--learned`
they start with what the repetition before has learned, as `stretto run` does from the run log.

Contenders: `symphony`, `mct-belief`, `heft-online`, `greedy` on the local engine (processes), and Dask's own scheduler
on a local cluster of two pinned workers with one thread each, with the shortest tasks given the highest priority.

    python -m benchmarks.real_host --out real_host.jsonl          # 10 repetitions, about 12 minutes on a quiet machine

Repetitions that the file has are not run again, so an interrupted benchmark continues; `--table` only prints.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from benchmarks.ledger import record  # noqa: E402
from benchmarks.real_host_tasks import compute, copy, task, warm  # noqa: E402

from stretto.core.cluster import Cluster  # noqa: E402
from stretto.core.graph import TaskGraph  # noqa: E402
from stretto.core.problem import Problem  # noqa: E402
from stretto.core.results.paired import Bootstrap  # noqa: E402
from stretto.engines.engine import RunOptions  # noqa: E402
from stretto.engines.host.dispatcher import HostDispatcher  # noqa: E402
from stretto.engines.host.named import attached, new_dispatcher  # noqa: E402
from stretto.engines.local.cores import usable_cores  # noqa: E402
from stretto.engines.local.engine import LocalEngine  # noqa: E402
from stretto.engines.work import Call, Work  # noqa: E402

CONTENDERS = ("symphony", "greedy", "heft-online", "mct-belief", "dask")
#: Rounds of a task of mean size, about 50 ms alone.
PRODUCTS, COPIES = 320, 6
#: Mean length of a phase of hidden load.
PHASE_S = 3.0


def sizes(num_tasks: int, seed: int) -> tuple[Any, Any]:
    """Return kind and rounds of each task: half of them copy, sizes vary by 40 % either way."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(np.arange(num_tasks) % 2)
    factor = rng.uniform(0.6, 1.4, num_tasks)
    return kinds, np.maximum(1, np.where(kinds == 1, COPIES * factor, PRODUCTS * factor).round()).astype(int)


def alone_s() -> tuple[float, float]:
    """Return the CPU seconds of one round of each kind; the median of several, measured here and now."""
    compute(PRODUCTS)
    copy(COPIES)
    found: list[list[float]] = [[], []]
    for _ in range(7):
        for kind, rounds in ((0, PRODUCTS), (1, COPIES)):
            begin_s = time.thread_time()
            (copy if kind else compute)(rounds)
            found[kind].append((time.thread_time() - begin_s) / rounds)
    return float(np.median(found[0])), float(np.median(found[1]))


# The hidden loads ----------------------------------------------------------------------------------


def hidden(kind: str, seed: int, core: int) -> None:
    """Load a core in seeded phases until the standard input ends; the first line of it begins the first phase."""
    os.sched_setaffinity(0, {core})
    (copy if kind == "memory" else compute)(1)
    rng = np.random.default_rng([seed, kind == "memory"])
    lengths = PHASE_S * rng.uniform(0.4, 1.6, 1000)
    ends = np.cumsum(lengths)
    print("ready", flush=True)
    sys.stdin.readline()
    begin_s = time.monotonic()
    first = int(rng.integers(2))
    while os.getppid() != 1:
        if (np.searchsorted(ends, time.monotonic() - begin_s) + first) % 2:
            time.sleep(0.01)
        elif kind == "cpu":
            compute(20)
        else:
            pause_s = time.monotonic()
            copy(1)
            time.sleep(time.monotonic() - pause_s)


@contextmanager
def hidden_loads(seed: int, cores: list[int]) -> Iterator[None]:
    """Have both hidden loads on, from now until the end of the context."""
    here = [sys.executable, "-m", "benchmarks.real_host", "--hidden"]
    started = [
        subprocess.Popen(
            [*here, kind, str(seed), str(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[1],
        )
        for kind, core in (("cpu", cores[0]), ("memory", cores[1]))
    ]
    try:
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        for process in started:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


# The contenders ------------------------------------------------------------------------------------


def on_local(
    name: str, learned: Any, kinds: Any, rounds: Any, seconds: Any, marks: str, seed: int, cores: list[int]
) -> dict[str, Any]:
    """Run by a dispatcher of Stretto, which starts with what was learned before."""
    graph = TaskGraph.from_edges(seconds.tolist(), [], [])
    graph = replace(graph, categories=("compute", "copy"), category=kinds.astype(np.int32))
    problem = Problem.of(graph.with_meta(durations="measured"), Cluster.parse("cpu:2"))
    calls = tuple(Call(task, (int(k), int(r), i, marks)) for i, (k, r) in enumerate(zip(kinds, rounds, strict=True)))
    dispatcher = new_dispatcher(name, problem, learned)
    engine = LocalEngine(workers="process", num_queued=0)
    os.sched_setaffinity(0, cores)
    with attached(dispatcher, problem, RunOptions(digests=False, keep="none")) as options, hidden_loads(seed, cores):
        found = engine.play(problem, dispatcher, Work(problem.graph, calls), options).check()
    row: dict[str, Any] = {"ends_s": found.end_s.tolist(), "attempts": int(found.attempts.sum())}
    if isinstance(dispatcher, HostDispatcher):
        row |= {"sampling_cost": dispatcher.sampling_cost, "notes": dispatcher.notes()}
        row |= {"learned": dispatcher.learned_json(), "decisions": dispatcher.num_decisions}
    return row


def on_dask(kinds: Any, rounds: Any, seconds: Any, marks: str, seed: int, cores: list[int]) -> dict[str, Any]:
    """Run by Dask's own scheduler, on two workers that are pinned and warm."""
    import logging

    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        for worker, core in zip(client.scheduler_info()["workers"], cores, strict=True):
            client.submit(warm, core, workers=[worker], pure=False).result()
        with hidden_loads(seed, cores):
            begin_s = time.monotonic()
            work = [
                client.submit(task, int(k), int(r), i, marks, pure=False, priority=-float(s))
                for i, (k, r, s) in enumerate(zip(kinds, rounds, seconds, strict=True))
            ]
            found = client.gather(work)
    return {"ends_s": [end_s - begin_s for _, end_s in found], "attempts": len(found)}


def run_one(name: str, rep: int, num_tasks: int, round_s: tuple[float, float], learned: Any) -> dict[str, Any]:
    """Run one contender of one repetition and check that every task ran exactly once."""
    kinds, rounds = sizes(num_tasks, seed=rep)
    seconds = rounds * np.where(kinds == 1, round_s[1], round_s[0])
    cores = usable_cores()[:2]
    with tempfile.TemporaryDirectory() as folder:
        marks = str(Path(folder) / "marks")
        rest = (kinds, rounds, seconds, marks, 1000 + rep, cores)
        row = on_dask(*rest) if name == "dask" else on_local(name, learned, *rest)
        done = sorted(int(line) for line in Path(marks).read_text().split())
    if done != list(range(num_tasks)) or row["attempts"] != num_tasks:
        raise SystemExit(f"{name}, repetition {rep}: tasks were lost or repeated")
    ends = np.array(row.pop("ends_s"))
    return {"name": name, "rep": rep, "mean_s": float(ends.mean()), "makespan_s": float(ends.max()), **row}


# The result ----------------------------------------------------------------------------------------


def print_result(rows: list[dict[str, Any]], is_recorded: bool) -> None:
    """Print mean completion times and the paired ratios of symphony to the others."""
    by = {(row["name"], row["rep"]): row for row in rows}
    reps = sorted({rep for _, rep in by if all((name, rep) in by for name in CONTENDERS)})
    if not reps:
        print("no repetition is complete yet")
        return
    print(f"{len(reps)} paired repetitions, {rows[0]['num_tasks']} tasks each")
    print(f"{'contender':<12} {'completion':>11} {'makespan':>9}   symphony / it: completion     makespan")
    for name in CONTENDERS:
        cells = [f"{np.mean([by[name, rep][key] for rep in reps]):8.2f} s" for key in ("mean_s", "makespan_s")]
        pairs = [_ratio(by, reps, name, key) for key in ("mean_s", "makespan_s")] if name != "symphony" else []
        ratios = [f"{m:.3f} [{low:.3f}, {high:.3f}]{' *'[high < 1 or low > 1]}" for low, m, high in pairs]
        print(f"{name:<12} {cells[0]:>11} {cells[1]:>9}   {'      '.join(ratios)}")
        for (low, m, high), what in zip(pairs if is_recorded else [], ("", "/makespan"), strict=False):
            more = {"low": low, "high": high, "bar": "" if what else "< 1", "seeds": f"{len(reps)} repetitions"}
            more |= {"baseline": name, "instances": f"{rows[0]['num_tasks']} tasks"}
            record(f"symphony/real-host/{name}{what}", m, "ratio", **more)
    costs = [by["symphony", rep]["sampling_cost"] for rep in reps]
    print(f"every task ran exactly once; sampling took {np.mean(costs):.2%} of a core, at most {max(costs):.2%}")


def _ratio(
    by: dict[tuple[str, int], dict[str, Any]], reps: list[int], name: str, key: str
) -> tuple[float, float, float]:
    """Return the geometric mean of the paired ratios of symphony to another, between the ends of its interval."""
    logs = [np.array([np.log(by["symphony", rep][key] / by[name, rep][key])]) for rep in reps]
    low, high = Bootstrap().interval(logs)
    return float(np.exp(low)), float(np.exp(np.mean(logs))), float(np.exp(high))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("real_host.jsonl"))
    parser.add_argument("--reps", type=int, default=10)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--learned", action="store_true", help="start with what the repetition before has learned")
    parser.add_argument("--table", action="store_true", help="only print what the file has")
    parser.add_argument("--ledger", action="store_true", help="add the result to benchmarks/ledger.jsonl")
    parser.add_argument("--hidden", nargs=3, metavar=("KIND", "SEED", "CORE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.hidden:
        hidden(asked.hidden[0], int(asked.hidden[1]), int(asked.hidden[2]))
        return
    rows = [json.loads(line) for line in asked.out.read_text().splitlines()] if asked.out.exists() else []
    rows = [row for row in rows if row["num_tasks"] == asked.tasks and row["rep"] < asked.reps]
    if not asked.table:
        round_s = alone_s()
        print(f"alone: a product {round_s[0] * 1e3:.3f} ms, a copy {round_s[1] * 1e3:.2f} ms", file=sys.stderr)
        have = {(row["name"], row["rep"]) for row in rows}
        for rep in range(asked.reps):
            at = rep % len(CONTENDERS)
            for name in (*CONTENDERS[at:], *CONTENDERS[:at]):
                if (name, rep) not in have:
                    before = [row.get("learned") for row in rows if row["name"] == name and row["rep"] == rep - 1]
                    learned = before[0] if asked.learned and before else None
                    rows.append({"num_tasks": asked.tasks, **run_one(name, rep, asked.tasks, round_s, learned)})
                    with asked.out.open("a") as file:
                        file.write(json.dumps(rows[-1]) + "\n")
                    print(f"{rep} {name}: {rows[-1]['mean_s']:.2f} s", file=sys.stderr)
    print_result(rows, asked.ledger)


if __name__ == "__main__":
    main()
