"""Alternatives are replays in which only one job differs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.trace import Trace
from stretto.queues.explain.alternatives import rounded_up
from stretto.queues.explain.explain import explain_job
from stretto.queues.replay import replay

#: The head needs the whole machine until a limit; the last job is short and says that it is long.
HELD = Trace.of([0, 1, 2], [100, 10, 30], [10, 16, 4], [100, 10, 2000])


def test_a_smaller_limit_lets_a_job_backfill() -> None:
    found = explain_job(HELD, 16, 2)
    best = found.alternatives[0]
    assert (best.kind, best.start_s, best.saved_s) == ("limit", 2.0, found.wait.start_s - 2.0)
    assert "1.0 min instead of 33.3 min" in best.change
    limits = HELD.estimate_s.copy()
    limits[2] = 60.0
    assert replay(replace(HELD, estimate_s=limits), 16).start_s[2] == best.start_s


def test_half_the_processors_take_twice_as_long_and_that_is_said() -> None:
    found = explain_job(HELD, 16, 1)
    size = next(one for one in found.alternatives if one.kind == "size")
    assert size.assumed is not None
    assert (size.start_s, size.end_s) == (100.0, 120.0)
    assert (size.saved_s, size.ends_earlier_s) == (0.0, -10.0)
    assert "8 processors instead of 16" in size.change


def test_no_limit_below_the_run_time_and_none_where_it_is_not_used() -> None:
    exact = replace(HELD, estimate_s=HELD.run_s.copy())
    assert {one.kind for one in explain_job(exact, 16, 1).alternatives} == {"size"}
    perfect = explain_job(HELD, 16, 2, estimates="perfect").alternatives
    assert "limit" not in {one.kind for one in perfect}
    nothing = HELD.estimate_s.copy()
    nothing[1] = np.nan
    assert {one.kind for one in explain_job(replace(HELD, estimate_s=nothing), 16, 1).alternatives} == {"size"}


@pytest.mark.parametrize(("run", "limit"), [(1, 60), (60, 60), (61, 120), (901, 1800), (15000, 18000), (14400, 14400)])
def test_limits_are_rounded_to_what_people_write(run: float, limit: float) -> None:
    assert rounded_up(run) == limit


def test_rows_stay_the_same_where_jobs_are_left_out() -> None:
    wide = Trace.of([0, 1, 2, 3], [5, 100, 10, 30], [99, 10, 16, 4], [5, 100, 10, 2000])
    found = explain_job(wide, 16, 3)
    assert (found.wait.row, found.wait.index) == (3, 2)
    assert found.alternatives[0].saved_s > 0
