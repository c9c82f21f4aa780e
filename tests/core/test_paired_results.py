"""Paired differences and tables of results, worked out by hand."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto.core.results.latex import escape, latex_table
from stretto.core.results.paired import Bootstrap, PairedDifference, paired_difference
from stretto.core.results.table import Record, ResultTable
from stretto.errors import InvalidInput, MissingExtra, UnknownName

PLAIN = PairedDifference("a", "b", "x", True, 1.2, 1.1, 1.3, 0.95, 3, 0, 1, 2)


@pytest.mark.parametrize(
    ("is_ratio", "low", "high", "is_clear"),
    [
        *((True, 1.1, 1.3, True), (True, 0.7, 0.9, True), (True, 0.9, 1.1, False), (True, 1.0, 1.1, False)),
        *((True, 0.9, 1.0, False), (False, 0.1, 0.2, True), (False, -0.2, -0.1, True), (False, -0.1, 0.1, False)),
        *((False, 0.0, 0.1, False), (False, -0.1, 0.0, False), (True, math.nan, math.nan, False)),
    ],
)
def test_a_difference_is_clear_where_its_interval_leaves_out_none(
    is_ratio: bool, low: float, high: float, is_clear: bool
) -> None:
    assert replace(PLAIN, is_ratio=is_ratio, low=low, high=high).is_clear is is_clear


def test_a_difference_as_json() -> None:
    told = replace(PLAIN, low=math.nan, effect=math.inf).to_json()
    assert told == {
        "method": "a", "baseline": "b", "figure": "x", "is_ratio": True, "effect": None, "low": None, "high": 1.3,
        "confidence": 0.95, "num_cases": 3, "num_better": 0, "num_equal": 1, "num_worse": 2, "is_clear": False,
    }  # fmt: skip


def test_effects_are_geometric_means_of_ratios_or_means_of_differences() -> None:
    values: dict[object, dict[object, float]] = {1: {0: 2.0, 1: 8.0}, 2: {0: 1.0}, 3: {0: 5.0}, 4: {7: 1.0}}
    base: dict[object, dict[object, float]] = {1: {0: 1.0, 1: 1.0, 2: 9.0}, 2: {0: 2.0}, 3: {0: 5.0}, 4: {8: 1.0}}
    found = paired_difference(("a", values), ("b", base), "seconds")
    assert found.effect == pytest.approx((4.0 * 0.5 * 1.0) ** (1 / 3))
    assert (found.method, found.baseline, found.figure, found.is_ratio, found.confidence) == (
        "a", "b", "seconds", True, 0.95,
    )  # fmt: skip
    assert (found.num_cases, found.num_better, found.num_equal, found.num_worse) == (3, 1, 1, 1)
    minus = paired_difference(("a", values), ("b", base), "seconds", ratio=False, bootstrap=Bootstrap(confidence=0.5))
    assert minus.effect == pytest.approx(((1 + 7) / 2 - 1 + 0) / 3)
    assert (minus.is_ratio, minus.confidence) == (False, 0.5)
    assert minus.low < minus.effect < minus.high
    assert (minus.num_better, minus.num_equal, minus.num_worse) == (1, 1, 1)


def test_figures_without_a_ratio_are_refused_unless_they_are_equal() -> None:
    def one(value: float, reference: float) -> PairedDifference:
        return paired_difference(("a", {1: {0: value}}), ("b", {1: {0: reference}}), "x")

    assert one(0.0, 0.0).effect == 1.0
    assert one(1.0, 1.0 + 1e-13).num_equal == 1
    for value, reference in ((0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, -1.0)):
        with pytest.raises(InvalidInput) as caught:
            one(value, reference)
        assert str(caught.value) == f"ratio: {value} against {reference} has no ratio: ask for ratio=False"
    with pytest.raises(InvalidInput) as caught:
        paired_difference(("a", {1: {0: 1.0}}), ("b", {1: {2: 1.0}}), "x")
    assert str(caught.value) == "baseline: a and b have no case in common"


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"confidence": 0.0}, "confidence: 0.0 must lie between 0 and 1"),
        ({"confidence": 1.0}, "confidence: 1.0 must lie between 0 and 1"),
        ({"num_resamples": 0}, "num_resamples: 0 must be at least 1"),
    ],
)
def test_a_bootstrap_that_makes_no_sense_is_refused(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Bootstrap(**wrong)
    assert str(caught.value) == text
    assert Bootstrap(num_resamples=1).interval([np.array([3.0]), np.array([3.0])]) == (3.0, 3.0)


def test_an_interval_is_fixed_by_its_seed_and_grows_with_its_confidence() -> None:
    cases = [np.array([1.0, 4.0]), np.array([2.0]), np.array([8.0, 9.0, 1.0])]
    few, many = Bootstrap(num_resamples=500), [np.random.default_rng(0).random(20), np.random.default_rng(1).random(20)]
    assert few.interval(many) == few.interval(many)
    assert few.interval(many) != replace(few, seed=1).interval(many)
    narrow, wide = (Bootstrap(confidence=level).interval(cases) for level in (0.5, 0.95))
    assert wide[0] < narrow[0] < np.mean([case.mean() for case in cases]) < narrow[1] < wide[1]
    assert 1.0 <= wide[0] < wide[1] <= 9.0
    assert all(math.isnan(end) for end in few.interval([np.array([1.0])]))
    low, high = few.interval([np.array([1.0, 2.0])])  # one case, whose repeats are drawn
    assert (low, high) == (1.0, 2.0)


def test_an_interval_holds_the_share_of_means_that_it_claims() -> None:
    """Two cases of one value each: their mean is 0, 1 or 2, with the probabilities 1/4, 1/2 and 1/4."""
    cases = [np.array([0.0]), np.array([2.0])]
    assert Bootstrap(confidence=0.45).interval(cases) == (1.0, 1.0)
    assert Bootstrap(confidence=0.55).interval(cases) == (0.0, 2.0)


# Tables -------------------------------------------------------------------------------------------


class Table(ResultTable):
    """Rows that are given."""

    METHOD = ("policy", "rule")
    CASE = ("graph",)
    REPEAT = ("seed",)
    FIGURE = "cost"

    def __init__(self, *rows: tuple[str, str, str, int, object, float]) -> None:
        names = ("policy", "rule", "graph", "seed", "cost", "speed")
        self.rows = [dict(zip(names, row, strict=True)) for row in rows]

    def records(self) -> list[Record]:
        return self.rows

    def summary_records(self) -> list[Record]:
        return self.rows[:1]


def table() -> Table:
    return Table(
        ("a", "x", "g", 0, 1.0, 5.0), ("a", "x", "h", 0, 2.0, 5.0), ("b", "x", "g", 0, 2.0, 1.0),
        ("b", "x", "h", 0, 8, 1.0), ("b", "y", "g", 0, None, 2.0), ("b", "y", "h", 1, 4.0, 2.0),
    )  # fmt: skip


def test_methods_are_compared_with_the_first_or_a_named_one() -> None:
    assert table().methods() == ["a + x", "b + x", "b + y"]
    both = Table(*(tuple(row.values()) for row in table().rows[:4]))  # type: ignore[arg-type]
    (found,) = both.paired()
    assert (found.method, found.baseline, found.figure) == ("b + x", "a + x", "cost")
    assert found.effect == pytest.approx((2 * 4) ** 0.5)
    assert found.num_cases == 2
    (other,) = both.paired("b", figure="speed", ratio=False, bootstrap=Bootstrap(confidence=0.8))
    assert (other.method, other.baseline, other.effect, other.confidence) == ("a + x", "b + x", 4.0, 0.8)
    assert both.paired("b + x")[0].effect == pytest.approx(1 / found.effect)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: table().paired("b"), "unknown baseline 'b'"),  # with which rule?
        (lambda: table().paired("a +"), "unknown baseline 'a +'"),
        (lambda: table().paired(figure="price"), "unknown figure 'price'"),
        (lambda: table().paired(figure="policy"), "figure: policy holds no numbers"),
        (lambda: Table().paired(), "rows: there are no rows to compare"),
        (lambda: table().to_latex(columns=["cost", "price"]), "unknown column 'price'"),
        (lambda: table().save("rows.xls"), "save: 'rows.xls' must end in .csv, .parquet or .tex"),
    ],
)
def test_what_a_table_does_not_have_is_refused(wrong: Any, text: str) -> None:
    with pytest.raises((InvalidInput, UnknownName)) as caught:
        wrong()
    assert text in str(caught.value)


def test_tables_as_text_and_as_files(tmp_path: Path) -> None:
    text = "policy,rule,graph,seed,cost,speed\na,x,g,0,1.0,5.0\n"
    assert table().to_csv(summary=True) == text
    assert table().to_csv().startswith(text)
    assert table().to_csv().splitlines()[5] == "b,y,g,0,,2.0"
    assert Table().to_csv() == "\n"
    for name in ("rows.csv", "rows.tex"):
        assert table().save(str(tmp_path / name)) == tmp_path / name
    assert (tmp_path / "rows.csv").read_text() == table().to_csv()
    assert (tmp_path / "rows.tex").read_text() == table().to_latex()
    assert table().to_latex(columns=["speed"]).splitlines()[3:6] == ["\\toprule", "speed \\\\", "\\midrule"]


@pytest.mark.parametrize(
    ("module", "make", "extra"),
    [
        ("pandas", lambda: table().to_pandas(), "pandas"),
        ("pyarrow", lambda: table().to_parquet("rows.parquet"), "parquet"),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    module: str, make: Any, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as caught:
        make()
    assert module in str(caught.value)
    assert f"stretto[{extra}]" in str(caught.value)


def test_a_whole_table_in_latex() -> None:
    rows = [{"a_b": "x&y", "gap": 0.5, "num_best": 3}, {"a_b": None, "gap": -12345.6, "num_best": 3}]
    assert latex_table(rows, ["a_b", "gap", "num_best"], caption="5 $", label="tab:x_y", digits=2).splitlines() == [
        r"\begin{table}", r"\centering", r"\caption{5 \$}", r"\label{tab:x_y}", r"\begin{tabular}{lrr}", r"\toprule",
        r"a b & gap & num best \\", r"\midrule", r"x\&y & 0.50 & 3 \\", r"-- & \textbf{-12,346} & 3 \\",
        r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip
    assert latex_table(rows, ["gap"]).endswith("\\end{table}\n")
    assert "0.5000" in latex_table(rows, ["gap"])


def test_every_character_that_latex_reads_is_escaped() -> None:
    assert escape("&%$#_{}") == r"\&\%\$\#\_\{\}"
    assert escape("a") == "a"
    numbers = [math.inf, 100.0, 0.5, 9999.25, 1e4, 1e-5, True]
    body = latex_table([{"x": number} for number in numbers], ["x"]).split("\\midrule\n")[1].splitlines()[:7]
    written = ["--", "100.0", "0.5000", "9,999", "10,000", r"\textbf{$1.000 \cdot 10^{-5}$}", "True"]
    assert body == [rf"{number} \\" for number in written]
