"""Dispatchers by name, as objects and as plain functions."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

from racks.rack_cases import small_rack, two_nics
from stretto.errors import InvalidInput, UnknownName
from stretto.racks import rules
from stretto.racks.dispatch import RackChoice, RackView, dispatcher_of, rack_view
from stretto.racks.rules import play
from stretto.racks.simulator import RackBatch


def oldest_where_it_ends_first(view: RackView) -> RackChoice:
    """The rule ``mct-belief`` on processors that are all idle, from a view."""
    runs = [choice for choice in view.choices if choice.kind != "wait"]
    job = min(choice.job for choice in runs)
    return min((choice for choice in runs if choice.job == job), key=lambda choice: choice.expected_s)


def test_the_example_in_the_documentation_runs() -> None:
    found = doctest.testmod(rules)
    assert found.attempted > 5
    assert found.failed == 0


def test_a_function_plays_every_job() -> None:
    model, streams = small_rack(num_instances=2)
    flow = play(oldest_where_it_ends_first, model, streams, seed=0)
    assert np.all(flow > 0)
    assert np.array_equal(flow, play(oldest_where_it_ends_first, model, streams, seed=0))
    assert flow.mean() < play("sparrow", model, streams, seed=0).mean()


@pytest.mark.parametrize("name", ["mct", "srpt-counters", "srpt-belief", "srpt-true", "sparrow", "paragon"])
def test_decision_by_decision_is_as_compiled(name: str) -> None:
    """Whoever is no rule is played in Python: the same rule behind a wrapper ends every job at the same moment."""

    class Wrapped:
        summary = "a rule that does not look like one"

        def decider(self, *given: Any, **named: Any) -> Any:
            return dispatcher_of(name).decider(*given, **named)

    model, streams = two_nics(num_instances=2)
    assert np.array_equal(play(Wrapped(), model, streams, seed=3), play(name, model, streams, seed=3))


def test_a_view_shows_the_valid_actions_and_no_truth() -> None:
    model, streams = small_rack(num_instances=1)
    batch = RackBatch(model, streams, 1, seed=0)
    batch.start(np.zeros(1, np.int64))
    view = rack_view(batch)
    assert [choice.action for choice in view.choices] == np.flatnonzero(batch.mask[0]).tolist()
    assert view.choices[-1].kind == "wait"
    assert all(choice.expected_s >= choice.alone_s > 0 for choice in view.choices)
    assert {choice.kernel for choice in view.choices[:-1]} <= {name for name, num in view.ready.items() if num}
    assert set(view.utilization) == set(model.resources)
    first = view.choices[0]
    batch.state.left_s[:] = batch.state.load[:] = 123.0  # what only the simulator knows
    assert rack_view(batch).choices[0] == first


def test_wrong_dispatchers_are_refused() -> None:
    model, streams = two_nics(num_instances=1)
    with pytest.raises(UnknownName, match="srpt-belief"):
        play("srtp-belief", model, streams, seed=0)
    with pytest.raises(InvalidInput, match="neither a name"):
        play(7, model, streams, seed=0)  # type: ignore[arg-type]

    def silent(view: RackView) -> None:
        return None

    with pytest.raises(InvalidInput, match=r"silent returned None at .* s; return one of the \d+ entries"):
        play(silent, model, streams, seed=0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"view\.choices"):
        play(lambda view: RackChoice(10_000, "execute"), model, streams, seed=0)
