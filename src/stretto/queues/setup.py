"""What a replay needs, made once from a trace and a machine, and what it leaves out of the trace, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.pool import MAX_NODES, Pool
from stretto.core.pool_fit import pool_widths, runnable
from stretto.core.site import Site
from stretto.core.trace import QueueArrays, Trace
from stretto.errors import InvalidInput
from stretto.queues.kernels.codes import (
    LAST_TWO,
    MULTIFACTOR,
    NUM_DRAWS,
    PERFECT,
    POOL_FACTS,
    STEP,
    PoolArrays,
    RuleCodes,
)

#: Names of partitions that are listed in a note.
_MOST_NAMES = 5


@dataclass(frozen=True, eq=False)
class ReplaySetup:
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
    notes
        What is passed over, as ``QueueResult`` has it.
    slack_s
        Of backfill ``promise``, where it differs by more than the estimate; None = as the rules say.
    """

    trace: Trace
    pools: tuple[Pool, ...]
    num_dropped: int
    rules: RuleCodes
    jobs: QueueArrays
    limit: Floats  # [n]
    width: Ints  # [n, K]
    draws: Floats  # [n, NUM_DRAWS] or [0, 0]
    notes: tuple[str, ...] = ()
    slack_s: Floats | None = None  # [n]

    @property
    def is_plain(self) -> bool:
        """Whether this is one machine of fixed size, and jobs that only compete for its processors."""
        return self.is_one_machine and not len(self.jobs.child)

    @property
    def is_one_machine(self) -> bool:
        """Whether this is one machine of fixed size, and jobs that need nothing but processors."""
        pool = self.pools[0]
        return (
            len(self.pools) == 1
            and not pool.is_elastic
            and pool.spot is None
            and pool.speed == 1.0
            and bool(np.array_equal(self.width[:, 0], self.jobs.procs))
        )

    def pool_arrays(self) -> PoolArrays:
        """Return the pools as kernels see them; a pool without a spot market has one price for ever."""
        facts = np.zeros(len(self.pools), POOL_FACTS)
        steps = [_steps(pool) for pool in self.pools]
        last = np.cumsum([len(part) for part in steps])
        for k, pool in enumerate(self.pools):
            spot = pool.spot
            facts[k] = (
                pool.num_nodes,
                base_nodes(pool),
                pool.procs_per_node,
                last[k] - len(steps[k]),
                last[k],
                pool.speed,
                pool.provision_s,
                pool.idle_shutdown_s,
                pool.billing_s,
                spot.checkpoint_s if spot is not None else np.inf,
                spot.bid_usd_per_hour if spot is not None else np.inf,
            )
        return PoolArrays(self.width, facts, np.concatenate(steps))


def base_nodes(pool: Pool) -> int:
    """Return how many nodes of a pool are always up."""
    return pool.num_nodes if pool.min_nodes is None else pool.min_nodes


def _steps(pool: Pool) -> NDArray[np.void]:
    """Return prices and hazards over time; without a spot market, one price for ever."""
    spot = pool.spot
    part = np.zeros(1 if spot is None else len(spot.time_s), STEP)
    part["price"] = pool.price_usd_per_hour if spot is None else spot.price_usd_per_hour
    if spot is not None:
        part["time"], part["hazard"] = spot.time_s, spot.hazard_per_hour
    return part


