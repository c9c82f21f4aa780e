"""``stretto compare`` and ``stretto bound``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from stretto.graphs.compare import PolicyRow

from .conftest import CLUSTER, Run


def test_all_policies_are_compared_and_ranked(run: Run, diamond: Path) -> None:
    ran = run(
        *("compare", diamond, "workload:fork-join", "-c", CLUSTER),
        *("--policies", "heft,cpop,peft", "--seeds", "0,1", "--output", "json"),
    )
    assert ran.code == 0, ran.err
    assert len(ran.json["rows"]) == 2 * 3 * 2
    ratios = [line["mean_ratio"] for line in ran.json["summary"]]
    assert ratios == sorted(ratios)
    assert ratios[0] >= 1
    for row in ran.json["rows"]:
        assert row["makespan_s"] >= row["lower_bound_s"] * (1 - 1e-9)


def test_quiet_prints_the_best_policy(run: Run, diamond: Path) -> None:
    words = ("compare", diamond, "-c", CLUSTER, "--policies", "heft,round-robin")
    best = run(*words, "--output", "json").json["summary"][0]["policy"]
    assert run(*words, "--output", "quiet").out == f"{best}\n"


def test_the_table_fits_into_80_columns(run: Run, diamond: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("compare", diamond, diamond, "-c", CLUSTER, "--policies", "heft,cpop")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "diamond (2)" in ran.out  # same name twice: still two graphs
    assert "All graphs" in ran.out


def test_a_policy_that_cannot_says_why(run: Run, data_dir: Path) -> None:
    project = f"{data_dir / 'taskgraphs' / 'psplib-j30.sm.zip'}#j3010_1.sm"
    words = ("compare", project, "-c", "shop:1", "--policies", "heft,peft,annealing", "--time-limit", "0.5")
    rows = {row["policy"]: row for row in run(*words, "--output", "json").json["rows"]}
    assert "renewable resources" in rows["heft"]["reason"]
    assert rows["annealing"]["makespan_s"] >= rows["annealing"]["lower_bound_s"] > 0
    assert "without result: heft, peft: projects" in run(*words).out


def test_ctrl_c_keeps_the_finished_rows(run: Run, diamond: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    from stretto.graphs import compare as module

    real = module.evaluate
    seen: list[str] = []

    def evaluate(problem: object, policy: str, **options: object) -> object:
        seen.append(policy)
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)
        return real(problem, policy, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "evaluate", evaluate)
    ran = run("compare", diamond, "-c", CLUSTER, "--policies", "heft,cpop,peft", "--output", "json")
    assert ran.code == 130
    assert [row["policy"] for row in ran.json["rows"]] == ["heft"]
    assert ran.err == "stretto: interrupted: 1 of 3 runs are in the result\n"


def test_ctrl_c_ends_the_comparison_even_if_a_search_swallows_it(
    run: Run, diamond: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import signal

    from stretto.graphs import compare as module

    real = module.evaluate

    def evaluate(*words: object, **options: object) -> object:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return real(*words, **options)  # type: ignore[arg-type]
        raise AssertionError("the signal was lost")

    monkeypatch.setattr(module, "evaluate", evaluate)
    ran = run("compare", diamond, "-c", CLUSTER, "--policies", "heft,cpop", "--output", "json")
    assert ran.code == 130
    assert len(ran.json["rows"]) == 1


def test_a_search_that_took_ctrl_c_for_itself_ends_the_comparison(
    run: Run, diamond: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stretto.graphs import compare as module

    real = module.evaluate

    def evaluate(*words: object, **options: object) -> object:
        result = real(*words, **options)  # type: ignore[arg-type]
        plan = dataclasses.replace(result.plan, info={"interrupted": True})
        return dataclasses.replace(result, plan=plan)

    monkeypatch.setattr(module, "evaluate", evaluate)
    ran = run("compare", diamond, "-c", CLUSTER, "--policies", "heft,cpop", "--output", "json")
    assert ran.code == 130
    assert [row["policy"] for row in ran.json["rows"]] == ["heft"]


def test_ctrl_c_before_the_first_result(run: Run, diamond: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(*_: object, **__: object) -> PolicyRow:
        raise KeyboardInterrupt

    monkeypatch.setattr("stretto.graphs.compare.evaluate", evaluate)
    ran = run("compare", diamond, "-c", CLUSTER, "--policies", "heft")
    assert (ran.code, ran.out, ran.err) == (130, "", "stretto: interrupted\n")


def test_bound_in_all_forms(run: Run, diamond: Path) -> None:
    words = ("bound", diamond, "-c", CLUSTER)
    found = run(*words, "--output", "json").json
    assert found["lower_bound_s"] == max(found["parts"].values())
    # The path split, right, join at the GPU's speed takes 1.25 s; all four there take 1.75 s, and that can be done.
    assert 1.25 * (1 - 1e-9) <= found["lower_bound_s"] <= 1.75
    assert float(run(*words, "--output", "quiet").out) == found["lower_bound_s"]
    assert "lower bound" in run(*words).out


def test_the_exact_bound_is_not_weaker_and_no_schedule_beats_it(run: Run, diamond: Path) -> None:
    quick = run("bound", diamond, "-c", CLUSTER, "--output", "json").json["lower_bound_s"]
    exact = run("bound", diamond, "-c", CLUSTER, "--exact", "--time-limit", "10", "--output", "json").json
    best = run("plan", diamond, "-c", CLUSTER, "--policy", "cp-sat", "--time-limit", "10", "--output", "json").json
    assert quick <= exact["lower_bound_s"] <= best["makespan_s"] * (1 + 1e-9)


@pytest.mark.parametrize(
    "words",
    [
        ["workload:fft", "workload:montage", "-c", "cpu:2,gpu:1", "--policies", "heft,peft", "--baseline", "heft"],
        [
            *("trace:lublin?num_jobs=400&num_procs=32", "--strategies", "fcfs,sjf", "--baseline", "fcfs"),
            *("--windows", "3", "--window-size", "50"),
        ],
    ],
)
def test_a_baseline_gives_paired_differences_and_save_a_table(words: list[str], run: Run, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    ran = run("compare", *words, "--save", table, "--output", "json")
    assert ran.code == 0, ran.err
    (line,) = ran.json["paired"]
    assert line["low"] <= line["effect"] <= line["high"]
    assert line["num_cases"] == (3 if "--windows" in words else 2)
    assert len(table.read_text().splitlines()) == 1 + len(ran.json["rows"])
    assert "case by case" in run("compare", *words).out


def test_what_cannot_be_saved_or_compared_is_said_before_the_work(run: Run) -> None:
    words = ("compare", "workload:fft", "-c", "cpu:2", "--policies", "heft,peft")
    saved, compared = run(*words, "--save", "table.xls"), run(*words, "--baseline", "hef")
    assert (saved.code, compared.code) == (2, 2)
    assert "must end in .csv, .parquet or .tex" in saved.err
    assert "did you mean heft" in compared.err
