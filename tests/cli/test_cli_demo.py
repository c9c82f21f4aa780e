"""``stretto demo``, with searches and training cut short."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stretto.api import demo as demo_training
from stretto.cli.commands import demo as demo_command

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


def test_what_to_try_next_works_when_pasted(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shlex
    import shutil

    from stretto.cli.commands.demo import next_steps

    monkeypatch.chdir(tmp_path)
    elsewhere = next_steps()
    shutil.copytree(Path(__file__).resolve().parents[2] / "examples", tmp_path / "examples")
    in_a_clone = next_steps()
    assert elsewhere != in_a_clone
    *commands, last = dict.fromkeys([*elsewhere[:-1], *in_a_clone])
    assert last == "stretto serve"  # does not end by itself; tests of its own start it
    for command in commands:
        program, *words = shlex.split(command.replace("10s", "0.5s"), comments=True)
        ran = run(*words)
        assert (program, ran.code) == ("stretto", 0), f"{command}: {ran.err}"
    assert (tmp_path / "plan.html").is_file()


def test_the_demo_for_programs_learns_too(run: Run, tmp_path: Path) -> None:
    words = ("demo", "--out", tmp_path, "--time-limit", "0.2", "--train-seconds", "0.5", "--output", "json")
    found = run(*words).json
    assert {row["policy"] for row in found["rows"]} >= {"heft", "annealing"}
    assert all(Path(picture).is_file() for picture in found["pictures"])
    best = found["summary"][0]
    assert best["mean_ratio"] <= min(line["mean_ratio"] for line in found["summary"])
    training = found["training"]
    assert {"doppler, with search", "doppler, as shipped", "annealing"} <= {row["policy"] for row in training["rows"]}
    assert [row["makespan_s"] for row in training["rows"]] == sorted(row["makespan_s"] for row in training["rows"])


def test_the_demo_says_what_is_missing_for_learning(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_training, "missing_libraries", lambda: ["optax"])
    ran = run("demo", "--out", tmp_path, "--time-limit", "0.2", "--output", "quiet")
    assert ran.code == 0
    assert "without optax nothing is trained: pip install 'stretto[learn]'" in ran.err
    assert [Path(line).suffix for line in ran.out.split()] == [".json", ".png", ".html"]


def test_the_demo_cannot_write_over_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    run("demo", "--out", tmp_path / "taken").assert_refused("taken")


def _training(*rows: tuple[str, float]) -> demo_training.DemoTraining:
    table = tuple((name, makespan_s, 0.1, 12.0) for name, makespan_s in sorted(rows, key=lambda row: row[1]))
    return demo_training.DemoTraining("g", "c", 3, 100, 1.0, False, table)


@pytest.mark.parametrize(
    ("shipped", "trained", "words", "wrong"),
    [
        (
            0.9,
            0.8,
            (
                "10.0 % shorter than annealing after",
                "20.0 % shorter than annealing.",
                "training beforehand pays here",
            ),
            "alone",
        ),
        (1.1, 1.2, ("10.0 % longer than annealing after", "search alone is better here"), "pays here"),
        (1.1, 1.0, ("as short as annealing.", "annealing caught up"), "pays here"),
        (1.1, 0.9, ("10.0 % shorter than annealing.", "annealing caught up"), "pays here"),
    ],
)
def test_what_the_demo_says_of_training_is_what_its_table_shows(
    shipped: float, trained: float, words: tuple[str, ...], wrong: str
) -> None:
    rows = [("heft", 1.2), (demo_training.SHIPPED, shipped), (demo_training.TRAINED, trained), ("annealing", 1.0)]
    told = " ".join(demo_command.moral(_training(*rows)))
    assert all(word in told for word in words), told
    assert "100 episodes here" in told
    assert wrong not in told


def test_an_interrupted_demo_compares_nothing() -> None:
    (told,) = demo_command.moral(_training((demo_training.SHIPPED, 1.0), (demo_training.TRAINED, 0.9)))
    assert "nothing is compared" in told


def test_the_demo_says_how_to_call_stretto(monkeypatch: pytest.MonkeyPatch) -> None:
    from stretto.cli.commands.demo import _how_to_call

    environment = Path(sys.executable).parent
    if not (environment / "activate").is_file():
        pytest.skip("not in a virtual environment")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(environment.parent.parent)
    told = _how_to_call()
    assert told.startswith(f"  source {environment.parent.name}/bin/activate ")
    assert f"{environment.parent.name}/bin/stretto" in told
    monkeypatch.setenv("PATH", f"{environment}:/usr/bin:/bin")
    if (environment / "stretto").is_file():
        assert _how_to_call() == ""
