"""``stretto demo``, with searches and training cut short."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.cli import demo_training

from .conftest import Run


def test_the_demo_compares_and_draws(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("demo", "--out", tmp_path / "pictures", "--time-limit", "0.2", "--train-seconds", "0")
    assert ran.code == 0, ran.err
    png, plan, html = sorted((tmp_path / "pictures").iterdir())
    assert [png.suffix, plan.name, html.name] == [".png", "plan.json", "report.html"]
    assert run("simulate", plan, "--output", "quiet").code == 0
    for words in ("Gap to the lower bound", "annealing", "What to try next", html.as_uri(), str(png), "█"):
        assert words in ran.out
    assert "stretto simulate plan.json" in ran.out
    assert max(map(len, ran.out.partition("What to try next")[0].splitlines())) <= 120


def test_the_demo_for_programs_learns_too(run: Run, tmp_path: Path) -> None:
    words = ("demo", "--out", tmp_path, "--time-limit", "0.2", "--train-seconds", "0.5", "--output", "json")
    found = run(*words).json
    assert {row["policy"] for row in found["rows"]} >= {"heft", "annealing"}
    assert all(Path(picture).is_file() for picture in found["pictures"])
    best = found["summary"][0]
    assert best["mean_ratio"] <= min(line["mean_ratio"] for line in found["summary"])
    lesson = found["training"]
    assert lesson["num_episodes"] > 0
    assert {"doppler, trained", "annealing"} <= {row["policy"] for row in lesson["rows"]}
    assert [row["makespan_s"] for row in lesson["rows"]] == sorted(row["makespan_s"] for row in lesson["rows"])


def test_the_demo_says_what_is_missing_for_learning(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_training, "missing_libraries", lambda: ["optax"])
    ran = run("demo", "--out", tmp_path, "--time-limit", "0.2", "--output", "quiet")
    assert ran.code == 0
    assert "without optax nothing is trained: pip install 'stretto[learn]'" in ran.err
    assert [Path(line).suffix for line in ran.out.split()] == [".json", ".png", ".html"]


def test_the_demo_cannot_write_over_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    run("demo", "--out", tmp_path / "taken").assert_refused("taken")
