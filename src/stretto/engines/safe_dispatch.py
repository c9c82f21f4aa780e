"""A dispatcher that cannot spoil a run: whatever goes wrong with it, a simple rule decides in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field

from stretto.core.plan import Plan
from stretto.engines.background import Clerk
from stretto.engines.engine import RunOptions
from stretto.engines.events import Overruled
from stretto.engines.online import Dispatcher, GreedyDispatcher, View, checked_choice
from stretto.engines.tables import Tables
from stretto.errors import InvalidInput, InvalidPlan

Choice = Sequence[tuple[int, int]]


@dataclass(eq=False)
class SafeDispatcher:
    """Asks a dispatcher within a time, and another where that one fails, dawdles, answers nonsense or wants to starve.

    Attributes
    ----------
    budget_s
        For a decision. While a late one is still under way, the other dispatcher decides at once.
    on_fallback
        Told each time when and why the other one was asked.
    num_fallbacks
        How often that was.
    """

    dispatcher: Dispatcher
    fallback: Dispatcher = field(default_factory=GreedyDispatcher)
    budget_s: float = 1.0
    on_fallback: Callable[[float, str], None] | None = None
    num_fallbacks: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not self.budget_s > 0:
            raise InvalidInput(f"{self.budget_s} must be positive", field="budget_s")
        self._clerk = Clerk()
        self._pending: Future[Choice] | None = None
        self._tables: tuple[object, Tables] | None = None

    def choose(self, view: View) -> Choice:
        """Return a choice that the driver can carry out."""
        chosen, reason = self._ask(view)
        if not reason:
            return chosen
        self.num_fallbacks += 1
        if self.on_fallback is not None:
            self.on_fallback(view.now_s, reason)
        return self.fallback.choose(view)

    def _ask(self, view: View) -> tuple[Choice, str]:
        """Return the dispatcher's choice, or why there is none to be used."""
        if self._pending is not None and not self._pending.done():
            return (), "the last decision is still under way"
        self._pending = self._clerk.ask(self.dispatcher.choose, view)
        try:
            chosen = [(int(task), int(device)) for task, device in self._pending.result(self.budget_s)]
            checked_choice(view, self._tables_of(view), chosen)
        except Late:
            return (), f"no decision within {self.budget_s:g} s"
        except InvalidPlan as error:
            return (), str(error)
        except Exception as error:  # a policy that fails must not take the run with it
            return (), f"the decision failed: {type(error).__name__}: {error}"
        if not chosen and not any(view.issued):
            return (), "it waits though nothing runs that it could wait for"
        return chosen, ""

    def _tables_of(self, view: View) -> Tables:
        if self._tables is None or self._tables[0] is not view.problem:
            self._tables = view.problem, Tables.of(view.problem)
        return self._tables[1]


def guarded(decider: Plan | Dispatcher, options: RunOptions) -> Plan | Dispatcher:
    """Return the decider, a dispatcher within its guard unless the options trust it; what the guard does is told."""
    if isinstance(decider, (Plan, SafeDispatcher)) or options.decision_s is None:
        return decider

    def tell(at_s: float, reason: str) -> None:
        if options.on_event is not None:
            options.on_event(Overruled(at_s, type(decider).__name__, reason))

    return SafeDispatcher(decider, budget_s=options.decision_s, on_fallback=tell)
