"""``stretto rack``: a rack is played as the rules play it, and what is believed is kept in the run log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the cases of racks need stretto[learn]")

from stretto.catalog import DISPATCHERS
from stretto.cli.completion import RACK_CASES, rack_dispatchers
from stretto.racks.rules import play
from stretto.racks.symphony.cases import CASES, case
from stretto.reports.page.view import run_view
from stretto.reports.racks.show import NUM_STREAMS, RackShow
from stretto.runlog import RunLog


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    return tmp_path


def test_what_the_shell_offers_is_what_there_is() -> None:
    assert set(RACK_CASES) == set(CASES)
    assert set(rack_dispatchers("")) == set(DISPATCHERS)


@pytest.mark.parametrize("rule", ["srpt-belief", "mct-counters", "srpt-true", "paragon", "sparrow"])
def test_watching_changes_nothing(rule: str) -> None:
    show = RackShow("small-rack", rule, stream=2, seed=5)
    looks = [look for look, _ in show.moments() if look is not None]
    world = case("small-rack").world(seed=None, num_instances=NUM_STREAMS)
    expected = play(rule, world.model, world.streams, seed=5, counters=world.counters, params=world.belief)[2]
    assert np.allclose(show.watched.flow_s, expected[np.isfinite(expected)])
    assert np.all(np.diff([look.at_s for look in looks]) > 0)


def test_every_task_is_told_of_once() -> None:
    show = RackShow("small-rack", "mct", stream=0, seed=0)
    bars = [bar for _, ended in show.moments() for bar in ended]
    assert len(bars) == len({bar.name for bar in bars}) == int(np.sum(show.batch.streams.job_size[0]))
    for name in {bar.processor for bar in bars}:
        mine = sorted((bar.start_s, bar.end_s) for bar in bars if bar.processor == name)
        assert all(before[1] <= after[0] + 1e-9 for before, after in zip(mine, mine[1:], strict=False))


def test_a_run_is_kept_with_map_and_figures(run: Any, home: Path) -> None:
    found = run("rack", "two-nics", "--stream", "3", "--output", "json")
    assert found.code == 0, found.err
    assert 0.5 < found.json["coverage_95"] <= 1.0
    with RunLog.open(home / "runs.db") as log:
        info = log.run(found.json["run_id"])
        view = run_view(log, info.id)
    assert (info.kind, info.status) == ("rack", "done")
    assert info.summary["mean_completion_s"] == found.json["mean_completion_s"]
    assert view["belief"]["kind"] == "belief"
    assert {"raw", "truth"} <= set(view["belief"])
    assert len(view["gantt"]["task"]) == 40


def test_symphony_decides_on_any_rack(run: Any, home: Path) -> None:
    for case_name in ("small-rack", "two-nics"):
        assert run("rack", case_name, "--by", "symphony", "--no-log", "--output", "quiet").code == 0
    assert not (home / "runs.db").exists()


LAB = """
[[machine]]
name = "node"
links = [["mem", "root"], ["root", "switch"], ["switch", "gpu0"], ["switch", "gpu1"], ["mem", "core"], ["core", "cpu0"]]
part = [
    { name = "mem", kind = "memory", bandwidth = "96GB/s" },
    { name = "root", kind = "root-complex", bandwidth = "64GB/s" },
    { name = "switch", kind = "pcie-switch", bandwidth = "16GB/s" },
    { name = "gpu", kind = "gpu", count = 2 },
    { name = "core", kind = "core" },
    { name = "cpu", kind = "cpu", count = 1 },
]
"""


def test_a_file_of_machines_is_a_rack_to_play_and_to_train_on(run: Any, home: Path) -> None:
    lab, weights = home / "lab.toml", home / "lab.npz"
    lab.write_text(LAB)
    done = json.loads(run("rack", lab, "--by", "mct-belief", "--output", "json").out)
    assert (done["case"], done["num_processors"], done["num_jobs"]) == ("lab", 3, 4)
    trained = run("train", "symphony", lab, "--episodes", "1", "--save", weights, "--output", "json")
    assert {"symphony", "mct-belief"} <= set(json.loads(trained.out)["mean_completion_s"])
    again = json.loads(run("rack", lab, "--by", "symphony", "--weights", weights, "--output", "json").out)
    assert again["num_decisions"] >= again["num_jobs"]


def test_a_file_that_is_no_rack_names_its_place(run: Any, home: Path) -> None:
    (home / "lab.toml").write_text(LAB.replace('kind = "gpu"', 'kind = "gpu", sort = "fast"'))
    run("rack", home / "lab.toml").assert_refused("lab.toml", "machine[0].part[3]", "'sort' is unknown")


def test_wrong_words_are_refused(run: Any, home: Path) -> None:
    run("rack", "big-rack").assert_refused("big-rack", "small-rack")
    run("rack", "--by", "srtp-belief").assert_refused("srpt-belief")
    run("rack", "--stream", "16").assert_refused("--stream", "0..15")
    run("rack", "--pace", "0").assert_refused("--pace")
    run("rack", "--weights", "x.npz").assert_refused("--weights")
