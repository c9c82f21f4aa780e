"""What people read at a terminal of 80 columns: bars, clocks, units, percents, plurals, help."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import typer

from learning.pretend_trainer import PretendTrainer
from stretto import catalog
from stretto.cli.app import app
from stretto.cli.progress import ProgressBar, format_clock
from stretto.cli.training import TrainingBar
from stretto.core import units
from stretto.learning.loop import TrainBudget

from .conftest import CLUSTER, Run, in_terminal

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_bar_and_the_clock_stay_on_one_line(width: int) -> None:
    bar = ProgressBar("replaying lublin-3000-0 with many words of the name of a long trace", 12)
    for _ in range(6):
        bar.step("portfolio: bounded slowdown 1,234 and more news than there is room for on a narrow terminal")
    line = bar.line(width)
    assert line.cell_len <= width
    assert "━" in line.plain
    assert "╌" in line.plain
    assert "6/12 0 s" in line.plain


@pytest.mark.parametrize("width", [80, 120])
def test_a_training_has_a_bar_and_a_clock_from_the_start(width: int) -> None:
    bar = TrainingBar("training doppler on 1,223 tasks", time_limit_s=40.0, episodes=None)
    bar._begin -= 10  # ten seconds of compiling
    line = bar.line(width).plain
    assert "━" in line
    assert "10 s of 40 s" in line
    assert "compiling" in line
    bar.tell(320, ["best 134.4 ms", "mean 151.2 ms", "320 episodes"], "simulator")
    told = bar.line(width)
    assert "10 s of 40 s  best 134.4 ms" in told.plain
    assert told.cell_len <= width


def test_clocks() -> None:
    assert [format_clock(value) for value in (0.4, 59.9, 60, 187, 8100)] == ["0 s", "59 s", "1:00", "3:07", "2:15:00"]


def test_times_of_a_column_have_one_unit() -> None:
    assert units.format_seconds_alike([2.091, 0.05057, 0.0002]) == ["2.091 s", "0.051 s", "<0.001 s"]
    assert units.format_seconds_alike([119.8 * 60, 4.395 * 3600]) == ["7,188 s", "15,822 s"]
    assert units.format_seconds_alike([0.1344, 0.00912]) == ["134.4 ms", "9.1 ms"]
    assert units.format_seconds_alike([0.0, 0.0]) == ["0 s", "0 s"]
    assert units.format_seconds_alike([]) == []
    assert units.format_waits_alike([119.8 * 60, 4.395 * 3600]) == ["2.0 h", "4.4 h"]
    assert units.format_waits_alike([30.0, 3 * 86400.0]) == ["<0.1 d", "3.0 d"]
    assert units.format_waits_alike([0.0, 12.0]) == ["0.0 s", "12.0 s"]


def test_small_times_are_written_with_a_micro_sign_and_read_with_it() -> None:
    assert units.format_seconds(5e-5) == "50 µs"
    for text in ("50us", "50 µs", "50μs"):  # u, the micro sign, and the Greek letter
        assert units.parse_seconds(text) == pytest.approx(5e-5)


def test_percents_counts_and_comparisons() -> None:
    assert units.format_percent(0.719) == "71.9 %"
    assert units.format_percent(0.019, is_signed=True) == "+1.9 %"
    assert [units.format_count(number, "device") for number in (0, 1, 2000)] == [
        "0 devices",
        "1 device",
        "2,000 devices",
    ]
    assert units.better_or_worse(101.9, 100.0) == "1.9 % worse"
    assert units.better_or_worse(90.0, 100.0) == "10.0 % better"
    assert units.better_or_worse(100.0, 100.0) == "as good"


def test_one_style_of_percents_and_right_plurals_in_the_output(run: Run, diamond: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    trace = "trace:lublin?num_jobs=200&num_procs=64"
    for words in (
        ("plan", diamond, "-c", "cpu:1", "--save", plan),
        ("plan", diamond, "-c", CLUSTER),
        ("simulate", plan),
        ("show", "cpu:1"),
        ("compare", diamond, "-c", CLUSTER, "--policies", "heft,met,olb"),
        ("compare", trace, "--strategies", "fcfs,sjf", "--windows", "3", "--window-size", "50"),
        ("replay", trace),
        ("explain", trace),
    ):
        out = run(*words).out
        assert not re.search(r"\d%", out), out
        assert not re.search(r"\b1 (devices|tasks|graphs|edges|jobs|windows|processors)\b", out), out
    assert "1 device)" in run("plan", diamond, "-c", "cpu:1").out


def test_a_column_of_a_comparison_has_one_unit(run: Run, diamond: Path) -> None:
    lines = run(
        "compare", diamond, "-c", CLUSTER, "--policies", "heft,annealing", "--time-limit", "1.2s"
    ).out.splitlines()
    planned = [re.sub(r".*\s<?[\d.,]+ (\S+)$", r"\1", line) for line in lines if re.match(r"(heft|annealing)  ", line)]
    assert len(planned) == 2
    assert len(set(planned)) == 1


def test_help_names_no_types_of_python(run: Run) -> None:
    for name in COMMANDS:
        out = run(name, "--help").out
        assert not re.search(r"<(str|int|float|list\[|path|text)", out, re.IGNORECASE), out


class _SlowToCompile(PretendTrainer):
    def compile(self) -> None:
        time.sleep(1.0)


def test_compiling_counts_in_the_budget_and_an_overrun_is_explained(
    run: Run, diamond: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(catalog.TRAINERS, "slow", f"{__name__}:_SlowToCompile")
    words = ("train", "slow", diamond, "-c", CLUSTER, "--no-log", "--output", "json")
    found = run(*words, "--budget", "0.5s").json
    assert found["compile_seconds"] >= 1.0
    assert found["episodes"] == 4  # one step: the budget was over before it


def test_an_overrun_of_the_budget_is_explained() -> None:
    budget = TrainBudget(40.0)
    budget.parts = {"compiling": 50.0, "training": 1.5}
    told = budget.overrun()
    assert told == "40 s, exceeded by 11.5 s (at least one step is trained): compiling took 50 s, training took 1.5 s"
    assert budget.left_s is not None
    budget.parts = {"compiling": 10.0, "training": 31.0}
    assert budget.overrun() is None
    assert TrainBudget(None).left_s is None


def test_the_bar_is_drawn_on_a_terminal_of_80_columns(command: list[str]) -> None:
    """From the start of the training to its end, with a clock; and nothing else is left behind."""
    words = ("train", "mars", "trace:lublin?num_jobs=200&num_procs=32", "--budget", "1s", "--no-log")
    text = in_terminal([*command, *words], columns=80)
    assert re.search(r"training mars on 120 jobs [━╌]{10} \d+ s of 1 s  ", text), text
    assert "\\u001b" not in text
