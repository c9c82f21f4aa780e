"""What limits the jobs of a trace on a site: arrays with a limit, and the limits of QOS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.request import JobRequest, components_of
from stretto.core.site import Site
from stretto.core.site_policy import Qos
from stretto.core.trace import UNKNOWN, Trace
from stretto.queues.nodes.kernels.arrays import Longs

#: Whose jobs a limit of a QOS counts together: those of a user, of an account, or all.
_SCOPES = ("_per_user", "_per_account", "")
_COUNTED = ("jobs", "cpus", "gpus")


@dataclass(frozen=True, eq=False)
class LimitTable:
    """Which limits count which jobs, and with how much.

    Attributes
    ----------
    ptr, of, amount
        Job *j* adds ``amount[i]`` to limit ``of[i]`` for *i* from ``ptr[j]`` to ``ptr[j + 1]`` while it runs.
    most
        The most of each limit.
    words
        Each limit of a QOS in words; empty for arrays.
    """

    ptr: Longs  # [n+1]
    of: Longs
    amount: Longs
    most: Longs
    words: tuple[str, ...]

    def together(self, kind: Ints) -> list[list[int]]:
        """Return the kinds that each limit counts together."""
        job = np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))
        pairs = np.unique(np.stack([self.of, kind[job].astype(np.int64)], axis=1), axis=0)
        bounds = np.searchsorted(pairs[:, 0], np.arange(len(self.most) + 1))
        groups = [tuple(pairs[bounds[i] : bounds[i + 1], 1].tolist()) for i in range(len(self.most))]
        return [list(group) for group in dict.fromkeys(groups) if len(group) > 1]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Jobs that one limit counts, and what each adds."""

    job: NDArray[np.intp]
    amount: Longs
    most: int
    words: str


def qos_of_jobs(trace: Trace, site: Site) -> list[tuple[Qos, NDArray[np.intp]]]:
    """Return the QOS of the site that jobs name, with their jobs."""
    if trace.qos is None or not site.policy.qos:
        return []
    names = trace.meta.get("qos_names", ())
    known = {one.name: one for one in site.policy.qos}
    found = []
    for number in np.unique(trace.qos[trace.qos >= 0]).tolist():
        name = str(names[number]) if number < len(names) else str(number)
        if name in known:
            found.append((known[name], np.flatnonzero(trace.qos == number)))
    return found


def refused(
    trace: Trace, site: Site, request: Ints, requests: tuple[JobRequest, ...], limit: Floats
) -> dict[str, Ints]:
    """Return the jobs that a QOS never lets run, by reason."""
    found: dict[str, Ints] = {}
    amounts = _amounts(request, requests)
    for qos, jobs in qos_of_jobs(trace, site):
        left = jobs
        for reason, is_over in _overruns(qos, jobs, limit, amounts):
            caught = np.intersect1d(left, jobs[is_over])
            left = np.setdiff1d(left, caught)
            if len(caught):
                found[reason] = caught.astype(np.int32)
    return found


def _overruns(
    qos: Qos, jobs: NDArray[np.intp], limit: Floats, amounts: dict[str, Longs]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield what a QOS allows one job at most, and which jobs ask for more."""
    yield f"has a time limit above the {qos.max_time_s:g} s of QOS {qos.name!r}", limit[jobs] > qos.max_time_s
    for what in ("cpus", "gpus"):
        for scope in ("_per_job", *_SCOPES):
            most = getattr(qos, f"max_{what}{scope}")
            if most is not None:
                yield f"asks for more {what} than the {most:,} that QOS {qos.name!r} allows", amounts[what][jobs] > most
    for scope in _SCOPES:
        most = getattr(qos, f"max_jobs{scope}")
        if most == 0:
            yield f"has QOS {qos.name!r}, which lets no job run", np.ones(len(jobs), np.bool_)


def _amounts(request: Ints, requests: tuple[JobRequest, ...]) -> dict[str, Longs]:
    """Return the processors and GPUs that each job counts with; GPUs per node count on as few nodes as it allows."""
    cpus = np.array([sum(part.num_cpus for part in components_of(one)) for one in requests], np.int64)
    gpus = np.array(
        [
            sum(
                part.num_tasks * sum(part.gpus_per_task.values()) + part.min_nodes * sum(part.gpus_per_node.values())
                for part in components_of(one)
            )
            for one in requests
        ],
        np.int64,
    )
    return {"jobs": np.ones(len(request), np.int64), "cpus": cpus[request], "gpus": gpus[request]}


def limits_of(trace: Trace, site: Site) -> LimitTable:
    """Return the limits of arrays and of QOS that count the jobs of a prepared trace.

    Jobs whose user or account is not known are not counted by limits per user or account.
    """
    rows = [*_of_arrays(trace), *_of_qos(trace, site)]
    n = trace.num_jobs
    job = np.concatenate([np.zeros(0, np.intp), *(row.job for row in rows)])
    number = np.repeat(np.arange(len(rows)), [len(row.job) for row in rows])
    amount = np.concatenate([np.zeros(0, np.int64), *(row.amount for row in rows)])
    order = np.argsort(job, kind="stable")
    ptr = np.concatenate(([0], np.cumsum(np.bincount(job, minlength=n)))).astype(np.int64)
    most = np.array([row.most for row in rows] or [0], np.int64)
    words = tuple(row.words for row in rows) or ("",)
    return LimitTable(ptr, number[order].astype(np.int64), amount[order].astype(np.int64), most, words)


def _of_arrays(trace: Trace) -> Iterator[_Rows]:
    if trace.limit_group is None:
        return
    for group, most in enumerate(trace.group_limits):
        jobs = np.flatnonzero(trace.limit_group == group)
        yield _Rows(jobs, np.ones(len(jobs), np.int64), most, "")


def _of_qos(trace: Trace, site: Site) -> Iterator[_Rows]:
    found = qos_of_jobs(trace, site)
    if not found or trace.request is None:
        return
    amounts = _amounts(trace.request, trace.requests)
    people = {"_per_user": trace.user, "_per_account": trace.account}
    for qos, jobs in found:
        for what in _COUNTED:
            for scope in _SCOPES:
                most = getattr(qos, f"max_{what}{scope}")
                if most is None:
                    continue
                words = f"QOS {qos.name!r} allows at most {most:,} {what}{scope.replace('_', ' ')} at once"
                for part in _split(jobs, people[scope]) if scope else [jobs]:
                    adds = part[amounts[what][part] > 0]
                    if len(adds):
                        yield _Rows(adds, amounts[what][adds], most, words)


def _split(jobs: NDArray[np.intp], owner: Ints | None) -> list[NDArray[np.intp]]:
    """Return the jobs of each owner."""
    if owner is None:
        return []
    known = jobs[owner[jobs] != UNKNOWN]
    numbers, index = np.unique(owner[known], return_inverse=True)
    return np.split(known[np.argsort(index, kind="stable")], np.cumsum(np.bincount(index))[:-1]) if len(numbers) else []


def limit_notes(trace: Trace, site: Site) -> tuple[str, ...]:
    """Say which limits of QOS are not applied: those on submissions, for the jobs of a log were accepted."""
    names = [
        qos.name
        for qos, _ in qos_of_jobs(trace, site)
        if qos.max_submitted_per_user is not None or qos.max_submitted is not None
    ]
    if not names:
        return ()
    return (f"limits on submitted jobs (QOS {', '.join(names)}) are not applied: the jobs of the trace were accepted",)
