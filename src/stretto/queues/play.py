"""Replay a trace with a strategy, or with a selector that changes between strategies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from stretto.catalog import SELECTOR_REPLAYS, SELECTORS, STRATEGIES
from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.notes import notes_of
from stretto.queues.plugins import play_plugin
from stretto.queues.replay import make_rules, replay
from stretto.queues.result import QueueResult
from stretto.registry import lookup
from stretto.runlog import Run

#: Is told how many jobs of how many have arrived; returns whether to go on.
Watch = Callable[[int, int], bool]
#: The only rules under which a selector plays.
_SELECTOR_RULES = {"backfill": "easy", "estimates": "user", "kill": False, "tie": "batch", "weights": None}


class SelectorSettings(Protocol):
    """What an operator says to a selector."""

    def spec(self) -> dict[str, Any]:
        """Return what is not as usual, by name."""
        ...


def check_rules(strategy: str, **rules: Any) -> None:
    """Raise where a name is unknown, a value out of range, or a selector cannot play by the rules."""
    lookup("strategy", strategy, STRATEGIES | SELECTORS)
    make_rules(strategy if strategy in STRATEGIES else "fcfs", **rules)
    if strategy in SELECTORS:
        for name, needed in _SELECTOR_RULES.items():
            if rules.get(name, needed) != needed:
                raise InvalidInput(f"{strategy!r} needs {needed!r}, not {rules[name]!r}", field=name)


def can_select(trace: Trace, machine: int | Sequence[Pool], **rules: Any) -> bool:
    """Say whether selectors can play a trace: on one plain machine, by their rules, without dependencies."""
    has_parents = trace.parent is not None and len(trace.parent) > 0
    as_needed = all(rules.get(name, needed) == needed for name, needed in _SELECTOR_RULES.items())
    return isinstance(machine, int) and not has_parents and as_needed


def play(
    trace: Trace, machine: int | Sequence[Pool], *, strategy: str = "fcfs", seed: int = 0, **rules: Any
) -> QueueResult:
    """Replay a trace; ``rules`` are those of :func:`stretto.queues.replay.replay`."""
    return play_told(trace, machine, strategy=strategy, seed=seed, **rules)[0]


def play_told(
    trace: Trace,
    machine: int | Sequence[Pool],
    *,
    strategy: str = "fcfs",
    seed: int = 0,
    settings: SelectorSettings | None = None,
    run: Run | None = None,
    watch: Watch | None = None,
    **rules: Any,
) -> tuple[QueueResult, Any]:
    """Replay a trace, and return what a selector tells of it, too, which is None for a fixed strategy.

    Parameters
    ----------
    settings
        What its operator says to a selector.
    run
        Where a selector that can do so writes down what it chooses, while it plays.
    watch
        Told on the way by a selector that can do so how many jobs of how many have arrived; False stops it there.
    """
    if strategy not in SELECTORS:
        if settings is not None:
            raise InvalidInput(f"{strategy!r} has none", field="settings")
        fixed = replay if strategy in STRATEGIES else play_plugin
        return fixed(trace, machine, strategy=strategy, seed=seed, **rules), None
    check_rules(strategy, **{"backfill": "easy", "estimates": "user", "pool_rule": "cheapest", **rules})
    if not isinstance(machine, int):
        raise InvalidInput(f"{strategy!r} needs one plain machine, not pools", field="pools")
    select = lookup("selector", strategy, SELECTOR_REPLAYS)
    known = inspect.signature(select).parameters
    if settings is not None and "settings" not in known:
        raise InvalidInput(f"{strategy!r} has none", field="settings")
    wanted = {"settings": settings, "run": run, "watch": watch}
    found = select(trace, machine, seed=seed, **{name: value for name, value in wanted.items() if name in known})
    rules = {name: needed for name, needed in _SELECTOR_RULES.items() if needed is not None}
    more = {} if settings is None else settings.spec()
    notes = notes_of(trace, machine, trace.fits(machine))
    return _result(found, machine, {"strategy": strategy, **rules, **more, "seed": seed}, notes), found


def can_be_watched(strategy: str) -> bool:
    """Say whether a strategy tells on the way how far it is, and can be stopped there."""
    if strategy not in SELECTORS:
        return False
    return "watch" in inspect.signature(lookup("selector", strategy, SELECTOR_REPLAYS)).parameters


def _result(found: Any, machine: int, spec: dict[str, Any], notes: tuple[str, ...]) -> QueueResult:
    """Return what a selector did with a trace in the form that every replay has."""
    n = found.trace.num_jobs
    end = found.start_s + found.trace.run_s
    return QueueResult(
        trace=found.trace,
        pools=(Pool("machine", machine),),
        start_s=found.start_s,
        end_s=end,
        ready_s=found.trace.submit_s,
        pool=np.zeros(n, np.int32),
        is_killed=np.zeros(n, np.bool_),
        num_interruptions=np.zeros(n, np.int32),
        cost_usd=np.zeros(1),
        billed_node_s=np.array([float(np.ceil(end.max())) * machine]),
        num_dropped=found.num_dropped,
        spec=spec,
        notes=notes,
    )
