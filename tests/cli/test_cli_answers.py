"""The answer is the same text in the terminal, in JSON, in the run log, on pages and in Python, for each kind."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import stretto
from cli.conftest import CLUSTER, Run
from stretto.reports.page.view import run_view
from stretto.runlog import RunLog

TRACE = "trace:lublin?num_jobs=300&num_procs=64&load=1.0&seed=3"
FORK = "workload:fork-join?width=4&num_stages=2"
#: Commands whose results are in no run log.
UNLOGGED = {
    "bound": ("bound", FORK, "-c", CLUSTER),
    "pipeline": ("pipeline", FORK, "-c", "gpu:2@1GB/s"),
    "place": ("place", FORK, "--devices", "gpu:2@1GB/s", "--policy", "heft"),
    "pools": ("plan", FORK, "--pools", "own:1,cloud:0-2@3.6"),
    "show graph": ("show", FORK),
    "show cluster": ("show", CLUSTER),
    "show trace": ("show", TRACE),
    "when": ("when", TRACE, "--learn-jobs", "20"),
    "when all": ("when", TRACE, "--all", "--at", "20h", "--learn-jobs", "20"),
    "explain": ("explain", TRACE, "--job", "row:200", "--no-alternatives"),
    "doctor": ("doctor",),
}
#: Commands whose results are in the run log.
LOGGED = {
    "plan": ("plan", FORK, "-c", CLUSTER, "--log"),
    "compare": ("compare", FORK, "-c", CLUSTER, "--policies", "heft,etf", "--log"),
    "compare traces": ("compare", TRACE, "--strategies", "fcfs,saf", "--windows", "4", "--window-size", "60", "--log"),
    "replay": ("replay", TRACE, "--strategy", "saf", "--log"),
    "rack": ("rack", "two-nics"),
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))


def text_of(page: Path) -> list[str]:
    """Return the sentences below the title of a page."""
    found = re.findall(r'<p class="answer">(.*?)</p>', page.read_text())
    return [html.unescape(one).replace("\u00a0", " ") for one in found]


def said_first(run: Run, words: tuple[str, ...]) -> str:
    """Return the answer of a command in JSON, which its output for people begins with, within 80 columns."""
    ran = run(*words)
    answer = str(run(*words, "--output", "json").json["answer"])
    assert answer.endswith(".")
    assert "\n" not in answer
    assert " ".join(ran.out.split()).startswith(answer), ran.out
    assert max(map(len, ran.out.splitlines()[:2])) <= 80
    return answer


@pytest.mark.parametrize("name", UNLOGGED)
def test_terminal_and_json_agree(run: Run, name: str) -> None:
    said_first(run, UNLOGGED[name])


@pytest.mark.parametrize("name", LOGGED)
def test_terminal_json_log_view_and_report_agree(run: Run, name: str, tmp_path: Path) -> None:
    answer = said_first(run, LOGGED[name])
    with RunLog.open() as log:
        info = log.run("latest")
        assert info.summary["answer"] == answer
        assert run_view(log, info.id)["answer"] == answer
    page = tmp_path / "page.html"
    wrote = run("report", "latest", "-o", page, "--output", "json").json
    assert wrote["answer"] == answer
    assert text_of(page) == [answer]


def test_a_plan_has_its_answer_in_python_in_its_file_and_on_its_pages(run: Run, tmp_path: Path) -> None:
    plan, chart, report = tmp_path / "plan.json", tmp_path / "plan.html", tmp_path / "report.html"
    answer = stretto.plan(FORK, CLUSTER).answer
    assert run("plan", FORK, "-c", CLUSTER, "--save", plan, "--gantt", chart).code == 0
    assert text_of(chart) == [answer]
    assert run("report", plan, "-o", report).code == 0
    assert text_of(report) == [answer]
    assert run("gantt", plan, "-o", chart).code == 0
    assert text_of(chart) == [answer]
    said_first(run, ("simulate", str(plan)))


def test_several_results_keep_their_answers_apart(run: Run, tmp_path: Path) -> None:
    for policy in ("heft", "etf"):
        assert run("plan", FORK, "-c", CLUSTER, "--policy", policy, "--save", tmp_path / f"{policy}.json").code == 0
    made = stretto.report([tmp_path / "heft.json", tmp_path / "etf.json"], tmp_path / "both.html")
    (side_by_side,) = text_of(tmp_path / "both.html")  # each run has its own, below its own title
    assert side_by_side.startswith("heft is best on fork-join-4x2 on ")
    assert side_by_side.endswith(" below etf.")
    for policy in ("heft", "etf"):
        assert stretto.plan(FORK, CLUSTER, policy).answer in made.answer


def test_a_run_says_what_ran_and_what_failed(run: Run, tmp_path: Path) -> None:
    flow = tmp_path / "flow.toml"
    flow.write_text('[[task]]\nname = "good"\nrun = "true"\n[[task]]\nname = "bad"\nrun = "exit 3"\n')
    ran = run("run", flow, "-c", "cpu:1", "--keep-going")
    with RunLog.open() as log:
        answer = log.run("latest").summary["answer"]
    assert " ".join(ran.out.split()).startswith(answer)
    assert answer.startswith("Failed: task bad (")
    assert answer.endswith("; 1 of 2 tasks of flow are done.")
    flow.write_text(flow.read_text().replace("exit 3", "true"))
    assert run("run", flow, "-c", "cpu:1").out.startswith("2 tasks of flow ran in ")


def test_a_failed_plan_says_why_in_its_view(run: Run) -> None:
    assert run("plan", FORK, "-c", "cpu:2", "--policy", "cp-sat", "--time-limit", "0.000001", "--log").code in (
        0,
        1,
        2,
        3,
    )
    with RunLog.open() as log:
        info = log.run("latest")
        view = run_view(log, info.id)
    assert view["answer"].startswith("Failed: " if info.status == "failed" else "cp-sat ")


def test_quiet_has_no_answer(run: Run) -> None:
    assert re.fullmatch(r"[\d.e+-]+\n", run("plan", FORK, "-c", CLUSTER, "--output", "quiet").out)
