"""Keeps Dask going when the time of day is set back.

Dask sends messages in batches, each of them no earlier than a few milliseconds after the last, by the time of day. Set
that back by an hour, and whatever is to be sent waits for an hour. Here every process of a run looks, by a clock that
cannot be set, whether that has happened, and lets waiting batches go.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from stretto.engines.dask.dask_types import Client, DaskProcess, Scheduler

_LOOK_S = 0.25
#: Clocks that are only steered go back by less.
_JUMP_S = 0.05

#: Lists the senders of batches (``distributed.batched.BatchedSend``) of a process, as they are at the moment.
Senders = Callable[[], Iterable[DaskProcess]]


def offset_s() -> float:
    """Return how far the time of day is ahead of the clock that cannot be set."""
    return time.time() - time.monotonic()


async def watch(senders: Senders) -> None:
    """Look at the clock until cancelled; to be run in the loop that the senders belong to."""
    known_s = offset_s()
    while True:
        await asyncio.sleep(_LOOK_S)
        now_s = offset_s()
        if now_s < known_s - _JUMP_S:
            for sender in senders():
                let_go(sender)
        known_s = now_s


def let_go(sender: DaskProcess) -> None:
    """Have a sender forget when it last sent."""
    with contextlib.suppress(AttributeError):  # of a Dask that is made otherwise
        sender.next_deadline = None
        sender.waker.set()


class WorkerWatch:
    """The watch of a worker, as a plugin: workers that come later have it too."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._task: asyncio.Task[None] | None = None

    def setup(self, worker: DaskProcess) -> None:
        self._task = asyncio.get_running_loop().create_task(watch(lambda: [worker.batched_stream]))

    def teardown(self, worker: DaskProcess) -> None:
        if self._task is not None:
            self._task.cancel()

    def transition(self, *words: object, **options: object) -> None:
        """Take no notice of tasks."""


@contextmanager
def watched(client: Client, name: str, is_lasting: bool) -> Iterator[None]:
    """Watch the clocks of a client, its scheduler and all its workers.

    Parameters
    ----------
    is_lasting
        Whether the cluster goes on afterwards, and has to be left as it was.
    """
    from distributed.diagnostics.plugin import WorkerPlugin

    kind = type("ClockWatch", (WorkerWatch, WorkerPlugin), {})
    client.register_plugin(kind(name), name=name)
    client.run_on_scheduler(_begin, name=name)
    own = client.sync(_begin_here, client)
    try:
        yield
    finally:
        client.loop.add_callback(own.cancel)
        if is_lasting:
            with contextlib.suppress(OSError, TimeoutError):
                client.run_on_scheduler(_end, name=name)
                client.unregister_worker_plugin(name)


async def _begin_here(client: Client) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(watch(lambda: [client.scheduler_comm]))


async def _begin(dask_scheduler: Scheduler, name: str) -> None:
    task = asyncio.get_running_loop().create_task(
        watch(lambda: [*dask_scheduler.stream_comms.values(), *dask_scheduler.client_comms.values()])
    )
    _TASKS[name] = task


async def _end(dask_scheduler: Scheduler, name: str) -> None:
    task = _TASKS.pop(name, None)
    if task is not None:
        task.cancel()


_TASKS: dict[str, asyncio.Task[None]] = {}  # of the schedulers of this process, by run
