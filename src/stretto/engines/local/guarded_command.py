"""One command under the process guard: it is started, read, ended with its run, and its end is logged.

This runs in a process of its own, a fork of the process guard, that is the command's parent. So it knows how the
command ended whatever became of the run, and every process that the command has started is a descendant of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import selectors
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from typing import NotRequired, TypedDict

from stretto.engines.command_output import BoundedOutput, CopiedOutput
from stretto.engines.completion_log import MAX_OUTPUT_BYTES, digest_of_bytes, encoded_bytes, pack_completion
from stretto.engines.local.descendants import adopt_orphans, descendants, end_descendants


class CommandRequest(TypedDict):
    """A command to run, as the run asks for it; ``end`` holds the fields of a CompletionTicket."""

    argv: list[str]
    cwd: str
    env: dict[str, str]
    writes: list[str]
    timeout_s: float | None
    max_stdout_bytes: int
    cores: list[int]
    memory_bytes: int | None
    end: TicketFields | None


class TicketFields(TypedDict):
    """How the end of a command is logged (``completion_log.CompletionTicket``)."""

    path: str
    task: str
    fields: dict[str, object]
    zero_s: float
    wants_digest: bool
    output: str | None


class CommandReport(TypedDict):
    """How a command ended; ``why`` says why it was ended early, and ``error`` why it could not start."""

    code: int
    why: str
    end_s: float
    error: NotRequired[str]


#: Before every message: its length.
LENGTH = struct.Struct("!Q")
#: What the run sends to end a command.
END = b"k"
#: How long a command continues when its run is gone: if it ends by itself in this time, its end is logged.
GRACE_S = 0.2
_STDERR_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 16
_LOOK_S = 0.02  # where the kernel does not tell of the end of a process


def serve(control: socket.socket) -> None:
    """Read a request, run its command, and report; the run is gone when the connection ends."""
    adopt_orphans()
    text = receive(control)
    if text is None:
        return
    request: CommandRequest = json.loads(text)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, request["cores"])
    log = _open_log(request)
    if _is_gone(control):  # checked while we hold the log: a resumed run waits for us, or we start nothing
        return
    report: CommandReport
    try:
        child = subprocess.Popen(
            request["argv"],
            cwd=request["cwd"],
            env=request["env"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in the terminal is for the run
            preexec_fn=_limiter(request["memory_bytes"]),  # this process has no other thread
        )
    except (OSError, ValueError) as error:
        report, out, err = {"code": 0, "why": "", "end_s": 0.0, "error": str(error)}, b"", b""
    else:
        command = _Running(child, control, request)
        report = command.watch()
        out, err = command.out.value(), command.err.value()
        _log_end(request, report, out, log)
    with contextlib.suppress(OSError):
        send(control, json.dumps(report).encode())
        send(control, out)
        send(control, err)


def _limiter(memory_bytes: int | None) -> Callable[[], None] | None:
    """Return what limits the data of a process and of all that it starts; address space is not limited.

    Programs reserve far more addresses than they use, so ``RLIMIT_DATA`` is nearer to what a task needs.
    """
    if memory_bytes is None:
        return None

    def limit() -> None:
        with contextlib.suppress(OSError, ValueError):  # a lower limit is in force already
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))

    return limit


class _Running:
    """A command that has begun."""

    def __init__(self, child: subprocess.Popen[bytes], control: socket.socket, request: CommandRequest) -> None:
        self.child, self.control = child, control
        limit_s = request["timeout_s"]
        self.late_s = float("inf") if limit_s is None else time.monotonic() + limit_s
        base = request["end"]["output"] if request["end"] is not None else None
        self.out = CopiedOutput(request["max_stdout_bytes"], base and f"{base}.out")
        self.err = CopiedOutput(_STDERR_BYTES, base and f"{base}.err")
        self.selector = selectors.DefaultSelector()
        self.num_open = 0
        for pipe, kept in ((child.stdout, self.out), (child.stderr, self.err)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self.selector.register(pipe, selectors.EVENT_READ, kept)
            self.num_open += 1
        self.selector.register(control, selectors.EVENT_READ)
        self.pidfd = _pidfd(child.pid)

    def watch(self) -> CommandReport:
        """Wait for the end, or cause it; return how the command ended."""
        why = ""  # the reason to end it early
        gone_s = float("inf")  # when a command without a run is ended
        while not self._is_over():
            now_s = time.monotonic()
            if now_s >= self.late_s:
                why = "timeout"
            elif now_s >= gone_s:
                why = "gone"
            if why:
                return self._ended(why)
            told = self._listen(min(self.late_s, gone_s) - now_s)
            if told == END:
                why = "stopped"
            elif told is not None:
                self.selector.unregister(self.control)
                gone_s = time.monotonic() + GRACE_S
        return {"code": self.child.wait(), "why": "", "end_s": time.perf_counter()}

    def _ended(self, why: str) -> CommandReport:
        """Kill the command with everything it started; one that ended by itself at the last moment has finished."""
        others = [pid for pid in descendants(os.getpid()) if pid != self.child.pid]
        end_descendants(self.child.pid)
        code = self.child.wait()
        self._drain()
        is_ended = why == "gone" and code >= 0 and not others
        return {"code": code, "why": "" if is_ended else why, "end_s": time.perf_counter()}

    def _is_over(self) -> bool:
        """Say whether the command has ended, and no process is left that could write to its pipes."""
        return not self.num_open and self.child.poll() is not None

    def _listen(self, wait_s: float) -> bytes | None:
        """Read what is available; return what the run sent, empty bytes where it is gone, None where it is silent."""
        if not self.num_open and self.pidfd is not None and self.pidfd not in self.selector.get_map():
            self.selector.register(self.pidfd, selectors.EVENT_READ)
        if not self.num_open and self.pidfd is None:
            wait_s = min(wait_s, _LOOK_S)
        told: bytes | None = None
        for key, _ in self.selector.select(None if wait_s == float("inf") else max(wait_s, 0.0)):
            if key.fileobj is self.control:
                told = _received(self.control)
            elif isinstance(key.data, BoundedOutput):
                self._read(key)
        return told

    def _read(self, key: selectors.SelectorKey) -> None:
        try:
            data = os.read(key.fd, _CHUNK_BYTES)
        except BlockingIOError:
            return
        if data:
            key.data.add(data)
        else:
            self.selector.unregister(key.fileobj)
            self.num_open -= 1

    def _drain(self) -> None:
        """Read what is left in the pipes of a command that was ended."""
        deadline = time.monotonic() + 1.0
        while self.num_open and time.monotonic() < deadline:
            ready = [key for key, _ in self.selector.select(0.0) if isinstance(key.data, BoundedOutput)]
            if not ready:
                return
            for key in ready:
                self._read(key)


def receive(control: socket.socket) -> bytes | None:
    """Return the next message, None where the other end is gone."""
    head = _exactly(control, LENGTH.size)
    return None if head is None else _exactly(control, LENGTH.unpack(head)[0])


def send(control: socket.socket, message: bytes) -> None:
    """Send a message."""
    control.sendall(LENGTH.pack(len(message)))
    control.sendall(message)


def _exactly(control: socket.socket, num_bytes: int) -> bytes | None:
    parts: list[bytes] = []
    while num_bytes:
        try:
            data = control.recv(min(num_bytes, 1 << 20))
        except ConnectionError:
            return None
        if not data:
            return None
        parts.append(data)
        num_bytes -= len(data)
    return b"".join(parts)


def _received(control: socket.socket) -> bytes:
    try:
        return control.recv(1)
    except ConnectionError:
        return b""


def _is_gone(control: socket.socket) -> bool:
    try:
        return control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def _open_log(request: CommandRequest) -> int | None:
    """Open the completion log, and hold its lock: a resumed run waits until nobody does."""
    if request["end"] is None:
        return None
    try:
        log = os.open(request["end"]["path"], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return None
    with contextlib.suppress(OSError):  # not every file system has locks
        fcntl.flock(log, fcntl.LOCK_SH)
    return log


def _log_end(request: CommandRequest, report: CommandReport, out: bytes, log: int | None) -> None:
    """Log the end of a command that ended well, before anybody is told."""
    end = request["end"]
    is_well = report["code"] == 0 and not report["why"] and all(os.path.exists(path) for path in request["writes"])
    if log is None or end is None or not is_well:
        return
    output = encoded_bytes(out) if len(out) <= MAX_OUTPUT_BYTES else None
    fields: dict[str, object] = {**end["fields"], "end_s": report["end_s"] - end["zero_s"]}
    fields["digest"] = digest_of_bytes(out) if end["wants_digest"] else None
    with contextlib.suppress(OSError):  # the disk is full: there is still the log, a moment later
        os.write(log, pack_completion(end["task"], fields, output))
