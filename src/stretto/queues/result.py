"""What happened to the jobs of a trace on a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.pool import Pool
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.queues.metrics import QueueMetrics

#: Is told how many jobs of how many have arrived; False stops the replay there.
Watch = Callable[[int, int], bool]


@dataclass(frozen=True, eq=False)
class QueueResult:
    """A replay.

    Attributes
    ----------
    trace
        The jobs that were replayed, the first submitted at zero, with the estimates that were used.
    start_s, end_s
        Of the attempt that ended the job.
    ready_s
        When the job could first have started: submitted, and its parents ended.
    pool
        Index of the pool in which it ended.
    cost_usd, billed_node_s
        Per pool.
    due_s
        Promised latest starts, inf = none; None where nothing was promised. A job that was interrupted is promised
        another one each time: this is the last.
    margin_s
        In pools, the least time between a start of each job and its promise, over all attempts; None elsewhere.
    num_dropped
        Jobs of the given trace that fit nowhere, or never ran, and were left out.
    spec
        The rules, by name and value.
    notes
        What was left out or assumed, in sentences: jobs, with the reason, and partitions, which only replays on a
        site model.
    site
        The site of a replay on nodes; its processors are one pool in ``pools``. None = a plain machine, or pools.
    shift_s
        When the first job was submitted in the given trace; times of the site's reservations count from there.
    place_ptr, node, tasks
        Job *j* ran on the nodes ``site.nodes[i]`` for *i* in ``node[place_ptr[j]:place_ptr[j + 1]]``, with so many
        tasks on each; the components of a heterogeneous job stand one after the other. None without a site.
    partition
        The number of the site's partition that each entry of ``node`` was taken in.
    """

    trace: Trace
    pools: tuple[Pool, ...]
    start_s: Floats  # [n]
    end_s: Floats  # [n]
    ready_s: Floats  # [n]
    pool: Ints  # [n]
    is_killed: NDArray[np.bool_]  # [n]
    num_interruptions: Ints  # [n]
    cost_usd: Floats  # [K]
    billed_node_s: Floats  # [K]
    num_dropped: int = 0
    due_s: Floats | None = None  # [n]
    margin_s: Floats | None = None  # [n]
    spec: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    site: Site | None = None
    shift_s: float = 0.0
    place_ptr: NDArray[np.int64] | None = None  # [n+1]
    node: Ints | None = None
    tasks: Ints | None = None
    partition: Ints | None = None

    def nodes_of(self, job: int) -> list[str]:
        """Return the names of the nodes that a job ran on, each once, in the order in which they were chosen."""
        if self.site is None or self.place_ptr is None or self.node is None:
            raise InvalidInput("the replay was not on a site: it does not know nodes", field="machine")
        places = self.node[self.place_ptr[job] : self.place_ptr[job + 1]].tolist()
        return list(dict.fromkeys(self.site.nodes[i].name for i in places))

    @cached_property
    def metrics(self) -> QueueMetrics:
        """Waits, slowdowns, utilization, fairness and cost."""
        from stretto.queues.metrics import measure  # which imports this module

        return measure(self)

    @cached_property
    def wait_s(self) -> Floats:
        """From when a job could have started to the start of the attempt that ended it."""
        return self.start_s - self.ready_s

    @cached_property
    def run_s(self) -> Floats:
        """Length of the attempt that ended each job."""
        return self.end_s - self.start_s

    @cached_property
    def flow_s(self) -> Floats:
        """From submission to the end."""
        return self.end_s - self.trace.submit_s

    @property
    def makespan_s(self) -> float:
        return float(self.end_s.max() - self.trace.submit_s[0])


def plain_result(
    trace: Trace,
    num_procs: int,
    start_s: Floats,
    num_dropped: int,
    due_s: Floats | None,
    spec: Mapping[str, Any],
    notes: tuple[str, ...],
) -> QueueResult:
    """Return a replay on one plain machine, of which the starts say everything."""
    n = trace.num_jobs
    end = start_s + trace.run_s
    return QueueResult(
        trace=trace,
        pools=(Pool("machine", num_procs),),
        start_s=start_s,
        end_s=end,
        ready_s=trace.submit_s,
        pool=np.zeros(n, np.int32),
        is_killed=np.zeros(n, np.bool_),
        num_interruptions=np.zeros(n, np.int32),
        cost_usd=np.zeros(1),
        billed_node_s=np.array([float(np.ceil(end.max())) * num_procs]),
        num_dropped=num_dropped,
        due_s=due_s,
        spec=spec,
        notes=notes,
    )
