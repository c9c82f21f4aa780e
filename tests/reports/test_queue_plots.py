"""Pictures of queues show what happened, and the same replay gives the same file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.trace import Trace
from stretto.errors import UnknownName
from stretto.queues.compare import compare_strategies
from stretto.queues.replay import replay
from stretto.queues.steps import binned, changes
from stretto.queues.workloads.lublin import lublin
from stretto.reports.plots.queues import draw_comparison, draw_replay, slowdown_curve, strategies_figure, timeline

TIMES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(1, 4)), min_size=1, max_size=20)


@settings(max_examples=80, deadline=None)
@given(TIMES, st.integers(1, 12))
def test_bins_equal_a_count_second_by_second(spans: list[tuple[int, int, int]], bin_s: int) -> None:
    begin, length, amount = (np.array(column, dtype=np.float64) for column in zip(*spans))
    num_bins = 8
    found = binned(changes(begin, begin + length, amount), float(num_bins * bin_s), num_bins)
    each = [
        sum(a for b, n, a in spans if b <= second < b + n)  # whole seconds: the value does not change within one
        for second in range(num_bins * bin_s)
    ]
    by_bin = np.array(each, dtype=np.float64).reshape(num_bins, bin_s)
    np.testing.assert_allclose(found.mean, by_bin.mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(found.most[:-1], by_bin.max(axis=1)[:-1], atol=1e-9)


def test_the_timeline_shows_the_queue_and_the_machine() -> None:
    # Two jobs of both processors, one after the other: the second waits ten seconds.
    result = replay(Trace.of([0, 0], [10, 10], [2, 2]), 2)
    top, bottom = timeline(result).axes
    waiting = top.patches[0].get_data()
    assert waiting.edges[-1] == 20
    half = len(waiting.values) // 2
    assert waiting.values[:half].mean() == pytest.approx(1)
    assert waiting.values[half:].mean() == pytest.approx(0)
    assert bottom.patches[0].get_data().values.mean() == pytest.approx(1)


def test_the_distribution_marks_its_percentiles() -> None:
    result = replay(lublin(300, seed=2, num_procs=16, load=1.2), 16)
    left, _ = slowdown_curve(result).axes
    texts = [text.get_text() for text in left.texts]
    assert [text.split()[0] for text in texts] == ["p50", "p95", "p99"]


def test_waits_are_marked_in_the_units_of_the_terminal() -> None:
    # Three of five jobs need not wait, one waits an hour and a half, and one three days.
    spans = [(0.0, 1.0), (10.0, 5410.0), (10.0, 253_800.0), (300_000.0, 1.0), (300_010.0, 1.0)]
    result = replay(Trace.of([one[0] for one in spans], [one[1] for one in spans], [1] * 5), 1, backfill="none")
    assert sorted(result.wait_s.tolist())[:3] == [0.0, 0.0, 0.0]
    figure = slowdown_curve(result)
    _, right = figure.axes
    marks = [text.get_text() for text in right.texts]
    assert marks[0] == "p50  0 s"
    ticks = [label.get_text() for label in right.get_xticklabels()]
    assert ticks[:3] == ["0 s", "1 s", "10 s"]
    assert right.get_xlabel() == "wait"
    assert right.lines[0].get_xdata()[0] == 0.0


def test_strategies_stand_in_the_order_of_the_summary() -> None:
    found = compare_strategies(lublin(300, seed=2, num_procs=16, load=1.2), 16, ["laf", "fcfs", "saf"])
    left = strategies_figure(found).axes[0]
    assert [label.get_text() for label in left.get_yticklabels()] == [line.strategy for line in found.summary()]


@pytest.mark.parametrize(
    "trace",
    [
        Trace.of([0], [5], [1]),
        Trace.of([0, 100], [5, 5], [1, 1]),
        Trace.of([0] * 5, [1e-3] * 5, [2] * 5, name="$x_1$ [bold]"),
        Trace.of([0, 1e7], [1, 1e7], [1, 2]),
    ],
    ids=["one job", "no wait", "odd name", "long"],
)
def test_unusual_replays_are_drawn(trace: Trace, tmp_path: Path) -> None:
    result = replay(trace, 2)
    written = draw_replay(result, tmp_path)
    written += draw_comparison(compare_strategies(trace, 2, ["fcfs", "sjf"]), tmp_path)
    assert len(written) == 8
    for path in written:
        head = path.read_bytes()[:8]
        assert head.startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")


def test_the_same_replay_gives_the_same_files(tmp_path: Path) -> None:
    trace = lublin(100, seed=5, num_procs=16)
    first = [path.read_bytes() for path in draw_replay(replay(trace, 16), tmp_path, ("svg",))]
    again = [path.read_bytes() for path in draw_replay(replay(trace, 16), tmp_path, ("svg",))]
    assert first == again
    with pytest.raises(UnknownName, match="kind of picture"):
        draw_replay(replay(trace, 16), tmp_path, ("gif",))
