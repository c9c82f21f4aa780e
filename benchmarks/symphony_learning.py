"""Symphony learning from fresh weights: the paper's headline, two NICs, and one change at a time.

    python benchmarks/symphony_learning.py headline --case m1,m2,small-rack   # iterations to 30 % loss, belief and RNN
    python benchmarks/symphony_learning.py near                               # two NICs: iterations to the RNN's end
    python benchmarks/symphony_learning.py isolated --case m1 --seeds 3       # one change at a time

*headline*: the first of two looks in a row with a loss of at most 30 % against the oracle. A training that has not come
there when it is stopped is censored: it counts with an infinite number of iterations where that is against the belief,
and with the last one where it is for it, so that a ratio is an upper bound. Where both are there before any training,
the ratio is 1. *near*: iterations until the belief is as good as the RNN's last looks are, over those of the RNN.
*isolated*: the same measure for one change at a time, ratios to the full system from the same seeds; a teacher, which
does not play for itself, is judged once, after as many batches as there may be iterations. The two gradients are
compared after 100 updates. Intervals are bootstraps over seeds.

A look is a greedy play of the held-out streams after every iteration. Trainings that have ended are rows of
benchmarks/results/symphony-learning.jsonl and are not repeated; Ctrl-C prints the table of what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # research/

import numpy as np
from measure import print_table
from research.symphony.actor_critic import HeldOut, SymphonyTrainer
from research.symphony.belief_learning import METHODS, GradientSettings, learn_theta
from research.symphony.recurrent_settings import NetSettings, a2c_of
from research.symphony.teacher import imitate, lookahead_advice

from stretto.racks.rules import oracle
from stretto.racks.symphony.cases import Case, case, rack_case

Row = dict[str, Any]
ROWS = Path(__file__).resolve().parent / "results" / "symphony-learning.jsonl"
LOSS = 0.3
#: By the paper, the model-free policy takes so many times as many iterations.
RATIO = 2.2
#: As good as the RNN's last looks: no more than this above them.
NEAR = 1.005
NUM_TRAIN = 256
#: What a training's row must agree in to stand for one that is asked for.
KEYS = ("case", "variant", "seed", "envs", "streams")
CHANGES = {
    "belief": "none (belief, topology, actor-critic)",
    "counters": "raw counters in place of the belief",
    "dense": "dense layers in place of the topology",
    "rnn": "both (the model-free policy)",
    "lookahead": "a look-ahead teacher in place of actor-critic",
}


def main() -> None:
    """Train what is missing, then print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=sorted(BENCHMARKS))
    parser.add_argument("--case", default="")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=8, help="held-out streams")
    parser.add_argument("--iterations", type=int, default=24, help="most iterations of a training")
    parser.add_argument("--envs", type=int, default=32, help="episodes per iteration")
    parser.add_argument("--table", action="store_true", help="only print what has been measured")
    options = parser.parse_args()
    plan, table = BENCHMARKS[options.what]
    runs = Runs(ROWS)
    try:
        for wanted in () if options.table else plan(options):
            if runs.find(wanted) is None:
                runs.add(train(wanted))
                print(json.dumps(runs.rows[-1]), flush=True)
    except KeyboardInterrupt:
        print("interrupted: the table holds the trainings that have ended", file=sys.stderr)
    print_table([tuple(str(cell) for cell in line) for line in table(options, runs)])


