"""Names from files, tasks and clusters do not command the terminal: every control character is shown as its number."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from stretto.core.host.safe_text import shown, shown_on_one_line

from .conftest import CLUSTER, DIAMOND, Run, in_terminal

#: Writes to the clipboard, sets the title, clears the screen, rings; the same in one byte; turns the text around;
#: markup of rich, and an emoji of it.
EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\x1b[2J\r\x9b2J\x85\x7f\u202eevil\u2066[red]:boom:"
ESCAPED = "\\u001b]52;c;ZXZpbA==\\u0007"
#: What must not be in the output of any command, not even in that of a terminal beside what rich draws.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
COMPLAINT = r"printf '\033]0;owned\007\2332J' >&2; exit 3"
SACCT = "JobID|JobName|User|Submit|Start|End|State|AllocCPUS|Timelimit\n"


def _write_all(folder: Path) -> dict[str, Path]:
    """Write a file of each kind with hostile names in it, and in the name of some."""
    graph = DIAMOND | {"name": EVIL, "task_names": [f"{EVIL}{number}" for number in range(4)]}
    job = {key: value for key, value in graph.items() if key not in ("format", "version")}
    jobs = [{"arrival_s": float(when), "graph": job} for when in (0, 5)]
    name = json.dumps(EVIL)  # JSON and TOML escape alike
    files: dict[str, str] = {
        "graph.json": json.dumps(graph),
        f"{EVIL.replace('/', '')}.json": json.dumps(graph),
        "two.json": json.dumps({"format": "stretto-workload", "version": 1, "name": EVIL, "jobs": jobs}),
        "cluster.toml": f'name = {name}\nmachine = [{{ name = {name}, device = [{{ kind = "cpu", count = 2 }}] }}]\n',
        "wrong.toml": f"name = {name}\n{name} = 1\n[[device]]\nkind = {name}\ncount = {name}\n",
        "flow.toml": f"name = {name}\n[[task]]\nname = {name}\nrun = {json.dumps(COMPLAINT)}\n",
        "twice.toml": f'name = {name}\n[[task]]\nname = {name}\nrun = "true"\n[[task]]\nname = {name}\nrun = "true"\n',
        "jobs.txt": SACCT
        + "".join(
            f"{number}|{EVIL}|{EVIL}|2026-01-01T00:00:0{number}|2026-01-01T00:01:00|2026-01-01T00:02:00|COMPLETED|2|01:00:00\n"
            for number in range(1, 5)
        ).replace("\r", ""),
        "pools.toml": f"[[pool]]\nname = {name}\nnum_nodes = 2\nprocs_per_node = 4\n",
        "jobs.swf": "; MaxProcs: 4\n1 0 0 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1\nx\x1b[2J 2 3\n",
        "broken.json": '{"name": ' + name + ", ",
        "graph.dot": f'digraph {{ "{EVIL}" [duration=1]; "{EVIL}" -> "{EVIL}x" }}'.replace("\r", ""),
    }
    for key, text in files.items():
        (folder / key).write_text(text)
    return {key: folder / key for key in files}


def _commands(files: dict[str, Path], folder: Path) -> list[list[str]]:
    graph, other = str(files["graph.json"]), next(str(path) for key, path in files.items() if key.startswith("\x1b"))
    cluster, trace = str(files["cluster.toml"]), str(files["jobs.txt"])
    plan, picture = str(folder / "plan.json"), str(folder / f"{EVIL.replace('/', '')}.svg")
    commands = [
        ["show", graph],
        ["show", other],
        ["show", f"{graph}{EVIL}"],
        ["show", str(files["two.json"])],
        ["show", cluster],
        ["show", str(files["wrong.toml"])],
        ["show", str(files["broken.json"])],
        ["show", str(files["graph.dot"])],
        ["show", str(files["flow.toml"])],
        ["plan", graph, "-c", cluster, "--save", plan],
        ["plan", other, "-c", cluster],
        ["plan", graph, "-c", EVIL],
        ["plan", graph, "-c", cluster, "--policy", EVIL],
        ["plan", graph, "-c", cluster, "--param", EVIL],
        ["plan", graph, "--pools", str(files["pools.toml"])],
        ["simulate", plan],
        ["gantt", plan, "-o", picture],
        ["bound", graph, "-c", cluster],
        ["compare", graph, other, "-c", cluster, "--policies", "heft,met"],
        ["convert", graph, str(folder / f"{EVIL.replace('/', '')}.wf.json")],
        ["replay", trace, "--procs", "4"],
        ["replay", trace, "--pools", str(files["pools.toml"])],
        ["replay", str(files["jobs.swf"]), "--strategy", EVIL],
        ["replay", str(files["jobs.swf"])],
        ["compare", trace, "--procs", "4", "--strategies", "fcfs,sjf"],
        ["run", str(files["flow.toml"]), "-c", "cpu:1"],
        ["run", str(files["twice.toml"]), "-c", "cpu:1"],
        ["report", EVIL],
        ["report", "latest", "-o", str(folder / f"{EVIL.replace('/', '')}.html")],
        ["train", EVIL, graph],
        ["rack", EVIL],
        ["list", EVIL],
        ["help", EVIL],
        [EVIL],
    ]
    return commands


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    return _write_all(tmp_path)


@pytest.mark.parametrize(
    "output", ["table", pytest.param("quiet", marks=pytest.mark.long), pytest.param("json", marks=pytest.mark.long)]
)
def test_names_command_nothing_through_a_pipe(
    run: Run, files: dict[str, Path], tmp_path: Path, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRETTO_DEBUG", "1")  # a traceback is text, too
    for words in _commands(files, tmp_path):
        ran = run(*words, *(["--output", output] if words[0] not in ("help", EVIL) else []))
        for text in (ran.out, ran.err):
            assert not FORBIDDEN.search(text), (words, text)
        if output == "json" and ran.out:
            for line in ran.out.splitlines():
                json.loads(line)


def test_names_are_shown_as_numbers_and_kept_in_json(run: Run, files: dict[str, Path]) -> None:
    graph = files["graph.json"]
    assert ESCAPED in run("show", graph).out.replace("\n", "")
    assert "[red]" in run("show", graph).out
    assert run("show", graph, "--output", "json").json["name"] == EVIL
    failed = run("run", files["flow.toml"], "-c", "cpu:1")
    assert "\\u001b]0;owned\\u0007" in failed.out + failed.err
    run("plan", "nothing\x1b[2J.json", "-c", CLUSTER).assert_refused("nothing\\u001b[2J.json")


_MANY = """
import json, sys
from stretto.cli.main import main
for words in json.load(open(sys.argv[1])):
    main(words)
