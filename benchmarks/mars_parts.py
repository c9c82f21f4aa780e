"""What beliefs and look-ahead are worth: the default order of MARS alone, and the portfolio, each with and without.

*known*: the default of MARS with true run times for user estimates, which nobody has; the gap is what better
forecasts could gain at most, by this order. *base*: the portfolio with the candidates of its base only, so that nothing
is looked ahead to. Seeds shake the log, as in ``mars_portfolio``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from mars_portfolio import shaken
from queue_logs import find_logs, judge, read_log

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.mars.candidates import default_net
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.kernels.run import run_mars
from stretto.queues.mars.run import SHARE
from stretto.queues.portfolio import kinds_of, portfolio_replay
from stretto.queues.strategies import MEMBERS, WITH_RESERVE

#: The candidates of the portfolio that are its base with other reserve shares.
BASE = tuple(name for name in MEMBERS if name.startswith(MEMBERS[0].partition(WITH_RESERVE)[0] + WITH_RESERVE))


def parts(options: argparse.Namespace) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Yield one row per log and seed."""
    yield {}, ("log", "seed", "default-order", "known", "base", "portfolio")
    for path in find_logs(options.data, options.logs):
        recorded, num_procs = read_log(path)
        judged = slice(int(SHARE * recorded.num_jobs), None)
        for seed in options.seeds:
            trace, _ = shaken(recorded, seed).fitting(num_procs)
            jobs = trace.arrays()
            known = jobs._replace(estimate=np.maximum(jobs.run, 1.0))
            start = {
                "default-order": _alone(jobs, num_procs),
                "known": _alone(known, num_procs),
                "base": portfolio_replay(trace, num_procs, strategies=BASE, seed=1 + seed).start_s,
                "portfolio": portfolio_replay(trace, num_procs, seed=1 + seed).start_s,
            }
            cost = {name: judge(jobs, one, judged) for name, one in start.items()}
            figures = tuple(f"{one:.2f}" for one in cost.values())
            yield {"instance": path.name, "seed": seed, **cost}, (path.name.split(".")[0], str(seed), *figures)


def _alone(jobs: QueueArrays, num_procs: int) -> Floats:
    start = np.full(len(jobs.submit), -1.0)
    run_mars(jobs, kinds_of(jobs), num_procs, default_net().net, shipped(), start)
    return start
