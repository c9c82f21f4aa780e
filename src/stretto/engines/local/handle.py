"""The coordinator's end of one worker process."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import warnings
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess

from stretto.engines.driver.events import Blame, Start
from stretto.engines.local import wire
from stretto.engines.local.worker import WorkerSetup, main

_QUIT_S = 2.0
_PIPE_BYTES = 1 << 20
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which the fcntl module of Python 3.11 has on Linux only


class Handle:
    """A process, its pipes, and what it was sent and has not ended yet (the first runs, the others wait)."""

    def __init__(self, context: BaseContext, setup: WorkerSetup, device: int, num_restarts: int = 0) -> None:
        self.device, self.num_restarts = device, num_restarts
        self.sent: list[Start] = []
        self.since_s = 0.0  # when the first of them began, as far as we know
        self.verdict: tuple[Blame, str] | None = None
        orders, self._orders = context.Pipe(duplex=False)
        self._reports, reports = context.Pipe(duplex=False)
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._orders.fileno(), _SET_PIPE_SIZE, _PIPE_BYTES)
        mine = dataclasses.replace(setup, prefix=self.prefix(setup, num_restarts))
        self.process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=main, args=(mine, orders, reports), name=f"stretto-device-{device}", daemon=True
        )
        with warnings.catch_warnings():
            # jax warns of any fork; the child runs the task's own code and touches nothing of jax.
            warnings.simplefilter("ignore", RuntimeWarning)
            self.process.start()
        # Only the worker may hold its end: that is how its death is noticed.
        orders.close()
        reports.close()
        self.fd = self._reports.fileno()
        self.inbox = wire.Inbox(self.fd)

    @staticmethod
    def prefix(setup: WorkerSetup, generation: int) -> str:
        return f"{setup.prefix}.{generation}"

    def send(self, frame: bytes) -> None:
        """Send a frame; a worker that has died is noticed when its reports end."""
        if self._orders.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            wire.send(self._orders.fileno(), frame)

    def ended(self, task: int, now_s: float) -> None:
        """Note that a task is over; the next one runs since now."""
        self.sent = [order for order in self.sent if order.task != task]
        self.since_s = now_s

    def kill(self) -> None:
        self.process.kill()

    def quit(self) -> None:
        """Ask it to go, and to end the command that it may be running; :meth:`await_end` insists."""
        if self._orders.closed:
            return
        if self.sent:
            self.process.terminate()
        self.send(wire.pack(wire.QUIT))

    def await_end(self) -> int:
        """Wait for the end of the process and return its exit code."""
        self.process.join(_QUIT_S)
        if self.process.exitcode is None:
            self.kill()
            self.process.join()
        return self.process.exitcode or 0

    def close(self) -> None:
        self._orders.close()
        self._reports.close()
