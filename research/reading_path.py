"""Which of our files does a reader have to open to follow a command from its entry to its result?

    python research/reading_path.py                 # all four commands, a row each
    python research/reading_path.py plan --files    # the files of one of them, in the order of their first call

A profile hook notes each file of the package whose functions are called, in the order of the first call, and counts
how often two neighbours in that list lie in different folders. Code that only runs at import does not count, and
neither do compiled kernels, which no hook sees. The package is the one that this Python imports, so an earlier commit
is measured by the same script with the Python of its own checkout.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

COMMANDS: dict[str, list[str]] = {
    "plan": ["plan", "workload:montage", "-c", "cpu:4,gpu:2@1GB/s", "--policy", "heft"],
    "replay": ["replay", "trace:lublin?num_jobs=2000&num_procs=64&load=0.9", "--strategy", "mars", "--no-log"],
    "train": ["train", "symphony", "two-nics", "--episodes", "64"],
    "run": ["run", "FLOW", "-c", "cpu:2", "--engine", "slurm"],
}
FLOW = """
name = "two"

[[task]]
name = "first"
run = "seq 1 9 > a.txt"
writes = ["a.txt"]
seconds = 1.0

[[task]]
name = "second"
run = "wc -l a.txt > b.txt"
reads = ["a.txt"]
writes = ["b.txt"]
seconds = 1.0
"""


class FileList(list[Path]):
    """Files in the order of their first call."""

    def num_folder_changes(self) -> int:
        """Return how often two neighbours lie in different folders."""
        return sum(a.parent != b.parent for a, b in itertools.pairwise(self))


@contextlib.contextmanager
def watched(package: Path) -> Iterator[FileList]:
    """Note the files below a folder whose functions are called inside the block, in all threads."""
    seen: set[str] = set()
    found = FileList()
    prefix = str(package) + os.sep

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_new = event == "call" and code.co_filename not in seen and code.co_name != "<module>"
        if is_new and code.co_filename.startswith(prefix):
            seen.add(code.co_filename)
            found.append(Path(code.co_filename).relative_to(package))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def reading_path(name: str, folder: Path) -> FileList:
    """Run one command in this process and return the files that it went through."""
    import stretto
    from stretto.cli.main import main

    flow = folder / "flow.toml"
    flow.write_text(FLOW)
    words = [str(flow) if word == "FLOW" else word for word in COMMANDS[name]]
    with (
        contextlib.chdir(folder),  # a run on Slurm leaves its folder where it was started
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as said,
    ):
        main(words)  # once before, so that what is loaded lazily or compiled does not count
        with watched(Path(stretto.__file__).resolve().parent) as found:
            code = main(words)
    if code:
        raise SystemExit(f"{name}: exit code {code}: {said.getvalue().strip()[-300:]}")
    return found


@contextlib.contextmanager
def private_slurm(folder: Path) -> Iterator[None]:
    """Start a Slurm of our own for the command that needs one."""
    from stretto.cli.main import main

    with contextlib.redirect_stdout(io.StringIO()):
        main(["testbed", "slurm", "up", "--dir", str(folder / "bed")])
    os.environ["SLURM_CONF"] = str(folder / "bed" / "slurm.conf")
    try:
        yield
    finally:
        with contextlib.redirect_stdout(io.StringIO()):
            main(["testbed", "slurm", "down", "--dir", str(folder / "bed")])


def main() -> None:
    """Print a row for each command, or the files of one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", nargs="?", choices=[*COMMANDS, "all"], default="all")
    parser.add_argument("--files", action="store_true", help="list the files")
    chosen = parser.parse_args()
    names = list(COMMANDS) if chosen.command == "all" else [chosen.command]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["STRETTO_HOME"] = str(folder / "home")
        for name in names:
            with private_slurm(folder) if name == "run" else contextlib.nullcontext():
                found = reading_path(name, folder)
            print(f"{name:8} {len(found):4} files {found.num_folder_changes():4} changes of folder")
            if chosen.files:
                print("\n".join(f"    {path}" for path in found))


if __name__ == "__main__":
    main()
