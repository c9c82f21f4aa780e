"""Online decisions: a dispatcher sees the present state and places ready tasks; where it fails, a fallback does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field
from typing import Protocol

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.background import BackgroundThread
from stretto.engines.driver.events import Overruled
from stretto.engines.driver.rooms import NodeRooms
from stretto.engines.driver.tables import Tables
from stretto.engines.engine import RunOptions
from stretto.errors import InvalidInput, InvalidPlan


@dataclass(frozen=True)
class View:
    """What a dispatcher sees when it decides.

    Attributes
    ----------
    ready
        Tasks whose parents have ended and that have no device yet.
    issued
        By device: the task that runs there and those placed behind it, in order.
    """

    problem: Problem
    now_s: float
    ready: tuple[int, ...]
    issued: tuple[tuple[int, ...], ...]
    is_alive: tuple[bool, ...]
    price_usd_per_hour: tuple[float, ...]


class Dispatcher(Protocol):
    """Places ready tasks one view at a time.

    It is asked when something has happened. One that also decides by the state of the machine may have an attribute
    ``look_again_s``: while tasks wait beside an idle device, it is asked again after so many seconds.
    """

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        """Return pairs of a task and a device, in order; an empty answer means "wait"."""
        ...


@dataclass(frozen=True)
class GreedyDispatcher:
    """Gives each idle device the ready task that it runs fastest, and each node all that fit; as simple as can be."""

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        seconds = view.problem.device_duration
        rooms = NodeRooms.of(view.problem)
        left = set(view.ready)
        chosen = []
        for device, tasks in enumerate(view.issued):
            held = list(tasks)
            able = [t for t in left if seconds[t, device] < float("inf")]
            for task in sorted(able, key=lambda t: (seconds[t, device], t)) if view.is_alive[device] else ():
                if rooms is not None and rooms.is_node(device):
                    if not rooms.has_room(device, held, task):
                        continue
                elif held:
                    break
                held.append(task)
                left.discard(task)
                chosen.append((task, device))
        return chosen


def checked_choice(view: View, tables: Tables, chosen: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the choice, or raise InvalidPlan where it names an impossible task or device."""
    ready = set(view.ready)
    for task, device in chosen:
        if task not in ready:
            raise InvalidPlan(f"the dispatcher placed task {task}, which is not ready or was placed before")
        if not (0 <= device < len(view.is_alive) and view.is_alive[device] and tables.can_run(task, device)):
            raise InvalidPlan(f"the dispatcher placed task {task} on device {device}, which cannot run it")
        ready.discard(task)
    return chosen


#: Running tasks have on average this share of their time left.
_LEFT = 0.5


@dataclass
class LateDispatcher:
    """Places the ready task with the longest path to the end where it is expected to finish first, if there is room.

    A task whose best device is full waits for it, and its load is counted, instead of taking a slower device. So each
    decision is made as late as possible, with everything known that has happened until then.

    Attributes
    ----------
    num_queued
        Tasks that may wait on a device behind the running one, so that it is not idle while the next one is sent.
    """

    num_queued: int = 1
    _levels: tuple[Problem, list[float]] | None = field(default=None, repr=False)

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        seconds = view.problem.device_duration
        levels = self._levels_of(view.problem)
        held = view.issued
        alive = [device for device, is_alive in enumerate(view.is_alive) if is_alive]
        rooms = NodeRooms.of(view.problem)
        if rooms is not None:
            return self._choose_on_nodes(view, rooms, levels, alive)
        load = {
            device: sum(seconds[task, device] * (1.0 if place else _LEFT) for place, task in enumerate(held[device]))
            for device in alive
        }
        room = {device: 1 + self.num_queued - len(held[device]) for device in alive}
        chosen: list[tuple[int, int]] = []
        for task in sorted(view.ready, key=lambda task: (-levels[task], task)):
            if max(room.values()) <= 0:
                break
            best = min(alive, key=lambda device: (load[device] + seconds[task, device], device))
            load[best] += seconds[task, best]
            if seconds[task, best] < float("inf") and room[best] > 0:
                room[best] -= 1
                chosen.append((task, best))
        return chosen

    def _choose_on_nodes(
        self, view: View, rooms: NodeRooms, levels: list[float], alive: list[int]
    ) -> Sequence[tuple[int, int]]:
        """Place tasks where they run fastest among the nodes that have room now, and the devices that are idle."""
        seconds = view.problem.device_duration
        held = [list(tasks) for tasks in view.issued]
        chosen: list[tuple[int, int]] = []
        for task in sorted(view.ready, key=lambda task: (-levels[task], task)):
            able = [
                device
                for device in alive
                if seconds[task, device] < float("inf")
                and (rooms.has_room(device, held[device], task) if rooms.is_node(device) else not held[device])
            ]
            if able:
                best = min(able, key=lambda device: (seconds[task, device], len(held[device]), device))
                held[best].append(task)
                chosen.append((task, best))
        return chosen

    def _levels_of(self, problem: Problem) -> list[float]:
        if self._levels is None or self._levels[0] is not problem:
            from stretto.graphs.planners.listing import MeanLink, b_levels

            self._levels = (problem, b_levels(problem.arrays, MeanLink.of(problem, "all")).tolist())
        return self._levels[1]


