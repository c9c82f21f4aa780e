"""The dispatchers of real runs by name, and how one is attached to a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from stretto import catalog, registry
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher, GreedyDispatcher, LateDispatcher
from stretto.engines.driver.events import Event, Overruled
from stretto.engines.driver_engine import DriverEngine
from stretto.engines.engine import Engine, RunOptions, RunResult
from stretto.engines.host.dispatcher import HostDispatcher, Rule
from stretto.engines.work import Work
from stretto.errors import InvalidInput


@dataclass(frozen=True)
class RunDispatch:
    """A dispatcher by name.

    Attributes
    ----------
    kind
        ``host`` watches the machine; the others decide by the graph alone.
    rule
        Of a dispatcher that watches the machine.
    """

    name: str
    summary: str
    kind: Literal["host", "greedy", "late"]
    rule: Rule = "look-ahead"

    @property
    def watches_host(self) -> bool:
        return self.kind == "host"

    def make(self, learned: Mapping[str, Any] | None = None) -> Dispatcher:
        """Return a new dispatcher, which begins with what an earlier run has learned."""
        if self.kind == "host":
            return HostDispatcher(self.name, self.rule, learned)
        return GreedyDispatcher() if self.kind == "greedy" else LateDispatcher(num_queued=0)


# The names of these are in ``catalog.RUN_DISPATCHERS``.
SYMPHONY = RunDispatch(
    "symphony",
    "look-ahead with the load of the host and learned contention",
    "host",
)
MCT_BELIEF = RunDispatch(
    "mct-belief",
    "in order of the tasks, where each ends first by the load of the host and learned contention",
    "host",
    "earliest-completion",
)
HEFT_ONLINE = RunDispatch(
    "heft-online", "the longest path first, where it ends first by the stated durations; ignores the host", "late"
)
GREEDY = RunDispatch("greedy", "an idle device takes the ready task that it runs fastest; ignores the host", "greedy")


def run_dispatch(name: str) -> RunDispatch:
    """Return the dispatcher of this name; raise UnknownName."""
    found: RunDispatch = registry.lookup("run dispatcher", name, catalog.RUN_DISPATCHERS)
    return found


def new_dispatcher(name: str, problem: Problem, learned: Mapping[str, Any] | None = None) -> Dispatcher:
    """Return a dispatcher for a problem; raise InvalidInput where it cannot place this work."""
    named = run_dispatch(name)
    if named.watches_host and problem.packing is not None:
        raise InvalidInput(
            f"{name} gives a device one task at a time, and nodes pack several; describe the machine as devices,"
            " such as -c cpu:4, or use greedy or heft-online",
            field="dispatch",
        )
    return named.make(learned)


def run_dispatched(
    engine: Engine, problem: Problem, dispatcher: Dispatcher, work: Work, options: RunOptions
) -> RunResult:
    """Run some work whose tasks a dispatcher places while they run."""
    if not isinstance(engine, DriverEngine):
        raise InvalidInput(
            "this engine is given a whole plan and asks nobody while it runs; use local or dask", field="dispatch"
        )
    if isinstance(dispatcher, HostDispatcher) and not engine.is_on_this_host:
        raise InvalidInput(
            f"{dispatcher.name} reads the counters of this machine, and this engine runs tasks elsewhere; use the"
            " engine local, dask with a cluster of its own, or the dispatcher heft-online or greedy",
            field="dispatch",
        )
    with attached(dispatcher, problem, options) as how:
        found = engine.play(problem, dispatcher, work, how)
    notes = dispatcher.notes() if isinstance(dispatcher, HostDispatcher) else ()
    return replace(found, notes=(*found.notes, *notes))


@contextmanager
def attached(dispatcher: Dispatcher, problem: Problem, options: RunOptions) -> Iterator[RunOptions]:
    """Yield options of a run that tell a dispatcher what happens, and record when a fallback decides in its place."""
    if not isinstance(dispatcher, HostDispatcher):
        yield options
        return

    def tell(at_s: float, reason: str) -> None:
        if options.on_event is not None and reason:
            options.on_event(Overruled(at_s, dispatcher.name, f"greedy decides: {reason}"))

    def on_event(event: Event) -> None:
        dispatcher.on_event(event)
        if options.on_event is not None:
            options.on_event(event)

    dispatcher.on_fallback = tell
    dispatcher.begin(problem)
    try:
        yield replace(options, on_event=on_event, on_worker=dispatcher.on_worker)
    finally:
        dispatcher.close()