def prepare(trace: Trace, machine: int | tuple[Pool, ...], rules: RuleCodes, seed: int) -> ReplaySetup:
    """Choose the jobs that can run and make their arrays."""
    if isinstance(machine, int):
        if machine < 1:
            raise InvalidInput(f"{machine} processors; a machine needs at least one", field="machine")
        if machine > MAX_NODES:
            raise InvalidInput(f"{machine} processors; a machine has at most {MAX_NODES:,}", field="machine")
        pools: tuple[Pool, ...] = (Pool("machine", machine),)
    else:
        pools = tuple(machine)
        if not pools:
            raise InvalidInput("no pools", field="machine")
        for pool in pools:
            if pool.minimum_s is not None:
                what = "a minimum is kept by stretto plan alone; a replay bills by billing: leave minimum out"
                raise InvalidInput(what, field=f"pool {pool.name}")
    if trace.num_jobs == 0:
        raise InvalidInput(f"no jobs in {trace.name!r}", field="trace")
    fits = runnable(trace, machine)
    notes = notes_of(trace, machine, fits)
    if not np.any(fits):
        total = sum(pool.num_procs for pool in pools)
        raise InvalidInput(f"no job of {trace.name!r} can run on these {total:,} processors: {'; '.join(notes)}")
    part = _prepared(trace, fits, plain=isinstance(machine, int), kill=rules.kill)
    width = pool_widths(part, pools)
    jobs = _arrays(part, with_users=rules.strategy == MULTIFACTOR or rules.estimates >= LAST_TWO)
    limit = jobs.estimate
    if rules.estimates == PERFECT:
        known = np.minimum(jobs.run, limit) if rules.kill else jobs.run
        jobs, limit = jobs._replace(estimate=known), np.maximum(limit, known)
    interrupted = any(p.spot is not None and bool(np.any(p.spot.hazard_per_hour > 0)) for p in pools)
    shape = (part.num_jobs, NUM_DRAWS) if interrupted else (0, 0)
    draws = np.random.default_rng(seed).standard_exponential(shape)
    return ReplaySetup(part, pools, trace.num_jobs - part.num_jobs, rules, jobs, limit, width, draws, notes)


def _prepared(trace: Trace, fits: NDArray[np.bool_], *, plain: bool, kill: bool) -> Trace:
    """Return the jobs that fit, with estimates, the first submitted at zero."""
    part = _lean(trace)
    if not np.all(fits):
        part = part.keep(fits)
    known = np.isfinite(part.estimate_s)
    if plain:  # no user means zero
        known &= part.estimate_s > 0
    estimate = np.where(known, part.estimate_s, part.run_s)
    if plain and not kill:  # as ``Trace.fitting``: an earlier kill would be in the recorded run time
        np.maximum(estimate, part.run_s, out=estimate)
    origin = float(part.submit_s[0])
    deadline = None if part.deadline_s is None else part.deadline_s - origin
    return replace(part, submit_s=part.submit_s - origin, deadline_s=deadline, estimate_s=estimate)


def _lean(trace: Trace) -> Trace:
    """Return a trace without the columns that no replay reads; copying them takes longer than replaying."""
    return replace(trace, group=None, queue=None, partition=None, status=None, wait_s=None)


def _arrays(trace: Trace, *, with_users: bool) -> QueueArrays:
    """Return what the kernels read; numbering users takes time, and most rules do not ask who they are."""
    nobody = trace if with_users else replace(trace, user=None)
    if trace.child is not None and len(trace.child):
        return nobody.arrays()
    n = trace.num_jobs
    none = np.zeros(0, dtype=np.int32)
    user = np.unique(trace.user, return_inverse=True)[1] if with_users and trace.user is not None else np.zeros(n)
    return QueueArrays(
        submit=trace.submit_s,
        run=trace.run_s,
        estimate=trace.estimate_s,
        procs=trace.num_procs,
        user=user.astype(np.int32),
        deadline=trace.deadline_s if trace.deadline_s is not None else np.full(n, np.inf),
        gpus=none,
        memory=np.zeros(0),
        num_parents=np.zeros(n, dtype=np.int32),
        child_ptr=np.zeros(n + 1, dtype=np.int32),
        child=none,
    )


def notes_on(trace: Trace, machine: int | Sequence[Pool] | Site) -> tuple[str, ...]:
    """Return what a replay of a trace on a machine leaves out or assumes, one sentence each."""
    if isinstance(machine, Site):
        from stretto.queues.nodes.setup import prepare_nodes

        return prepare_nodes(trace, machine).notes
    return notes_of(trace, machine, runnable(trace, machine))


def replayed(trace: Trace, machine: int | Sequence[Pool] | Site) -> NDArray[np.bool_]:
    """Say which jobs of a trace a replay on a machine has; [n]."""
    if isinstance(machine, Site):
        from stretto.queues.nodes.setup import prepare_nodes

        kept: NDArray[np.bool_] = prepare_nodes(trace, machine).kept
        return kept
    return runnable(trace, machine)


