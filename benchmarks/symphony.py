"""Symphony beside its opponents: two NICs, racks, the sampling gradient alone, the belief alone, and decision latency.

    python benchmarks/symphony.py rules --case small-rack --streams 16   # opponents and the oracle on held-out streams
    python benchmarks/symphony.py passenger --case all --streams 12      # shipped weights, their start, rules, oracle
    python benchmarks/symphony.py gradient --iterations 300              # samples against belief propagation
    python benchmarks/symphony.py belief
    python benchmarks/symphony.py floor                                  # what no belief can know of hgx8
    python benchmarks/symphony.py latency

Loss is 1 - sum of the oracle's completion times / sum of the policy's. Everything runs on one thread. How fast fresh
weights learn is in ``symphony_learning.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # research/

import numpy as np
from ledger import record
from measure import print_table
from peer_venv import HERE
from queue_logs import commit
from research.symphony.belief_learning import METHODS, TRUE_THETA, GradientSettings, learn_theta
from research.symphony.calibration import look_around, measure_belief

from stretto import catalog
from stretto.core.csr import Floats
from stretto.racks.kernels.rules import MCT, SRPT
from stretto.racks.rules import oracle, play
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.cases import HELD_OUT_SEED, Case, World, case, generated_world, rack_case
from stretto.racks.symphony.network import fresh_weights, load_weights
from stretto.racks.symphony.player import StreamPlayer
from stretto.racks.symphony.scheduler import SymphonyScheduler

NUM_HELD_OUT = 32
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
    parser.add_argument("--policy", type=Path, help="weights for passenger, the shipped ones if not given")
    parser.add_argument("--ledger", action="store_true", help="add what passenger finds to benchmarks/ledger.jsonl")
    options = parser.parse_args()
    if options.ledger and options.what != "passenger":
        parser.error("--ledger is for passenger")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    rows: list[Row] = []
    for row in BENCHMARKS[options.what](options):
        print(json.dumps(row), flush=True)
        rows.append(row | {"commit": commit(), "load": os.getloadavg()[0]})
    (HERE / "results").mkdir(exist_ok=True)
    target = HERE / "results" / f"symphony-{options.what}-{options.case}-{stamp}.jsonl"
    target.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if options.ledger:
        _add_to_ledger(rows, options)
    lines = SUMMARIES.get(options.what, _plain)(rows)
    print()
    print_table(lines)


def _case(name: str) -> Case:
    """Return a case by name; a rack that is no case gets streams of four jobs."""
    return rack_case(name, 4) if name in ("m1", "m2", "hgx8") else case(name)


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


def _add_to_ledger(rows: list[Row], options: argparse.Namespace) -> None:
    for row in rows:
        claim, (low, middle, high) = f"symphony/passenger/{row['rack']}", row["symphony_ratio"]
        more = {"instances": f"{row['rack']}, {options.streams} held-out streams", "seeds": str(options.seeds)}
        more |= {"baseline": f"{row['best_rule']}, the best rule with beliefs"}
        record(f"{claim}/start", row["start_ratio"][1], "ratio", **more)
        record(claim, middle, "ratio", low=low, high=high, bar="<= 0.95", **more)
        record(f"{claim}/p99", row["symphony_p99_ratio"], "ratio", bar="<= 1", **more)
        more |= {"baseline": "what the oracle gains over that rule", "bar": ">= 60"}
        record(f"{claim}/room", 100 * row["symphony_room"], "%", **more)


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
    "rules": rules,
    "passenger": passenger,
    "gradient": gradient,
    "belief": belief,
    "floor": floor,
    "latency": latency,
}
SUMMARIES: dict[str, Callable[[list[Row]], list[tuple[str, ...]]]] = {
    "passenger": _passenger_summary,
}

if __name__ == "__main__":
    main()
