"""``stretto explain`` and ``stretto report TRACE`` as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Run

SWF = """; MaxProcs: 128
; UnixStartTime: 1768032000
4650    0 -1 6000  96 -1 -1  96  6000 -1 1 7 1 1 1 1 -1 -1
4700  600 -1 3600 128 -1 -1 128  7200 -1 1 9 1 1 1 1 -1 -1
4711  900 -1 1500  32 -1 -1  32 36000 -1 1 3 1 1 1 1 -1 -1
"""


@pytest.fixture
def swf(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.swf"
    path.write_text(SWF)
    return path


def test_the_answer_comes_first_and_fits_the_terminal(run: Run, swf: Path) -> None:
    out = run("explain", swf, "--job", "4711").out
    assert out.startswith("Job 4711 waited 2.4 h for 32 processors: job 4700 had a reservation until")
    assert max(map(len, out.splitlines())) <= 80
    for part in ("What kept it from starting", "Who held what it needed", "2.4 h earlier", "Assumed: "):
        assert part in out
    assert "2.4 h earlier" not in run("explain", swf, "--job", "4711", "--no-alternatives").out


def test_quiet_and_json_say_the_same(run: Run, swf: Path) -> None:
    words = ("explain", swf, "--job", "4711", "--output")
    told = run(*words, "json").json
    assert run(*words, "quiet").out.strip() == told["answer"]
    assert [one["cause"] for one in told["wait"]["stretches"]] == ["reservation", "resource"]
    assert told["alternatives"][0]["saved_s"] == told["wait"]["wait_s"]


def test_other_rules_and_machines(run: Run, swf: Path) -> None:
    assert "was before it in the queue" in run("explain", swf, "--job", "4711", "--backfill", "none").out
    assert "started at once" in run("explain", swf, "--job", "4711", "--procs", "999").out
    assert "waited" in run("explain", swf, "--job", "4711", "--pools", "own:8*16").out
    run("explain", swf, "--pool-rule", "cheapest").assert_refused("--pool-rule", "without --pools")
    run("explain", swf, "--strategy", "fcsf").assert_refused("did you mean fcfs")
    run("explain", swf, "--job", "4712").assert_refused("has no job 4712")
    run("explain", swf, "--measure", "flow").assert_refused("--strategy mars")


def test_a_page_about_policies(run: Run, swf: Path, tmp_path: Path) -> None:
    page = tmp_path / "queue.html"
    ran = run("report", swf, "--strategies", "fcfs,sjf", "--out", page)
    assert ran.code == 0, ran.err
    assert "wrote" in ran.out
    assert "2 policies" in ran.out
    text = page.read_text()
    assert "sjf" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    told = run("report", swf, "--strategies", "fcfs,sjf", "-o", page, "--output", "json").json
    assert [one["name"] for one in told["policies"]] == ["fcfs", "sjf"]
    assert told["answer"]


def test_mistakes_in_a_page_about_policies(run: Run, swf: Path, tmp_path: Path) -> None:
    words = ("report", swf, "-o", tmp_path / "queue.html")
    run(*words, "--strategies", "fcfs,sfj").assert_refused("did you mean sjf")
    run(*words, "--rank-by", "wait").assert_refused("'wait' is not one of mean_wait_s")
    run(*words, "--figures", tmp_path / "x").assert_refused("--figures", "a trace")
    run(*words, "--idle-power", "3").assert_refused("--idle-power", "needs --power")
    run(*words, "--carbon", "x.csv").assert_refused("x.csv")
    run("report", "latest", "--strategies", "fcfs").assert_refused("--strategies", "without a trace")
    run("report", swf, "--out", tmp_path / "queue.pdf").assert_refused("'.pdf' is not .html")
