"""Pictures of training runs: the files are made, hold the data, and survive odd runs."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from stretto.errors import InvalidInput
from stretto.learning.trainer import TrainingRow
from stretto.reports.plots.training import _Curve, _thinned, draw_training

ROWS = [
    TrainingRow(64 * (i + 1), 0.25 * (i + 1), 200.0 - i, 260.0 - 2 * i, math.nan if i % 3 else 230.0 - i, 3.0 - i / 20,
                "imitation" if i < 10 else "simulator" if i < 30 else "engine")
    for i in range(40)
]  # fmt: skip
BASELINES = {"HEFT": 237.2, "annealing": 150.0}


def page_data(path: Path) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    (view,) = json.loads(text)
    data: dict[str, Any] = view["training"]
    return data


def test_png_is_a_picture(tmp_path: Path) -> None:
    draw_training(ROWS, tmp_path / "run.png", title="a run", baselines=BASELINES)
    data = (tmp_path / "run.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 20_000


def test_svg_names_what_it_shows(tmp_path: Path) -> None:
    draw_training(ROWS, tmp_path / "run.svg", title="a run", baselines=BASELINES)
    text = "\n".join(node.text or "" for node in ET.parse(tmp_path / "run.svg").iter())
    for words in ("a run", "imitation", "simulator", "engine", "HEFT  237.2", "annealing  150", "best  161",
                  "mean  182", "greedy  191", "makespan (s)", "entropy", "episodes"):  # fmt: skip
        assert words in text, words
    assert "2,560 episodes in 10 s · 256 episodes/s · best 161 s · 7.3 % above annealing" in text


def test_html_holds_the_rows_and_needs_no_network(tmp_path: Path) -> None:
    draw_training(ROWS, tmp_path / "run.html", title="a <b>run</b> @DATA@", baselines=BASELINES)
    text = (tmp_path / "run.html").read_text()
    data = page_data(tmp_path / "run.html")
    values = {one["name"]: one["values"] for one in data["series"]}
    assert data["x"] == [row.episode for row in ROWS]
    assert data["seconds"] == [row.seconds for row in ROWS]
    assert data["stage"] == [row.stage for row in ROWS]
    assert (values["best_s"], values["mean_s"]) == ([row.best_s for row in ROWS], [row.mean_s for row in ROWS])
    assert values["entropy"] == pytest.approx([row.entropy for row in ROWS])
    assert values["greedy_s"][1] is None
    assert data["baselines"] == BASELINES
    assert "default-src 'none'" in text
    assert "<title>a &lt;b&gt;run" in text
    assert "<b>run" not in text
    assert not re.search(r"@import|<link|\ssrc=|href=\"http", text)


def test_the_same_run_makes_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw_training(ROWS, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_stages_follow_each_other() -> None:
    assert _Curve(ROWS, {}, "").stages == [
        ("imitation", 0.0, 640.0), ("simulator", 640.0, 1920.0), ("engine", 1920.0, 2560.0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        [{"episode": 10, "seconds": 0.0, "best_s": 2e-3}],
        [TrainingRow(0, 0.0, math.inf), TrainingRow(1, 0.1, 5.0, entropy=0.0)],
        [TrainingRow(5, 1.0, 3.0, 3.0), TrainingRow(5, 2.0, 3.0, 3.0)],
    ],
    ids=["one point", "nothing at first", "no progress"],
)
@pytest.mark.parametrize("ending", ["png", "html"])
def test_odd_runs_are_drawn(rows: Any, ending: str, tmp_path: Path) -> None:
    draw_training(rows, tmp_path / f"odd.{ending}")
    assert (tmp_path / f"odd.{ending}").stat().st_size > 5_000


def test_long_runs_are_thinned_but_keep_ends_and_stages() -> None:
    rows = [TrainingRow(i, i / 10, 1.0, stage="a" if i < 12_345 else "b") for i in range(50_000)]
    thin = _thinned(rows)
    assert len(thin) <= 2_001
    assert (thin[0].episode, thin[-1].episode) == (0, 49_999)
    assert next(row.episode for row in thin if row.stage == "b") == 12_345


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], {}, "no rows"),
        ([TrainingRow(2, 0.0, 1.0), TrainingRow(1, 0.0, 1.0)], {}, "must not decrease"),
        ([TrainingRow(1, 0.0, math.nan)], {}, "no row has a makespan"),
        ([{"episode": 1, "seconds": 1.0}], {}, "not the fields"),
        ([{"episode": 1, "seconds": 1.0, "best_s": 1.0, "worst": 2.0}], {}, "not the fields"),
        (ROWS, {"baselines": {"heft": math.nan}}, "baseline heft"),
    ],
)
def test_wrong_rows_are_refused(rows: Any, options: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=message):
        draw_training(rows, tmp_path / "x.png", **options)
    assert list(tmp_path.iterdir()) == []


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"\.gif"):
        draw_training(ROWS, tmp_path / "x.gif")