class Runs:
    """Trainings that have ended, read from a file and added to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def find(self, wanted: Row) -> Row | None:
        """Return a training that is what is wanted; one that is to stop at 30 % may have gone on."""
        for row in self.rows:
            is_whole = row["iterations"] == wanted["iterations"] and row["stops"] == wanted["stops"]
            is_there = wanted["stops"] and reached(row) < np.inf
            if (is_whole or is_there) and all(row[key] == wanted[key] for key in KEYS):
                return row
        return None


def _case(name: str) -> Case:
    return rack_case(name, 4) if name in ("m1", "m2", "hgx8") else case(name)


def _wanted(options: argparse.Namespace, name: str, variant: str, seed: int, *, stops: bool) -> Row:
    about = {"case": name, "variant": variant, "seed": seed, "envs": options.envs, "streams": options.streams}
    # The RNN is followed as much further as the paper's ratio says, so that a censored ratio can be below it.
    most = int(RATIO * options.iterations) if variant == "rnn" and stops else options.iterations
    return about | {"stops": stops, "iterations": most}


def train(wanted: Row) -> Row:
    """Train one policy from fresh weights and look at it before and after every iteration."""
    name, variant, seed = wanted["case"], wanted["variant"], wanted["seed"]
    held_out = _case(name).world(seed=None, num_instances=wanted["streams"])
    row = wanted | {"oracle_s": float(oracle(held_out.model, held_out.streams).mean())}
    begun = time.process_time()
    net = NetSettings("belief" if variant == "lookahead" else variant, guide=0.0)
    a2c = replace(a2c_of(name), num_envs=wanted["envs"])
    trainer = SymphonyTrainer(_case(name).world(seed=seed, num_instances=NUM_TRAIN), net, a2c, seed=seed)
    judge = HeldOut(held_out, trainer.shape, net)
    looks = [float(np.nanmean(judge.flow_s(trainer.params)))]
    if variant == "lookahead":
        imitate(trainer, wanted["iterations"], advice=lookahead_advice)
        looks += [float("nan")] * (wanted["iterations"] - 1) + [float(np.nanmean(judge.flow_s(trainer.params)))]
    while len(looks) <= wanted["iterations"] and not (wanted["stops"] and reached({**row, "mean_s": looks}) < np.inf):
        trainer.step()
        looks.append(float(np.nanmean(judge.flow_s(trainer.params))))
    return row | {"mean_s": looks, "cpu_s": time.process_time() - begun}


def reached(row: Row, limit_s: float | None = None) -> float:
    """Return the iteration of the first of two looks in a row within a limit; without one, within 30 % loss."""
    limit = row["oracle_s"] / (1.0 - LOSS) if limit_s is None else limit_s
    looks = row["mean_s"]
    for iteration in range(len(looks) - 1):
        if max(looks[iteration], looks[iteration + 1]) <= limit:
            return iteration
    return float("inf")


def _names(options: argparse.Namespace, default: str) -> list[str]:
    return str(options.case or default).split(",")


def _headline_plan(options: argparse.Namespace) -> Iterator[Row]:
    for name in _names(options, "m1,m2,small-rack"):
        for seed in range(options.seeds):
            for variant in ("belief", "rnn"):
                yield _wanted(options, name, variant, seed, stops=True)


def _headline_table(options: argparse.Namespace, runs: Runs) -> Iterator[Sequence[object]]:
    yield "case", "seeds", "belief", "rnn", "ratio [95 %]", "CPU s"
    for name in _names(options, "m1,m2,small-rack"):
        pairs = _pairs(options, runs, name, stops=True)
        if pairs:
            at = [(reached(one), reached(other)) for one, other in pairs]
            last = [float(len(other["mean_s"]) - 1) for _, other in pairs]
            ratios = [_ratio(mine, theirs, most) for (mine, theirs), most in zip(at, last, strict=True)]
            seconds = [sum(float(row["cpu_s"]) for row in rows) for rows in zip(*pairs, strict=True)]
            shown = [" ".join(f"{one[place]:g}" for one in at) for place in (0, 1)]
            yield name, len(pairs), *shown, _median(ratios), " ".join(f"{one:.0f}" for one in seconds)


def _ratio(mine: float, theirs: float, last: float) -> float:
    """Return an upper bound of the ratio of two numbers of iterations; ``last`` stands for theirs where it is none."""
    if mine == theirs:
        return 1.0 if mine < np.inf else np.inf
    return mine / max(min(theirs, last), 1.0)


def _pairs(options: argparse.Namespace, runs: Runs, name: str, *, stops: bool) -> list[tuple[Row, Row]]:
    """Return the trainings of the belief and of the RNN from the same seeds."""
    found = [
        tuple(runs.find(_wanted(options, name, variant, seed, stops=stops)) for variant in ("belief", "rnn"))
        for seed in range(options.seeds)
    ]
    return [(mine, theirs) for mine, theirs in found if mine is not None and theirs is not None]


def _median(values: Sequence[float]) -> str:
    """Write a median with its 95 % bootstrap interval."""
    drawn = np.random.default_rng(0).choice(values, (4000, len(values)))
    low, high = np.quantile(np.sort(drawn, axis=1)[:, (len(values) - 1) // 2], (0.025, 0.975), method="nearest")
    return f"{np.sort(values)[(len(values) - 1) // 2]:.2f} [{low:.2f}, {high:.2f}]"


def _near_plan(options: argparse.Namespace) -> Iterator[Row]:
    for seed in range(options.seeds):
        for variant in ("belief", "rnn"):
            yield _wanted(options, "two-nics", variant, seed, stops=False)


def _near_table(options: argparse.Namespace, runs: Runs) -> Iterator[Sequence[object]]:
    yield "seed", "rnn first s", "rnn end s", "rnn at", "belief at", "ratio", "belief end s", "oracle s"
    ratios = []
    for mine, theirs in _pairs(options, runs, "two-nics", stops=False):
        ends = [float(np.mean(row["mean_s"][-max(1, len(row["mean_s"]) // 10) :])) for row in (mine, theirs)]
        at = [reached(row, NEAR * ends[1]) for row in (mine, theirs)]
        ratios.append(_ratio(at[0], at[1], len(theirs["mean_s"]) - 1))
        times = [f"{one:.3f}" for one in (theirs["mean_s"][0], ends[1], ends[0], theirs["oracle_s"])]
        yield theirs["seed"], *times[:2], f"{at[1]:g}", f"{at[0]:g}", f"{ratios[-1]:.2f}", *times[2:]
    if ratios:
        yield "median", "", "", "", "", _median(ratios), "", ""


def _isolated_plan(options: argparse.Namespace) -> Iterator[Row]:
    for name in _names(options, "m1"):
        for variant in ("belief", "rnn", "counters", "dense", "lookahead"):
            for seed in range(options.seeds):
                yield _wanted(options, name, variant, seed, stops=variant != "lookahead")


def _isolated_table(options: argparse.Namespace, runs: Runs) -> Iterator[Sequence[object]]:
    yield "change", "seeds", "iterations", "ratio [95 %]", "last look, s", "CPU s"
    for name in _names(options, "m1"):
        full: dict[int, float] = {}
        for variant, what in CHANGES.items():
            wanted = [
                _wanted(options, name, variant, seed, stops=variant != "lookahead") for seed in range(options.seeds)
            ]
            found = {row["seed"]: row for row in map(runs.find, wanted) if row is not None}
            if found:
                at = {seed: reached(row) for seed, row in found.items()}
                full = full or at
                ratios = [_ratio(at[seed], full[seed], options.iterations) for seed in at if seed in full]
                many = " ".join(f"{one:g}" for one in at.values()), _median(ratios)
                last = " ".join(f"{row['mean_s'][-1]:.3g}" for row in found.values())
                seconds = np.mean([row["cpu_s"] for row in found.values()])
                told = many if variant != "lookahead" else (f"{options.iterations} batches", "")
                yield f"{name}: {what}", len(found), *told, last, f"{seconds:.0f}"
    yield from _gradient_lines(options)


def _gradient_lines(options: argparse.Namespace) -> Iterator[Sequence[object]]:
    """Compare the two gradients: load of the chosen path, and CPU milliseconds per update."""
    found = {
        method: [learn_theta(GradientSettings(method), seed=seed, num_updates=100) for seed in range(options.seeds)]
        for method in METHODS
    }
    sampled, exact = (found[method] for method in METHODS)
    loads = [two.load / one.load for one, two in zip(sampled, exact, strict=True)]
    costs = [two.seconds_per_update / one.seconds_per_update for one, two in zip(sampled, exact, strict=True)]
    what = "exact gradient in place of the sampling gradient"
    yield f"{what}: load of the chosen path", len(exact), 100, _mean(loads), _mean([one.load for one in exact]), ""
    spent = _mean([1e3 * one.seconds_per_update for one in exact])
    yield f"{what}: CPU ms per update", len(exact), 100, _mean(costs), spent, ""


def _mean(values: list[float]) -> str:
    """Write a mean with its 95 % bootstrap interval."""
    drawn = np.random.default_rng(0).choice(values, (4000, len(values))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{np.mean(values):.3g} [{low:.3g}, {high:.3g}]"


Plan = Callable[[argparse.Namespace], Iterator[Row]]
Table = Callable[[argparse.Namespace, Runs], Iterator[Sequence[object]]]
BENCHMARKS: dict[str, tuple[Plan, Table]] = {
    "headline": (_headline_plan, _headline_table),
    "near": (_near_plan, _near_table),
    "isolated": (_isolated_plan, _isolated_table),
}

if __name__ == "__main__":
    main()
