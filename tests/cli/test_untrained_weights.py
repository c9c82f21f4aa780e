"""The shipped weights of Symphony have seen no training, and that is said wherever they are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stretto.catalog import DISPATCHERS


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    pytest.importorskip("jax", reason="the cases of racks need stretto[learn]")
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    return "untrained"


def test_shipped_weights_say_untrained_wherever_they_are_named(untrained: str, run: Any) -> None:
    from stretto.racks.symphony.scheduler import SYMPHONY, training_state
    from stretto.reports.racks.show import RackShow

    show = RackShow("small-rack", "symphony", stream=0, seed=0)
    assert training_state(SYMPHONY.policy(show.batch)[1]) == show.weights == untrained
    assert untrained in SYMPHONY.summary
    assert run("rack", "small-rack", "--by", "symphony", "--output", "json").json["weights"] == untrained
    assert f"symphony ({untrained})" in run("rack", "small-rack", "--by", "symphony").out
    listed = {entry["name"]: entry["summary"] for entry in run("list", "dispatchers", "--output", "json").json}
    assert set(listed) == set(DISPATCHERS)
    assert untrained in listed["symphony"]
    assert untrained in " ".join(run("rack", "--help").out.split())
    assert training_state({"iterations": 1200}) == "trained for 1,200 iterations"


def test_reports_say_untrained(untrained: str, run: Any, tmp_path: Path) -> None:
    from stretto.reports.decided_by import decided_by
    from stretto.runlog import RunLog

    run_id = run("rack", "small-rack", "--by", "symphony", "--output", "json").json["run_id"]
    with RunLog.open(tmp_path / "runs.db") as log:
        assert decided_by(log.run(run_id).settings) == f"symphony ({untrained})"


def test_documents_say_untrained() -> None:
    root = Path(__file__).parents[2]
    for name in ("README.md", "src/stretto/racks/symphony/README.md", "docs/howto/watch-a-rack.md"):
        text = (root / name).read_text()
        if "--by symphony" in text or "Symphony" in text:
            assert "untrained" in text, name
