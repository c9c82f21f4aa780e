"""Arguments of generators come from addresses and requests: whatever they are, the answer is an error of one line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stretto.cli.sources import load_queue
from stretto.core import argument_checks as checks
from stretto.errors import InvalidInput
from stretto.graphs.workloads.generate import generate

ODD: list[Any] = ["nan", "", None, math.nan, math.inf, -math.inf, 10**400, [], {}]
CHECKS: list[Callable[..., None]] = [
    lambda **values: checks.at_least(1, **values),
    checks.positive,
    checks.not_negative,
    checks.share,
]


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("check", CHECKS)
def test_what_is_no_number_is_refused_by_name(check: Callable[..., None], value: Any) -> None:
    with pytest.raises(InvalidInput, match="num_things"):
        check(num_things=value)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("value", [1, 1.0, np.int32(1), np.float32(1.0)])
def test_numbers_of_any_kind_are_taken(check: Callable[..., None], value: Any) -> None:
    check(num_things=value)


def test_counts_are_whole_and_no_booleans() -> None:
    for value in (True, 1.5, 0):
        with pytest.raises(InvalidInput, match="whole number of at least 1"):
            checks.at_least(1, num_things=value)


@pytest.mark.parametrize("params", ["seed=-1", "num_procs=nan", "seed=x", "load=nan", "num_jobs=1e400"])
def test_generators_of_traces_refuse_in_one_line(params: str) -> None:
    with pytest.raises(InvalidInput):
        load_queue(f"trace:lublin?{params}")


@pytest.mark.parametrize("params", [{"seed": -1}, {"seed": "x"}, {"num_tasks": "nan"}, {"num_tasks": 10**400}])
def test_generators_of_graphs_refuse_in_one_line(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        generate("random-dag", **params)
