"""Random small traces and machines on which times often coincide."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from stretto.catalog import BACKFILLS, ESTIMATES, POOL_RULES, STRATEGIES
from stretto.core.pool import Pool, Spot
from stretto.core.trace import Trace

SHORT_S = st.sampled_from([0, 1, 2, 3, 5, 8, 60, 90])


@st.composite
def traces(draw: st.DrawFn, *, max_procs: int = 6, exact: bool = False, plain: bool = False) -> Trace:
    """Up to 14 jobs within a few seconds; ``exact`` estimates, or ``plain`` jobs without other needs."""
    n = draw(st.integers(1, 14))
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5, 40]), min_size=n, max_size=n))
    run = draw(st.lists(SHORT_S, min_size=n, max_size=n))
    if plain:
        run = [max(1, r) for r in run]
    estimate = list(run)
    if not exact:
        estimate = [
            draw(st.sampled_from([r, r, r + 1, r + 3, 2 * r + 4, *([] if plain else [r // 2, 0])])) for r in run
        ]
    columns: dict[str, Any] = {"user": np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), np.int32)}
    submit = np.cumsum([0, *gaps[1:]]).astype(float)
    columns["deadline_s"] = submit + draw(st.lists(st.sampled_from([5.0, 20.0, np.inf]), min_size=n, max_size=n))
    if not plain:
        columns["num_gpus"] = np.array(
            draw(st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=n, max_size=n)), np.int32
        )
        pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=4))
        pairs = [(min(a, b), max(a, b)) for a, b in pairs if a != b]
        columns["parent"] = np.array([a for a, _ in pairs], np.int32)
        columns["child"] = np.array([b for _, b in pairs], np.int32)
    procs = draw(st.lists(st.integers(1, max_procs), min_size=n, max_size=n))
    return Trace.of(submit, run, procs, estimate, **columns)


@st.composite
def spots(draw: st.DrawFn) -> Spot:
    """A few price steps, some above the bid; the last is below it, so that no job waits for ever."""
    times = [0.0, *np.cumsum(draw(st.lists(st.sampled_from([2, 5, 9]), max_size=4))).tolist()]
    price = [*draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(times) - 1, max_size=len(times) - 1)), 1.0]
    hazard = draw(st.lists(st.sampled_from([0.0, 30.0, 600.0]), min_size=len(times), max_size=len(times)))
    return Spot(
        np.array(times),
        np.array(price),
        np.array(hazard),
        bid_usd_per_hour=draw(st.sampled_from([2.0, float("inf")])),
        checkpoint_s=draw(st.sampled_from([1.0, 2.5, float("inf")])),
    )


@st.composite
def pools(draw: st.DrawFn) -> tuple[Pool, ...]:
    """One to three pools, the first large enough for every job."""
    return tuple(draw(pool(k)) for k in range(draw(st.integers(1, 3))))


@st.composite
def pool(draw: st.DrawFn, k: int) -> Pool:
    per_node = draw(st.sampled_from([1, 2, 4]))
    nodes = draw(st.integers(1, 4)) if k else 8
    return Pool(
        f"pool-{k}",
        nodes,
        procs_per_node=per_node,
        gpus_per_node=draw(st.sampled_from([1, 2])) if k else 1,
        speed=draw(st.sampled_from([1.0, 1.0, 2.0, 0.75])),
        price_usd_per_hour=draw(st.sampled_from([0.0, 1.0, 2.5])),
        billing_s=draw(st.sampled_from([1.0, 60.0])),
        provision_s=draw(st.sampled_from([0.0, 2.0, 7.5])),
        min_nodes=draw(st.sampled_from([None, 0, 1])),
        idle_shutdown_s=draw(st.sampled_from([0.0, 3.0, float("inf")])),
        spot=draw(st.none() | spots()),
    )


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    """Any names of the catalog, with their parameters."""
    return {
        "strategy": draw(st.sampled_from(sorted(STRATEGIES))),
        "backfill": draw(st.sampled_from(sorted(set(BACKFILLS) - {"promise"}))),
        "estimates": draw(st.sampled_from(sorted(ESTIMATES))),
        "pool_rule": draw(st.sampled_from(sorted(POOL_RULES))),
        "kill": draw(st.booleans()),
        "tie": draw(st.sampled_from(["batch", "one-event"])),
        "slack": draw(st.sampled_from([0.0, 0.5, 2.0])),
        "quantile": draw(st.sampled_from([0.5, 0.9])),
        "wait_usd_per_hour": draw(st.sampled_from([0.0, 1.0, 50.0])),
    }
