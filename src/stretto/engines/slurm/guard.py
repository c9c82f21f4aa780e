"""A process that outlives a steering layer by a moment: when the layer dies, it gives Slurm its own order back.

It reads from a pipe that the layer holds open and never writes to. However the layer ends, the pipe does too.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from stretto.child_python import python_environment, python_words
from stretto.engines.slurm.book import Book
from stretto.engines.slurm.command import SlurmUnreachable

#: How long to try, every few seconds, when the controller is away.
_PATIENCE_S = 3600.0
_PAUSE_S = 5.0


class Guard:
    """The guard of this process."""

    def __init__(self, book: Path) -> None:
        words = python_words("-m", "stretto.engines.slurm.guard", str(book))
        # A session of its own: Ctrl-C in the terminal is for the layer, not for its guard.
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env=python_environment(),  # it has the rights of an operator: no code from the user's folders
        )

    def dismiss(self) -> None:
        """Let the guard go; it resets whatever is still in the book."""
        self._process.communicate(timeout=60.0)


def watch(book: Path) -> None:
    """Wait for the end of standard input, then take back what the book says."""
    sys.stdin.buffer.read()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        left = Book.read(book)
        try:
            if left.labels:
                left.reset(left.client())
            return
        except SlurmUnreachable:
            if time.monotonic() > deadline:
                return
            time.sleep(_PAUSE_S)


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
