"""Whole logs, several times each: MARS, the look-ahead portfolio and the best fixed order on the same jobs.

Two replays that differ in one start may end far apart, so that a single one says little about a few percent. Seed 0
replays a log as it is; every other seed shakes it: each job is submitted up to five minutes later than recorded, but
not before its predecessor (after Tsafrir, Ouaknine and Feitelson, "Reducing performance evaluation sensitivity and
variability by input shaking", MASCOTS 2007), and the portfolio draws other scenarios. ``ratio`` is MARS over the
portfolio on the same jobs; the last lines have the medians of each log and in how many replays MARS was not worse.

With ``--recorded``, the log as it is for every seed: the portfolio alone draws, its scenarios.

With ``--generated``, in place of recorded logs: jobs of the Lublin-Feitelson model at these loads, every seed a log of
its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from queue_logs import find_logs, fixed_starts, judge, read_log

from stretto.core.trace import Trace
from stretto.queues.mars.replay import mars_replay
from stretto.queues.mars.run import SHARE
from stretto.queues.portfolio import Forecast, portfolio_replay
from stretto.queues.workloads.lublin import lublin

#: Sums of slowdowns that differ by less are the same.
SAME = 1e-6
#: By how much a submission is put off at most.
SHAKE_S = 300.0
#: Of generated logs, as of those that are among the recorded ones.
NUM_JOBS, NUM_PROCS = 10_000, 256


def portfolio(options: argparse.Namespace) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Yield one row per log and seed, then the medians of each log."""
    yield {}, ("log", "seed", "MARS", "portfolio", "ratio", "best fixed", "its", "MARS over it")
    medians = []
    for name, num_procs, draw in _sources(options):
        found = []
        drawn = None
        for seed in options.seeds:
            before, drawn = drawn, draw(seed)
            if drawn is not before:  # MARS and the fixed orders draw no random numbers
                trace, _ = drawn.fitting(num_procs)  # the first at zero, as in every replay
                jobs = trace.arrays()
                judged = slice(int(SHARE * trace.num_jobs), None)
                cost = {order: judge(jobs, start, judged) for order, start in fixed_starts(jobs, num_procs).items()}
                best = min(cost, key=lambda order, cost=cost: cost[order])  # type: ignore[misc]
                ours = judge(jobs, mars_replay(trace, num_procs).start_s, judged)
            replayed = portfolio_replay(trace, num_procs, forecast=Forecast(), seed=1 + seed)
            theirs = judge(jobs, replayed.start_s, judged)
            found.append((ours, theirs, cost[best]))
            row = {"instance": name, "seed": seed, "mars": ours, "portfolio": theirs, "best": best, "fixed": cost}
            figures = (f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.3f}", best, f"{cost[best]:.3f}")
            yield row, (name, str(seed), *figures, f"{ours / cost[best]:.3f}")
        ours, theirs, fixed = np.median(found, axis=0)
        held = sum(one[0] <= one[1] * (1.0 + SAME) for one in found)
        medians.append((name, ours, theirs, fixed, held, len(found)))
    for name, ours, theirs, fixed, held, count in medians:
        figures = (f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.3f}", f"{held} of {count} not worse")
        yield {}, (name, "median", *figures, f"{fixed:.3f}", f"{ours / fixed:.3f}")


def _sources(options: argparse.Namespace) -> Iterator[tuple[str, int, Callable[[int], Trace]]]:
    """Yield names, processors and what makes the jobs of a seed."""
    for load in options.generated:
        yield f"generated, load {load:g}", NUM_PROCS, lambda seed, load=load: lublin(NUM_JOBS, seed=seed, load=load)  # type: ignore[misc]
    for path in [] if options.generated else find_logs(options.data, options.logs):
        recorded, num_procs = read_log(path)

        def draw(seed: int, log: Trace = recorded) -> Trace:
            return shaken(log, 0 if options.recorded else seed)

        yield path.name.removesuffix(".swf.gz"), num_procs, draw


def shaken(trace: Trace, seed: int) -> Trace:
    """Return the jobs in their order, each submitted a little later; as they are for seed 0."""
    if seed == 0:
        return trace
    late = trace.submit_s + np.random.default_rng(seed).uniform(0.0, SHAKE_S, trace.num_jobs)
    return replace(trace, submit_s=np.maximum.accumulate(late))
