"""Symphony beside its opponents: two NICs, racks, the sampling gradient alone, the belief alone, and decision latency.

    python benchmarks/symphony.py learn --case two-nics --iterations 50 --streams 16
    python benchmarks/symphony.py learn --case m1 --iterations 16 --rnn-iterations 48 --streams 8
    python benchmarks/symphony.py rules --case small-rack --streams 16   # opponents and the oracle on held-out streams
    python benchmarks/symphony.py passenger --case all --streams 12      # shipped weights, their start, rules, oracle
    python benchmarks/symphony.py gradient --iterations 300              # samples against belief propagation
    python benchmarks/symphony.py belief
    python benchmarks/symphony.py floor                                  # what no belief can know of hgx8
    python benchmarks/symphony.py latency

*learn* trains the belief-fed policy and the model-free one of the same size on the same streams, from fresh weights,
and looks at held-out streams 20 times. What is compared are iterations (and seconds of training) until a quality is
reached: that of the model-free policy in the end (mean of its last tenth), and a loss against the oracle of 30 %; the
model-free policy may be given more iterations, so that there is a figure when it is slow. Loss
is 1 - sum of the oracle's completion times / sum of the policy's. Everything runs on one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # research/

import numpy as np
from measure import print_table
from peer_venv import HERE
from queue_logs import commit
from research.symphony.actor_critic import HeldOut, SymphonyTrainer
from research.symphony.belief_learning import METHODS, TRUE_THETA, GradientSettings, learn_theta
from research.symphony.calibration import look_around, measure_belief
from research.symphony.recurrent_settings import NetSettings, a2c_of

from stretto import catalog
from stretto.core.csr import Floats
from stretto.racks.kernels.rules import MCT, SRPT
from stretto.racks.rules import oracle, play
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.cases import HELD_OUT_SEED, Case, World, case, generated_world, rack_case
from stretto.racks.symphony.network import fresh_weights, load_weights
from stretto.racks.symphony.scheduler import SymphonyScheduler
from stretto.racks.symphony.trainer import StreamPlayer

NUM_TRAIN, NUM_HELD_OUT = 256, 32
LOOKS = 20
LOSS = 0.3
#: A quality counts as reached this near to it: two looks differ by as much without any learning.
NEAR = 1.005
#: Racks of the belief's benchmark beside the two NICs.
RACKS = ("m1", "m2", "hgx8", "small-rack", "paper-rack")
#: Racks, sizes and kernels that no training has seen.
HELD_OUT_RACKS = ("generated-9001", "generated-9004")
PASSENGER_RACKS = ("small-rack", "m1", "m2", "hgx8", "paper-rack", *HELD_OUT_RACKS)

Row = dict[str, Any]


def main() -> None:
    """Run one benchmark, print its table, keep every row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=sorted(BENCHMARKS))
    parser.add_argument("--case", default="two-nics")
    parser.add_argument("--iterations", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--streams", type=int, default=NUM_HELD_OUT)
    parser.add_argument(
        "--rnn-iterations", type=int, help="of the model-free policy, as many as the other's if not given"
    )
    parser.add_argument("--policy", type=Path, help="weights for passenger, the shipped ones if not given")
    parser.add_argument("--guide", type=float, default=0.0, help="weight of a rule's scores below the network's own")
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


def _case(name: str) -> Case:
    """Return a case by name; a rack that is no case gets streams of four jobs."""
    return rack_case(name, 4) if name in ("m1", "m2", "hgx8") else case(name)


def learn(options: argparse.Namespace) -> Iterator[Row]:
    """Train both variants for each seed; a row per rule, then one per look at the held-out streams."""
    which = _case(options.case)
    held_out = which.world(seed=None, num_instances=options.streams)
    best = oracle(held_out.model, held_out.streams)
    yield from _rule_rows(options, held_out, best)
    every = max(1, options.iterations // LOOKS)
    lengths = {"belief": options.iterations, "rnn": options.rnn_iterations or options.iterations}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        world = which.world(seed=seed, num_instances=NUM_TRAIN)
        for variant, num_iterations in lengths.items():
            net = NetSettings(variant, guide=options.guide)
            trainer = SymphonyTrainer(world, net, a2c_of(options.case), seed=seed)
            judge = HeldOut(held_out, trainer.shape, net)
            for iteration in range(num_iterations + 1):
                if iteration % every == 0:
                    about = {"case": options.case, "seed": seed, "variant": variant, "iteration": iteration}
                    yield about | {"seconds": trainer.seconds, **figures(judge.flow_s(trainer.params), best)}
                if iteration < num_iterations:
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
    lines = [
        ("seed", "rnn final s", "at", "belief at", "ratio", "belief final s", "30 % at", "rnn", "median s", "p99 s")
    ]
    ratios, nears = [], []
    for seed in sorted({row["seed"] for row in rows if "seed" in row}):
        curve = {v: [r for r in rows if r.get("seed") == seed and r["variant"] == v] for v in ("belief", "rnn")}
        if not all(curve.values()):
            continue
        tail = {v: curve[v][-max(1, len(curve[v]) // 10) :] for v in curve}
        final = {v: float(np.mean([row["mean_s"] for row in tail[v]])) for v in curve}
        reach = {v: _first(curve[v], "mean_s", NEAR * final["rnn"]) for v in curve}
        near = {v: _first(curve[v], "loss", LOSS) for v in curve}
        ratios.append(reach["belief"]["iteration"] / max(reach["rnn"]["iteration"], 1))
        # Where the model-free policy never got there, its last look is a bound: the ratio is at most this.
        last = {key: min(near["rnn"][key], curve["rnn"][-1][key]) for key in ("iteration", "seconds")}
        nears.append([near["belief"][key] / max(last[key], 1e-9) for key in last])
        numbers = [final["rnn"], reach["rnn"]["iteration"], reach["belief"]["iteration"], ratios[-1], final["belief"]]
        numbers += [near["belief"]["iteration"], near["rnn"]["iteration"]]
        numbers += [float(np.mean([row[key] for row in tail["belief"]])) for key in ("median_s", "p99_s")]
        lines.append((str(seed), *(f"{number:.4g}" for number in numbers)))
    best = min((row for row in rows if "rule" in row and not _is_told(row["rule"])), key=lambda row: row["median_s"])
    oracle_row = next(row for row in rows if row.get("rule") == "oracle")
    lines.append(("median", "", "", "", f"{np.median(ratios):.3g}", "", *_pair(nears), "", ""))
    lines.append((best["rule"], *[""] * 4, f"{best['mean_s']:.4g}", "", "", *_tail(best)))
    lines.append(("oracle", *[""] * 4, f"{oracle_row['mean_s']:.4g}", "", "", *_tail(oracle_row)))
    return lines


def _pair(nears: list[list[float]]) -> tuple[str, str]:
    """Return the median ratios to a loss of 30 %, of iterations and of seconds."""
    middle = np.median(np.array(nears), axis=0)
    return f"{middle[0]:.3g} of its", f"{middle[1]:.3g} of s"


def _tail(row: Row) -> tuple[str, str]:
    return f"{row['median_s']:.4g}", f"{row['p99_s']:.4g}"


def _is_told(rule: str) -> bool:
    """Say whether a rule has what no opponent has: our beliefs, or the truth."""
    return rule == "oracle" or rule.endswith(("-belief", "-true"))


def _first(curve: list[Row], key: str, limit: float) -> Row:
    """Return the first look from which on two looks in a row are within the limit, at infinity when there is none."""
    for here, later in pairwise(curve):
        if max(here[key], later[key]) <= limit:
            return here
    return {"iteration": float("inf"), "seconds": float("inf")}


def rules(options: argparse.Namespace) -> Iterator[Row]:
    """Play every rule on the held-out streams."""
    world = _case(options.case).world(seed=None, num_instances=options.streams)
    yield from _rule_rows(options, world, oracle(world.model, world.streams))


def _rule_rows(options: argparse.Namespace, world: World, best: Floats) -> Iterator[Row]:
    yield {"case": options.case, "rule": "oracle", **figures(best, best)}
    for name in catalog.DISPATCHERS:
        if name == "symphony":
            continue
        flow = np.concatenate(
            [
                play(name, world.model, world.streams, seed=seed, counters=world.counters, params=world.belief)
                for seed in range(options.seeds)
            ]
        )
        yield {"case": options.case, "rule": name, **figures(flow, np.tile(best, (options.seeds, 1)))}


def passenger(options: argparse.Namespace) -> Iterator[Row]:
    """Judge weights beside their untrained start, the best rule with beliefs and the oracle; streams are held out.

    The racks of ``HELD_OUT_RACKS`` were in no training either. A ratio is of mean completion times, its interval a
    paired bootstrap over streams; ``room`` is the share of what the oracle gains over the rule. Above 20 processors the
    oracle tries 3 candidates and one order: a little less than it could gain.
    """
    weights, _ = load_weights(options.policy) if options.policy else load_weights()
    names = PASSENGER_RACKS if options.case == "all" else options.case.split(",")
    for name in names:
        world = passenger_world(name, options.streams)
        player = StreamPlayer(world)
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        known = {"counters": world.counters, "params": world.belief}
        flows = {
            rule: np.stack([play(rule, world.model, world.streams, seed=seed, **known) for seed in seeds])
            for rule in ("srpt-belief", "mct-belief")
        }
        flows["start"] = np.stack([player.flow_s(fresh_weights(0), seed=seed) for seed in seeds])
        flows["symphony"] = np.stack([player.flow_s(weights, seed=seed) for seed in seeds])
        width, orders = (3, (SRPT,)) if len(world.model.processors) > 20 else (6, (MCT, SRPT))
        yield _passenger_row(name, world, flows, oracle(world.model, world.streams, width=width, orders=orders))


def _passenger_row(name: str, world: World, flows: dict[str, Floats], best: Floats) -> Row:
    rule = min(("srpt-belief", "mct-belief"), key=lambda one: float(flows[one].mean()))
    row: Row = {"rack": name, "processors": len(world.model.processors), "best_rule": rule}
    row |= {f"{one}_s": float(flow.mean()) for one, flow in flows.items()} | {"oracle_s": float(best.mean())}
    room = float(flows[rule].mean() - best.mean())
    for one in ("start", "symphony"):
        row[f"{one}_ratio"] = _paired_ratio(flows[one], flows[rule])
        row[f"{one}_room"] = float(flows[rule].mean() - flows[one].mean()) / max(room, 1e-9)
        row[f"{one}_p99_ratio"] = float(np.quantile(flows[one], 0.99) / np.quantile(flows[rule], 0.99))
    return row


def _paired_ratio(flow: Floats, other: Floats, *, num: int = 4000) -> list[float]:
    """Return the ratio of two means between the ends of its 95 % bootstrap interval over streams."""
    mine, theirs = flow.mean(axis=(0, 2)), other.mean(axis=(0, 2))
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(mine), size=(num, len(mine)))
    low, high = np.quantile(mine[drawn].mean(axis=1) / theirs[drawn].mean(axis=1), (0.025, 0.975))
    return [float(low), float(mine.mean() / theirs.mean()), float(high)]


def passenger_world(name: str, num_streams: int) -> World:
    """Return a rack by name with held-out streams; ``generated-N`` is drawn by that seed, which no training used."""
    if not name.startswith("generated-"):
        return _case(name).world(seed=None, num_instances=num_streams)
    return generated_world(int(name.removeprefix("generated-")), seed=HELD_OUT_SEED, num_instances=num_streams)


def _passenger_summary(rows: list[Row]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = [
        ("rack", "processors", "best rule s", "oracle s", "start", "symphony [95 %]", "room", "p99")
    ]
    for row in rows:
        low, middle, high = row["symphony_ratio"]
        texts = (f"{row[row['best_rule'] + '_s']:.2f} ({row['best_rule']})", f"{row['oracle_s']:.2f}")
        figures = (
            f"{row['start_ratio'][1]:.3f}",
            f"{middle:.3f} [{low:.3f}, {high:.3f}]",
            f"{row['symphony_room']:.2f}",
        )
        p99 = f"{row['symphony_p99_ratio']:.3f}"
        lines.append((row["rack"], str(row["processors"]), *texts, *figures, p99))
    return lines


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
    """Compare believed and true utilization at random decisions, and raw counters with what they count."""
    for name in ("two-nics", *RACKS):
        world = _case(name).world(seed=None, num_instances=options.streams)
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            found = measure_belief(world, seed=seed, num_steps=100, num_envs=8)
            yield {"case": name, "seed": seed, **found}


def floor(options: argparse.Namespace) -> Iterator[Row]:
    """Show what nobody can know: which of two switches below one root complex is busy, when only the root is counted.

    Levels are drawn as in the streams, the sum of both loads is known exactly, and the best guess for either switch is
    the median of what it carries at that sum. Beside it, the belief's error about the switches of ``hgx8``.
    """
    which = _case("hgx8")
    foreign = which.stream.foreign
    rng = np.random.default_rng(options.first_seed)
    shape = (2000, 200, 2)
    is_on = rng.random((shape[0] * shape[1], 2)) < foreign.share
    load = np.minimum(np.where(is_on, rng.uniform(*foreign.level["pcie-switch"], is_on.shape), 0.0), 1.0)
    alike = load[np.argsort(load.sum(axis=1), kind="stable")].reshape(shape)  # rows of almost the same sum
    guess = np.median(alike, axis=(1, 2), keepdims=True)
    world = which.world(seed=None, num_instances=options.streams)
    looks = look_around(world, seed=options.first_seed, num_steps=100, num_envs=8)
    is_switch = np.array([kind == "pcie-switch" for kind in world.model.resource_kind])
    gap = np.abs(looks.mean - looks.truth)[:, is_switch]
    yield {
        "case": "hgx8",
        "floor_when_the_sum_is_known": float(np.abs(alike - guess).mean() / alike.mean()),
        "belief_about_switches": float(gap.mean() / looks.truth[:, is_switch].mean()),
    }


def latency(options: argparse.Namespace) -> Iterator[Row]:
    """Time single decisions on racks, features included; and apart from that the events and beliefs between them."""
    for name in ("small-rack", "paper-rack"):
        world = case(name).world(seed=None, num_instances=8)
        batch = RackBatch(world.model, world.streams, 1, seed=0, counters=world.counters, params=world.belief)
        scheduler = SymphonyScheduler(load_weights()[0], batch)
        batch.start()
        times: dict[str, list[float]] = {name: [] for name in ("decide", "decide_cpu", "belief", "belief_cpu")}
        for _ in range(20):  # what is compiled or read once is no latency
            batch.step(np.array([scheduler.decide()]))
        for _ in range(options.iterations):
            begun, begun_cpu = time.perf_counter(), time.thread_time()
            action = scheduler.decide()
            decided, decided_cpu = time.perf_counter(), time.thread_time()
            batch.step(np.array([action]))
            ended, ended_cpu = time.perf_counter(), time.thread_time()
            spent = (decided - begun, decided_cpu - begun_cpu, ended - decided, ended_cpu - decided_cpu)
            for kept, seconds in zip(times.values(), spent, strict=True):
                kept.append(1e3 * seconds)
        yield {
            "case": name,
            "processors": len(world.model.processors),
            **{f"{what}_median_ms": float(np.median(kept)) for what, kept in times.items()},
            **{f"{what}_p99_ms": float(np.quantile(kept, 0.99)) for what, kept in times.items()},
        }


def _plain(rows: list[Row]) -> list[tuple[str, ...]]:
    keys = [key for key in rows[0] if key not in ("commit", "load")]
    return [tuple(keys), *(tuple(_text(row.get(key, "")) for key in keys) for row in rows)]


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


BENCHMARKS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "learn": learn,
    "rules": rules,
    "passenger": passenger,
    "gradient": gradient,
    "belief": belief,
    "floor": floor,
    "latency": latency,
}
SUMMARIES: dict[str, Callable[[list[Row]], list[tuple[str, ...]]]] = {
    "learn": _learn_summary,
    "passenger": _passenger_summary,
}

if __name__ == "__main__":
    main()
