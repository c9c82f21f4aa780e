"""Arguments that would make too much are refused before anything is made, and limits that are just met are fine."""

from __future__ import annotations

import pytest

from stretto.core import argument_checks as checks
from stretto.errors import InvalidInput


@pytest.mark.parametrize(
    ("check", "most", "what"),
    [
        (lambda n: checks.makes_tasks(n, width=3, depth=4), checks.MAX_TASKS, "tasks"),
        (lambda n: checks.makes_edges(n, width=3, depth=4), checks.MAX_EDGES, "edges"),
    ],
)
def test_tasks_and_edges_are_limited(check: object, most: int, what: str) -> None:
    assert callable(check)
    check(most)
    for count in (most + 1, float("nan")):
        with pytest.raises(
            InvalidInput, match=rf"width = 3, depth = 4 would make .* {what}; at most {most:,}"
        ) as raised:
            check(count)
        assert raised.value.field == "width"


def test_jobs_are_limited_by_the_greatest_count() -> None:
    checks.makes_jobs(num_jobs=checks.MAX_JOBS, num_others=1)
    with pytest.raises(InvalidInput, match="num_jobs = 1, num_others = 20000001 would make 2e\\+07 jobs"):
        checks.makes_jobs(num_jobs=1, num_others=checks.MAX_JOBS + 1)


def test_counts_and_numbers_up_to_their_edges() -> None:
    checks.at_least(2, count=2)
    checks.at_least(2, count=checks.MAX_COUNT)
    with pytest.raises(InvalidInput, match="at least 2"):
        checks.at_least(2, count=1)
    with pytest.raises(InvalidInput, match="at most 1,000,000,000"):
        checks.at_least(2, count=checks.MAX_COUNT + 1)
    checks.positive(value=1e-300)
    checks.not_negative(value=0)
    checks.share(low=0, high=1)
    for check, value, words in (
        (checks.positive, 0, "positive and finite"),
        (checks.not_negative, -1e-300, "finite and not negative"),
        (checks.share, 1.0001, "between 0 and 1"),
        (checks.share, -1e-9, "between 0 and 1"),
    ):
        with pytest.raises(InvalidInput, match=words):
            check(value=value)


def test_full_trees_have_as_many_tasks_as_their_levels_sum_up_to() -> None:
    assert checks.tree_tasks(3, 2) == 1 + 2 + 4 + 8
    assert checks.tree_tasks(2, 3) == 1 + 3 + 9
    assert checks.tree_tasks(5, 1) == 6
    assert checks.tree_tasks(64, 2) == float(2**65 - 1)
    assert checks.tree_tasks(65, 2) == float("inf")
    assert checks.tree_tasks(1000, 1) == 1001
