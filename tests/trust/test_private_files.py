"""What Stretto keeps for a user is for that user alone, whatever the umask, also where it was open before."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.core.host.private_files import make_private_folder, tighten
from stretto.engines.completion_log import Completion, CompletionLog, completion_log_path
from stretto.runlog import RunLog
from stretto.web.kept_jobs import KeptJob, KeptJobs

_KEEP = """
import os, sys
os.umask(0)
from stretto.cli.main import main
sys.exit(main(["plan", "workload:fft", "-c", "cpu:2", "--log", "--output", "quiet"]))
"""


def modes(folder: Path) -> dict[str, int]:
    """Return the modes of a folder and of all below it."""
    found = {str(path.relative_to(folder)): path for path in (folder, *folder.rglob("*"))}
    return {name: stat.S_IMODE(path.stat().st_mode) for name, path in found.items()}


@pytest.fixture
def open_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


def keep_all(runs: Path) -> None:
    """Keep one of everything that stands beside a run log."""
    with RunLog.open(runs) as log:
        run = log.start("run", "private", {})
        run.record("step", "one")
        book = CompletionLog(completion_log_path(log, run.id))
        book.add(Completion("task", {}, b"output"))
        book.close(is_entered=False)
        KeptJobs.beside(runs).keep(KeptJob("0123456789ab", "plan", {}, 1))
        assert (runs.parent / f"{runs.name}-wal").exists()
        check(runs.parent)


def check(folder: Path) -> None:
    for name, mode in modes(folder).items():
        assert mode == (0o700 if (folder / name).is_dir() else 0o600), (name, oct(mode))


@pytest.mark.usefixtures("open_umask")
def test_files_are_made_private_and_made_private_again(tmp_path: Path) -> None:
    runs = tmp_path / "home" / "runs.db"
    keep_all(runs)
    with RunLog.open(runs):  # so that -wal and -shm are there
        for path in (runs.parent / name for name in os.listdir(runs.parent)):
            path.chmod(0o777 if path.is_dir() else 0o666)
        keep_all(runs)


def test_the_commands_keep_private_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", _KEEP], env={**os.environ, "STRETTO_HOME": str(home)}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        check(home)
        home.chmod(0o755)
        (home / "runs.db").chmod(0o644)


def test_folders_that_are_shared_on_purpose_stay_so(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    make_private_folder(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
    with RunLog.open(shared / "runs.db"):  # a log in a folder of others: the folder is not ours to close
        assert stat.S_IMODE((shared / "runs.db").stat().st_mode) == 0o600
    tighten(tmp_path / "nothing here")
