"""Make sure that Ctrl-C reaches Python."""

from __future__ import annotations

import signal
import threading


def hear_ctrl_c() -> None:
    """Install Python's present handler again: OR-tools leaves the system's behind, which ends the process at once."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
