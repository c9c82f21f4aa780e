"""``stretto train`` with a trainer that only pretends; the real one is tested in tests/graphs/doppler."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from stretto import catalog
from stretto.cli.options import parse_time
from stretto.cli.training import TrainingBar
from stretto.files.checkpoint import load
from stretto.learning.trainer import TrainingRow

from .conftest import CLUSTER, Run

TESTS = Path(__file__).resolve().parents[1]
FAKE = "learning.pretend_trainer:PretendTrainer"


@pytest.fixture(autouse=True)
def _pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog.TRAINERS, "pretend", FAKE)


def test_the_report_says_what_was_learned(run: Run, diamond: Path) -> None:
    ran = run("train", "pretend", diamond, "-c", CLUSTER, "--episodes", "40")
    assert ran.code == 0, ran.err
    assert "diamond by pretend" in ran.out
    assert "40 episodes in" in ran.out
    assert "best of 4 heuristics" in ran.out


def test_json_holds_plan_and_history(run: Run, diamond: Path) -> None:
    ran = run("train", "pretend", diamond, "-c", CLUSTER, "--episodes", "12", "--output", "json")
    document = ran.json
    assert document["policy"] == "pretend"
    assert document["episodes"] == 12
    assert [row["episode"] for row in document["history"]] == [4, 8, 12]
    assert document["history"][0]["greedy_s"] is None
    assert document["makespan_s"] == pytest.approx(document["history"][-1]["best_s"])
    assert set(document["opponents"]) == {"heft", "etf", "peft", "critical-path"}
    assert document["interrupted"] is False


def test_quiet_prints_the_makespan(run: Run, diamond: Path) -> None:
    ran = run("train", "pretend", diamond, "-c", CLUSTER, "--episodes", "8", "--output", "quiet")
    assert float(ran.out) > 0


def test_seeds_decide(run: Run) -> None:
    def best(seed: str) -> str:
        words = ("workload:cholesky?num_tiles=4", "-c", CLUSTER, "--episodes", "8", "--output", "quiet")
        return run("train", "pretend", *words, "--seed", seed).out

    assert best("1") == best("1") != best("2")


def test_files_are_written(run: Run, diamond: Path, tmp_path: Path) -> None:
    checkpoint, curves, plan = tmp_path / "c.npz", tmp_path / "c.html", tmp_path / "p.json"
    ran = run("train", "pretend", diamond, "-c", CLUSTER, "--episodes", "8", "--checkpoint", checkpoint,
              "--curves", curves, "--save", plan)  # fmt: skip
    assert ran.code == 0, ran.err
    assert [f"wrote {path}" in ran.out for path in (checkpoint, curves, plan)] == [True] * 3
    assert load(checkpoint)[1]["algorithm"] == "pretend"
    assert "diamond on cpu:2x1.0,gpu:1x4.0@1GB/s by pretend" in curves.read_text()
    assert run("simulate", plan, "--output", "quiet").code == 0


def test_a_budget_ends_the_training(run: Run, diamond: Path) -> None:
    begin = time.perf_counter()
    assert run("train", "pretend", diamond, "-c", CLUSTER, "--budget", "200ms").code == 0
    assert time.perf_counter() - begin >= 0.2  # that it ends at all is the budget's doing


def test_resuming_goes_on_where_it_stopped(run: Run, diamond: Path, tmp_path: Path) -> None:
    words = ("train", "pretend", diamond, "-c", CLUSTER, "--checkpoint", tmp_path / "c.npz", "--output", "json")
    assert run(*words, "--episodes", "8").json["episodes"] == 8
    run(*words, "--resume", "--start", "scratch").assert_refused("--start", "already has its weights")
    again = run(*words, "--episodes", "16", "--resume").json
    assert [row["episode"] for row in again["history"]] == [4, 8, 12, 16]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--budget", "soon"), ("--budget", "'soon'", "60s, 10m or 2h")),
        (("--budget", "0s"), ("--budget", "above 0")),
        (("--budget", "-5s"), ("--budget",)),
        (("--episodes", "0"), ("episodes", "at least 1")),
        (("--seed", "-1"), ("seed",)),
        (("--resume",), ("--resume", "--checkpoint")),
        (("--resume", "--checkpoint", "none.npz"), ("none.npz", "no checkpoint")),
        (("--curves", "curves.gif"), ("curves.gif", ".png")),
        (("--save", "no/folder.json"), ("no/folder.json",)),
    ],
)
def test_wrong_words_are_refused_at_once(
    run: Run, diamond: Path, words: tuple[str, ...], expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(diamond.parent)
    run("train", "pretend", diamond, "-c", CLUSTER, *words).assert_refused(*expected)


def test_unknown_algorithms_are_refused(run: Run, diamond: Path) -> None:
    run("train", "dopler", diamond, "-c", CLUSTER).assert_refused("did you mean doppler")


def test_an_existing_checkpoint_is_not_overwritten(run: Run, diamond: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    path.write_bytes(b"precious")
    run("train", "pretend", diamond, "-c", CLUSTER, "--checkpoint", path).assert_refused("c.npz", "--resume")
    run("train", "pretend", diamond, "-c", CLUSTER, "--checkpoint", path, "--resume").assert_refused("c.npz")
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("10m", 600), ("2h", 7200), ("1.5 m", 90), ("90", 90), ("5min", 300), ("500ms", 0.5)],
)
def test_budgets_are_read(text: str, seconds: float) -> None:
    assert parse_time(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "m", "10 parsecs", "-3m", "1.2.3m", "nan", "inf", "1e999"])
def test_budgets_that_mean_nothing(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=re.escape(repr(text))):
        parse_time(text)


@pytest.mark.parametrize("text", ["5s", "5", "0.1m"])
def test_a_time_limit_is_read_like_a_budget(run: Run, diamond: Path, text: str) -> None:
    ran = run("plan", diamond, "-c", CLUSTER, "--policy", "heft", "--time-limit", text, "--output", "quiet")
    assert ran.code == 0, ran.err
    run("train", "pretend", diamond, "-c", CLUSTER, "--budget", "soon").assert_refused("--budget", "soon", "60s")
    run("plan", diamond, "-c", CLUSTER, "--time-limit", "soon").assert_refused("--time-limit", "soon", "60s")


def test_the_bar_tells_best_mean_and_speed() -> None:
    bar = TrainingBar("training", time_limit_s=10.0, episodes=None)
    bar._begin -= 2.0
    bar._recent.append((1.0, 100))
    bar.row(TrainingRow(420, 2.0, 0.0123, 0.045, stage="simulator"))
    assert re.fullmatch(r"best 12.3 ms, mean 45 ms, 420 episodes, 3[12]\d/s, simulator", bar.news)


def test_ctrl_c_keeps_the_best_plan_and_the_checkpoint(diamond: Path, tmp_path: Path) -> None:
    checkpoint, plan, mark = tmp_path / "c.npz", tmp_path / "p.json", tmp_path / "mark"
    code = (
        "import sys; from stretto import catalog; from stretto.cli.main import main; "
        f"catalog.TRAINERS['pretend'] = {FAKE!r}; sys.exit(main(sys.argv[1:]))"
    )
    words = ["train", "pretend", str(diamond), "-c", CLUSTER, "--budget", "10m", "--output", "json"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words, "--checkpoint", str(checkpoint), "--save", str(plan)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(TESTS), "PRETEND_MARK": str(mark)},
    )
    late = time.monotonic() + 60
    while not mark.exists() and time.monotonic() < late:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert document["interrupted"] is True
    assert document["episodes"] >= 4
    assert load(checkpoint)[1]["trainer"]["episode"] == document["episodes"]
    assert json.loads(plan.read_text())["makespan_s"] == document["makespan_s"]
    assert "best that was found until then" in err
