"""How good plans are, against optima that others have proved.

    python benchmarks/quality.py small --instances 200 --time-limit 2
    python benchmarks/quality.py stg --tasks 50 --every 1 --time-limit 5
    python benchmarks/quality.py psplib --set j30 --every 1 --time-limit 5
    python benchmarks/quality.py doppler --seeds 5 --time-limit 60

``small`` makes its instances; the others read the folder named by STRETTO_DATA, or
``../shared/data`` beside the repository. Rows go to benchmarks/results/quality-*.jsonl.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import statistics
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import stretto
from stretto.core.graph import TaskGraph
from stretto.files.document import Document
from stretto.files.graphs.psplib import FORMAT as PSPLIB
from stretto.files.graphs.stg import FORMAT as STG
from stretto.graphs.evaluate import PlanResult
from stretto.graphs.workloads.random_cluster import random_cluster
from stretto.graphs.workloads.random_dag import random_dag

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data"))


def plan(graph: TaskGraph, cluster: Any, policy: str, limit: float, seed: int, **params: Any) -> PlanResult:
    return stretto.plan(graph, cluster, policy, time_limit_s=limit, seed=seed, params=params)


def record(suite: str, rows: list[dict[str, Any]]) -> None:
    """Append rows, each with the commit that made it."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False
    ).stdout.strip()
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    with (folder / f"quality-{suite}.jsonl").open("a") as file:
        for row in rows:
            file.write(json.dumps(row | {"commit": commit}) + "\n")


def summary(label: str, gaps: list[float], seconds: list[float]) -> str:
    within = sum(gap <= 0.01 + 1e-12 for gap in gaps) / len(gaps)
    hits = sum(abs(gap) <= 1e-6 for gap in gaps) / len(gaps)
    return (
        f"{label:<28} n={len(gaps):<4} mean gap {100 * statistics.mean(gaps):6.3f} %  max {100 * max(gaps):6.2f} %  "
        f"min {100 * min(gaps):6.2f} %  optimal {100 * hits:5.1f} %  within 1 % {100 * within:5.1f} %  "
        f"time median {statistics.median(seconds):.2f} s max {max(seconds):.2f} s"
    )


def small(args: argparse.Namespace) -> None:
    """Random graphs of 10-30 tasks on 4-8 unequal devices: HEFT and search against CP-SAT's optimum."""
    rows: list[dict[str, Any]] = []
    for index in range(args.instances):
        rng = np.random.default_rng([args.seed, index])
        n, m = int(rng.integers(10, 31)), int(rng.integers(4, 9))
        graph = random_dag(num_tasks=n, seed=args.seed * 10_000 + index, ccr=float(rng.choice([0.5, 1.0, 2.0, 5.0])))
        cluster = random_cluster(m, seed=args.seed * 10_000 + index)
        exact = plan(graph, cluster, "cp-sat", args.exact_limit, 0)
        row: dict[str, Any] = {"instance": index, "num_tasks": n, "num_devices": m, "seed": args.seed}
        row |= {"status": exact.plan.info.get("status"), "cp-sat": exact.makespan_s, "cp-sat_s": exact.plan_seconds}
        for policy in ("heft", *args.policies.split(",")):
            result = plan(graph, cluster, policy, args.time_limit, index)
            row |= {policy: result.makespan_s, f"{policy}_s": result.plan_seconds}
        rows.append(row)
        print(json.dumps(row), flush=True)
    record("small", rows)
    proven = [row for row in rows if row["status"] == "optimal"]
    print(f"proved optimal by CP-SAT: {len(proven)} of {len(rows)}")
    for policy in ("heft", *args.policies.split(",")):
        print(summary(policy, [r[policy] / r["cp-sat"] - 1 for r in proven], [r[f"{policy}_s"] for r in proven]))


def stg_instances(tasks: int, every: int) -> Iterator[tuple[str, TaskGraph, int, float, float]]:
    """Yield name, graph, devices, and the published range of the optimum: least and best known value."""
    with tarfile.open(DATA / "taskgraphs" / f"stg-{tasks}.tar.gz") as archive:

        def text(name: str) -> bytes:
            member = archive.extractfile(name)
            assert member is not None
            return member.read()

        known: dict[tuple[str, int], tuple[float, float]] = {}
        for devices in (2, 4, 8, 16):
            table = text(f"Optimal_values/Case{tasks}_{devices}_OPT.csv").decode()
            for name, number, *values in csv.reader(io.StringIO(table)):
                known[name, int(number)] = float(values[0]), float(values[-1])  # a range where the optimum is open
        for name in sorted(n for n in archive.getnames() if n.endswith(".stg"))[::every]:
            graph = STG.read(Document(name, text(name)))
            assert isinstance(graph, TaskGraph)
            for devices in (2, 4, 8, 16):
                yield name, graph, devices, *known[name, devices]


