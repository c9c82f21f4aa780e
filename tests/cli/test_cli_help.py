"""Help: every command has examples, the examples work, topics and misspelt words are answered."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import stretto.errors
from stretto.cli.app import app
from stretto.cli.commands.help_cmd import EXIT_CODES, TOPICS
from stretto.cli.examples import EXAMPLES, SUMMARIES
from stretto.errors import StrettoError

from .conftest import Run

COMMANDS: dict[str, typer.core.TyperCommand] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
#: Commands that take long, or need a service or an earlier run.
_NOT_HERE = ("train", "demo", "run", "report", "serve", "steer", "testbed")
#: Examples that need nothing of the reader's own.
READY = [line for name, lines in EXAMPLES.items() for line in lines if "{" not in line and name not in _NOT_HERE]
#: All others; these are only parsed.
PARSED = [line for lines in EXAMPLES.values() for line in lines if line not in READY]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_of_itself(run: Run, command: str) -> None:
    ran = run(command, "--help")
    assert ran.code == 0
    _, heading, examples = ran.out.partition("Examples:")
    assert heading, f"put examples of {command} into cli/examples.py"
    lines = examples.strip().splitlines()
    assert all(line.strip().startswith(f"stretto {command}") for line in lines), lines


def test_no_examples_of_commands_that_are_gone() -> None:
    assert set(EXAMPLES) <= set(COMMANDS)
    assert set(SUMMARIES) <= set(COMMANDS)


def test_the_list_of_commands_says_whole_sentences(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, _, listed = run("--help").out.partition("Commands:\n")
    lines = listed.partition("\n\n")[0].splitlines()
    assert len(lines) == len(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in lines), lines


@pytest.mark.parametrize("line", READY)
def test_examples_work(run: Run, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))
    ran = run(*shlex.split(line)[1:])
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("line", PARSED)
def test_the_other_examples_use_options_that_exist(line: str) -> None:
    name, *words = shlex.split(line.replace("{", "").replace("}", ""))[1:]
    command: Any = COMMANDS[name]
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    known = {option for param in command.params for option in param.opts}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_prints_a_result_has_the_three_outputs(command: str) -> None:
    if hasattr(COMMANDS[command], "commands") or command in ("help", "serve"):
        return
    options = {option for param in COMMANDS[command].params for option in param.opts}
    assert "--output" in options


@pytest.mark.parametrize("topic", TOPICS)
def test_topics(run: Run, topic: str) -> None:
    ran = run("help", topic)
    assert ran.code == 0
    for name in TOPICS[topic][1]:
        assert str(name) in ran.out


def test_help_of_a_command_is_its_help(run: Run) -> None:
    assert run("help", "plan").out.split() == run("plan", "--help").out.split()
    assert "Commands:" in run("help").out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("plann",), "plan"),
        (("help", "exit-code"), "exit-codes"),
        (("plan", "workload:montag", "-c", "cpu:2"), "montage"),
        (("plan", "workload:fft", "-c", "cpu:2", "--policy", "heftt"), "heft"),
        (("replay", "trace:lublin", "--strategy", "fcsf"), "fcfs"),
        (("replay", "trace:lublim"), "lublin"),
        (("train", "dopler", "workload:fft", "-c", "cpu:2"), "doppler"),
        (("list", "polices"), "policies"),
    ],
)
def test_misspelt_words_are_answered_with_the_right_ones(run: Run, words: tuple[str, ...], hint: str) -> None:
    run(*words).assert_refused(hint)


def test_exit_codes_are_those_of_the_program(run: Run, diamond: Path) -> None:
    from stretto.cli import exit_codes

    codes = {getattr(exit_codes, name) for name in dir(exit_codes) if name.startswith("EXIT_")}
    codes |= {
        error.exit_code
        for error in vars(stretto.errors).values()
        if isinstance(error, type) and issubclass(error, StrettoError)
    }
    assert codes | {0} == set(EXIT_CODES)
    assert run("version").code == 0
    assert run("plan", "none.json", "-c", "cpu:1").code == 2


def test_no_color_is_honoured_on_a_terminal(command: list[str]) -> None:
    import os
    import pty
    import subprocess

    def shown(**environment: str) -> bytes:
        master, slave = pty.openpty()
        base = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        process = subprocess.Popen(
            [*command, "list", "backfills"], stdout=slave, env=base | {"TERM": "xterm-256color"} | environment
        )
        os.close(slave)
        seen = b""
        try:
            while chunk := os.read(master, 4096):
                seen += chunk
        except OSError:  # the other side is closed
            pass
        os.close(master)
        assert process.wait(timeout=60) == 0
        return seen

    coloured, plain = shown(), shown(NO_COLOR="1")
    assert b"conservative" in coloured
    assert b"conservative" in plain
    assert b"\x1b[3" not in plain
    assert b"\x1b[9" not in plain
