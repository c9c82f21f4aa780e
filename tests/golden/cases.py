"""What the golden record holds: command lines, by section, whose JSON must not change.

Everything goes through the command line, so that a case outlives any move of modules below it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from stretto import catalog
from stretto.registry import lookup

#: Evaluations in place of seconds, so that searches repeat.
EVALUATIONS = 400

#: Twenty graphs and clusters: shapes, kinds, speeds, links and prices that differ.
INSTANCES = (
    ("workload:random-dag?num_tasks=30&seed=1", "cpu:4"),
    ("workload:random-dag?num_tasks=40&seed=2", "cpu:3x1.0,gpu:2x2.5@1GB/s"),
    ("workload:random-dag?num_tasks=25&seed=3", "cpu:1x0.5,cpu:1x2.0@10MB/s"),
    ("workload:erdos-renyi?num_tasks=30&seed=4", "cpu:2,gpu:2x5.0@125MB/s"),
    ("workload:series-parallel?num_tasks=40&seed=5", "cpu:6x1.0,cpu:2x3.0@125MB/s"),
    ("workload:cholesky?num_tiles=5", "cpu:4,gpu:2@12GB/s"),
    ("workload:lu?num_tiles=4", "cpu:2,gpu:1@8GB/s"),
    ("workload:qr?num_tiles=4", "cpu:4,gpu:2@12GB/s"),
    ("workload:fft?num_points=16", "cpu:3"),
    ("workload:gaussian-elimination?num_columns=6", "cpu:2x1.0,cpu:2x2.0@1GB/s"),
    ("workload:stencil?num_cells=6&num_steps=5", "cpu:3x1.0,gpu:1x3.0@500MB/s"),
    ("workload:wavefront?num_rows=5&num_columns=5", "cpu:4@1GB/s"),
    ("workload:fork-join?width=6&num_stages=3", "cpu:3,gpu:1x4.0@1GB/s"),
    ("workload:map-reduce?num_maps=8&num_reduces=4", "cpu:4@100MB/s"),
    ("workload:in-tree?depth=4", "cpu:3"),
    ("workload:out-tree?depth=4", "cpu:2x1.0,cpu:1x2.0"),
    ("workload:montage?num_images=6", "cpu:6,gpu:2@1GB/s"),
    ("workload:epigenomics?num_lanes=2", "cpu:4@1GB/s"),
    ("workload:cybershake?num_ruptures=3&num_variations=5", "cpu:3x1.0,cpu:3x2.0@1GB/s"),
    ("workload:transformer?num_shards=2&num_chunks=2", "gpu:4@16GB/s"),
)

#: Small enough for CP-SAT to prove its plan well before its time is up.
SMALL = ("workload:random-dag?num_tasks=7&seed=2", "cpu:2")

TRACES = (
    "trace:lublin?num_jobs=400&num_procs=64&load=0.9&seed=1",
    "trace:lublin?num_jobs=300&num_procs=128&load=1.1&seed=2",
)
LONG_TRACES = (
    "trace:lublin?num_jobs=3000&num_procs=64&load=0.95&seed=3",
    "trace:lublin?num_jobs=3000&num_procs=256&load=0.8&seed=4",
)
RACKS = ("two-nics", "small-rack")


@dataclass(frozen=True)
class Case:
    """One command line and the name that it has in the record."""

    name: str
    words: tuple[str, ...]


def plans() -> Iterator[Case]:
    """Every policy on every instance; those that cannot count evaluations, where they need no clock."""
    for policy in catalog.PLANNERS:
        counted = "max_evaluations" in _fields(policy)
        extra = ("-p", f"max_evaluations={EVALUATIONS}") if counted else ()
        if policy == "cp-sat":
            instances: tuple[tuple[str, str], ...] = (SMALL,)
        elif policy == "doppler" and not counted:
            instances = ()
        else:
            instances = INSTANCES
        for graph, cluster in instances:
            yield Case(f"plan {policy} {graph} {cluster}", ("plan", graph, "-c", cluster, "--policy", policy, *extra))


def schedules() -> Iterator[Case]:
    """HEFT's plans under every discipline and contention, the last instances with noise."""
    for number, (graph, _) in enumerate(INSTANCES):
        for discipline, contention in itertools.product(("sequence", "work-conserving"), ("none", "fifo", "fair")):
            words = ("--discipline", discipline, "--contention", contention)
            words += ("--noise", "0.2", "--seed", "1") if number >= 10 else ()
            yield Case(f"simulate {graph} {' '.join(words)}", ("simulate", f"@plan{number}", *words))


def bounds() -> Iterator[Case]:
    """The bound of every instance, and the exact one of the small instance."""
    for graph, cluster in INSTANCES:
        yield Case(f"bound {graph}", ("bound", graph, "-c", cluster))
    yield Case("bound exact", ("bound", SMALL[0], "-c", SMALL[1], "--exact"))


def replays() -> Iterator[Case]:
    """Every strategy with every backfill and estimate, the estimates beyond the user's on one trace."""
    backfills = [name for name in catalog.BACKFILLS if name != "promise"]  # held to its twin, start for start
    rules = itertools.product(catalog.STRATEGIES, backfills, catalog.ESTIMATES)
    for strategy, backfill, estimates in rules:
        for trace in TRACES if estimates == "user" else TRACES[:1]:
            words = ("replay", trace, "--strategy", strategy, "--backfill", backfill, "--estimates", estimates)
            yield Case(" ".join(words), (*words, "--no-log"))


def selectors() -> Iterator[Case]:
    """Replays of the strategies that choose among others."""
    for strategy, trace in itertools.product(catalog.SELECTORS, LONG_TRACES):
        yield Case(f"replay {trace} {strategy}", ("replay", trace, "--strategy", strategy, "--no-log"))


def racks() -> Iterator[Case]:
    """Episodes by every rule; the learned scheduler where weights are shipped for the case."""
    for rack, by in itertools.product(RACKS, catalog.DISPATCHERS):
        if by == "symphony" and rack != "small-rack":
            continue
        for stream in ("0", "3"):
            yield Case(f"rack {rack} {by} {stream}", ("rack", rack, "--by", by, "--stream", stream, "--no-log"))


def commands() -> Iterator[Case]:
    """JSON of the other commands that compute something and need no engine."""
    graph, cluster = INSTANCES[1]
    yield Case("show graph", ("show", graph))
    yield Case("show cluster", ("show", cluster))
    yield Case("compare policies", ("compare", graph, "-c", cluster, "--policies", "heft,peft,etf"))
    yield Case("compare strategies", ("compare", TRACES[0], "--strategies", "fcfs,sjf,saf"))
    windows = ("--windows", "3", "--window-size", "100")
    yield Case("compare windows", ("compare", TRACES[0], "--strategies", "fcfs,sjf", *windows))
    yield Case("plan pools", ("plan", graph, "--pools", "own:8*4,cloud:0-16*4@0.40~90s", "--deadline", "2h"))
    yield Case("explain", ("explain", LONG_TRACES[0], "--strategy", "mars", "--job", "1500"))
    for kind in ("policies", "formats", "workloads", "strategies", "backfills", "estimates", "pool-rules", "traces"):
        yield Case(f"list {kind}", ("list", kind))


def all_cases() -> list[Case]:
    """Return every case of the record, in a fixed order."""
    sections = (plans, schedules, bounds, replays, selectors, racks, commands)
    return [case for section in sections for case in section()]


def _fields(policy: str) -> set[str]:
    found = lookup("policy", policy, catalog.PLANNERS)
    return {item.name for item in dataclasses.fields(found)}