def procs_of(machine: int | Sequence[Pool] | Site) -> int:
    """Return the processors of a machine."""
    if isinstance(machine, Site):
        return machine.num_cpus
    return machine if isinstance(machine, int) else sum(pool.num_procs for pool in machine)


def notes_of(trace: Trace, machine: int | Sequence[Pool], kept: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return one sentence per thing that is not as the trace says.

    Parameters
    ----------
    kept
        Which jobs are replayed; [n].
    """
    partitions = partition_note(trace)
    return (*why_left_out(trace, machine, kept), *([] if partitions is None else [partitions]))


def why_left_out(trace: Trace, machine: int | Sequence[Pool], kept: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return how many jobs are left out for which reason; each job is counted once."""
    reasons = _of_machine(trace, machine) if isinstance(machine, int) else _of_pools(trace, tuple(machine))
    open_jobs = ~kept
    notes = []
    for applies, one, many in reasons:
        count = int(np.count_nonzero(open_jobs & applies))
        open_jobs &= ~applies
        if count:
            notes.append(f"{count:,} {one if count == 1 else many}: left out")
    return tuple(notes)


_Reason = tuple[NDArray[np.bool_], str, str]


def _of_machine(trace: Trace, num_procs: int) -> list[_Reason]:
    hint = "which this machine description lacks (--site or --pools can describe them)"
    wide = f"more than the {num_procs:,} processors of the machine (the widest: {int(trace.num_procs.max()):,})"
    return [
        (trace.run_s <= 0, "job never ran", "jobs never ran"),
        (_gpus(trace) > 0, f"job asks for GPUs, {hint}", f"jobs ask for GPUs, {hint}"),
        (trace.num_procs > num_procs, f"job asks for {wide}", f"jobs ask for {wide}"),
    ]


def _of_pools(trace: Trace, pools: tuple[Pool, ...]) -> list[_Reason]:
    most = max(pool.num_procs for pool in pools)
    wide = f"more than the {most:,} processors of the largest pool (the widest: {int(trace.num_procs.max()):,})"
    gpus = max(pool.gpus_per_node * pool.num_nodes for pool in pools)
    memory = max(pool.memory_bytes_per_node * pool.num_nodes for pool in pools)
    has = f"more GPUs than the {gpus:,} that a pool has" if gpus else "GPUs, which no pool has"
    needed = np.zeros(trace.num_jobs) if trace.memory_bytes is None else np.nan_to_num(trace.memory_bytes)
    rest = "more processors, GPUs and memory together than any pool has"
    return [
        (trace.num_procs > most, f"job asks for {wide}", f"jobs ask for {wide}"),
        (_gpus(trace) > gpus, f"job asks for {has}", f"jobs ask for {has}"),
        (needed > memory, "job asks for more memory than any pool has", "jobs ask for more memory than any pool has"),
        (np.ones(trace.num_jobs, np.bool_), f"job asks for {rest}", f"jobs ask for {rest}"),
    ]


def _gpus(trace: Trace) -> NDArray[np.int32]:
    return np.zeros(trace.num_jobs, np.int32) if trace.num_gpus is None else trace.num_gpus


def partition_note(trace: Trace) -> str | None:
    """Return a sentence where jobs were submitted to several partitions, which a replay takes for one machine."""
    if trace.partition is None:
        return None
    numbers = np.unique(trace.partition[trace.partition >= 0])
    if len(numbers) < 2:
        return None
    names = trace.meta.get("partition_names", ())
    told = [str(names[number]) if number < len(names) else str(number) for number in numbers[:_MOST_NAMES].tolist()]
    more = f" and {len(numbers) - _MOST_NAMES:,} more" if len(numbers) > _MOST_NAMES else ""
    return (
        f"the trace has {len(numbers):,} partitions ({', '.join(told)}{more}); "
        "on one machine all jobs share one queue: give nodes and partitions with --site"
    )
