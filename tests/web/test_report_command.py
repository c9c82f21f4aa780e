"""``stretto report`` and ``--log``, from the command to the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stretto.cli.main import main
from stretto.runlog import RunLog

GRAPH = "workload:cholesky"
CLUSTER = "cpu:4,gpu:2"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run log of one's own."""
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data_of(page: Path) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    views: list[dict[str, Any]] = json.loads(found.group(1))
    return views


def test_plans_are_kept_on_demand_only(home: Path) -> None:
    assert main(["plan", GRAPH, "-c", CLUSTER, "--output", "quiet"]) == 0
    assert not (home / "home" / "runs.db").exists()
    assert main(["plan", GRAPH, "-c", CLUSTER, "--output", "quiet", "--log"]) == 0
    with RunLog.open() as log:
        (info,) = log.runs()
    assert info.kind == "plan"
    assert info.status == "done"
    assert info.settings["policy"] == "heft"


def test_a_report_of_runs_needs_nothing_else(home: Path) -> None:
    for policy in ("heft", "etf"):
        assert main(["plan", GRAPH, "-c", CLUSTER, "--policy", policy, "--log", "--output", "quiet"]) == 0
    jobs = "trace:lublin?num_jobs=300&num_procs=64"
    assert main(["replay", jobs, "--strategy", "saf", "--log", "--output", "quiet"]) == 0
    with RunLog.open() as log:
        ids = [info.id for info in log.runs()]
    assert main(["report", *ids, "-o", "r.html", "--figures", "pictures"]) == 0
    text = (home / "r.html").read_text()
    assert "Plans side by side" in text
    assert not re.search(r'(src|href)="?https?:', text)
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]+'", text)
    views = data_of(home / "r.html")
    assert [view["kind"] for view in views] == ["replay", "plan", "plan"]
    assert len(views[1]["why"]["reason"]) == views[1]["summary"]["num_tasks"]
    names = {path.name for path in (home / "pictures").iterdir()}
    assert {"2-cholesky-8-gantt.png", "2-cholesky-8-gantt.svg", "2-cholesky-8-gantt.pdf"} <= names
    assert {"2-cholesky-8-placement.png", "2-cholesky-8-map.svg"} <= names
    assert {"1-lublin-300-0-queue.png", "1-lublin-300-0-utilization.pdf"} <= names


def test_plan_files_and_comparisons_are_reported_too(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", GRAPH, "-c", CLUSTER, "--save", "p.json", "--output", "quiet"]) == 0
    capsys.readouterr()
    assert (
        main(
            [
                "compare",
                "workload:fft",
                "-c",
                CLUSTER,
                "--policies",
                "heft,random",
                "--seeds",
                "0,1,2",
                "--output",
                "json",
            ]
        )
        == 0
    )
    (home / "c.json").write_text(capsys.readouterr().out)
    assert main(["report", "p.json", "c.json", "-o", "r.html", "--output", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["num_runs"] == 1
    assert told["num_bytes"] == (home / "r.html").stat().st_size
    assert "fft-32" in (home / "r.html").read_text()
    assert data_of(home / "r.html")[0]["gantt"]["moves"] is not None


def test_comparisons_are_kept_and_reported(home: Path) -> None:
    assert (
        main(["compare", "workload:fft", "-c", CLUSTER, "--policies", "heft,random", "--log", "--output", "quiet"]) == 0
    )
    assert main(["report", "latest", "-o", "r.html", "--figures", "pictures"]) == 0
    assert (home / "pictures" / "fft-32-makespan.png").stat().st_size > 1000
    (view,) = data_of(home / "r.html")
    assert view["summary"]["best"] == "heft"
    assert view["tables"][0]["rows"][0][0] == "heft"


def test_figures_of_comparisons_are_written_and_none_at_all_is_an_error(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"graph": "g", "seed": 0, "lower_bound_s": 2.0, "gap": 0.5, "num_tasks": 4, "num_devices": 2}
    rows = [row | {"policy": name, "makespan_s": value} for name, value in (("heft", 3.0), ("random", 90.0))]
    (home / "c.json").write_text(json.dumps({"rows": rows}))
    assert main(["report", "c.json", "-o", "r.html", "--figures", "pictures"]) == 0
    assert {path.name for path in (home / "pictures").iterdir()} == {f"g-makespan.{x}" for x in ("png", "svg", "pdf")}
    assert "wrote pictures/g-makespan.png" in capsys.readouterr().out
    jobs = "trace:lublin?num_jobs=80&num_procs=16"
    assert main(["compare", jobs, "--strategies", "fcfs,saf", "--output", "json"]) == 0
    (home / "q.json").write_text(capsys.readouterr().out)
    assert main(["report", "q.json", "-o", "r.html", "--figures", "queue"]) == 0
    assert "lublin-80-0-strategies-longest-wait.svg" in {path.name for path in (home / "queue").iterdir()}
    with RunLog.open() as log:
        log.start("steer", "idle", {}).finish("done", {})
    assert main(["report", "latest", "-o", "r.html", "--figures", "none"]) == 2
    assert "nothing here has figures: give a plan, a comparison, or a run that" in capsys.readouterr().err


def test_names_cannot_break_out_of_the_page(home: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    document = {
        "format": "stretto-graph",
        "version": 1,
        "name": evil,
        "work_s": [1.0],
        "object_task": [],
        "object_size": [],
    }
    document |= {"read_task": [], "read_object": [], "task_names": [evil]}
    (home / "g.json").write_text(json.dumps(document))
    assert main(["plan", "g.json", "-c", "cpu:1", "--log", "--output", "quiet"]) == 0
    assert main(["report", "latest", "-o", "r.html", "--title", evil]) == 0
    text = (home / "r.html").read_text()
    assert "<img" not in text
    assert data_of(home / "r.html")[0]["name"] == evil


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["report", "no-such-run"], "unknown run"),
        (["report", "missing.json"], "no such file"),
        (["report", "latest", "-o", "r.pdf"], "not .html"),
        (["report", "latest", "-o", "nowhere/r.html"], "no directory"),
        (["report", "g.json"], "neither a plan nor a comparison"),
    ],
)
def test_what_cannot_be_reported_is_told(
    home: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    (home / "g.json").write_text("[1, 2]")
    assert main(words) == 2
    assert told in capsys.readouterr().err
    assert not (home / "r.html").exists()


def test_serving_is_refused_where_it_would_be_open(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", "0.0.0.0", "--no-token"]) == 2
    assert "token" in capsys.readouterr().err
    (home / "token").write_text("\n")
    assert main(["serve", "--token-file", "token"]) == 2
    assert "empty" in capsys.readouterr().err
    assert main(["serve", "--token-file", "missing"]) == 2
    assert "--token-file" in capsys.readouterr().err
    (home / "not-a-log").write_text("this is no database, and long enough to be read as one")
    assert main(["serve", "--port", "0", "--runs", "not-a-log"]) == 2
    told = capsys.readouterr()
    assert "not a database" in told.err
    assert "Traceback" not in told.err
    assert told.out == ""
