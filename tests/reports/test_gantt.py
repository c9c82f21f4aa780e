"""Gantt charts: complete files, honest content, safe with hostile names."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule, Transfers
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.graphs.workloads.factorizations import cholesky
from stretto.reports.gantt.chart import lanes, make_chart
from stretto.reports.gantt.draw import draw_gantt
from stretto.reports.page.html import script_json
from stretto.reports.plots import colors
from stretto.reports.plots.canvas import time_unit
from stretto.workloads import random_dag

HOSTILE = '</script><b>bold</b><img src=x onerror="alert(1)">'


def list_schedule(problem: Problem) -> Schedule:
    """Place tasks in topological order where they finish first, and record the transfers."""
    a = problem.arrays
    n, m = problem.num_tasks, problem.num_devices
    device, start, finish, free = np.zeros(n, dtype=np.int32), np.zeros(n), np.zeros(n), np.zeros(m)
    moves: dict[tuple[int, int], tuple[int, float, float]] = {}
    for task in a.topo.tolist():
        reads = range(a.in_ptr[task], a.in_ptr[task + 1])
        best = (np.inf, 0, 0.0)
        for d in range(m):
            ready = max([_arrival(a, device, finish, int(r), d)[2] for r in reads], default=0.0)
            begin = max(ready, free[d], a.release[task])
            best = min(best, (begin + a.duration[task, a.device_class[d]], d, begin))
        finish[task], device[task], start[task] = best
        free[best[1]] = best[0]
        for r in reads:
            move = _arrival(a, device, finish, int(r), best[1])
            if move[2] > move[1]:
                moves.setdefault((int(a.in_object[r]), best[1]), move)
    rows = list(moves.items())
    transfers = Transfers(
        np.array([key[0] for key, _ in rows], dtype=np.int32),
        np.array([move[0] for _, move in rows], dtype=np.int32),
        np.array([key[1] for key, _ in rows], dtype=np.int32),
        np.array([move[1] for _, move in rows]),
        np.array([move[2] for _, move in rows]),
    )
    return Schedule(device, start, finish, "sequence", transfers=transfers)


def _arrival(a, device, finish, read: int, target: int) -> tuple[int, float, float]:  # type: ignore[no-untyped-def]
    producer, size = a.in_task[read], a.in_size[read]
    source = int(device[producer])
    left = float(finish[producer])
    if source == target or size == 0:
        return source, left, left
    return source, left, left + float(a.latency[source, target] + size * a.inv_bandwidth[source, target])


@pytest.fixture(scope="module")
def small() -> tuple[Problem, Schedule]:
    problem = Problem.of(cholesky(4), Cluster.parse("cpu:3,gpu:1@16GB/s"))
    return problem, list_schedule(problem)


def hostile() -> tuple[Problem, Schedule]:
    build = GraphBuilder(f"graph {HOSTILE}")
    names = [HOSTILE, "$\\frac{$", "_hidden", "null\x00\x1b and \u2028 line", "surrogate \ud800", "日本 & <i>"]
    for previous, name in enumerate(names, start=-1):
        task = build.task(name, 1.0, category=f"kind {name}")
        if previous >= 0:
            build.edge(previous, task, 1e8)
    cluster = Cluster.uniform([Device(f"{HOSTILE}{i}", machine=f"m{i} $x$") for i in range(2)], name="@DATA@")
    problem = Problem.of(build.graph(), cluster)
    return problem, list_schedule(problem)


def page_data(path: Path) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    data = json.loads(found.group(1))
    assert isinstance(data, dict)
    return data


def test_png_shows_something(small: tuple[Problem, Schedule], tmp_path: Path) -> None:
    from matplotlib.image import imread

    draw_gantt(*small, tmp_path / "a.png", lower_bound_s=small[1].makespan_s / 2)
    pixels = imread(tmp_path / "a.png")
    assert pixels.shape[0] > 200
    assert pixels.shape[1] > 1000
    legend = {color for _, color in make_chart(*small).legend}
    for color in legend:  # every category is visible in its own color
        wanted = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        assert (np.abs(pixels[..., :3] - wanted).max(axis=2) < 0.01).sum() > 50, color


def test_svg_is_xml_with_readable_text(small: tuple[Problem, Schedule], tmp_path: Path) -> None:
    draw_gantt(*small, tmp_path / "a.svg", title="A & B <c>")
    texts = [node.text for node in ET.parse(tmp_path / "a.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert "A & B <c>" in texts
    assert "gpu0" in texts
    assert any(text is not None and text.startswith("makespan") for text in texts)


def test_svg_is_reproducible(small: tuple[Problem, Schedule], tmp_path: Path) -> None:
    draw_gantt(*small, tmp_path / "a.svg")
    draw_gantt(*small, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_nothing_is_left_beside_the_file(small: tuple[Problem, Schedule], tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"a.{ending}"
    target.write_text("old")
    draw_gantt(*small, target)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert target.read_bytes() != b"old"


def test_failure_leaves_the_old_file(
    small: tuple[Problem, Schedule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.html"
    target.write_text("old")

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(InvalidInput, match="No space left"):
        draw_gantt(*small, target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]


def test_wrong_ending_and_missing_folder(small: tuple[Problem, Schedule], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"\.gif"):
        draw_gantt(*small, tmp_path / "a.gif")
    with pytest.raises(InvalidInput, match="No such file"):
        draw_gantt(*small, tmp_path / "none" / "a.html")


def test_schedule_of_another_problem(small: tuple[Problem, Schedule], tmp_path: Path) -> None:
    other = Problem.of(random_dag(7), small[0].cluster)
    with pytest.raises(InvalidInput, match="the problem 7"):
        draw_gantt(other, small[1], tmp_path / "a.png")


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_hostile_names_draw(tmp_path: Path, ending: str) -> None:
    draw_gantt(*hostile(), tmp_path / f"a.{ending}", title=f"@FACTS@ {HOSTILE} $x$")
    assert (tmp_path / f"a.{ending}").stat().st_size > 1000
    if ending == "svg":
        ET.parse(tmp_path / "a.svg")


def test_html_escapes_names(tmp_path: Path) -> None:
    problem, schedule = hostile()
    draw_gantt(problem, schedule, tmp_path / "a.html", title=f"@DATA@ {HOSTILE}")
    text = (tmp_path / "a.html").read_text()
    assert "<b>bold" not in text
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert "<title>@DATA@ &lt;/script&gt;" in text
    data = page_data(tmp_path / "a.html")
    assert sorted(data["names"]) == sorted(problem.graph.task_names or ())  # type: ignore[call-overload]


def test_html_needs_no_network(small: tuple[Problem, Schedule], tmp_path: Path) -> None:
    draw_gantt(*small, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|<link|\ssrc=", text)
    assert "default-src 'none'" in text


def test_html_holds_the_schedule(small: tuple[Problem, Schedule], tmp_path: Path) -> None:
    problem, schedule = small
    draw_gantt(problem, schedule, tmp_path / "a.html", lower_bound_s=0.01)
    data = page_data(tmp_path / "a.html")
    task = np.array(data["task"])
    np.testing.assert_allclose(data["start"], schedule.start_s[task], rtol=1e-7, atol=1e-9)  # type: ignore[arg-type]
    np.testing.assert_array_equal(np.array(data["row"]), schedule.device[task])
    assert data["bound"] == 0.01
    assert np.all(np.diff(np.array(data["row"])) >= 0)
    moves = data["moves"]
    assert isinstance(moves, dict)
    assert schedule.transfers is not None
    assert len(moves["row"]) == len(schedule.transfers.start_s) > 0


def test_ten_thousand_tasks_make_a_small_page(tmp_path: Path) -> None:
    problem = Problem.of(random_dag(10_000), Cluster.parse("cpu:4"))
    start = np.arange(10_000) / 4.0
    schedule = Schedule(np.arange(10_000, dtype=np.int32) % 4, start, start + 1, "sequence")
    draw_gantt(problem, schedule, tmp_path / "a.html")
    assert (tmp_path / "a.html").stat().st_size < 500_000
    assert page_data(tmp_path / "a.html")["names"] is None  # t0, t1, ... need no list


def test_devices_are_grouped_by_machine_and_kind() -> None:
    devices = [Device(f"d{i}", kind=("cpu", "gpu")[i % 2], machine=f"m{i // 4}") for i in range(8)]
    problem = Problem.of(TaskGraph.from_edges(np.ones(8), [], []), Cluster.uniform(devices))
    zero = np.zeros(8)
    chart = make_chart(problem, Schedule(np.arange(8, dtype=np.int32), zero, zero + [1, 2] * 4, "sequence"))
    assert [row.name for row in chart.rows] == [
        *("m0/d0", "m0/d2", "m0/d1", "m0/d3"),
        *("m1/d4", "m1/d6", "m1/d5", "m1/d7"),
    ]
    assert [row.starts_group for row in chart.rows] == [False, False, True, False] + [True, False] * 2
    assert [row.utilization for row in chart.rows] == [0.5, 0.5, 1.0, 1.0] * 2


def test_jobs_are_colored_when_there_are_no_categories() -> None:
    problem = Problem.of(Workload.of([random_dag(5), random_dag(9)]), Cluster.parse("cpu:2"))
    chart = make_chart(problem, list_schedule(problem))
    assert [label for label, _ in chart.legend] == ["job 1", "job 0"]  # the larger first
    assert chart.color.tolist() == [1] * 5 + [0] * 9


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=30),
)
def test_lanes_never_overlap_and_are_as_few_as_possible(tasks: list[tuple[int, int, int]]) -> None:
    device, start, length = (np.array(column) for column in zip(*tasks, strict=True))
    schedule = Schedule(device.astype(np.int32), start * 1.0, start + length * 1.0, "sequence")
    lane = lanes(schedule)
    for one, other in combinations(range(len(tasks)), 2):
        if (device[one], lane[one]) == (device[other], lane[other]):
            late, early = max(start[one], start[other]), min(start[one] + length[one], start[other] + length[other])
            assert late >= early
    for d in set(device.tolist()):
        times = range(30)
        at_once = [sum(s <= t < s + n for k, s, n in tasks if k == d) for t in times]
        assert lane[device == d].max() + 1 <= max(1, *at_once) + int((length[device == d] == 0).any())


def test_project_tasks_lie_in_lanes(tmp_path: Path) -> None:
    problem = Problem.of(TaskGraph.from_edges([2.0, 3.0, 1.0], [], []), Cluster.parse("cpu:1"))
    times = np.array([0.0, 1.0, 2.0])
    schedule = Schedule(np.zeros(3, dtype=np.int32), times, times + np.array([2.0, 3.0, 1.0]), "sequence")
    chart = make_chart(problem, schedule)
    assert chart.row.tolist() == [0, 1, 0]
    assert [row.name for row in chart.rows] == ["cpu0", ""]
    assert [row.utilization for row in chart.rows] == [0.75, 0.75]
    draw_gantt(problem, schedule, tmp_path / "a.png")


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), -1.0])
def test_wrong_bound(small: tuple[Problem, Schedule], tmp_path: Path, bound: float) -> None:
    with pytest.raises(InvalidInput, match="lower_bound_s"):
        draw_gantt(*small, tmp_path / "a.html", lower_bound_s=bound)


def test_rare_categories_share_the_last_color() -> None:
    codes = np.repeat(np.arange(15, dtype=np.int32), np.arange(15, 0, -1))
    color, kept = colors.by_frequency(codes, 15)
    assert kept == list(range(len(colors.PALETTE)))
    assert set(color[codes >= len(kept)].tolist()) == {len(kept)}
    assert np.array_equal(color[codes < len(kept)], codes[codes < len(kept)])


def test_text_contrasts_with_every_color() -> None:
    def luminance(color: str) -> float:
        return colors._luminance(*(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)))

    for color in (*colors.PALETTE, colors.REST):
        light, dark = sorted((luminance(color), luminance(colors.text_on(color))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, color


@pytest.mark.parametrize(
    ("span_s", "unit"),
    [(0.0, "s"), (3e-8, "ns"), (2e-5, "µs"), (0.5, "ms"), (1.0, "s"), (500, "s"), (700, "min"), (2e4, "h"), (5e5, "d")],
)
def test_time_unit(span_s: float, unit: str) -> None:
    assert time_unit(span_s)[0] == unit


def test_script_json_round_trips() -> None:
    value = {"a": ["</script>", "<!--", "&amp;", "\u2028"], "b": 1.5}
    text = script_json(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


def test_no_length_at_all(tmp_path: Path) -> None:
    problem = Problem.of(TaskGraph.from_edges([0.0], [], []), Cluster.parse("cpu:1"))
    schedule = Schedule(np.zeros(1, dtype=np.int32), np.zeros(1), np.zeros(1), "sequence")
    for ending in ("png", "html"):
        draw_gantt(problem, schedule, tmp_path / f"a.{ending}")
        assert (tmp_path / f"a.{ending}").stat().st_size > 1000
