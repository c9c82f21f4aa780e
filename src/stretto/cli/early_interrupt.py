"""Ctrl-C before a command has begun: one line and exit code 130, even while modules are being imported.

This module imports almost nothing, so that it is in effect a moment after Python itself has started.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from stretto.cli.exit_codes import EXIT_INTERRUPTED

#: Progress lines hide the cursor of a terminal; whoever leaves in the middle of one shows it again.
_SHOW_CURSOR = b"\r\x1b[K\x1b[?25h"


def leave_on_ctrl_c() -> None:
    """From now on Ctrl-C ends the process at once; what is not yet written is lost."""
    signal.signal(signal.SIGINT, _on_signal)


def is_leaving_on_ctrl_c() -> bool:
    """Say whether :func:`leave_on_ctrl_c` is still in effect."""
    return signal.getsignal(signal.SIGINT) is _on_signal


def leave_at_once(*, is_drawing: bool = False) -> NoReturn:
    """Say that we were interrupted and end the process, whatever else it is doing."""
    try:
        if is_drawing and os.isatty(2):
            os.write(2, _SHOW_CURSOR)
        os.write(2, b"stretto: interrupted\n")
        sys.stdout.flush()
    except (OSError, RuntimeError, ValueError):  # nobody listens, or this very stream is being written to
        pass
    os._exit(EXIT_INTERRUPTED)


def _on_signal(number: int, frame: FrameType | None) -> None:
    leave_at_once()
