"""Symphony beside its opponents: two NICs, racks, the sampling gradient alone, the belief alone, and decision latency.

    python benchmarks/symphony.py learn --case two-nics --iterations 600 --seeds 5
    python benchmarks/symphony.py learn --case small-rack --iterations 800 --seeds 5
    python benchmarks/symphony.py rules --case small-rack           # opponents and the oracle on held-out streams
    python benchmarks/symphony.py gradient                          # sampling against belief propagation, equal batches
    python benchmarks/symphony.py belief
    python benchmarks/symphony.py latency

*learn* trains the belief-fed policy and the model-free one of the same size on the same streams, and looks at
held-out streams every so often. What is compared are iterations (and seconds of training) until a quality is reached:
that of the model-free policy in the end, and a loss against the oracle of 30 %. Loss is 1 - sum of the oracle's
completion times / sum of the policy's. Everything runs on one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
from measure import print_table
from peer_venv import HERE
from queue_logs import commit

from stretto.domain.csr import Floats
from stretto.learned.symphony.inference import NumpyPolicy
from stretto.learned.symphony.network import init_params
from stretto.learned.symphony.scheduler import SymphonyScheduler
from stretto.learned.symphony.settings import NetSettings, shape_of
from stretto.sim.rack import RackBatch
from stretto.sim.rack_rules import RULES, oracle, play
from stretto.training.symphony import Judge, SymphonyTrainer
from stretto.training.symphony_belief import METHODS, TRUE_THETA, GradientSettings, learn_theta
from stretto.training.symphony_calibration import measure_belief
from stretto.training.symphony_cases import case

NUM_TRAIN, NUM_HELD_OUT = 256, 32
LOOKS = 20
LOSS = 0.3

Row = dict[str, Any]


def main() -> None:
    """Run one benchmark, print its table, keep every row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=sorted(BENCHMARKS))
    parser.add_argument("--case", default="two-nics")
    parser.add_argument("--iterations", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--streams", type=int, default=NUM_HELD_OUT)
    options = parser.parse_args()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    rows: list[Row] = []
    for row in BENCHMARKS[options.what](options):
        print(json.dumps(row), flush=True)
        rows.append(row | {"commit": commit(), "load": os.getloadavg()[0]})
    (HERE / "results").mkdir(exist_ok=True)
    target = HERE / "results" / f"symphony-{options.what}-{options.case}-{stamp}.jsonl"
    target.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = SUMMARIES.get(options.what, _plain)(rows)
    print()
    print_table(lines)


def learn(options: argparse.Namespace) -> Iterator[Row]:
    """Train both variants for each seed; a row per look at the held-out streams."""
    which = case(options.case)
    held_out = which.world(seed=None, num_instances=options.streams)
    best = oracle(held_out.model, held_out.streams)
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        world = which.world(seed=seed, num_instances=NUM_TRAIN)
        for variant in ("belief", "rnn"):
            net = NetSettings(variant)
            trainer = SymphonyTrainer(world, net, which.a2c, seed=seed)
            judge = Judge(held_out, trainer.shape, net)
            every = max(1, options.iterations // LOOKS)
            for iteration in range(options.iterations + 1):
                if iteration % every == 0:
                    flow = judge.flow_s(trainer.params)
                    yield {
                        "case": options.case,
                        "seed": seed,
                        "variant": variant,
                        "iteration": iteration,
                        "seconds": trainer.seconds,
                        **figures(flow, best),
                    }
                trainer.step()


def figures(flow: Floats, best: Floats) -> Row:
    """Return what is said of completion times: their mean, quantiles, and the loss against the oracle."""
    return {
        "mean_s": float(np.mean(flow)),
        "median_s": float(np.median(flow)),
        "p99_s": float(np.quantile(flow, 0.99)),
        "loss": float(1.0 - best.sum() / flow.sum()),
        "oracle_mean_s": float(best.mean()),
        "oracle_p99_s": float(np.quantile(best, 0.99)),
    }


def _learn_summary(rows: list[Row]) -> list[tuple[str, ...]]:
    head = (
        "seed",
        "rnn final",
        "belief final",
        "rnn gets there",
        "belief does",
        "of all",
        "to 30 %",
        "rnn",
        "p99/oracle",
    )
    lines = [head]
    for seed in sorted({row["seed"] for row in rows}):
        curve = {v: [r for r in rows if r["seed"] == seed and r["variant"] == v] for v in ("belief", "rnn")}
        if not all(curve.values()):
            continue
        final = {v: float(np.mean([row["mean_s"] for row in curve[v][-3:]])) for v in curve}
        reach = {v: _first(curve[v], "mean_s", final["rnn"]) for v in curve}
        near = {v: _first(curve[v], "loss", LOSS) for v in curve}
        tail = np.mean([row["p99_s"] / row["oracle_p99_s"] for row in curve["belief"][-3:]])
        ratio = reach["belief"] / curve["rnn"][-1]["iteration"]
        lines.append(
            (
                str(seed),
                f"{final['rnn']:.4g}",
                f"{final['belief']:.4g}",
                f"{reach['rnn']:g}",
                f"{reach['belief']:g}",
                f"{ratio:.2f}",
                f"{near['belief']:g}",
                f"{near['rnn']:g}",
                f"{tail:.2f}",
            )
        )
    return lines


def _first(curve: list[Row], key: str, limit: float) -> float:
    """Return the first iteration at which the mean of three looks is within the limit, infinity when none is."""
    for place in range(2, len(curve)):
        if float(np.mean([row[key] for row in curve[place - 2 : place + 1]])) <= limit:
            return float(curve[place]["iteration"])
    return float("inf")


def rules(options: argparse.Namespace) -> Iterator[Row]:
    """Play every rule on the held-out streams."""
    world = case(options.case).world(seed=None, num_instances=options.streams)
    begun = time.perf_counter()
    best = oracle(world.model, world.streams)
    yield {"case": options.case, "rule": "oracle", **figures(best, best), "seconds": time.perf_counter() - begun}
    for name in RULES:
        flow = np.concatenate(
            [
                play(name, world.model, world.streams, seed=seed, counters=world.counters, params=world.belief)
                for seed in range(options.seeds)
            ]
        )
        yield {"case": options.case, "rule": name, **figures(flow, np.tile(best, (options.seeds, 1)))}


def gradient(options: argparse.Namespace) -> Iterator[Row]:
    """Learn theta with either gradient: equal batches, equal updates."""
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for method in METHODS:
            found = learn_theta(GradientSettings(method), seed=seed, num_updates=options.iterations)
            yield {
                "method": method,
                "seed": seed,
                "theta": found.theta,
                "true_theta": TRUE_THETA,
                "load": found.load,
                "ms_per_update": 1e3 * found.seconds_per_update,
            }


def belief(options: argparse.Namespace) -> Iterator[Row]:
    """Compare believed and true utilisation at random decisions, and raw counters with what they count."""
    for name in ("two-nics", "small-rack"):
        world = case(name).world(seed=None, num_instances=options.streams)
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            found = measure_belief(world, seed=seed, num_steps=100, num_envs=8)
            yield {"case": name, "seed": seed, **found}


def latency(options: argparse.Namespace) -> Iterator[Row]:
    """Time single decisions on the paper's rack, belief update and features included."""
    for name in ("small-rack", "paper-rack"):
        which = case(name)
        world = which.world(seed=None, num_instances=8)
        batch = RackBatch(world.model, world.streams, 1, seed=0, counters=world.counters, params=world.belief)
        net = NetSettings("belief")
        shape = shape_of(world.model, len(world.counters.resource), world.streams)
        policy = NumpyPolicy(init_params(shape, net, 0), shape, net)
        scheduler = SymphonyScheduler(policy, batch)
        batch.start()
        decide_s, decide_cpu_s, step_s = [], [], []
        for _ in range(20):  # what is compiled or read once is no latency
            batch.step(np.array([scheduler.decide()]))
        for _ in range(options.iterations):
            begun, begun_cpu = time.perf_counter(), time.thread_time()
            action = scheduler.decide()
            decided = time.perf_counter()
            decide_cpu_s.append(time.thread_time() - begun_cpu)
            batch.step(np.array([action]))
            decide_s.append(decided - begun)
            step_s.append(time.perf_counter() - decided)
        yield {
            "case": name,
            "processors": len(world.model.processors),
            "decide_median_ms": 1e3 * float(np.median(decide_s)),
            "decide_p99_ms": 1e3 * float(np.quantile(decide_s, 0.99)),
            "decide_cpu_p99_ms": 1e3 * float(np.quantile(decide_cpu_s, 0.99)),
            "step_with_belief_median_ms": 1e3 * float(np.median(step_s)),
            "step_with_belief_p99_ms": 1e3 * float(np.quantile(step_s, 0.99)),
        }


def _plain(rows: list[Row]) -> list[tuple[str, ...]]:
    keys = [key for key in rows[0] if key not in ("commit", "load")]
    return [tuple(keys), *(tuple(_text(row.get(key, "")) for key in keys) for row in rows)]


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


BENCHMARKS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "learn": learn,
    "rules": rules,
    "gradient": gradient,
    "belief": belief,
    "latency": latency,
}
SUMMARIES: dict[str, Callable[[list[Row]], list[tuple[str, ...]]]] = {"learn": _learn_summary}

if __name__ == "__main__":
    main()
