"""Sentences on runs and on starts of jobs that are written down by hand: every clause where it belongs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from stretto.core.answers.run import run_answer
from stretto.core.answers.start import when_answer


def some(**values: Any) -> Any:
    return SimpleNamespace(**values)


def test_runs_are_told_with_what_failed() -> None:
    def told(finished: list[bool], **changes: Any) -> str:
        result = {
            "is_finished": np.array(finished), "device": np.zeros(len(finished)), "status": "done", "makespan_s": 3.0,
            "engine": "local", "is_timed": False, "failures": [],
        }  # fmt: skip
        session = {
            "num_done_before": 0, "num_up_to_date": 0, "name": "flow", "durations": "measured", "predicted_s": 4.0,
            "failed": [],
        }  # fmt: skip
        result.update({name: value for name, value in changes.items() if name in result})
        session.update({name: value for name, value in changes.items() if name in session})
        return run_answer(some(result=some(**result), **session))

    assert told([True, True]) == "2 tasks of flow ran in 3 s (local); 4 s predicted."
    assert (
        told([True], durations="assumed (so)")
        == "1 task of flow ran in 3 s (local); 4 s predicted from assumed durations."
    )
    assert told([True], durations="assumed (so)", is_timed=True) == (
        "1 task of flow ran in 3 s (local); 4 s predicted; "
        "tasks only passed time, so this says nothing about real machines."
    )
    assert told([True, False], num_done_before=1) == "1 task of flow ran in 3 s (local); 1 were done before."
    retried = [some(blame="task"), some(blame="cancelled"), some(blame="worker")]
    assert (
        told([True], failures=retried)
        == "1 task of flow ran in 3 s (local); 4 s predicted; 2 attempts failed and ran again."
    )
    assert (
        told([False, False], num_up_to_date=1, num_done_before=1)
        == "Nothing had to run: 2 of 2 tasks of flow are done."
    )
    assert told([False], num_up_to_date=1) == "Nothing had to run: 1 of 1 task of flow is done."
    assert told([True, False], status="cancelled") == "Cancelled: 1 of 2 tasks of flow are done."
    assert told([True, False], status="failed") == "Failed: no task could go on; 1 of 2 tasks of flow are done."
    failed = [{"task": "a", "reason": "exit 1.\nmore"}, {"task": "b", "reason": "x"}, {"task": "c", "reason": "y"}]
    assert told([True, False], status="failed", failed=failed) == (
        "Failed: task a (exit 1); also b and c; 1 of 2 tasks of flow are done."
    )
    alone = told([False], status="failed", failed=failed[:1])
    assert alone == "Failed: task a (exit 1); 0 of 1 task of flow is done."


def test_starts_are_told_as_one_or_as_first_and_last() -> None:
    clock = some(at=lambda s, beside_s=None: f"{s:g}" if beside_s is None else f"{s:g}|{beside_s:g}")

    def start(job: str, likely: float, promised: float | None = None) -> Any:
        return some(
            job=job, clock=clock, coverage=0.9, likely_s=likely, low_s=likely - 1, high_s=likely + 2,
            promised_s=promised, asked_s=0.5,
        )  # fmt: skip

    one = start("7", 10.0)
    plain = "Job 7: most likely 10 (90 %: between 9|10 and 12|9)"
    assert when_answer(some(starts=())) == "No job waits then."
    assert when_answer(some(starts=(one,), start=one, instead=None, assumed=(), change="")) == f"{plain}."
    promised = start("7", 10.0, 20.0)
    found = some(starts=(promised,), start=promised, instead=start("7", 5.0), assumed=("a", "b"), change="nodes=1")
    assert when_answer(found) == (
        f"{plain}, at the latest 20|10 (promised); with nodes=1, most likely 5 (90 %: between 4|5 and 7|4). "
        "Assumed: a; b."
    )
    many = (start("7", 10.0), start("8", 4.0), start("9", 30.0))
    assert when_answer(some(starts=many)) == (
        "3 jobs wait at 0.5: job 8 is likely to start first, at 4|0.5, job 9 last, at 30|4."
    )
