"""Doppler against search, heuristics and its own ablations.

    python benchmarks/doppler.py speed                                  # training episodes per second
    python benchmarks/doppler.py equal-time --time-limit 60 --seeds 5   # against annealing at the same wall time
    python benchmarks/doppler.py equal-time --graphs llama --cold 5e-5  # the same, annealing cooled down further
    python benchmarks/doppler.py pure --seeds 5                         # 8,000 episodes against 8,000 evaluations
    python benchmarks/doppler.py ablations --episodes 640               # every variant at as many episodes, tiny
    python benchmarks/doppler.py zero                                   # families that nobody trained on
    python benchmarks/doppler.py passenger                              # what the trained weights are worth
    python benchmarks/doppler.py transfer --seeds 5                     # 2,000 from the generalist, 8,000 from scratch

Equal time is for the paper's and MSR's graphs; ``--families held-out,generated`` takes others, ``--start scratch``
fresh weights in place of the generalist's.
``--graphs layer,bert`` keeps instances whose names hold one of these texts, ``--graphs =ffnn`` the one of that name.
All plans are executed by the same simulator, in sequence and without contention; planned orders are respected. Real
graphs are read from the folder named by STRETTO_DATA, or ``../shared/data`` beside the repository. Rows go to
benchmarks/results/doppler-*.jsonl.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from doppler_graphs import HERE, Instance, generated, held_out, msr, paper
from measure import print_table

from stretto import catalog
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import StrettoError
from stretto.graphs.bounds.bound import bound
from stretto.graphs.doppler.zero import LISTS
from stretto.graphs.evaluate import Setting, evaluate, planner_named
from stretto.graphs.search.annealing import Annealing
from stretto.learning.loop import LoopResult, TrainingRun
from stretto.learning.trainer import TrainingSpec

HEURISTICS = ("heft", "etf", "peft", "critical-path")
#: Which decision is left to a rule; the paper calls the first "-SEL" and the second "-PLC". ``ablations`` has more.
ABLATIONS: dict[str, dict[str, Any]] = {
    "both": {},
    "select": {"plc": "earliest"},
    "place": {"sel": "b-level"},
}
#: Differences below this are ties of floating-point sums.
SAME = 1e-9

Row = dict[str, Any]


class Log:
    """Rows of one run of a suite, each with commit and date, written as they come."""

    def __init__(self, suite: str) -> None:
        self.suite = suite
        self.common = {
            "suite": suite,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": subprocess.run(
                ["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True, check=False
            ).stdout.strip(),
        }
        self.rows: list[Row] = []

    def add(self, instance: Instance, **values: Any) -> None:
        problem = instance.problem
        row = {"family": instance.family, "graph": instance.name, "tasks": problem.num_tasks}
        row |= {"devices": problem.num_devices, **values}
        self.rows.append(row)
        folder = HERE / "results"
        folder.mkdir(exist_ok=True)
        with (folder / f"doppler-{self.suite}.jsonl").open("a") as file:
            file.write(json.dumps(row | self.common) + "\n")

    def values(self, **wanted: Any) -> list[float]:
        """Return the makespans of the rows with these values."""
        return [row["makespan_s"] for row in self.rows if all(row.get(key) == value for key, value in wanted.items())]

    def median(self, **wanted: Any) -> float:
        return statistics.median(self.values(**wanted))


def needs(*policies: str) -> None:
    """End with a reason where a policy is not in the catalog."""
    for policy in policies:
        if policy not in catalog.PLANNERS:
            sys.exit(f"policy {policy!r} is not in the catalog of this version")


def makespan(
    problem: Problem, policy: str, seed: int = 0, limit: float | None = None, **params: Any
) -> tuple[float, float]:
    """Return the makespan of a policy's plan, and the planner's wall time after compiling."""
    result = evaluate(problem, policy, params=params, budget=Budget(seed, limit))
    return result.makespan_s, result.plan_seconds


class Trained(NamedTuple):
    """A training and the best plan that it found."""

    loop: LoopResult[Any]
    plan: Plan


def trained(instance: Instance, spec: TrainingSpec, **settings: Any) -> Trained:
    """Return a pure training: what the policy found, nothing polished."""
    from research.doppler.ablations import AblationRun
    from research.doppler.settings import AblationSettings

    run = AblationRun(instance.problem, spec, settings=AblationSettings(**settings))
    loop = TrainingRun(run, algorithm="doppler").train(time_limit_s=spec.time_limit_s)
    plan = run.best_plan()
    assert plan is not None, "at least one step was trained"
    return Trained(loop, plan)


def found(problem: Problem, result: Trained, episodes: int) -> float:
    """Return the best makespan within so many episodes (the last batch may go beyond), if the simulator agrees."""
    said, real = result.loop.rows[-1].best_s, Setting().run(problem, result.plan).makespan_s
    if abs(said / real - 1) > 1e-6:
        sys.exit(f"the training says {said}, the simulator {real}")
    return min((row.best_s for row in result.loop.rows if row.episode <= episodes), default=real)


def typical_rate(result: Trained) -> float:
    """Return the episodes per second of the median step: what remains when none of them compiles or is disturbed."""
    pairs = pairwise(result.loop.rows)
    return statistics.median((b.episode - a.episode) / (b.seconds - a.seconds) for a, b in pairs)


def marked(value: float, against: float) -> str:
    """Return a ratio and who wins."""
    ratio = value / against
    verdict = "tie" if abs(ratio - 1) <= SAME else "win" if ratio < 1 else "LOSS"
    return f"{ratio:.4f} {verdict}"


def wins(mine: Sequence[float], theirs: Sequence[float]) -> str:
    """Return how many seeds are better, and how many as good."""
    better = sum(a < b * (1 - SAME) for a, b in zip(mine, theirs, strict=True))
    equal = sum(abs(a / b - 1) <= SAME for a, b in zip(mine, theirs, strict=True))
    return f"{better}+{equal}/{len(mine)}"


def speed(args: argparse.Namespace) -> None:
    """Training episodes per second, everything included but compiling, which is told apart."""
    log = Log("speed")
    lines = [("graph", "tasks", "devices", "episodes", "seconds", "episodes/s", "median step", "compile s")]
    for instance in paper(args.graphs):
        for seed in range(args.seeds):
            begin = time.perf_counter()
            result = trained(instance, TrainingSpec(seed, None, args.time_limit, "scratch", args.threads))
            whole = time.perf_counter() - begin
            rate, typical = result.loop.num_episodes / result.loop.seconds, typical_rate(result)
            log.add(
                instance,
                seed=seed,
                makespan_s=result.loop.rows[-1].best_s,
                episodes=result.loop.num_episodes,
                seconds=result.loop.seconds,
                typical_episodes_per_s=typical,
                compile_seconds=result.loop.compile_seconds,
                whole_seconds=whole,
                threads=args.threads,
            )
            problem = instance.problem
            figures = [f"{result.loop.num_episodes:,}", f"{result.loop.seconds:.1f}", f"{rate:,.0f}", f"{typical:,.0f}"]
            figures.append(f"{result.loop.compile_seconds:.1f}")
            lines.append((instance.name, str(problem.num_tasks), str(problem.num_devices), *figures))
            print(*lines[-1], flush=True)
    print_table(lines)


def equal_time(args: argparse.Namespace) -> None:
    """Doppler, annealing and heuristics at the same wall time, on the paper's and MSR's graphs."""
    needs(args.policy, "annealing")
    params: dict[str, dict[str, Any]] = {
        "annealing": {"cold": args.cold},
        args.policy: {"start": args.start} if args.start else {},
    }
    log = Log("equal-time")
    lines = [("graph", "devices", args.policy, "annealing", "ratio", "seeds won+tied", "best heuristic", "below it")]
    for instance in _graphs(args):
        problem = instance.problem
        for policy in HEURISTICS:
            value, seconds = makespan(problem, policy)
            log.add(instance, policy=policy, seed=0, makespan_s=value, seconds=seconds)
        for seed in range(args.seeds):
            for policy in (args.policy, "annealing"):
                value, seconds = makespan(problem, policy, seed, args.time_limit, **params[policy])
                log.add(
                    instance,
                    policy=policy,
                    seed=seed,
                    makespan_s=value,
                    seconds=seconds,
                    time_limit_s=args.time_limit,
                    **params[policy],
                )
        name, family = instance.name, instance.family
        mine, theirs = (log.values(graph=name, family=family, policy=policy) for policy in (args.policy, "annealing"))
        best = min(HEURISTICS, key=lambda policy, name=name: log.median(graph=name, policy=policy))  # type: ignore[misc]
        heuristic, middle = log.median(graph=name, policy=best), statistics.median(mine)
        lines.append(
            (
                name,
                str(problem.num_devices),
                f"{middle:.6g}",
                f"{statistics.median(theirs):.6g}",
                marked(middle, statistics.median(theirs)),
                wins(mine, theirs),
                f"{best} {heuristic:.6g}",
                f"{1 - middle / heuristic:.1%}",
            )
        )
        print(*lines[-1], flush=True)
    print_table(lines)
    _verdicts(lines, 4)


def pure(args: argparse.Namespace) -> None:
    """The policy alone, nothing polished, at as many episodes as annealing has evaluations; and its ablations."""
    log = Log("pure")
    lines = [("graph", "annealing", *ABLATIONS, "ratio", "seeds won+tied", "both <= each alone")]
    for instance in paper(args.graphs):
        problem, name = instance.problem, instance.name
        for seed in range(args.seeds):
            value, seconds = makespan(problem, "annealing", seed, 3600.0, max_evaluations=args.episodes)
            log.add(instance, policy="annealing", seed=seed, makespan_s=value, seconds=seconds)
            for ablation, settings in ABLATIONS.items():
                result = trained(instance, TrainingSpec(seed, args.episodes, None, "scratch", args.threads), **settings)
                log.add(
                    instance,
                    policy=ablation,
                    seed=seed,
                    makespan_s=found(problem, result, args.episodes),
                    seconds=result.loop.seconds,
                    episodes=result.loop.num_episodes,
                )
        middle = {policy: log.median(graph=name, policy=policy) for policy in ("annealing", *ABLATIONS)}
        alone = all(middle["both"] <= middle[other] * (1 + SAME) for other in ABLATIONS)
        mine, theirs = (log.values(graph=name, policy=policy) for policy in ("both", "annealing"))
        figures = [f"{value:.6g}" for value in middle.values()]
        ratio = marked(middle["both"], middle["annealing"])
        lines.append((name, *figures, ratio, wins(mine, theirs), "yes" if alone else "NO"))
        print(*lines[-1], flush=True)
    print_table(lines)
    _verdicts(lines, 5)


def ablations(args: argparse.Namespace) -> None:
    """Every variant of the policy at as many episodes: best plan, mean of the last fifth, episodes per second."""
    from research.doppler.ablations import ABLATIONS as VARIANTS

    log = Log("ablations")
    lines = [("graph", "variant", f"best of {args.episodes:,}", "mean of last fifth", "episodes/s")]
    chosen = [name for name in VARIANTS if not args.variants or name in args.variants.split(",")]
    for instance in paper(args.graphs):
        for variant in chosen:
            for seed in range(args.seeds):
                spec = TrainingSpec(seed, args.episodes, None, "scratch", args.threads)
                result = trained(instance, spec, **VARIANTS[variant])
                late = [row.mean_s for row in result.loop.rows if row.episode > 0.8 * args.episodes]
                log.add(
                    instance,
                    policy=variant,
                    seed=seed,
                    makespan_s=found(instance.problem, result, result.loop.num_episodes),
                    mean_s=statistics.mean(late),
                    seconds=result.loop.seconds,
                    episodes=result.loop.num_episodes,
                )
            rows = [row for row in log.rows if row["graph"] == instance.name and row["policy"] == variant]
            mean, rate = (statistics.median(row["mean_s"] for row in rows), rows[-1]["episodes"] / rows[-1]["seconds"])
            best = log.median(graph=instance.name, policy=variant)
            lines.append((instance.name, variant, f"{best:.6g}", f"{mean:.6g}", f"{rate:,.1f}"))
            print(*lines[-1], flush=True)
    print_table(lines)


def zero(args: argparse.Namespace) -> None:
    """Without training, on families that nobody trained on, against the best of all list planners.

    ``room`` is what some seconds of search find below the best list planner: where that is nothing, nobody gains much.
    ``bound`` is what a proven lower bound leaves at most: nobody gains more.
    """
    needs("doppler-zero")
    log = Log("zero")
    lines = [("family", "graph", "tasks", "doppler-zero", "best list", "below it", "room", "bound", "ms")]
    gains: dict[str, list[tuple[float, float, float]]] = {}
    for instance in held_out(args.graphs, args.max_tasks, args.every, args.cluster):
        problem = instance.problem
        values = {}
        for policy in LISTS:
            if planner_named(policy).supports(problem) is None:
                values[policy], seconds = makespan(problem, policy)
                log.add(instance, policy=policy, seed=0, makespan_s=values[policy], seconds=seconds)
        searched, seconds = makespan(problem, "tabu", args.seed, args.room)
        log.add(instance, policy="tabu", seed=args.seed, makespan_s=searched, seconds=seconds)
        value, seconds = makespan(problem, "doppler-zero", args.seed)
        log.add(instance, policy="doppler-zero", seed=args.seed, makespan_s=value, seconds=seconds)
        best = min(values, key=lambda policy, values=values: values[policy])  # type: ignore[misc]
        made = (value, min(value, searched), bound(problem).value_s)
        gain, room, most = (1 - one / values[best] for one in made)
        gains.setdefault(instance.family, []).append((gain, room, most))
        percent = (f"{gain:.2%}", f"{room:.2%}", f"{most:.2%}")
        tail = (f"{value:.6g}", f"{best} {values[best]:.6g}", *percent, f"{1e3 * seconds:.0f}")
        lines.append((instance.family, instance.name[:44], str(problem.num_tasks), *tail))
        print(*lines[-1], flush=True)
    print_table(lines)
    for family, rows in [*gains.items(), ("all", [row for values in gains.values() for row in values])]:
        shares, rooms, mosts = zip(*rows, strict=True)
        worse, wide = sum(gain < -SAME for gain in shares), sum(room >= 0.05 for room in rooms)
        print(
            f"{family}: {len(shares)} graphs, median {statistics.median(shares):.2%} below, worse on {worse};"
            f" room: median {statistics.median(rooms):.2%}, 5 % or more on {wide}, taken {taken(shares, rooms)};"
            f" bound: median {statistics.median(mosts):.2%}, 5 % or more on {sum(most >= 0.05 for most in mosts)}"
        )


def passenger(args: argparse.Namespace) -> None:
    """What the shipped policies are worth: their own plans against those of untrained ones, on unseen families.

    Own plans are those of the episodes alone, before polish and without list planners. How much sooner ``doppler`` has
    a plan with them: ``doppler_later.py``.
    """
    from stretto.graphs.doppler.generalist import load_policies
    from stretto.graphs.doppler.linear import untrained_policies
    from stretto.graphs.doppler.proposals import played

    log, policies = Log("passenger"), load_policies()
    fresh = [untrained_policies(seed, len(policies)) for seed in range(args.seeds)]
    ratios, list_ratios = [], []
    for instance in held_out(args.graphs, args.max_tasks, args.every):
        problem = instance.problem
        own = played(problem, policies).makespan_s
        untrained = [played(problem, one).makespan_s for one in fresh]
        lists = min(makespan(problem, name)[0] for name in LISTS if planner_named(name).supports(problem) is None)
        ratios.append(own / statistics.median(untrained))
        list_ratios.append(own / lists)
        log.add(instance, policy="generalist", makespan_s=own, untrained_s=untrained, best_list_s=lists)
        print(f"{instance.name[:50]:50} {ratios[-1]:.4f} of untrained, {own / lists:.4f} of the best list", flush=True)
    for name, values in (("untrained", ratios), ("the best of all lists", list_ratios)):
        low, high = bootstrap_median(values)
        print(f"{len(values)} graphs: own plan over {name}: median {statistics.median(values):.4f}", end=" ")
        print(f"[{low:.4f}, {high:.4f}], mean {statistics.geometric_mean(values):.4f};", end=" ")
        print(f"better on {sum(r < 1 - SAME for r in values)}, worse on {sum(r > 1 + SAME for r in values)}")


def bootstrap_median(values: Sequence[float], draws: int = 2000) -> tuple[float, float]:
    """Return the 95 % interval of a median, by resampling with a fixed seed."""
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(np.asarray(values), (draws, len(values))), axis=1)
    return float(np.quantile(medians, 0.025)), float(np.quantile(medians, 0.975))


def taken(shares: Sequence[float], rooms: Sequence[float]) -> str:
    """Return how much of the room was taken, over all graphs."""
    return f"{sum(shares) / sum(rooms):.0%}" if sum(rooms) > 0 else "-"


def transfer(args: argparse.Namespace) -> None:
    """Fine-tuning the generalist for a quarter of the episodes, against training from scratch."""
    log = Log("transfer")
    lines = [("graph", f"generalist {args.fine_tune:,}", f"scratch {args.episodes:,}", "ratio", "seeds won+tied")]
    for instance in paper(args.graphs):
        for seed in range(args.seeds):
            for start, episodes in (("generalist", args.fine_tune), ("scratch", args.episodes)):
                result = trained(instance, TrainingSpec(seed, episodes, start=start, num_threads=args.threads))
                log.add(
                    instance,
                    policy=start,
                    seed=seed,
                    makespan_s=found(instance.problem, result, episodes),
                    seconds=result.loop.seconds,
                    episodes=episodes,
                )
        mine, theirs = (log.values(graph=instance.name, policy=start) for start in ("generalist", "scratch"))
        middle, other = statistics.median(mine), statistics.median(theirs)
        lines.append((instance.name, f"{middle:.6g}", f"{other:.6g}", marked(middle, other), wins(mine, theirs)))
        print(*lines[-1], flush=True)
    print_table(lines)
    _verdicts(lines, 3)


def _graphs(args: argparse.Namespace) -> Iterable[Instance]:
    families: dict[str, Callable[[], Iterable[Instance]]] = {
        "paper": lambda: paper(args.graphs),
        "msr": lambda: msr(args.graphs, args.kind),
        "held-out": lambda: held_out(args.graphs, args.max_tasks, args.every),
        "generated": lambda: generated(args.graphs),
    }
    for family in args.families.split(","):
        if family not in families:
            sys.exit(f"{family!r} is not one of the families {', '.join(families)}")
        yield from families[family]()


def _verdicts(lines: Sequence[tuple[str, ...]], column: int) -> None:
    said = [line[column].split()[1] for line in lines[1:]]
    print(", ".join(f"{word}: {said.count(word)} of {len(said)}" for word in ("win", "tie", "LOSS")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    suites = parser.add_subparsers(dest="suite", required=True)
    several: dict[str, Any] = {"graphs": "", "seeds": 5}
    table: tuple[tuple[Callable[[argparse.Namespace], None], dict[str, Any]], ...] = (
        (speed, {"graphs": "=llama-layer", "seeds": 5, "time-limit": 20.0, "threads": 2}),
        (
            equal_time,
            several
            | {
                "time-limit": 60.0,
                "policy": "doppler",
                "kind": "cpu",
                "cold": Annealing.cold,
                "start": "",
                "families": "paper,msr",
                "every": 9,
                "max-tasks": 2000,
            },
        ),
        (pure, several | {"episodes": 8000, "threads": 2}),
        (ablations, {"graphs": "=chainmm,=llama-block", "seeds": 1, "episodes": 640, "variants": "", "threads": 2}),
        (zero, {"graphs": "", "seed": 0, "max-tasks": 20_000, "every": 1, "room": 3.0, "cluster": ""}),
        (passenger, {"graphs": "", "seeds": 3, "every": 3, "max-tasks": 1500}),
        (transfer, several | {"episodes": 8000, "fine-tune": 2000, "threads": 2}),
    )
    for run, options in table:
        suite = suites.add_parser(run.__name__.replace("_", "-"), help=(run.__doc__ or "").splitlines()[0])
        for option, value in options.items():
            suite.add_argument(f"--{option}", type=type(value), default=value)
        suite.set_defaults(run=run)
    args = parser.parse_args()
    try:
        args.run(args)
    except StrettoError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
