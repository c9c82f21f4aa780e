"""A process beside a steering layer: when the layer dies, it restores Slurm's own order.

It reads from a pipe that the layer and the programs of Slurm that it calls hold open, and never write to. However the
layer ends, the pipe ends with the last of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from stretto.core.host.child_python import python_environment, python_words
from stretto.engines.slurm.client.errors import SlurmFailure, SlurmMissing
from stretto.engines.slurm.client.rest import RestPlace
from stretto.engines.slurm.steer.claims import Claim, SteeringTaken
from stretto.engines.slurm.steer.label_store import slurm_client
from stretto.engines.slurm.steer.leftovers import LabelsElsewhere, restore_leftovers
from stretto.engines.slurm.steer.marks import ClusterMarks, Mark

#: How long to try, every few seconds, when the controller is away.
_PATIENCE_S = 3600.0
_PAUSE_S = 5.0


class SteeringGuard:
    """The guard of this process, for what it may steer by its mark."""

    def __init__(self, mark: Mark, folder: Path, conf: str | None, rest: RestPlace | None) -> None:
        known = {"mark": mark.name, "folder": str(folder), "conf": conf, "rest": asdict(rest) if rest else None}
        words = python_words("-m", "stretto.engines.slurm.steer.steering_guard", json.dumps(known))
        # A session of its own: Ctrl-C in the terminal is for the layer, not for its guard.
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=python_environment(),  # it has the rights of an operator: no code from the user's folders
            text=True,
        )

    @property
    def pipe(self) -> int:
        """The end of the pipe: the guard waits for a program that inherits it, too."""
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def dismiss(self, timeout_s: float = 60.0) -> str | None:
        """End the guard, which restores what is left; return what it did in words, or None where it needs longer."""
        try:
            return self._process.communicate(timeout=timeout_s)[0].strip()
        except subprocess.TimeoutExpired:
            return None


def watch(mark: Mark, marks: ClusterMarks) -> None:
    """Wait for the end of standard input, then restore the jobs of a mark that is still there, and remove it."""
    sys.stdin.buffer.read()
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if all(seen.mark.token != mark.token for seen in marks.seen("steering")):
                return  # its holder has ended properly, or somebody has taken over and restored the jobs
            print(_restore(mark, marks), flush=True)
            return
        except SlurmMissing:
            return
        except (SlurmFailure, OSError):  # Slurm is away, or the disk is full: try again
            time.sleep(_PAUSE_S)


def _restore(mark: Mark, marks: ClusterMarks) -> str:
    """Restore the jobs of a mark, as its guard; return what was done, in words."""
    ours = replace(mark, role="guard")
    marks.add(ours)
    marks.remove(mark)
    held = Claim(marks, ours)
    try:
        outcome = restore_leftovers(marks, marks.client, mark.partition or None, held.keep)
    except LabelsElsewhere as error:
        held.release()
        return str(error)
    except SteeringTaken:
        return ""
    held.release()
    return outcome.text() if outcome is not None else ""


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    place = RestPlace(**given["rest"]) if given["rest"] else None
    known_mark = Mark.parse(given["mark"])
    assert known_mark is not None
    watch(known_mark, ClusterMarks(slurm_client(given["conf"], place), Path(given["folder"])))
