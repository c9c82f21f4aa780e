"""Jobs of real logs over owned, on-demand and spot nodes: MARS beside every fixed pair of an order and a pool rule.

    python benchmarks/mars_pools.py run --out out/mars_pools.jsonl --logs SDSC-SP2,CTC-SP2 --thinnings 2 --max-jobs 2000
    python benchmarks/mars_pools.py table --out out/mars_pools.jsonl

Every log is cut to its middle ``--max-jobs`` jobs, then 1 % of the jobs are left out at random, once per thinning; all
methods replay the same jobs. Pools: the recorded machine (owned, no price), on-demand nodes of 8 processors for up to
``--rented`` of it, and as many spot nodes. On-demand and spot prices are those of one instance type in one region, from
the file of daily snapshots; the chance of an interruption (0.05 per node-hour) is in no price list, and assumed.
Interruptions have a seed per thinning, the same for all methods.

What is compared is ``mean bounded slowdown + money x USD per job``, with USD as billed. The table has, over the
best fixed pair in hindsight of each thinning: MARS, the operator's policy (fcfs, cheapest), owned nodes only (the best
order in hindsight), on demand always (the best order in hindsight), and the pair that is best on all *other* logs: a
linear score of pairs of a job and a pool with a trained weight (what an hour of waiting is worth), and its order.
Intervals are 95 % of the bootstrap over logs, then thinnings. MARS's own pair was chosen on CTC-SP2, HPC2N, LANL-CM5,
SDSC-BLUE and SDSC-SP2: judge it on other logs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from mars_cost import HAZARD_PER_HOUR, INSTANCE, ON_DEMAND_USD, REGION, VCPUS
from queue_logs import commit, find_logs, read_log

from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.files.prices.spot_series import spot_series
from stretto.queues.mars.cost import JobCost
from stretto.queues.mars.replay import MarsSettings
from stretto.queues.replay import replay, replay_told

ORDERS = ("fcfs", "saf", "wfp3")
#: Pool rules, and what an hour of waiting is worth in USD.
RULES = (
    *(("owned", 1.0), ("cheapest", 1.0), ("burst", 0.01), ("burst", 0.1), ("burst", 1.0), ("burst", 10.0)),
    *(("pack", 0.1), ("pack", 1.0), ("pack", 10.0)),
)
PROMISE = {"backfill": "promise", "slack": "24h+4e"}
POLICY = "fcfs cheapest 1"


def market(data: Path, num_procs: int, rented: float) -> list[Pool]:
    """Return the recorded machine, nodes on demand, and the same on the spot market."""
    series = data / "prices" / "aws-spot-daily-2022-12_2025-12.csv.gz"
    spot = spot_series(series, INSTANCE, region=REGION, hazard_per_hour=HAZARD_PER_HOUR, checkpoint_s=600.0)
    nodes = max(1, round(rented * num_procs / VCPUS))
    on_demand = Pool(
        "on-demand",
        nodes,
        procs_per_node=VCPUS,
        price_usd_per_hour=ON_DEMAND_USD,
        billing_s=60.0,
        provision_s=90.0,
        min_nodes=0,
        idle_shutdown_s=300.0,
    )
    return [Pool("own", num_procs), on_demand, replace(on_demand, name="spot", spot=spot)]


def thinned(path: Path, max_jobs: int, seed: int) -> tuple[Trace, int]:
    """Return the middle of a log without a random 1 % of its jobs, and the processors of its machine."""
    whole, num_procs = read_log(path)
    count = min(max_jobs, whole.num_jobs)
    middle = whole.window((whole.num_jobs - count) // 2, count)
    kept = np.random.default_rng([seed, 1]).random(count) >= 0.01
    return middle.keep(kept), num_procs


def methods(options: argparse.Namespace) -> list[tuple[str, dict[str, Any]]]:
    """Return all methods by name, with what they are replayed by."""
    found: list[tuple[str, dict[str, Any]]] = []
    for order in ORDERS:
        for rule, value in RULES:
            how = {"strategy": order, "pool_rule": rule, "wait_usd_per_hour": value}
            found.append((f"{order} {rule} {value:g}", how))
    for money in options.money:
        settings = MarsSettings(cost=JobCost(money=money))
        found.append((f"mars {money:g}", {"strategy": "mars", "settings": settings}))
        if options.promises:
            found.append((f"promised mars {money:g}", {"strategy": "mars", "settings": settings, **PROMISE}))
    if options.promises:
        found.append(("promised saf owned", {"strategy": "saf", "pool_rule": "owned", **PROMISE}))
    return found


def run(options: argparse.Namespace) -> None:
    """Replay everything that is not in the file yet, and append a row for each."""
    out: Path = options.out
    out.parent.mkdir(parents=True, exist_ok=True)
    done = {(row["log"], row["thinning"], row["method"]) for row in rows_of(out)} if out.exists() else set()
    for seed in range(options.thinnings):
        for path in find_logs(options.data, options.logs):
            trace, num_procs = thinned(path, options.max_jobs, seed)
            pools = market(options.data, num_procs, options.rented)
            for method, how in methods(options):
                name = path.name.removesuffix(".swf.gz")
                if (name, seed, method) in done:
                    continue
                row = {"log": name, "thinning": seed, "method": method, **played(trace, pools, how, seed)}
                with out.open("a") as file:
                    file.write(json.dumps({**row, "commit": options.commit, "max_jobs": options.max_jobs}) + "\n")
            print(name, seed, flush=True)


def played(trace: Trace, pools: list[Pool], how: dict[str, Any], seed: int) -> dict[str, Any]:
    """Replay once and return the figures."""
    begin = time.process_time()
    settings = how.get("settings")
    result, told = (
        replay_told(trace, pools, seed=seed, **how) if settings else (replay(trace, pools, seed=seed, **how), None)
    )
    metrics = result.metrics
    margin = result.margin_s
    return {
        "slowdown": metrics.bounded_slowdown.mean,
        "usd": metrics.cost_usd,
        "num_jobs": metrics.num_jobs,
        "max_wait_s": metrics.wait_s.max,
        "interruptions": metrics.num_interruptions,
        "promises_given": None if margin is None else int(np.isfinite(margin).sum()),
        "promises_broken": None if margin is None else int((margin < 0).sum()),
        "followed": getattr(told, "shares", None),
        "regret": told.choices[-1].regret if told is not None and told.choices else None,
        "cpu_s": time.process_time() - begin,
    }


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def table(options: argparse.Namespace) -> None:
    """Print costs over those of the best fixed pair in hindsight, per weight of money."""
    by_case: dict[tuple[str, int], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows_of(options.out):
        by_case[row["log"], row["thinning"]][row["method"]] = row
    for money in options.money:
        wanted = f"mars {money:g}"
        cases = {key: rows for key, rows in by_case.items() if wanted in rows}
        if cases:
            print_weight(cases, money, wanted)


def cost_of(row: dict[str, Any], money: float) -> float:
    return float(row["slowdown"] + money * row["usd"] / row["num_jobs"])


def print_weight(cases: dict[tuple[str, int], dict[str, dict[str, Any]]], money: float, mars: str) -> None:
    fixed = [name for name in next(iter(cases.values())) if "mars" not in name and "promised" not in name]
    cost = {key: {name: cost_of(row, money) for name, row in rows.items()} for key, rows in cases.items()}
    best = {key: min(fixed, key=lambda name, key=key: cost[key][name]) for key in cost}

    def hindsight(rule: str) -> dict[tuple[str, int], str]:
        names = [name for name in fixed if name.split()[1] == rule]
        return {key: min(names, key=lambda name, key=key: cost[key][name]) for key in cost}

    trained = {}
    for key in cost:
        others = [other for other in cost if other[0] != key[0]]
        score = {name: np.mean([np.log(cost[o][name] / cost[o][best[o]]) for o in others]) for name in fixed}
        trained[key] = min(score, key=lambda name: score[name]) if others else POLICY
    compared = {
        "best fixed pair in hindsight": best,
        "mars": dict.fromkeys(cost, mars),
        "trained on the other logs": trained,
        "operator's policy: fcfs, cheapest": dict.fromkeys(cost, POLICY),
        "owned nodes only, best order": hindsight("owned"),
        "on demand always, best order": hindsight("cheapest"),
    }
    if all(f"promised {mars}" in rows for rows in cases.values()):
        compared["mars inside promises of 24h+4e"] = dict.fromkeys(cost, f"promised {mars}")
        compared["owned only, saf, same promises"] = dict.fromkeys(cost, "promised saf owned")
    logs = sorted({log for log, _ in cost})
    print(f"\nmoney {money:g}: {len(logs)} logs, {len(cost)} thinnings; cost over the best fixed pair in hindsight")
    print(
        f"{'':36}{'cost':>6} {'95 %':>14} {'worst log':>10} {'slowdown':>9} {'USD':>9} {'longest h':>10} {'broken':>7}"
    )
    for label, chosen in compared.items():
        print_line(label, chosen, cases, cost, best, logs)
    for log in logs:
        keys = [key for key in cost if key[0] == log]
        ratio = np.exp(np.mean([np.log(cost[key][mars] / cost[key][best[key]]) for key in keys]))
        row = cases[keys[0]][mars]
        followed = ", ".join(f"{name} {share:.0%}" for name, share in list((row["followed"] or {}).items())[:3])
        print(f"  {log:28} mars {ratio:5.2f}, best: {best[keys[0]]}; trained: {trained[keys[0]]}; followed: {followed}")


def print_line(label: str, chosen: Any, cases: Any, cost: Any, best: Any, logs: list[str]) -> None:
    ratio = {key: np.log(cost[key][chosen[key]] / cost[key][best[key]]) for key in cost}
    by_log = [np.array([ratio[key] for key in ratio if key[0] == log]) for log in logs]
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(2000):
        some = rng.integers(len(logs), size=len(logs))
        draws.append(np.mean([rng.choice(by_log[k], len(by_log[k])).mean() for k in some]))
    low, high = np.exp(np.percentile(draws, [2.5, 97.5]))
    rows = [cases[key][chosen[key]] for key in cost]
    slowdown = np.exp(np.mean([np.log(row["slowdown"]) for row in rows]))
    broken = [row["promises_broken"] for row in rows if row["promises_broken"] is not None]
    print(
        f"{label:36}{np.exp(np.mean([part.mean() for part in by_log])):6.2f} {f'{low:.2f}-{high:.2f}':>14} "
        f"{np.exp(max(part.mean() for part in by_log)):10.2f} {slowdown:9.2f} "
        f"{np.mean([r['usd'] for r in rows]):9.0f} {np.median([r['max_wait_s'] for r in rows]) / 3600:10.1f} "
        f"{sum(broken) if broken else '-':>7}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--out", type=Path, default=Path("out/mars_pools.jsonl"))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("STRETTO_DATA", "data")))
    parser.add_argument("--logs", default="")
    parser.add_argument("--thinnings", type=int, default=2)
    parser.add_argument("--max-jobs", type=int, default=2000)
    parser.add_argument("--rented", type=float, default=0.5, help="nodes on demand, as a share of the machine")
    parser.add_argument("--money", type=lambda text: [float(part) for part in text.split(",")], default=[1.0, 10.0])
    parser.add_argument("--promises", action="store_true", help="also inside promises")
    options = parser.parse_args()
    options.commit = commit()
    {"run": run, "table": table}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
