"""A process beside a steering layer: when the layer dies, it restores Slurm's own order.

It reads from a pipe that the layer holds open and never writes to. However the layer ends, the pipe ends, too.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from stretto.core.host.child_python import python_environment, python_words
from stretto.engines.slurm.client.errors import SlurmUnreachable
from stretto.engines.slurm.steer.claims import SteeringTaken, claim
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.slurm.steer.restore_priorities import restore_priorities

#: How long to try, every few seconds, when the controller is away.
_PATIENCE_S = 3600.0
_PAUSE_S = 5.0


class SteeringGuard:
    """The guard of this process: of one store, as long as it is this process that writes there."""

    def __init__(self, store: LabelStore) -> None:
        words = python_words("-m", "stretto.engines.slurm.steer.steering_guard", str(store.path), store.owner)
        # A session of its own: Ctrl-C in the terminal is for the layer, not for its guard.
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env=python_environment(),  # it has the rights of an operator: no code from the user's folders
        )

    def dismiss(self, timeout_s: float = 60.0) -> bool:
        """End the guard, which first restores jobs that still have labels; return False where it needs longer."""
        try:
            self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True


def watch(path: Path, owner: str) -> None:
    """Wait for the end of standard input, then restore the jobs with labels of that owner."""
    sys.stdin.buffer.read()
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        left = LabelStore.read(path)
        if left.owner != owner or not left.jobs:
            return  # nothing is left, or the next steerer has restored it
        try:
            held = claim(path, "guard", left.partition, patience_s=_PAUSE_S)
        except SteeringTaken:  # the present holder restores the jobs; check again whether it did
            continue
        try:
            left = LabelStore.read(path)
            if left.owner == owner and left.jobs:
                left.outcome = restore_priorities(left, left.client()).text()
                left.write()
            return
        except (SlurmUnreachable, OSError):  # Slurm is away, or the disk is full: try again
            pass
        finally:
            held.release()
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    watch(Path(sys.argv[1]), sys.argv[2])
