"""What this process starts does not outlive it, even when it is killed.

Whoever resumes a run would otherwise start a task that an orphan of the killed run is still working on.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
from types import TracebackType

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux

#: Learns of process groups as they begin and end; when its input ends, whoever told it is gone, and so are they.
_KEEPER = """
groups=' '
while read -r sign group; do
    case $sign in
        +) groups="$groups$group " ;;
        -) case $groups in *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;; esac ;;
    esac
done
for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
"""


def die_with_parent(parent: int) -> None:
    """Let the kernel end this process when its parent dies; does nothing on other systems than Linux."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before we could say so
        os._exit(1)


class Leash:
    """Holds the process group of a command while it runs."""

    _lock = threading.Lock()
    _keeper: subprocess.Popen[bytes] | None = None
    _owner = 0  # the process that started the keeper: a fork needs one of its own

    def __init__(self, group: int) -> None:
        self.group = group

    @classmethod
    def ready(cls) -> None:
        """Start the keeper before there is anything to keep: a command must not wait for it unheld."""
        with Leash._lock, contextlib.suppress(OSError):
            cls._ready()

    @classmethod
    def _ready(cls) -> subprocess.Popen[bytes]:
        if Leash._keeper is None or Leash._owner != os.getpid():
            Leash._keeper, Leash._owner = _start_keeper(), os.getpid()
        return Leash._keeper

    def __enter__(self) -> Leash:
        self._tell("+")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tell("-")

    def _tell(self, sign: str) -> None:
        with Leash._lock, contextlib.suppress(OSError):  # without a keeper commands still run
            keeper = self._ready()
            assert keeper.stdin is not None
            keeper.stdin.write(f"{sign} {self.group}\n".encode())
            keeper.stdin.flush()


def _start_keeper() -> subprocess.Popen[bytes]:
    # A session of its own: neither Ctrl-C nor the end of the terminal may take it before its time.
    return subprocess.Popen(
        ("/bin/sh", "-c", _KEEPER),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
