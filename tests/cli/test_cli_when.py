"""``stretto when``: answers, listings, counterfactuals, and questions that have none."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.conftest import Run

import stretto
from stretto.api.when import moment_of
from stretto.core.trace import Trace
from stretto.errors import InvalidInput

TRACE = "trace:lublin?num_jobs=300&num_procs=64&load=1.2&seed=3"


def asked(run: Run, *words: str) -> dict[str, Any]:
    done = run("when", TRACE, "--learn-jobs", "40", "--output", "json", *words)
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    return found


def test_an_answer_has_its_fields_in_order_of_time(run: Run) -> None:
    found = asked(run, "--job", "row:200")
    assert {"submit_s", "promised_s", "low_s", "likely_s", "high_s", "coverage"} <= set(found)
    assert found["submit_s"] <= found["low_s"] <= found["likely_s"] <= found["high_s"]
    assert found["promised_s"] is None
    assert found["coverage"] == 0.9
    assert found["num_learned"] > 0


def test_a_promise_bounds_the_answer_and_another_request_is_answered(run: Run) -> None:
    found = asked(run, "--job", "row:200", "--backfill", "promise", "--slack", "1h", "--if", "limit=10m,procs=1")
    assert found["high_s"] <= found["promised_s"]
    assert found["if"]["change"] == "limit=0.166667h,procs=1"
    assert found["if"]["likely_s"] <= found["likely_s"]
    assert found["if"]["promised_s"] <= found["promised_s"]


def test_all_waiting_jobs_are_listed(run: Run) -> None:
    at = float(stretto.load_trace(TRACE).submit_s[200])
    found = asked(run, "--at", str(at), "--all")
    waiting = stretto.replay(TRACE)
    first = waiting.trace.submit_s[0]
    shift = float(stretto.load_trace(TRACE).submit_s[0]) - first
    expected = (waiting.trace.submit_s + shift <= at) & (waiting.start_s + shift > at)
    assert len(found["jobs"]) == int(expected.sum())
    table = run("when", TRACE, "--learn-jobs", "0", "--at", str(at), "--all")
    assert table.code == 0
    assert "most likely" in table.out
    assert "waited" in table.out
    promised = run("when", TRACE, "--learn-jobs", "0", "--at", str(at), "--all", "--backfill", "promise")
    assert "promised" in promised.out
    assert max(len(line) for line in (table.out + promised.out).splitlines()) <= 80


def test_the_sentence_names_bounds_and_the_likely_start(run: Run) -> None:
    done = run("when", TRACE, "--job", "row:200", "--learn-jobs", "0")
    assert done.code == 0
    assert "90 %: between" in done.out
    assert "most likely" in done.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--job", "row:200", "--backfill", "conservative"], "easy"),
        (["--job", "row:200", "--if", "partition=short"], "partitions"),
        (["--job", "row:200", "--if", "colour=red"], "cannot be changed"),
        (["--job", "row:200", "--if", "nodes=2"], "procs=N"),
        (["--job", "row:200", "--at", "1s"], "submitted later"),
        (["--job", "row:2", "--at", "900h"], "is not waiting at that time"),
        (["--job", "row:2", "--at", "2024-01-01"], "calendar"),
        (["--all"], "--at"),
        (["--all", "--at", "1h", "--job", "row:2"], "--all"),
        (["--job", "row:200", "--history", "x.swf"], "--slurm"),
        (["--job", "row:200", "--estimates", "last-two"], "estimates"),
    ],
)
def test_questions_without_an_answer_are_refused(run: Run, words: list[str], says: str) -> None:
    done = run("when", TRACE, "--learn-jobs", "0", *words)
    done.assert_refused(says)


def test_a_recorded_trace_says_what_is_assumed() -> None:
    result = stretto.replay(TRACE)
    trace = Trace.of(
        result.trace.submit_s,
        result.trace.run_s,
        result.trace.num_procs,
        result.trace.estimate_s,
        wait_s=result.start_s - result.trace.submit_s,
        max_procs=64,
    )
    found = stretto.when(trace, job="row:200", strategy="recorded", learn=20)
    assert "fcfs" in found.assumed[0]
    assert found.start.replayed_s == pytest.approx(float(result.start_s[200]))


def test_moments_are_seconds_times_or_dates() -> None:
    trace = Trace.of([0.0], [1.0], [1], origin_unix_s=1_700_000_000.0)
    assert moment_of("36h", trace) == 129_600.0
    assert moment_of("2d", trace) == 172_800.0
    assert moment_of(5, trace) == 5.0
    assert moment_of("2023-11-14T22:13:30+00:00", trace) == 10.0
    with pytest.raises(InvalidInput, match="is not a number of seconds"):
        moment_of("soon", trace)
