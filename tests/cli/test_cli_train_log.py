"""Trainings in the run log: their news while they go on, what they were judged as, and going on by the id of a run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stretto import catalog
from stretto.api.train import STATE
from stretto.errors import InvalidInput
from stretto.files.checkpoint import load
from stretto.learning.trainer import TrainingSpec
from stretto.reports.page.training import training_json
from stretto.reports.page.view import run_view
from stretto.runlog import RunLog

from .conftest import CLUSTER, Run

QUEUE = "trace:lublin?num_jobs=400&num_procs=64"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(catalog.TRAINERS, "pretend", "learning.pretend_trainer:PretendTrainer")
    return tmp_path / "home"


def opened(home: Path) -> RunLog:
    return RunLog.open(home / "runs.db")


def test_a_training_goes_on_by_its_run_as_if_it_had_not_stopped(run: Run, diamond: Path, home: Path) -> None:
    words = ("train", "pretend", diamond, "-c", CLUSTER, "--seed", "3", "--output", "json")
    whole = run(*words, "--episodes", "24", "--no-log").json
    first = run(*words, "--episodes", "12").json
    second = run("train", "--continue", first["run_id"], "--episodes", "24", "--output", "json")
    assert second.code == 0, second.err
    assert second.json["run_id"] == first["run_id"]
    for field in ("makespan_s", "assignment", "order", "episodes"):
        assert second.json[field] == whole[field]
    assert [row["best_s"] for row in second.json["history"]] == [row["best_s"] for row in whole["history"]]
    with opened(home) as log:
        (info,) = log.runs("train")
        rows = [event.fields["episode"] for event in log.events(info.id, kinds=["row"])]
    assert (info.status, info.summary["episodes"]) == ("done", 24)
    assert rows == [4, 8, 12, 16, 20, 24]


def test_a_training_of_another_machine_is_taken_over_by_force(run: Run, diamond: Path, home: Path) -> None:
    words = ("train", "pretend", diamond, "-c", CLUSTER, "--episodes", "8", "--output", "json")
    first = run(*words).json
    with opened(home) as log, log.transaction() as connection:
        connection.execute("UPDATE runs SET status='running', host='far', pid=1, pid_started='1 other-boot pid:[1]'")
    again = ("train", "--continue", first["run_id"], "--episodes", "12", "--output", "json")
    run(*again).assert_refused(f"stretto train --continue {first['run_id']} --force")
    assert run(*again, "--force").code == 0
    run(*words, "--force").assert_refused("--force works only with --continue")


def test_nothing_is_left_behind_without_the_log(run: Run, diamond: Path, home: Path) -> None:
    words = ("train", "pretend", diamond, "-c", CLUSTER, "--episodes", "8", "--no-log", "--output", "json")
    assert run(*words).json["run_id"] is None
    assert not home.exists()


def test_what_cannot_be_gone_on_with_is_refused(run: Run, diamond: Path, home: Path) -> None:
    run("train").assert_refused("--continue")
    run("train", "pretend").assert_refused("name an algorithm")
    run("train", "--continue", "nothing").assert_refused("nothing")
    assert run("plan", diamond, "-c", CLUSTER, "--log").code == 0
    run("train", "--continue", "latest").assert_refused("not a training")
    assert run("train", "pretend", diamond, "-c", CLUSTER, "--episodes", "4", "--output", "json").code == 0
    run("train", "--continue", "latest", "--seed", "2").assert_refused("--seed", "--continue", "already fixes it")
    run("train", "mars", QUEUE, "--continue", "latest").assert_refused("ALGORITHM", "--continue")
    with opened(home) as log:
        bare = {"algorithm": "pretend", "graph": str(diamond), "seed": 0, "cluster_source": CLUSTER}
        log.start("train", "bare", bare).finish("done", {})
    run("train", "--continue", "latest", "-c", CLUSTER).assert_refused("cluster")
    run("train", "--continue", "latest").assert_refused("has no saved state")


def test_mars_tells_of_every_generation_and_goes_on(run: Run, home: Path, tmp_path: Path) -> None:
    first = run("train", "mars", QUEUE, "--budget", "0.1", "--output", "json", "--curves", tmp_path / "curves.svg")
    assert first.code == 0, first.err
    done = first.json["history"][-1]["generation"]
    second = run("train", "--continue", "latest", "--budget", "0.1", "--output", "json")
    generations = [row["generation"] for row in second.json["history"]]
    assert generations == list(range(1, generations[-1] + 1))
    assert generations[-1] > done
    with opened(home) as log:
        (info,) = log.runs("train")
        rows = [event.fields["generation"] for event in log.events(info.id, kinds=["row"])]
        state = log.artifact(info.id, STATE)
        view = run_view(log, info.id)
    assert rows == list(range(1, rows[-1] + 1))
    assert info.summary["judged"]["mars"] == info.summary["mean_bounded_slowdown"]
    assert view["training"]["x_name"] == "generations"
    assert view["training"]["groups"][0]["names"] == ["train", "validation", "best_validation"]
    assert state is not None
    (tmp_path / "state.npz").write_bytes(state)
    assert load(tmp_path / "state.npz")[1]["algorithm"] == "mars"
    assert "best validation" in (tmp_path / "curves.svg").read_text()


def test_what_was_done_twice_is_drawn_once() -> None:
    rows = [{"generation": number, "train": float(number)} for number in (1, 2, 3, 4, 3, 4, 5)]
    found = training_json(rows, {})
    assert found is not None
    assert found["x"] == [1, 2, 3, 4, 5]


def test_options_of_graphs_mean_nothing_elsewhere(run: Run) -> None:
    run("train", "mars", QUEUE, "-c", "cpu:2").assert_refused("--cluster")
    run("train", "symphony", "two-nics", "--start", "scratch").assert_refused("--start")


def test_a_training_on_a_rack_resumes_to_the_same_weights() -> None:
    from stretto.racks.symphony.cases import case
    from stretto.racks.symphony.run import SymphonyRun

    named = case("two-nics")
    training = SymphonyRun(replace(named, stream=replace(named.stream, num_jobs=4)), TrainingSpec(seed=1))
    training.step()
    training.step()
    arrays, meta = training.state()
    expected, weights, best_s = training.step(), training.learner.weights, training.best_s
    training.step()
    training.restore(arrays, meta)  # whatever is not in the state has gone on, and must not matter
    found = training.step()
    assert (found.episode, found.mean_s) == (expected.episode, expected.mean_s)
    assert np.array_equal(weights.direct, training.learner.weights.direct)
    assert training.best_s == best_s < math.inf
    with pytest.raises(InvalidInput, match="seed"):
        training.restore(arrays, meta | {"seed": 2})


def test_a_log_that_has_changed_leaves_the_run_as_it_was(run: Run, home: Path, tmp_path: Path) -> None:
    rows = [f"{job} {60 * job} 0 300 4 -1 -1 4 600 -1 1 1 1 -1 -1 -1 -1 -1\n" for job in range(1, 61)]
    log_file = tmp_path / "jobs.swf"
    log_file.write_text("; MaxProcs: 8\n" + "".join(rows))
    first = run("train", "mars", log_file, "--budget", "0.1", "--output", "json")
    assert first.code == 0, first.err
    log_file.write_text("; MaxProcs: 8\n" + "".join(rows[:50]))
    run("train", "--continue", "latest", "--budget", "0.1").assert_refused("jobs", "60", "50")
    with opened(home) as log:
        assert log.run("latest").status == "done"
