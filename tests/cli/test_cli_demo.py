"""``stretto demo``, with searches cut short."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run


def test_the_demo_compares_and_draws(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("demo", "--out", tmp_path / "pictures", "--time-limit", "0.2")
    assert ran.code == 0, ran.err
    pictures = sorted((tmp_path / "pictures").iterdir())
    assert [picture.suffix for picture in pictures] == [".html", ".png"]
    for words in ("All graphs", "annealing", "What to try next", *map(str, pictures)):
        assert words in ran.out.replace("\n", " ") or words in ran.out
    assert "stretto simulate plan.json" in ran.out


def test_the_demo_for_programs(run: Run, tmp_path: Path) -> None:
    found = run("demo", "--out", tmp_path, "--time-limit", "0.2", "--output", "json").json
    assert {row["policy"] for row in found["rows"]} >= {"heft", "annealing"}
    assert all(Path(picture).is_file() for picture in found["pictures"])
    best = found["summary"][0]
    assert best["mean_ratio"] <= min(line["mean_ratio"] for line in found["summary"])


def test_the_demo_cannot_write_over_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    run("demo", "--out", tmp_path / "taken").assert_refused("taken")
