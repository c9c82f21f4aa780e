"""The server keeps to its own description, whatever it is asked: no 5xx, no answer that is not described."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
NUM_OPERATIONS = 20
PATIENCE_S = 90


@pytest.fixture(scope="module")
def operations(server: Any) -> list[Any]:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    return [found.ok() for found in schema.get_all_operations()]


def test_all_operations_are_tried(operations: list[Any]) -> None:
    assert len(operations) == NUM_OPERATIONS


def ask(operation: Any, mode: Any) -> None:
    """Send requests that fit the description (or break it), and hold each answer against it."""
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        # That a graph or a policy of some name exists is more than a description can say.
        case.call_and_validate(timeout=PATIENCE_S, excluded_checks=[positive_data_acceptance])

    check()


@pytest.mark.parametrize("number", range(NUM_OPERATIONS))
def test_every_answer_is_described(operations: list[Any], number: int) -> None:
    ask(operations[number], schemathesis.GenerationMode.POSITIVE)


@pytest.mark.parametrize("number", range(NUM_OPERATIONS))
def test_wrong_requests_are_refused_in_words(operations: list[Any], number: int) -> None:
    operation = operations[number]
    if operation.body or operation.path_parameters or operation.query:
        ask(operation, schemathesis.GenerationMode.NEGATIVE)
    else:
        assert operation.label in (
            "GET /api/health",
            "GET /metrics",
            "GET /api/jobs",
            "GET /api/names",
        )  # nothing there can be wrong
