"""Predicted starts over HTTP, at the desk where a worker answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stretto.errors import InvalidInput

pytest.importorskip("starlette")
from stretto.web.models import WhenRequest
from stretto.web.work import Desk

JOBS = {"num_jobs": 200, "num_procs": 64, "load": 1.2, "seed": 1}


def ask(folder: Path, **fields: Any) -> dict[str, Any]:
    asked = WhenRequest(generator="lublin", generator_params=JOBS, learn=20, **fields).model_dump()
    told: list[object] = []
    found = Desk(str(folder / "runs.db")).do({"kind": "when", "body": asked}, told.append)
    assert not told  # nothing is recorded
    return dict(found)


def test_one_job_is_answered_with_a_sentence(tmp_path: Path) -> None:
    found = ask(tmp_path, job="row:150", change="limit=1h")
    assert found["submit_s"] <= found["low_s"] <= found["likely_s"] <= found["high_s"]
    assert "most likely" in found["sentence"]
    assert "most likely" in found["if_sentence"]


def test_all_waiting_jobs_are_answered(tmp_path: Path) -> None:
    assert len(ask(tmp_path, all=True, at="20h")["jobs"]) > 0


@pytest.mark.parametrize("fields", [{"all": True}, {"all": True, "at": "1h", "job": "row:1"}])
def test_what_does_not_go_together_is_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        ask(tmp_path, **fields)