def stg(args: argparse.Namespace) -> None:
    """STG graphs on 2 to 16 equal processors against the published optima."""
    rows = []
    for name, graph, devices, least, best in stg_instances(args.tasks, args.every):
        result = plan(graph, f"cpu:{devices}", args.policy, args.time_limit, args.seed)
        rows.append(
            {
                "instance": name,
                "devices": devices,
                "least": least,
                "best": best,
                "makespan": result.makespan_s,
                "bound": result.lower_bound_s,
                "seconds": result.plan_seconds,
            }
        )
        if result.makespan_s != best or result.lower_bound_s > best * (1 + 1e-9):
            print(json.dumps(rows[-1]), flush=True)
    record(f"stg-{args.tasks}", rows)
    print(f"below the proven least value: {sum(r['makespan'] < r['least'] - 1e-9 for r in rows)} of {len(rows)}")
    print(
        summary(
            f"stg-{args.tasks} {args.policy}",
            [r["makespan"] / r["best"] - 1 for r in rows],
            [r["seconds"] for r in rows],
        )
    )


def psplib_values(path: Path) -> dict[tuple[int, int], float]:
    values = {}
    for line in path.read_text(errors="replace").splitlines():
        cells = line.split()
        if len(cells) >= 3 and all(cell.isdigit() for cell in cells[:3]):
            values[int(cells[0]), int(cells[1])] = float(cells[2])
    return values


def psplib(args: argparse.Namespace) -> None:
    """PSPLIB projects against the optima (j30) or the best known values (j60, j120)."""
    folder = DATA / "taskgraphs"
    table = folder / (f"psplib-{args.set}opt.sm" if args.set == "j30" else f"psplib-{args.set}hrs.sm")
    rows = []
    with zipfile.ZipFile(folder / f"psplib-{args.set}.sm.zip") as archive:
        for (a, b), best in sorted(psplib_values(table).items())[:: args.every]:
            name = f"{args.set}{a}_{b}.sm"
            graph = PSPLIB.read(Document(name, archive.read(name)))
            assert isinstance(graph, TaskGraph)
            result = plan(graph, None, args.policy, args.time_limit, args.seed)
            rows.append(
                {
                    "instance": name,
                    "best": best,
                    "makespan": result.makespan_s,
                    "bound": result.lower_bound_s,
                    "seconds": result.plan_seconds,
                }
            )
            if result.makespan_s != best or result.lower_bound_s > best * (1 + 1e-9):
                print(json.dumps(rows[-1]), flush=True)
    record(f"psplib-{args.set}", rows)
    print(
        summary(
            f"psplib-{args.set} {args.policy}",
            [r["makespan"] / r["best"] - 1 for r in rows],
            [r["seconds"] for r in rows],
        )
    )


#: File, devices, and the value to reach (in the papers' unit, 1e10).
DOPPLER = {
    "gdp_chain_mm_112nodes": (4, 1200.1),
    "gdp_ffnn_192nodes": (4, 56.9),
    "gdp_transformer_block_215nodes": (4, 167.0),
    "gdp_full_transformer_layer_261nodes": (4, 131.0),
    "8gpu_transformer_block": (8, 200.0),
}


def doppler(args: argparse.Namespace) -> None:
    """The Doppler graphs without contention, under both disciplines."""
    rows = []
    for name, (devices, target) in DOPPLER.items():
        path = DATA / "dataflow" / f"doppler-{name}.txt"
        for discipline in ("sequence", "work-conserving"):
            values = []
            for seed in range(args.seeds):
                begin = time.perf_counter()
                result = stretto.plan(
                    path,
                    f"gpu:{devices}",
                    "annealing",
                    time_limit_s=args.time_limit,
                    seed=seed,
                    params={"discipline": discipline},
                )
                values.append(result.makespan_s)
                rows.append(
                    {
                        "graph": name,
                        "devices": devices,
                        "discipline": discipline,
                        "seed": seed,
                        "makespan": result.makespan_s,
                        "bound": result.lower_bound_s,
                        "evaluations": result.plan.info["evaluations"],
                        "seconds": time.perf_counter() - begin,
                    }
                )
            heft = stretto.plan(path, f"gpu:{devices}", "heft").makespan_s
            middle = statistics.median(values)
            verdict = "reached" if middle <= target else "MISSED"
            print(
                f"{name:<38} {discipline:<16} median {middle:9.3f}  range {min(values):.3f} to {max(values):.3f}  "
                f"target {target:g} {verdict}  HEFT {heft:.1f}",
                flush=True,
            )
    record("doppler", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    suites = parser.add_subparsers(dest="suite", required=True)
    for run, options in (
        (small, {"instances": 200, "time-limit": 2.0, "exact-limit": 60.0, "policies": "annealing,lns,genetic"}),
        (stg, {"tasks": 50, "every": 1, "time-limit": 5.0, "policy": "annealing"}),
        (psplib, {"set": "j30", "every": 1, "time-limit": 5.0, "policy": "annealing"}),
        (doppler, {"seeds": 5, "time-limit": 60.0}),
    ):
        suite = suites.add_parser(run.__name__, help=(run.__doc__ or "").splitlines()[0])
        suite.add_argument("--seed", type=int, default=0)
        for option, value in options.items():
            suite.add_argument(f"--{option}", type=type(value), default=value)
        suite.set_defaults(run=run)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
