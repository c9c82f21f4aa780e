"""``stretto replay``, ``stretto compare TRACE`` and what ``stretto list`` says of queues."""

from __future__ import annotations

import functools
import signal
from pathlib import Path
from typing import Any

import pytest

from stretto import catalog

from .conftest import CLUSTER, Run

# Job, submit, wait, run, allocated, cpu, memory, requested, requested time, memory, status, user, then unknown.
ROWS = [
    (1, 0, 0, 10, 3, 10),
    (2, 1, 9, 5, 4, 5),
    (3, 2, 0, 8, 1, 8),
    (4, 30, 0, 100, 2, 200),
]
FIGURES = (
    *("num_jobs", "mean_wait_s", "mean_slowdown", "mean_bounded_slowdown", "utilization", "makespan_s", "cost_usd"),
    *("jobs_per_second", "skipped_rows", "p50_wait_s", "p95_wait_s", "p99_wait_s", "max_wait_s"),
    *("p50_bounded_slowdown", "p95_bounded_slowdown", "p99_bounded_slowdown", "max_bounded_slowdown"),
)


def row(job: int, submit: int, wait: int, run: int, procs: int, estimate: int) -> str:
    return f"{job} {submit} {wait} {run} {procs} -1 -1 {procs} {estimate} -1 1 {job % 2} 1 -1 -1 -1 -1 -1"


@pytest.fixture
def swf(tmp_path: Path) -> Path:
    """Four jobs on four processors; EASY starts the third before the second."""
    path = tmp_path / "four.swf"
    path.write_text("; MaxProcs: 4\n" + "\n".join(row(*values) for values in ROWS) + "\n")
    return path


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """The same with rows that cannot be used in between."""
    path = tmp_path / "damaged.swf"
    lines = [row(*values) for values in ROWS]
    lines[1:1] = ["2 1 0", row(9, 1, 0, 5, 10**18, 5)]
    lines.append(lines[0].replace("10", "ten", 1))
    path.write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    return path


def test_the_figures_of_a_replay_by_hand(run: Run, swf: Path) -> None:
    found = run("replay", swf, "--strategy", "fcfs", "--backfill", "easy", "--output", "json")
    assert found.code == 0, found.err
    figures = found.json
    assert set(FIGURES) <= set(figures)
    # A 0-10 on 3, B needs 4: at 10; C ends at the shadow: at 2; D at 30.
    assert figures["num_jobs"] == 4
    assert figures["mean_wait_s"] == 9 / 4
    assert figures["max_wait_s"] == 9
    assert figures["mean_bounded_slowdown"] == pytest.approx((1 + 14 / 10 + 1 + 1) / 4)
    assert figures["mean_slowdown"] == pytest.approx((1 + 14 / 5 + 1 + 1) / 4)
    assert figures["makespan_s"] == 130
    assert figures["utilization"] == pytest.approx((30 + 20 + 8 + 200) / (4 * 130))
    assert (figures["cost_usd"], figures["skipped_rows"]) == (0, 0)
    assert figures["jobs_per_second"] > 0


def test_without_backfilling_the_third_waits(run: Run, swf: Path) -> None:
    figures = run("replay", swf, "--backfill", "none", "--output", "json").json
    assert figures["mean_wait_s"] == (9 + 13) / 4


def test_quiet_prints_the_mean_bounded_slowdown(run: Run, swf: Path) -> None:
    figures = run("replay", swf, "--output", "json").json
    assert float(run("replay", swf, "--output", "quiet").out) == figures["mean_bounded_slowdown"]


