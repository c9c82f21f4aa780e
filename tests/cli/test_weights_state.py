"""Whether weights of Symphony were trained, and for how long, is said wherever they are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stretto.catalog import DISPATCHERS
from stretto.racks.symphony.network import fresh_weights, save_weights
from stretto.racks.symphony.scheduler import SYMPHONY, training_state


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    return training_state(SYMPHONY.about())


def test_the_shipped_weights_say_how_long_they_were_trained(state: str, run: Any) -> None:
    assert state.startswith("trained for")
    assert run("rack", "small-rack", "--by", "symphony", "--output", "json").json["weights"] == state
    assert f"symphony ({state})" in run("rack", "small-rack", "--by", "symphony").out
    listed = {entry["name"]: entry["summary"] for entry in run("list", "dispatchers", "--output", "json").json}
    assert set(listed) == set(DISPATCHERS)
    assert training_state({"iterations": 1200}) == "trained for 1,200 iterations"
    assert training_state({}) == "untrained"


def test_untrained_weights_of_a_file_are_called_so(state: str, run: Any, tmp_path: Path) -> None:
    from stretto.reports.decided_by import decided_by
    from stretto.runlog import RunLog

    path = tmp_path / "fresh.npz"
    save_weights(path, fresh_weights(0), {"iterations": 0})
    found = run("rack", "small-rack", "--by", "symphony", "--weights", path, "--output", "json").json
    assert found["weights"] == "untrained"
    with RunLog.open(tmp_path / "runs.db") as log:
        assert decided_by(log.run(found["run_id"]).settings) == "symphony (untrained)"
