"""The process guard: starts commands for a run, and outlives it by a moment when it is killed.

It is asked for a command by a byte and a connection, and forks a process that serves it
(``guarded_command.py``). When a run ends as it should it says so, and what its commands have left in the background is
left alone. When the run is killed, all that its commands have started is ended.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time

from stretto.engines.local.descendants import adopt_orphans, end_descendants
from stretto.engines.local.guarded_command import serve

#: What the run says to the guard: start a command, or farewell.
START, FAREWELL = b"+", b"."
_REAP_S = 1.0
_PATIENCE_S = 30.0


def main(run: socket.socket) -> None:
    """Start commands until the run has ended, well or not."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # meant for the run, whose end we see
    adopt_orphans()
    gc.freeze()  # collecting what every fork shares would copy it
    servants: set[int] = set()
    while True:
        run.settimeout(_REAP_S if servants else None)
        try:
            word, connections, _, _ = socket.recv_fds(run, 1, 1)
        except TimeoutError:
            _reap(servants)
            continue
        except ConnectionError:
            word, connections = b"", []
        _reap(servants)
        if word != START:
            break
        servants.add(_fork(run, connections[0]))
    _wait(servants)  # they end their commands, and write down which of them have ended well
    if word != FAREWELL:
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


def _reap(servants: set[int]) -> None:
    """Bury who has ended, whether we started it or it came to us."""
    try:
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            servants.discard(pid)
    except ChildProcessError:
        servants.clear()


def _wait(servants: set[int]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while servants and time.monotonic() < deadline:
        _reap(servants)
        time.sleep(0.005)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
