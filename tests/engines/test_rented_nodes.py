"""A plan on rented nodes is run on them: nodes come up and are released as events, and the times say what they cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stretto
from stretto.api.options import Record
from stretto.cli.main import main
from stretto.engines.driver.events import DeviceJoined, DeviceLost, TaskFinished, TaskStarted
from stretto.engines.rented_nodes import RentedNodes
from stretto.graphs.rental.billing import Rental
from stretto.runlog import RunLog

FLOW = """
name = "survey"
[[task]]
name = "split"
run = "echo split"
seconds = 300
[[task]]
name = "north"
run = "sleep 0.2"
after = ["split"]
seconds = 2400
[[task]]
name = "east"
run = "sleep 0.2"
after = ["split"]
seconds = 2400
[[task]]
name = "merge"
run = "echo merge"
after = ["north", "east"]
seconds = 300
"""
OFFERS = """
[[pool]]
name = "own"
num_nodes = 1
[[pool]]
name = "cloud"
num_nodes = 4
min_nodes = 0
price_usd_per_hour = 0.40
provision = "90s"
minimum = "60s"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.toml").write_text(FLOW)
    (tmp_path / "offers.toml").write_text(OFFERS)
    assert main(["plan", "flow.toml", "--pools", "offers.toml", "--deadline", "55min", "--save", "plan.json"]) == 0
    return tmp_path


def test_a_rented_plan_runs_on_its_nodes_and_says_what_is_simulated(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["run", "plan.json", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    plan = json.loads((folder / "plan.json").read_text())
    assert found["planned_device"] == plan["assignment"] == found["device"]
    assert [one["node"] for one in found["rentals"]] == [one["node"] for one in plan["rentals"]]
    for one in found["rentals"]:
        assert 0.2 <= one["end_s"] - one["start_s"] < 30
        assert one["billed_s"] == 60.0  # the least that is paid
        assert one["cost_usd"] == pytest.approx(0.40 * 60 / 3600)
    assert any("no instance was requested or paid" in note for note in found["notes"])
    with RunLog.open(None) as log:
        run = log.run(found["run_id"])
        kinds = [(event.kind, event.subject) for event in log.events(run.id)]
    for one in plan["rentals"]:
        up, released = kinds.index(("device-joined", one["node"])), kinds.index(("device-lost", one["node"]))
        assert up < released


def test_the_table_has_the_times_of_the_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "plan.json"]) == 0
    out = capsys.readouterr()
    assert "Rented nodes, by the times of this run" in out.out
    assert "were planned" in out.out
    assert "Simulated: no instance was requested or paid." in " ".join((out.out + out.err).split())


def test_timed_tasks_wait_until_their_rented_nodes_are_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "offers.toml").write_text(OFFERS)
    assert main(["plan", "workload:montage", "--pools", "offers.toml", "--objective", "time", "--save", "p.json"]) == 0
    plan = json.loads((tmp_path / "p.json").read_text())
    assert plan["rentals"]
    done = stretto.run("p.json", scale=0.001, record=Record())
    first = min(one.start_s for one in done.rentals)
    assert first >= 90.0  # seconds of the plan
    assert done.session.predicted_s == pytest.approx(plan["makespan_s"] * 0.001)


def test_a_resumed_run_releases_nodes_of_which_some_tasks_had_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.toml").write_text(
        '[[task]]\nname = "first"\nrun = "true"\nseconds = 600\n'
        '[[task]]\nname = "then"\nrun = "test -f there"\nafter = ["first"]\nseconds = 600\n'
    )
    (tmp_path / "offers.toml").write_text(
        OFFERS.partition("[[pool]]")[2].partition("[[pool]]")[2].join(["[[pool]]", ""])
    )
    assert main(["plan", "flow.toml", "--pools", "offers.toml", "--objective", "time", "--save", "plan.json"]) == 0
    rentals = json.loads((tmp_path / "plan.json").read_text())["rentals"]
    assert [one["num_tasks"] for one in rentals] == [2]
    assert main(["run", "plan.json", "--attempts", "1"]) == 3
    (tmp_path / "there").touch()
    capsys.readouterr()
    with RunLog.open(None) as log:
        run_id = log.runs("run")[0].id
    assert main(["run", "--resume", run_id]) == 0
    with RunLog.open(None) as log:
        released = [event.subject for event in log.events(run_id, kinds=["device-lost"])]
    assert released == [rentals[0]["node"]]


def test_a_node_is_kept_while_a_lost_output_is_computed_again() -> None:
    rental = Rental("n", "cloud", "on demand", 0.0, 0.0, 9.0, 9.0, 1.0, 0.0, 2)
    nodes = RentedNodes((rental,), {}, (), {0: 0, 1: 0}, {"n": 0}).begin(())
    assert [type(one) for one in nodes.follow(TaskStarted(0, 0, 1, 0.0))] == [DeviceJoined]
    assert nodes.follow(TaskFinished(0, 0, 1, 0.0, 1.0)) == []
    assert nodes.follow(TaskStarted(0, 0, 2, 2.0)) == []  # its output was lost
    assert nodes.follow(TaskFinished(0, 0, 2, 2.0, 3.0)) == []
    assert nodes.follow(TaskStarted(1, 0, 1, 3.0)) == []
    assert [type(one) for one in nodes.follow(TaskFinished(1, 0, 1, 3.0, 4.0))] == [DeviceLost]
