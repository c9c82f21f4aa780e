"""What this process starts does not outlive it, even when it is killed.

Whoever resumes a run would otherwise start a task that an orphan of the killed run is still working on.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from typing import Any

from stretto.core.host.child_python import python_environment, python_words
from stretto.engines.local.guarded_command import send
from stretto.engines.local.process_guard import FAREWELL, START

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


def die_with_parent(parent: int) -> None:
    """Let the kernel end this process when its parent dies; does nothing on other systems than Linux."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before we could say so
        os._exit(1)


class Leash:
    """The process guard of this process (``process_guard.py``), started when it is first needed."""

    _lock = threading.Lock()
    _guard: socket.socket | None = None
    _process: subprocess.Popen[bytes] | None = None
    _owner = 0  # the process that started the guard: a fork needs one of its own

    @classmethod
    def ready(cls) -> None:
        """Start the guard before it is needed: it takes a moment."""
        with cls._lock, contextlib.suppress(OSError):  # whoever needs it then says what is wrong
            cls._ready()

    @classmethod
    def begin(cls, request: Mapping[str, Any]) -> socket.socket:
        """Have a command started; return the connection to the process that serves it; raise OSError if none can be.

        The command is ended when the connection is.
        """
        ours, theirs = socket.socketpair()
        with theirs, cls._lock:
            try:
                socket.send_fds(cls._ready(), [START], [theirs.fileno()])
            except (BrokenPipeError, ConnectionResetError):  # somebody has killed the guard
                cls._guard = None
                socket.send_fds(cls._ready(), [START], [theirs.fileno()])
        with contextlib.suppress(ConnectionError):  # noticed when there is no answer
            send(ours, json.dumps(request).encode())
        return ours

    @classmethod
    def dismiss(cls) -> None:
        """Say farewell to the guard: what commands have left in the background may go on."""
        with cls._lock, contextlib.suppress(OSError):
            if cls._guard is not None and cls._owner == os.getpid():
                guard, cls._guard = cls._guard, None
                with guard:
                    guard.send(FAREWELL)

    @classmethod
    def _ready(cls) -> socket.socket:
        if cls._guard is None or cls._owner != os.getpid():
            cls._guard, cls._process = _start_guard()
            cls._owner = os.getpid()
        return cls._guard


atexit.register(Leash.dismiss)


def _start_guard() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            python_words("-m", "stretto.engines.local.process_guard", str(theirs.fileno())),
            env=python_environment(),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",  # a long run must not keep a folder busy that somebody wants to unmount
            start_new_session=True,  # neither Ctrl-C nor the end of the terminal may take it before its time
        )
    return ours, process
