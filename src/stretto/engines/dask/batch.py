"""One graph under our control in Dask's scheduler: each task pinned, ranked and, where asked, held back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stretto.core.plan import Plan
from stretto.engines.dask.survey import Survey
from stretto.engines.dask.workers import Binding

#: No worker has this address, so Dask keeps a task that is restricted to it in the state ``no-worker``.
NOWHERE = frozenset({"stretto://held-back"})
#: States in which Dask has not yet sent a task to a worker.
UNSENT = ("released", "waiting", "no-worker", "queued")


class Batch:
    """The tasks of one graph, by index; ``states`` are the scheduler's own records.

    Attributes
    ----------
    num_left
        Tasks that have not ended.
    allowed
        What the user had restricted each task to before we did; Dask gets it back when the task has ended.
    """

    def __init__(self, states: list[Any]) -> None:
        self.states = states
        self.num_left = len(states)
        self.index = {state.key: task for task, state in enumerate(states)}
        self.allowed = [
            (state.worker_restrictions, state.host_restrictions, state.loose_restrictions) for state in states
        ]

    def hold(self) -> None:
        """Let no task go until a plan says where."""
        for state in self.states:
            state.worker_restrictions, state.host_restrictions, state.loose_restrictions = NOWHERE, None, False

    def restore(self) -> None:
        """Give the tasks back as the user had them."""
        for state, allowed in zip(self.states, self.allowed, strict=True):
            state.worker_restrictions, state.host_restrictions, state.loose_restrictions = allowed

    def split_unsent(self, owner: Mapping[Any, Batch]) -> Batch:
        """Part with the tasks that Dask has not sent to a worker, and return them as a batch of their own."""
        left = [t for t, state in enumerate(self.states) if owner.get(state.key) is self and state.state in UNSENT]
        self.num_left -= len(left)
        batch = Batch([self.states[task] for task in left])
        batch.allowed = [self.allowed[task] for task in left]
        return batch

    def ended(self, key: Any) -> None:
        """Hand a task back to Dask: should its result be lost, Dask may compute it again wherever it likes."""
        task = self.index[key]
        state = self.states[task]
        state.worker_restrictions, state.host_restrictions, state.loose_restrictions = self.allowed[task]


def pin(survey: Survey, plan: Plan) -> list[tuple[Any, set[str]]]:
    """Restrict every task to its worker and give it the plan's rank there; return the tasks to be let go afterwards.

    Dask has already settled in which order it sends the tasks that can start now, and a worker starts the first that it
    gets. So only the one that the plan has first goes with this order; the others follow, and the worker ranks them.
    """
    binding = survey.binding
    places = [{binding.address(device)} for device in range(binding.cluster.num_devices)]
    chosen, ranks = plan.assignment.tolist(), plan.rank.tolist()
    roots: list[tuple[int, int, Any]] = []
    for task, state in enumerate(survey.states):
        place = places[chosen[task]]
        state.worker_restrictions = place
        state.host_restrictions = None
        state.loose_restrictions = False
        # The first two parts are the user's priority and the number of the graph: those stay above ours.
        state.priority = (*state.priority[:2], ranks[task])
        if all(needed.who_has for needed in state.dependencies):  # it can start now
            roots.append((ranks[task], chosen[task], state))
    return _defer(sorted(roots, key=lambda root: root[0]), binding, places)


def _defer(roots: list[tuple[int, int, Any]], binding: Binding, places: list[set[str]]) -> list[tuple[Any, set[str]]]:
    """Hold back all but the first of each worker, and return them with where they belong."""
    is_served: set[int] = set()
    later = []
    for _, device, state in roots:
        worker = int(binding.worker_of[device])
        if worker in is_served:
            state.worker_restrictions = NOWHERE
            later.append((state, places[device]))
        is_served.add(worker)
    return later
