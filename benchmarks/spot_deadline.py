"""One job on spot and on-demand instances: the certified rule, greedy, uniform progress, and the best in hindsight.

    python benchmarks/spot_deadline.py                                 # 400 windows of every series and job
    python benchmarks/spot_deadline.py --windows 1300 --hindsight 50   # more windows; hindsight on 50 of each
    python benchmarks/spot_deadline.py --part choose                   # the prior, chosen by leave-one-series-out

48 h of work, deadlines 52 and 70 h, changeovers of 0.02 to 0.4 h, spot at a third of the price, windows that begin at
random steps of the series in STRETTO_DATA/spot. Greedy: spot where there is one, else wait, on demand when nothing but
the reserve is left. Uniform progress: Wu et al., NSDI 2024. Both run inside the same reserve. Costs are hours on
demand. A missed deadline ends the benchmark. Rows go to benchmarks/results/spot_deadline.jsonl.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from peer_venv import HERE
from queue_logs import commit

from stretto.core.csr import Floats
from stretto.files.prices.availability import AvailabilitySeries, read_availability
from stretto.graphs.rental.spot import RULES, SpotJob, SpotParams, SpotTables, hindsight, run_spot

WORK_H, PRICE = 48.0, 1.0 / 3.0
DEADLINES_H = (52.0, 70.0)
#: Changeovers in hours, and seconds that divide them and the steps of the series, for the hindsight.
CHANGEOVERS_H = {0.02: 24.0, 0.05: 60.0, 0.2: 60.0, 0.4: 60.0}
PRIORS = tuple(SpotParams(prior_spells=n, prior_slope=k) for n in (0.5, 1.0, 2.0) for k in (0.0, 0.25, 0.5, 0.75, 1.0))


def read_series() -> list[AvailabilitySeries]:
    """Return the series of the data folder."""
    folder = Path(os.environ.get("STRETTO_DATA", Path(HERE).resolve().parents[1] / "shared" / "data"), "spot")
    found = [series for path in sorted(folder.glob("*.csv*")) for series in read_availability(path)]
    if not found:
        sys.exit(f"no series in {folder}; set STRETTO_DATA")
    return found


def jobs() -> Iterator[tuple[SpotJob, float]]:
    """Yield the jobs, with the resolution of their hindsight."""
    for deadline, (changeover, unit_s) in itertools.product(DEADLINES_H, CHANGEOVERS_H.items()):
        yield SpotJob(WORK_H * 3600, deadline * 3600, changeover * 3600, PRICE), unit_s


def windows(series: AvailabilitySeries, job: SpotJob, number: int, seed: int) -> list[int]:
    """Return steps at which windows begin, without repetition; all where there are no more."""
    last = len(series.available) - round(job.deadline_s / series.step_s)
    rng = np.random.default_rng([seed, round(job.deadline_s), round(job.changeover_s)])
    return sorted(rng.permutation(last + 1)[:number].tolist())


def costs(tables: SpotTables, series: AvailabilitySeries, rule: str, starts: list[int]) -> Floats:
    """Return the cost of each window in hours on demand; end the benchmark at a missed deadline."""
    found = run_spot(tables, series.available, series.step_s, rule=rule, starts=starts)
    if found.end_s.max() > tables.job.deadline_s + 1e-3 or found.least_reserve_s.min() < -1e-3:
        sys.exit(f"{rule} missed the deadline or broke the reserve on {series.name}")
    return found.cost_s / 3600


def compare(number: int, num_hindsight: int, seed: int) -> None:
    """Print the table of rules."""
    all_series, rows = read_series(), []
    print(f"{'series':18} {'deadline':>8} {'changeover':>10} {'greedy':>8} {'uniform':>8} {'certified':>9}", end=" ")
    print(f"{'best other':>10} {'hindsight':>9} {'gap':>6} {'windows':>7}")
    for job, unit_s in jobs():
        tables = SpotTables(job)
        for series in all_series:
            starts = windows(series, job, number, seed)
            begin = time.process_time()
            by_rule = {rule: costs(tables, series, rule, starts) for rule in RULES}
            some = np.linspace(0, len(starts) - 1, min(num_hindsight, len(starts))).astype(int)
            known = [hindsight(job, series.available[starts[n] :], series.step_s, unit_s) / 3600 for n in some]
            row = {"series": series.name, "deadline_h": job.deadline_s / 3600, "changeover_h": job.changeover_s / 3600}
            row |= {rule: float(cost.mean()) for rule, cost in by_rule.items()}
            row |= {"windows": len(starts), "cpu_s": time.process_time() - begin, "commit": commit(), "seed": seed}
            if known:
                certified = float(by_rule["certified"][some].mean())
                row |= {"hindsight": float(np.mean(known)), "gap": certified / float(np.mean(known)) - 1}
            rows.append(row)
            print_row(row)
    report(rows)


def print_row(row: dict[str, object]) -> None:
    """Print the figures of a series, a deadline and a changeover."""
    other = min(row["greedy"], row["uniform-progress"])  # type: ignore[type-var]
    print(f"{row['series']:18} {row['deadline_h']:8.0f} {row['changeover_h']:10.2f} {row['greedy']:8.2f}", end=" ")
    print(f"{row['uniform-progress']:8.2f} {row['certified']:9.2f} {row['certified'] / other - 1:10.1%}", end=" ")  # type: ignore[operator]
    print(f"{row.get('hindsight', np.nan):9.2f} {row.get('gap', np.nan):6.1%} {row['windows']:7}", flush=True)


def report(rows: list[dict[str, object]]) -> None:
    """Print means by series and the number of windows, and keep the rows."""
    table = {key: np.array([row[key] for row in rows]) for key in (*RULES, "series", "windows")}
    for name in dict.fromkeys(table["series"].tolist()):
        mine = table["series"] == name
        means = {rule: table[rule][mine].mean() for rule in RULES}
        print(f"{name}: " + ", ".join(f"{rule} {mean:.2f}" for rule, mean in means.items()))
    other = np.minimum(table["greedy"], table["uniform-progress"])
    ratio = table["certified"] / other
    print(f"certified costs at most as much as both others in {int(np.sum(ratio <= 1))} of {len(rows)} rows", end=", ")
    print(f"at worst {ratio.max() - 1:+.2%}, on average {ratio.mean() - 1:+.1%}")
    print(f"no deadline missed in {int(table['windows'].sum()):,} windows")
    path = Path(HERE, "results", "spot_deadline.jsonl")
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)


def choose(number: int, seed: int) -> None:
    """Choose the prior on all series but one, by mean cost over the best of the other two rules; judge it on that."""
    all_series = read_series()
    figures = np.zeros((len(PRIORS), len(all_series), 0))
    for job, _ in jobs():
        tables = SpotTables(job)
        column = np.zeros((len(PRIORS), len(all_series), 1))
        for s, series in enumerate(all_series):
            starts = windows(series, job, number, seed)
            other = min(costs(tables, series, rule, starts).mean() for rule in ("greedy", "uniform-progress"))
            for n, params in enumerate(PRIORS):
                tables.params = params
                column[n, s, 0] = costs(tables, series, "certified", starts).mean() / other
        figures = np.concatenate([figures, column], axis=2)
    for n, params in enumerate(PRIORS):
        worst, mean = figures[n].max() - 1, figures[n].mean() - 1
        print(f"{params.prior_spells:g} spells, slope {params.prior_slope:g}: mean {mean:+.2%}, worst row {worst:+.2%}")
    for s, series in enumerate(all_series):
        rest = np.delete(figures, s, axis=1).mean(axis=(1, 2))
        n = int(rest.argmin())
        params = PRIORS[n]
        print(f"without {series.name}: {params.prior_spells:g} spells, slope {params.prior_slope:g};", end=" ")
        print(f"there {figures[n, s].mean() - 1:+.2%}, worst row {figures[n, s].max() - 1:+.2%}")


def main() -> None:
    """Read the command line and run a part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("compare", "choose"), default="compare")
    parser.add_argument("--windows", type=int, default=400)
    parser.add_argument("--hindsight", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.part == "choose":
        choose(chosen.windows, chosen.seed)
    else:
        compare(chosen.windows, chosen.hindsight, chosen.seed)


if __name__ == "__main__":
    main()