"""


@pytest.mark.parametrize(
    "environment",
    [
        {"TERM": "xterm-256color"},
        pytest.param({"TERM": "dumb"}, marks=pytest.mark.long),
        pytest.param({"NO_COLOR": "1"}, marks=pytest.mark.long),
    ],
)
def test_names_command_nothing_on_a_terminal(
    files: dict[str, Path], tmp_path: Path, environment: dict[str, str]
) -> None:
    """One process for all commands: what is tested is the text, not the start."""
    chosen = ("show", "plan", "compare", "run", "replay", "simulate")
    commands = [words for words in _commands(files, tmp_path) if words[0] in chosen]
    listed = tmp_path / "commands.json"
    listed.write_text(json.dumps(commands))
    text = in_terminal([sys.executable, "-c", _MANY, str(listed)], columns=80, **environment)
    assert "\\u001b]52;c;" in text
    assert not FORBIDDEN.search(text), FORBIDDEN.search(text)


def test_only_what_commands_a_terminal_is_replaced() -> None:
    assert shown("a\tb\nµs ü 図 🎵") == "a\tb\nµs ü 図 🎵"
    assert shown("\x1b[0m\x9b\x7f\u202e\udc9b") == "\\u001b[0m\\u009b\\u007f\\u202e\\udc9b"
    assert shown_on_one_line("a\nb\tc") == "a\\nb\\tc"


def test_a_file_name_that_is_no_text_is_named(run: Run) -> None:
    run("show", os.fsdecode(b"\xff\xfe.json")).assert_refused("\\udcff\\udcfe.json")


def test_logging_and_prints_of_libraries_command_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    import logging

    from stretto.cli.console import guarded_streams

    with guarded_streams():
        handler = logging.StreamHandler(sys.stderr)
        handler.emit(logging.LogRecord("x", logging.WARNING, "x.py", 1, f"log {EVIL}", (), None))
        print(f"warn {EVIL}", file=sys.stderr)
    seen = capsys.readouterr().err
    assert "log \\u001b" in seen
    assert "warn \\u001b" in seen
    assert not FORBIDDEN.search(seen)


def test_a_guard_that_somebody_keeps_lets_go_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    from stretto.cli.console import guarded_streams

    with guarded_streams():
        kept = sys.stdout
        kept.write("\x1b[0m")
    kept.write("\x1b[0m")
    assert capsys.readouterr().out == "\\u001b[0m\x1b[0m"
