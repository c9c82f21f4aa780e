"""The README's commands work when pasted in the folder of a fresh clone, and the files that it names are there."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from pathlib import Path

import pytest

from stretto.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
#: Commands that stand alone on a line, without what they print.
COMMANDS = [line.split("  #")[0].strip() for line in re.findall(r"^stretto .*$", README, re.MULTILINE)]
#: What needs Slurm's daemons, or never ends by itself; tests of their own run these.
ELSEWHERE = ("stretto testbed", "stretto steer", "stretto serve")
#: What takes more than a moment, and is run under ``make test-long`` only.
SLOW = ("train", "--policy doppler ", "--policy doppler\n", "--nets", "--engine dask", "portfolio", "explain", "rack")
#: The same commands with less time to think; that they run is what is tested.
SHORTER = ((r"--budget \S+", "--budget 1s"), (r"--time-limit \S+", "--time-limit 1s"), (r"--pace \S+", "--pace 1000"))


def _is_slow(command: str) -> bool:
    return any(word in f"{command}\n" for word in SLOW)


def _run(command: str) -> int:
    for pattern, shorter in SHORTER:
        command = re.sub(pattern, shorter, command)
    return main(shlex.split(command)[1:])


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that holds what a clone has for the commands to work on."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("out"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))
    return tmp_path


def test_the_quick_commands_work(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = [line for line in COMMANDS if not line.startswith(ELSEWHERE) and not _is_slow(line)]
    assert len(quick) >= 4
    for command in quick:
        assert _run(command) == 0, f"{command}: {capsys.readouterr().err}"
    assert (clone / "examples" / "out" / "report.txt").is_file()


@pytest.mark.long
def test_all_commands_work_in_their_order(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        if not command.startswith(ELSEWHERE):
            assert _run(command) == 0, f"{command}: {capsys.readouterr().err}"


def test_the_files_that_it_names_are_there() -> None:
    named = set(re.findall(r"examples/[\w.-]+", README))
    assert {"examples/flow.toml", "examples/workflow.json", "examples/lab.toml", "examples/jobs.swf.gz"} <= named
    for path in named:
        assert (ROOT / path).is_file(), path
    written = {word for line in COMMANDS for word in re.findall(r"--(?:save|checkpoint|curves|gantt) (\S+)", line)}
    for command in COMMANDS:
        for word in shlex.split(command):
            if re.fullmatch(r"[\w./-]+\.(json|toml|swf\.gz|npz)", word):
                assert word.startswith("examples/") or word in written, f"{command}: where does {word} come from?"


def test_it_says_how_to_call_stretto() -> None:
    for page in ("README.md", "docs/index.md"):
        text = (ROOT / page).read_text()
        assert "source .venv/bin/activate" in text, page
        assert ".venv/bin/stretto" in text, page


def test_the_examples_are_those_that_their_script_writes(tmp_path: Path) -> None:
    import runpy

    script = shutil.copy(ROOT / "examples" / "make_files.py", tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    for name in ("workflow.json", "graph.json"):
        assert (tmp_path / name).read_bytes() == (ROOT / "examples" / name).read_bytes(), name
    made, kept = (gzip.decompress((folder / "jobs.swf.gz").read_bytes()) for folder in (tmp_path, ROOT / "examples"))
    assert made == kept
