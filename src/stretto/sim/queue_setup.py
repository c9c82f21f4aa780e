"""What a replay needs, made once from a trace and a machine; the kernels and the reference both read it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stretto.domain.csr import Floats, Ints
from stretto.domain.pool import Pool
from stretto.domain.pool_fit import pool_widths
from stretto.domain.trace import QueueArrays, Trace
from stretto.errors import InvalidInput
from stretto.kernels.queue_codes import NUM_DRAWS, PERFECT, PoolArrays, Rules


@dataclass(frozen=True, eq=False)
class Setup:
    """A replay that is ready to run.

    Attributes
    ----------
    trace
        The jobs that can run, the first submitted at zero.
    jobs
        The same as arrays; ``estimate`` is what policies begin with.
    limit
        What the user asked for: the wall limit, and the most that a prediction may say.
    draws
        Unit exponentials, one per job and interruption; empty where nothing is interrupted.
    """

    trace: Trace
    pools: tuple[Pool, ...]
    num_dropped: int
    rules: Rules
    jobs: QueueArrays
    limit: Floats  # [n]
    width: Ints  # [n, K]
    draws: Floats  # [n, NUM_DRAWS] or [0, 0]

    @property
    def is_plain(self) -> bool:
        """Whether this is one machine of fixed size, and jobs that only compete for its processors."""
        pool = self.pools[0]
        return (
            len(self.pools) == 1
            and not pool.is_elastic
            and pool.spot is None
            and pool.speed == 1.0
            and not len(self.jobs.child)
            and bool(np.array_equal(self.width[:, 0], self.jobs.procs))
        )

    def pool_arrays(self) -> PoolArrays:
        """Return the pools as kernels see them; a pool without a spot market has one price for ever."""
        pools = self.pools
        steps = [len(p.spot.time_s) if p.spot else 1 for p in pools]
        return PoolArrays(
            width=self.width,
            nodes=np.array([p.num_nodes for p in pools], dtype=np.int64),
            base=np.array([base_nodes(p) for p in pools], dtype=np.int64),
            procs_per_node=np.array([p.procs_per_node for p in pools], dtype=np.int64),
            speed=np.array([p.speed for p in pools]),
            provision=np.array([float(p.provision_s) for p in pools]),
            idle=np.array([float(p.idle_shutdown_s) for p in pools]),
            billing=np.array([float(p.billing_s) for p in pools]),
            checkpoint=np.array([p.spot.checkpoint_s if p.spot else np.inf for p in pools]),
            step_ptr=np.concatenate(([0], np.cumsum(steps))).astype(np.int64),
            step_time=_steps([p.spot.time_s if p.spot else [0.0] for p in pools]),
            step_price=_steps([p.spot.price_usd_per_hour if p.spot else [p.price_usd_per_hour] for p in pools]),
            step_hazard=_steps([p.spot.hazard_per_hour if p.spot else [0.0] for p in pools]),
            bid=np.array([p.spot.bid_usd_per_hour if p.spot else np.inf for p in pools]),
        )


def base_nodes(pool: Pool) -> int:
    """Return how many nodes of a pool are always up."""
    return pool.num_nodes if pool.min_nodes is None else pool.min_nodes


def _steps(series: list[Floats] | list[Floats | list[float]]) -> Floats:
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in series])


def prepare(trace: Trace, machine: int | tuple[Pool, ...], rules: Rules, seed: int) -> Setup:
    """Choose the jobs that can run and make their arrays."""
    if isinstance(machine, int):
        if machine < 1:
            raise InvalidInput(f"{machine} processors; a machine needs at least one", field="machine")
        pools: tuple[Pool, ...] = (Pool("machine", machine),)
    else:
        pools = tuple(machine)
        if not pools:
            raise InvalidInput("no pools", field="machine")
    part, num_dropped = _runnable(trace, pools, plain=isinstance(machine, int), kill=rules.kill)
    jobs = part.arrays()
    limit = jobs.estimate
    if rules.estimates == PERFECT:
        known = np.minimum(jobs.run, limit) if rules.kill else jobs.run
        jobs, limit = jobs._replace(estimate=known), np.maximum(limit, known)
    interrupted = any(p.spot is not None and bool(np.any(p.spot.hazard_per_hour > 0)) for p in pools)
    shape = (part.num_jobs, NUM_DRAWS) if interrupted else (0, 0)
    draws = np.random.default_rng(seed).standard_exponential(shape)
    return Setup(part, pools, num_dropped, rules, jobs, limit, pool_widths(part, pools), draws)


def _runnable(trace: Trace, pools: tuple[Pool, ...], *, plain: bool, kill: bool) -> tuple[Trace, int]:
    """Return the jobs that some pool can hold; on a plain machine also without those that never ran."""
    if plain and not kill:
        return trace.fitting(pools[0].num_procs)
    fits = np.any(pool_widths(trace, pools) >= 0, axis=1)
    if plain:
        fits &= trace.run_s > 0
    kept = np.flatnonzero(fits)
    if not len(kept):
        raise InvalidInput(f"no job of {trace.name!r} fits any pool", field="machine")
    part = trace.take(kept.astype(np.int32)).window(0, len(kept)) if len(kept) < trace.num_jobs else trace
    if part.submit_s[0] != 0:
        part = part.window(0, part.num_jobs)
    known = np.isfinite(part.estimate_s)
    if not bool(np.all(known)):
        part = replace(part, estimate_s=np.where(known, part.estimate_s, part.run_s))
    return part, trace.num_jobs - len(kept)