Choice = Sequence[tuple[int, int]]


@dataclass(eq=False)
class SafeDispatcher:
    """Asks a dispatcher within a time limit, and a fallback where it fails, is late, or gives an unusable answer.

    Attributes
    ----------
    budget_s
        For a decision. While a late one is still running, the fallback decides at once.
    on_fallback
        Called with the time and the reason whenever the fallback decides.
    num_fallbacks
        How often the fallback decided.
    """

    dispatcher: Dispatcher
    fallback: Dispatcher = field(default_factory=GreedyDispatcher)
    budget_s: float = 1.0
    on_fallback: Callable[[float, str], None] | None = None
    num_fallbacks: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not self.budget_s > 0:
            raise InvalidInput(f"{self.budget_s} must be positive", field="budget_s")
        self._thread = BackgroundThread()
        self._pending: Future[Choice] | None = None
        self._tables: tuple[object, Tables] | None = None

    @property
    def look_again_s(self) -> float | None:
        """After how long the dispatcher wants to be asked again though nothing has happened; None for never."""
        pause_s: float | None = getattr(self.dispatcher, "look_again_s", None)
        return pause_s

    def choose(self, view: View) -> Choice:
        """Return a choice that the driver can execute."""
        chosen, reason = self._ask(view)
        if not reason:
            return chosen
        self.num_fallbacks += 1
        if self.on_fallback is not None:
            self.on_fallback(view.now_s, reason)
        return self.fallback.choose(view)

    def _ask(self, view: View) -> tuple[Choice, str]:
        """Return the dispatcher's choice, or why it cannot be used."""
        if self._pending is not None and not self._pending.done():
            return (), "the previous decision is not finished"
        self._pending = self._thread.submit(self.dispatcher.choose, view)
        try:
            chosen = [(int(task), int(device)) for task, device in self._pending.result(self.budget_s)]
            checked_choice(view, self._tables_of(view), chosen)
        except Late:
            return (), f"no decision within {self.budget_s:g} s"
        except InvalidPlan as error:
            return (), str(error)
        except Exception as error:  # a policy that fails must not end the run
            return (), f"the decision failed: {type(error).__name__}: {error}"
        if not chosen and not any(view.issued):
            return (), "it placed nothing although no task is running"
        return chosen, ""

    def _tables_of(self, view: View) -> Tables:
        if self._tables is None or self._tables[0] is not view.problem:
            self._tables = view.problem, Tables.of(view.problem)
        return self._tables[1]


def with_fallback(decider: Plan | Dispatcher, options: RunOptions) -> Plan | Dispatcher:
    """Return a decider that cannot stall a run: dispatchers get a fallback, unless the options trust them."""
    if isinstance(decider, (Plan, SafeDispatcher)) or options.decision_s is None:
        return decider

    def tell(at_s: float, reason: str) -> None:
        if options.on_event is not None:
            options.on_event(Overruled(at_s, type(decider).__name__, reason))

    return SafeDispatcher(decider, budget_s=options.decision_s, on_fallback=tell)
