"""The process guard: a process that starts the commands of a run, and ends them when the run is killed.

Otherwise a resumed run could start a task that an orphan of the killed run is still working on.

A run requests a command by a byte and a connection, and the guard forks a process for it (``guarded_command.py``). A
run that ends normally releases the guard, and what its commands have left in the background continues. When the run is
killed, everything that its commands have started is ended.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from stretto.core.host.child_python import python_environment, python_words
from stretto.engines.local.descendants import adopt_orphans, end_descendants
from stretto.engines.local.guarded_command import CommandRequest, send, serve

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


def die_with_parent(parent: int) -> None:
    """Let the kernel end this process when its parent dies; does nothing on other systems than Linux."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before we could say so
        os._exit(1)


class ProcessGuard:
    """The process guard of this process, started when it is first needed."""

    _lock = threading.Lock()
    _guard: socket.socket | None = None
    _process: subprocess.Popen[bytes] | None = None
    _owner = 0  # the process that started the guard: a fork needs one of its own

    @classmethod
    def ready(cls) -> None:
        """Start the guard ahead of its use: that takes a moment."""
        with cls._lock, contextlib.suppress(OSError):  # the first command will report what is wrong
            cls._ready()

    @classmethod
    def pid(cls) -> int:
        """Return the process below which commands run, 0 while there is none."""
        return cls._process.pid if cls._process is not None and cls._owner == os.getpid() else 0

    @classmethod
    def begin(cls, request: CommandRequest) -> socket.socket:
        """Start a command and return the connection to its process; raise OSError where that is impossible.

        The command is ended when the connection is.
        """
        ours, theirs = socket.socketpair()
        with theirs, cls._lock:
            try:
                socket.send_fds(cls._ready(), [START], [theirs.fileno()])
            except (BrokenPipeError, ConnectionResetError):  # the guard was killed
                cls._guard = None
                socket.send_fds(cls._ready(), [START], [theirs.fileno()])
        with contextlib.suppress(ConnectionError):  # noticed when there is no answer
            send(ours, json.dumps(request).encode())
        return ours

    @classmethod
    def dismiss(cls) -> None:
        """Release the guard: what commands have left in the background may continue."""
        with cls._lock, contextlib.suppress(OSError):
            if cls._guard is not None and cls._owner == os.getpid():
                guard, cls._guard = cls._guard, None
                with guard:
                    guard.send(RELEASE)

    @classmethod
    def _ready(cls) -> socket.socket:
        if cls._guard is None or cls._owner != os.getpid():
            cls._guard, cls._process = _start_guard()
            cls._owner = os.getpid()
        return cls._guard


atexit.register(ProcessGuard.dismiss)


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


#: What the run sends to the guard: start a command, or the run has ended normally.
START, RELEASE = b"+", b"."
_REAP_S = 1.0
_PATIENCE_S = 30.0


def main(run: socket.socket) -> None:
    """Start commands until the run has ended, well or not."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # meant for the run, whose end we see
    adopt_orphans()
    gc.freeze()  # collecting what every fork shares would copy it
    children: set[int] = set()
    while True:
        run.settimeout(_REAP_S if children else None)
        try:
            word, connections, _, _ = socket.recv_fds(run, 1, 1)
        except TimeoutError:
            _reap(children)
            continue
        except ConnectionError:
            word, connections = b"", []
        _reap(children)
        if word != START:
            break
        children.add(_fork(run, connections[0]))
    _wait(children)  # they end their commands, and log those that have finished
    if word != RELEASE:
        end_descendants()


def _fork(run: socket.socket, connection: int) -> int:
    pid = os.fork()
    if pid:
        os.close(connection)
        return pid
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        run.close()
        serve(socket.socket(fileno=connection))
        code = 0
    finally:
        os._exit(code)


def _reap(children: set[int]) -> None:
    """Reap ended processes, our own children and adopted ones."""
    try:
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            children.discard(pid)
    except ChildProcessError:
        children.clear()


def _wait(children: set[int]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while children and time.monotonic() < deadline:
        _reap(children)
        time.sleep(0.005)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
