"""Run something in a process, kill that at a random point of its progress, and do so until it gets through."""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

#: A process that makes no progress for so long is stuck; the machine may be busy with other things.
PATIENCE_S = 300.0
#: One kill in so many comes before the first progress: while files are opened and the run is begun.
_EARLY_ONE_IN = 4


def num_bytes(path: Path) -> int:
    """Return the length of a file, zero where there is none."""
    return path.stat().st_size if path.exists() else 0


def start(part: Callable[[], None]) -> int:
    """Run a function in a fork of this process and return its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        part()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def killed_at_random(part: Callable[[], None], progress: Path, max_bytes: int, rng: random.Random) -> bool:
    """Start ``part`` and kill it when ``progress`` has grown by a random length; False when it ended before that."""
    wanted = 0 if rng.randrange(_EARLY_ONE_IN) == 0 else rng.randrange(1, max_bytes)
    before = num_bytes(progress)
    child = start(part)
    deadline = time.monotonic() + PATIENCE_S
    while wanted and num_bytes(progress) - before < wanted:
        if _is_over(child):
            return False
        assert time.monotonic() < deadline, "no progress"
        time.sleep(0.001)
    time.sleep(rng.uniform(0.0, 0.05 if wanted == 0 else 0.01))
    if _is_over(child):
        return False
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _is_over(child: int) -> bool:
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid == 0:
        return False
    assert os.waitstatus_to_exitcode(status) == 0, "a part failed by itself"
    return True