def test_the_table_fits_into_80_columns(run: Run, swf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("replay", swf)
    assert max(map(len, ran.out.splitlines())) <= 80
    for word in ("four by fcfs", "4 processors", "max 9 s", "Jain"):
        assert word in ran.out


def test_rows_at_fault_are_told_and_counted(run: Run, damaged: Path) -> None:
    ran = run("replay", damaged, "--output", "json")
    assert ran.code == 0
    assert ran.json["num_jobs"] == 4
    assert ran.json["skipped_rows"] == 3
    assert [entry["line"] for entry in ran.json["skipped"]] == [3, 4, 8]
    assert ran.err.count("\n") == 1
    for word in ("left out 3 rows", "line 3:", "line 4:", "line 8:"):
        assert word in ran.err


def test_strict_stops_at_the_first_of_them(run: Run, damaged: Path) -> None:
    run("replay", damaged, "--strict").assert_refused("damaged.swf:3")


def test_a_window_counts_from_its_first_job(run: Run, swf: Path) -> None:
    figures = run("replay", swf, "--window", "1:2", "--output", "json").json
    assert figures["num_jobs"] == 2
    assert figures["makespan_s"] == 13  # the second at once, the third after it


@pytest.mark.parametrize(
    ("words", "reasons"),
    [
        (("--strategy", "sjff"), ("unknown strategy 'sjff'", "did you mean sjf")),
        (("--backfill", "eazy"), ("unknown backfill", "easy")),
        (("--estimates", "perfekt"), ("unknown estimate model", "perfect")),
        (("--pool-rule", "cheap"), ("unknown pool rule", "cheapest")),
        (("--tie", "both"), ("unknown tie order",)),
        (("--procs", "0"), ("--procs", "at least one")),
        (("--procs", "2", "--pools", "a:2"), ("--procs: cannot be combined with --pools",)),
        (("--pools", "a:2,a:3"), ("two pools are called 'a'",)),
        (("--pools", "nowhere.toml"), ("nowhere.toml",)),
        (("--window", "5"), ("--window", "START:COUNT")),
        (("--window", "1:0"), ("--window", "START:COUNT")),
        (("--window", "4:1"), ("--window", "4 jobs")),
        (("--window", "-1:2"), ("--window",)),
        (("--seed", "-1"), ("seed",)),
    ],
)
def test_mistakes_are_one_line(run: Run, swf: Path, words: tuple[str, ...], reasons: tuple[str, ...]) -> None:
    run("replay", swf, *words).assert_refused(*reasons)


def test_files_that_are_no_traces_are_refused(run: Run, tmp_path: Path) -> None:
    run("replay", tmp_path / "nothing.swf").assert_refused("nothing.swf")
    run("replay", tmp_path).assert_refused("not a regular file")
    empty = tmp_path / "empty.swf"
    empty.write_text("")
    run("replay", empty).assert_refused("empty")


def test_a_folder_that_cannot_be_is_refused_before_the_work(run: Run, swf: Path) -> None:
    run("replay", swf, "--plot", swf / "inside").assert_refused("cannot make this directory")


def test_pools_have_a_price(run: Run, swf: Path, tmp_path: Path) -> None:
    file = tmp_path / "pools.toml"
    file.write_text('[[pool]]\nname = "cloud"\nnum_nodes = 4\nprice_usd_per_hour = 3600\nbilling = "1s"\n')
    figures = run("replay", swf, "--pools", file, "--output", "json").json
    assert figures["cost_usd"] == figures["cost_usd_by_pool"]["cloud"] == 4 * 130.0
    short = run("replay", swf, "--pools", "own:2,cloud:0-4@1.0~5s", "--output", "json").json
    assert short["pools"] == ["own", "cloud"]
    assert 0 < short["cost_usd"] < 1
    assert "cost" in run("replay", swf, "--pools", file).out


def test_a_machine_of_another_size_drops_what_does_not_fit(run: Run, swf: Path) -> None:
    figures = run("replay", swf, "--procs", "3", "--output", "json").json
    assert (figures["num_jobs"], figures["num_dropped"]) == (3, 1)


def test_a_workflow_is_a_trace_of_jobs_that_wait_for_each_other(run: Run, diamond: Path) -> None:
    figures = run("replay", diamond, "--procs", "4", "--output", "json").json
    assert figures["num_jobs"] == 4
    assert figures["makespan_s"] == 5.0  # 1 + 3 + 1
    assert run("replay", "workload:fork-join", "--procs", "9", "--output", "json").json["num_jobs"] > 9


def test_generated_traces(run: Run) -> None:
    figures = run("replay", "trace:lublin?num_jobs=300&seed=4&num_procs=64", "--output", "json").json
    assert (figures["num_jobs"], figures["num_procs"]) == (300, 64)
    again = run("replay", "trace:lublin?num_jobs=300&seed=4&num_procs=64", "--output", "json").json
    assert again["mean_wait_s"] == figures["mean_wait_s"]
    run("replay", "trace:lublinn").assert_refused("did you mean lublin")
    run("replay", "trace:lublin?jobs=3").assert_refused("jobs")


def test_pictures_are_written(run: Run, swf: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    ran = run("replay", swf, "--plot", folder, "--output", "json")
    assert [Path(path).name for path in ran.json["plots"]] == [
        *("timeline.png", "timeline.svg", "slowdown.png", "slowdown.svg")
    ]
    for path in ran.json["plots"]:
        assert Path(path).stat().st_size > 2000


def test_strategies_are_compared_and_ranked(run: Run) -> None:
    words = ("compare", "trace:lublin?num_jobs=600&seed=1&num_procs=64&load=1.1", "--strategies", "fcfs,sjf,laf")
    found = run(*words, "--windows", "7", "--window-size", "200", "--output", "json").json
    assert len(found["rows"]) == 3 * 7
    medians = [line["mean_bounded_slowdown"]["median"] for line in found["summary"]]
    assert medians == sorted(medians)
    for line in found["summary"]:
        assert line["num_windows"] == 7
        figures = line["max_wait_s"]
        assert figures["low"] <= figures["median"] <= figures["high"]
    first = {row["first_job"] for row in found["rows"]}
    assert len(first) == 7
    one = next(row for row in found["rows"] if row["strategy"] == "sjf")
    same = run(
        *("replay", "trace:lublin?num_jobs=600&seed=1&num_procs=64&load=1.1", "--strategy", "sjf"),
        *("--window", f"{one['first_job']}:200", "--output", "json"),
    )
    assert same.json["mean_bounded_slowdown"] == one["mean_bounded_slowdown"]


def test_all_strategies_that_say_something(run: Run, swf: Path) -> None:
    found = run("compare", swf, "--backfill", "all", "--output", "json").json
    names = {row["strategy"] for row in found["rows"]}
    assert names == {*catalog.STRATEGIES, *catalog.SELECTORS, *catalog.RECORDS} - {"edf"}  # no job has a deadline
    assert {row["backfill"] for row in found["rows"]} == {*catalog.BACKFILLS, "recorded"}
    asked = run("compare", swf, "--strategies", "edf", "--output", "json").json["rows"]
    assert [row["strategy"] for row in asked] == ["edf", "recorded"]


def test_a_portfolio_is_a_strategy_with_easy(run: Run, swf: Path) -> None:
    found = run("replay", swf, "--strategy", "portfolio", "--output", "json")
    assert found.code == 0, found.err
    assert found.json["strategy"] == "portfolio"
    assert found.json["num_jobs"] == 4
    for words in (
        ("--backfill", "none"),
        ("--estimates", "last-two"),
        ("--kill",),
        ("--pools", "own:1*4", "--backfill", "promise"),
    ):
        refused = run("replay", swf, "--strategy", "portfolio", *words)
        assert refused.code != 0
        assert "portfolio" in refused.err


def test_a_replay_that_is_kept_is_played_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stretto.queues.mars import replay as mars_play
    from stretto.runlog import RunLog

    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    played: list[int] = []
    really = mars_play.play_mars

    @functools.wraps(really)
    def counted(trace: Any, *args: Any, **more: Any) -> Any:
        played.append(trace.num_jobs)
        return really(trace, *args, **more)

    monkeypatch.setattr(mars_play, "play_mars", counted)
    words = ("replay", "trace:lublin?num_jobs=1200&num_procs=64", "--strategy", "mars", "--output", "json")
    kept = run(*words, "--log")
    assert kept.code == 0, kept.err
    assert played.count(1200) == 1
    assert run(*words).json["mean_bounded_slowdown"] == kept.json["mean_bounded_slowdown"]
    with RunLog.open(tmp_path / "runs.db") as log:
        info = log.run("latest")
        told = log.events(info.id)
    assert info.summary["mean_bounded_slowdown"] == kept.json["mean_bounded_slowdown"]
    jobs = [event.fields["job"] for event in told if event.kind == "choice"]
    assert jobs == sorted(set(jobs))
    assert len(jobs) > 1
    rewarded = [job for event in told if event.kind == "reward" for job in event.fields["job"]]
    assert sorted(rewarded) == list(range(1200))


def test_a_comparison_fits_into_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ("compare", "trace:lublin?num_jobs=400&num_procs=32&load=1.2", "--strategies", "fcfs,multifactor")
    for more in (("--windows", "3", "--window-size", "100"), ("--backfill", "none,conservative")):
        ran = run(*words, *more)
        assert ran.code == 0, ran.err
        assert max(map(len, ran.out.splitlines())) <= 80
        assert "…" not in ran.out
        for word in ("multifactor", "slowdown", "longest"):
            assert word in ran.out


def test_quiet_prints_the_best_strategy(run: Run, swf: Path) -> None:
    assert run("compare", swf, "--strategies", "fcfs", "--output", "quiet").out == "fcfs\n"


def test_mistakes_of_a_comparison_are_one_line(run: Run, swf: Path, diamond: Path) -> None:
    run("compare", swf, "--strategies", "fcfs,sjff").assert_refused("did you mean sjf")
    run("compare", swf, "--strategies", ",").assert_refused("--strategies")
    run("compare", swf, swf).assert_refused("compare strategies on one")
    run("compare", swf, "--windows", "2").assert_refused("too few for windows of 5000")
    run("compare", diamond, "-c", CLUSTER, "--procs", "3").assert_refused("--procs", "about traces")


def test_ctrl_c_keeps_the_finished_replays(run: Run, swf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stretto.queues import compare as module

    def in_order(work: Any, tasks: list[Any], _: int) -> Any:
        yield work(tasks[0])
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(module, "_in_order", in_order)
    ran = run("compare", swf, "--strategies", "fcfs,sjf", "--output", "json")
    assert ran.code == 130
    assert [row["strategy"] for row in ran.json["rows"]] == ["fcfs"]
    assert ran.err == "stretto: interrupted: 1 of 3 replays are in the result\n"


def test_a_comparison_is_drawn(run: Run, swf: Path, tmp_path: Path) -> None:
    ran = run("compare", swf, "--strategies", "fcfs,sjf", "--plot", tmp_path / "new", "--output", "json")
    assert sorted(Path(path).name for path in ran.json["plots"]) == [
        *("slowdowns.png", "slowdowns.svg", "strategies.png", "strategies.svg")
    ]


@pytest.mark.parametrize(
    ("what", "table"),
    [
        ("strategies", catalog.STRATEGIES | catalog.SELECTORS | catalog.RECORDS),
        ("backfills", catalog.BACKFILLS),
        ("estimates", catalog.ESTIMATES),
        ("pool-rules", catalog.POOL_RULES),
        ("traces", catalog.TRACES),
        ("sites", catalog.SITES),
    ],
)
def test_everything_is_listed_with_a_summary(run: Run, what: str, table: dict[str, str]) -> None:
    entries = run("list", what, "--output", "json").json
    assert [entry["name"] for entry in entries] == list(table)
    assert all(len(entry["summary"]) > 10 for entry in entries)
    assert run("list", what, "--output", "quiet").out.split() == list(table)
    assert "what it is" in run("list", what).out


@pytest.mark.parametrize(
    ("log", "words", "slowdown", "wait"),
    [
        ("SDSC-SP2-1998-4.2-cln", ("--backfill", "easy"), "92.6288", "21183.67"),
        ("SDSC-SP2-1998-4.2-cln", ("--backfill", "conservative"), "102.4356", "25147.16"),
        ("lublin_256_new2", ("--backfill", "none"), "54575.2455", "1172120.15"),
    ],
)
def test_reference_values_from_the_shell(
    run: Run, data_dir: Path, log: str, words: tuple[str, ...], slowdown: str, wait: str
) -> None:
    figures = run("replay", data_dir / "swf" / f"{log}.swf.gz", *words, "--output", "json").json
    assert f"{figures['mean_bounded_slowdown']:.4f}" == slowdown
    assert f"{figures['mean_wait_s']:.2f}" == wait
