"""The README's commands work when pasted in the folder of a fresh clone, and the files that it names are there."""

from __future__ import annotations

import glob
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
    words = shlex.split(command)[1:]
    return main([name for word in words for name in sorted(glob.glob(word)) or [word]])  # as shells do


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
    named = set(re.findall(r"examples/[\w.*/-]+", README))
    assert {"examples/flow.toml", "examples/workflow.json", "examples/lab.toml", "examples/jobs.swf.gz"} <= named
    for path in named:
        assert list(ROOT.glob(path)), path
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
    graphs = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.json"))
    assert len(graphs) == 2 + len(list((ROOT / "examples" / "benchmark").iterdir()))
    for name in graphs:
        assert (tmp_path / name).read_bytes() == (ROOT / "examples" / name).read_bytes(), name
    for name in ("jobs.swf.gz", "sacct.txt.gz"):
        made, kept = (gzip.decompress((folder / name).read_bytes()) for folder in (tmp_path, ROOT / "examples"))
        assert made == kept, name


def test_each_kind_of_user_has_a_page_and_a_command() -> None:
    pages = sorted((ROOT / "docs" / "start").glob("*.md"))
    assert len(pages) == 4
    for page in pages:
        assert f"docs/start/{page.name}" in README
        commands = re.findall(r"^\$ (stretto .*)$", page.read_text(), re.MULTILINE)
        assert any("examples/" in command for command in commands), page.name
        prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        assert len(prose.splitlines()) <= 60, f"{page.name} is longer than a page"


def test_pictures_exist_for_light_and_dark_pages() -> None:
    shown = re.findall(r'(?:src|srcset)="(docs/[^"]+)"', README)
    assert len(shown) >= 9
    for path in shown:
        assert (ROOT / path).is_file(), path
    dark = {path.replace("-dark.", "-light.") for path in shown if "-dark." in path}
    assert dark == {path for path in shown if "-light." in path}
