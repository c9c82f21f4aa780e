"""How much sooner ``doppler`` has a plan when it starts from trained policies, on families that they never saw.

    python benchmarks/doppler_later.py                           # all families, three folds
    python benchmarks/doppler_later.py --evaluations 4000 --seeds 1 --every 5

The policies of a fold (``research/doppler/fold-K.npz``) were trained without every third family; here they are judged
on these families, with draws and clusters that no training saw. ``doppler`` runs twice on each problem, from the
policies of the fold and from untrained ones, with the same seed and the same number of plans. For a share of the
budget, the goal is the worse of the two best plans at that moment, and what counts is how many plans each needed for
it. A ratio above 1 means that untrained policies needed more; intervals are bootstraps over problems.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # research/

import numpy as np
from measure import print_table
from research.doppler.evolve import NUM_FOLDS, family_fold, training_problems

from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.graphs.evaluate import planner_named

FOLDS = Path(__file__).resolve().parents[1] / "research" / "doppler"
#: Shares of the budget at which the goal is set.
SHARES = (1 / 64, 1 / 16, 1 / 4, 1.0)
#: Problems with this seed are in no training and no validation.
_SEED = 99
_SAME = 1e-9

Curve = list[Progress]


def problems(seed: int) -> Iterator[tuple[int, Problem]]:
    """Yield problems of the families that a fold left out, with its number."""
    for fold in range(NUM_FOLDS):
        for made in training_problems(seed, families=family_fold(fold)):
            yield fold, made.player.problem


def curve(problem: Problem, start: str, seed: int, evaluations: int) -> Curve:
    """Return the news of a run, the best plan after each."""
    news: Curve = []
    planner = planner_named("doppler", {"start": start, "max_evaluations": evaluations})
    planner.plan(problem, Budget(seed, None, 1, news.append))
    return news


def best_at(found: Curve, evaluations: float) -> float:
    """Return the best makespan after so many plans."""
    return min((one.best_makespan_s for one in found if one.evaluations <= evaluations), default=np.inf)


def needed(found: Curve, goal: float) -> int:
    """Return after how many plans a goal was reached."""
    return 1 + next(one.evaluations for one in found if one.best_makespan_s <= goal * (1 + _SAME))


def interval(values: Sequence[float], draws: int = 2000) -> tuple[float, float, float]:
    """Return the geometric mean of ratios between the ends of its 95 % bootstrap interval."""
    logs = np.log(np.asarray(values))
    means = np.random.default_rng(0).choice(logs, (draws, len(logs))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(np.exp(low)), float(np.exp(logs.mean())), float(np.exp(high))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=16_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="take one problem of so many")
    options = parser.parse_args()
    ratios: dict[float, list[float]] = {share: [] for share in SHARES}
    gains: dict[float, list[float]] = {share: [] for share in SHARES}
    for fold, problem in list(problems(_SEED))[:: options.every]:
        found = [[], []]
        for seed in range(options.seeds):
            starts = (str(FOLDS / f"fold-{fold}.npz"), "scratch")
            trained, untrained = (curve(problem, start, seed, options.evaluations) for start in starts)
            for share in SHARES:
                now = [best_at(one, share * options.evaluations) for one in (trained, untrained)]
                goal = max(now)
                if not np.isfinite(goal):  # no news yet
                    continue
                ratios[share].append(needed(untrained, goal) / needed(trained, goal))
                gains[share].append(now[1] / now[0])
            found[0].append(trained[-1].best_makespan_s)
            found[1].append(untrained[-1].best_makespan_s)
        means = [f"{np.mean(one):.6g}" for one in found]
        print(
            f"{problem.graph.name:28} {problem.num_devices:3} devices: {means[0]} trained, {means[1]} not", flush=True
        )
    lines = [("share of the budget", "runs", "plans needed, untrained over trained", "sooner", "later", "makespan")]
    for share in SHARES:
        low, middle, high = interval(ratios[share])
        sooner, later = (sum(f(r) for r in ratios[share]) for f in (lambda r: r > 1, lambda r: r < 1))
        ends = interval(gains[share])
        text = f"{middle:.2f} [{low:.2f}, {high:.2f}]"
        makespan = f"{ends[1]:.4f} [{ends[0]:.4f}, {ends[2]:.4f}]"
        lines.append((f"{share:.3f}", str(len(ratios[share])), text, str(sooner), str(later), makespan))
    print_table(lines)


if __name__ == "__main__":
    main()
