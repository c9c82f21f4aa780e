"""What a replay passes over in a trace, in words: jobs that cannot run, with the reason, and partitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stretto.core.pool import Pool
from stretto.core.trace import Trace

#: Names of partitions that are listed.
_MOST_NAMES = 5


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
    hint = "which this machine description lacks (--pools can describe them, such as own:16*32g4)"
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
        "partitions are not modelled: all jobs are replayed in one queue"
    )
