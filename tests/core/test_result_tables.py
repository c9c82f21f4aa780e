"""Tables of results: every row reaches pandas, CSV, Parquet and LaTeX, and differences are paired by case."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import stretto
from stretto.core.results.latex import escape, latex_table
from stretto.core.results.paired import Bootstrap, paired_difference
from stretto.errors import InvalidInput, UnknownName
from stretto.graphs.compare import Comparison
from stretto.queues.compare import QueueComparison, compare_strategies
from stretto.queues.workloads.lublin import lublin


@pytest.fixture(scope="module")
def graphs() -> Comparison:
    work = [stretto.workloads.random_dag(num_tasks=20, seed=seed) for seed in range(5)]
    return stretto.compare(work, "cpu:2x1,gpu:1x4", ["heft", "random", "round-robin"], seeds=(0, 1))


@pytest.fixture(scope="module")
def queues() -> QueueComparison:
    trace = lublin(600, seed=1, num_procs=64, load=0.9)
    return compare_strategies(trace, 64, ["fcfs", "sjf"], backfills=("easy", "none"), num_windows=6, window_jobs=200)


@pytest.mark.parametrize("name", ["graphs", "queues"])
def test_all_formats_hold_all_rows(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    table = request.getfixturevalue(name)
    frame = table.to_pandas()
    assert frame.to_dict("records") == table.records()
    assert len(frame) == len(table.rows)
    read = list(csv.DictReader(io.StringIO(table.to_csv(tmp_path / "rows.csv"))))
    assert (tmp_path / "rows.csv").read_text() == table.to_csv()
    figures = [float(row[table.FIGURE]) for row in read]
    assert figures == [record[table.FIGURE] for record in table.records()]
    table.save(tmp_path / "rows.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "rows.parquet"), frame, check_dtype=False)
    assert len(table.to_pandas(summary=True)) == len(table.summary())


@pytest.mark.parametrize("name", ["graphs", "queues"])
def test_latex_has_a_line_per_method(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    table = request.getfixturevalue(name)
    text = table.save(tmp_path / "table.tex").read_text()
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    assert len([line for line in body.splitlines() if line.endswith(r"\\")]) == len(table.summary())
    assert r"\textbf{" in body
    with pytest.raises(UnknownName, match="column"):
        table.to_latex(columns=["makespan"])


def test_latex_is_told_its_columns_caption_label_and_digits(graphs: Comparison, tmp_path: Path) -> None:
    name = next(iter(graphs.summary_records()[0]))
    text = graphs.to_latex(tmp_path / "t.tex", columns=[name], caption="50 %", label="tab:x", digits=2)
    assert (tmp_path / "t.tex").read_text() == text
    assert "\\caption{50 \\%}\n\\label{tab:x}\n\\begin{tabular}{l}" in text
    assert text == latex_table(graphs.summary_records(), [name], caption="50 %", label="tab:x", digits=2)
    plain = graphs.to_latex()
    assert "caption" not in plain
    assert "label" not in plain
    assert graphs.to_latex(digits=2) != plain == graphs.to_latex(digits=4)


def test_numbers_in_latex_are_short_and_the_best_is_bold() -> None:
    rows = [
        {"gap": 1.5, "utilization": 0.5, "n": 3, "yes": True, "none": None, "same": 2.0},
        {"gap": 12345.6, "utilization": 0.75, "n": 12, "yes": False, "none": None, "same": 2.0},
    ]
    text = latex_table(rows, list(rows[0]), digits=3)
    body = text.split("\\midrule\n")[1].splitlines()
    assert body[0] == r"\textbf{1.50} & 0.500 & \textbf{3} & True & -- & 2.00 \\"
    assert body[1] == r"12,346 & \textbf{0.750} & 12 & False & -- & 2.00 \\"
    assert "{rrrllr}" in text
    more = latex_table([{"num_best": 1, "speedup": 2.0}, {"num_best": 4, "speedup": 1.5}], ["num_best", "speedup"])
    assert r"1 & \textbf{2.000} \\" in more
    assert r"\textbf{4} & 1.500 \\" in more
    assert escape("a~b^c") == r"a\textasciitilde{}b\textasciicircum{}c"


def test_special_characters_are_escaped() -> None:
    assert escape(r"50_% {a}\b") == r"50\_\% \{a\}\textbackslash{}b"
    text = latex_table([{"policy": "a_b", "gap": 1e-7}, {"policy": "c", "gap": math.nan}], ["policy", "gap"])
    assert r"a\_b & $1.000 \cdot 10^{-7}$ \\" in text
    assert r"c & -- \\" in text


def test_differences_are_paired_by_case_and_seed(graphs: Comparison) -> None:
    found = {item.method: item for item in graphs.paired("heft")}
    by_case: dict[str, list[float]] = {}
    heft = {(r["graph"], r["seed"]): r["makespan_s"] for r in graphs.records() if r["policy"] == "heft"}
    for row in graphs.records():
        if row["policy"] == "random":
            by_case.setdefault(row["graph"], []).append(math.log(row["makespan_s"] / heft[row["graph"], row["seed"]]))
    means = [float(np.mean(values)) for values in by_case.values()]
    assert found["random"].effect == pytest.approx(math.exp(np.mean(means)))
    assert found["random"].num_cases == 5
    assert found["random"].num_worse == sum(mean > 1e-12 for mean in means)
    assert found["random"].low <= found["random"].effect <= found["random"].high


def test_the_interval_is_that_of_scipy_where_cases_have_one_value() -> None:
    rng = np.random.default_rng(3)
    values = rng.exponential(size=40)
    low, high = Bootstrap(num_resamples=20_000).interval([np.array([value]) for value in values])
    found = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", random_state=5
    ).confidence_interval
    assert low == pytest.approx(found.low, abs=0.02)
    assert high == pytest.approx(found.high, abs=0.02)


def test_a_constant_difference_has_a_narrow_interval_and_chance_a_wide_one() -> None:
    base = {case: {0: 10.0 * case} for case in range(1, 20)}
    twice = {case: {0: 20.0 * case} for case in range(1, 20)}
    found = paired_difference(("twice", twice), ("base", base), "seconds")
    assert (found.effect, found.low, found.high) == pytest.approx((2.0, 2.0, 2.0))
    assert found.is_clear
    assert found.num_worse == 19
    mixed = {case: {0: 10.0 * case * (2.0 if case % 2 else 0.5)} for case in range(1, 20)}
    assert not paired_difference(("mixed", mixed), ("base", base), "seconds").is_clear


def test_cases_that_only_one_method_has_are_left_out() -> None:
    found = paired_difference(("a", {1: {0: 2.0}, 2: {0: 9.0}}), ("b", {1: {0: 1.0}}), "seconds", ratio=False)
    assert (found.effect, found.num_cases) == (1.0, 1)
    assert math.isnan(found.low)
    assert found.to_json()["low"] is None
    assert not found.is_clear
    with pytest.raises(InvalidInput, match="no case in common"):
        paired_difference(("a", {1: {0: 2.0}}), ("b", {2: {0: 1.0}}), "seconds")


def test_a_strategy_is_named_with_its_backfilling(queues: QueueComparison) -> None:
    assert queues.methods() == ["fcfs + easy", "sjf + easy", "fcfs + none", "sjf + none"]
    found = queues.paired("fcfs + none", figure="mean_wait_s", ratio=False)
    assert [item.method for item in found] == ["fcfs + easy", "sjf + easy", "sjf + none"]
    with pytest.raises(UnknownName, match="fcfs"):
        queues.paired("fcfs")  # with which backfilling?
    with pytest.raises(UnknownName, match="figure"):
        queues.paired("fcfs + easy", figure="wait")
