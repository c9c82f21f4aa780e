"""Writes the events and outputs of a run into the run log, and reads back what a resumed run need not repeat."""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from types import TracebackType

from stretto.core.cluster import Cluster
from stretto.core.host.private_files import make_private_folder
from stretto.engines.completion_log import (
    MAX_OUTPUT_BYTES,
    Completion,
    CompletionLog,
    CompletionTicket,
    await_writers,
    completion_log_path,
    read_completions,
)
from stretto.engines.driver.events import (
    DeviceJoined,
    DeviceLost,
    Event,
    Overruled,
    PriceChanged,
    TaskFailed,
    TaskFinished,
    TaskStarted,
)
from stretto.engines.local.perform import missing_files
from stretto.engines.outputs import decode, encode, num_bytes
from stretto.engines.work import Command, Work
from stretto.errors import EngineFailure, InvalidInput
from stretto.runlog import Run, RunLog
from stretto.runlog.log import UnwritableLog
from stretto.runlog.place import output_folder

#: Outputs up to this size stand in the event itself, larger ones are attached; very large ones are not kept, and
#: their tasks run again when a run is resumed.
_INLINE_BYTES = 2048
_GATHER_S = 0.05


class EventWriter:
    """Writes events from a thread of its own, many at a time: a run must not wait for its own record.

    Ends of tasks are the exception: each is in the completion log (``completion_log.py``) when :meth:`on_event`
    returns, which is before the driver hears of it. So no end that anything depends on is lost with this process.
    """

    def __init__(
        self,
        run: Run,
        work: Work,
        cluster: Cluster,
        *,
        digests: bool = True,
        on_notice: Callable[[str], None] | None = None,
    ) -> None:
        self.run, self.work = run, work
        self._digests = digests
        self._waiting = EventBuffer(on_notice or (lambda text: None))
        self._names = [work.graph.task_name(task) for task in range(work.graph.num_tasks)]
        self._devices = [device.name for device in cluster.devices]
        self._queue: SimpleQueue[Event | Completion] = SimpleQueue()
        self._outputs: dict[int, bytes | None] = {}
        self._completions = CompletionLog(completion_log_path(run.log, run.id))
        self._output = output_folder(run.log.path, run.id)
        if any(isinstance(action, Command) for action in work.actions):
            make_private_folder(self._output)
        self._logged: set[tuple[int, int]] = set()
        self._pid = os.getpid()
        self._is_closing = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write_all, name="stretto-events", daemon=True)

    def __enter__(self) -> EventWriter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing.set()
        self._thread.join()
        self._completions.close(is_entered=self._error is None)
        if self._error is not None and error is None:
            raise EngineFailure(f"the tasks ran, but the run log is incomplete: {self._error}") from self._error

    def on_event(self, event: Event) -> None:
        """Take an event; for ``RunOptions.on_event``."""
        if isinstance(event, TaskFinished):
            end = self._end(event, self._outputs.pop(event.task, None))
            if (event.task, event.attempt) not in self._logged:  # unless a worker's process has logged it
                self._completions.add(end)
            self._logged.discard((event.task, event.attempt))
            self._queue.put(end)
        else:
            self._queue.put(event)

    def on_output(self, task: int, value: object) -> None:
        """Take an output; for ``RunOptions.on_output``."""
        if task not in self._outputs:
            self._outputs[task] = _as_bytes(value)

    def on_done(self, event: TaskFinished, value: object) -> None:
        """Log an end before it is reported, wherever the task ran; for ``RunOptions.on_done``."""
        data = _as_bytes(value)
        self._completions.add(self._end(event, data))
        if os.getpid() == self._pid:  # a worker's process reports to us, and its memory is its own
            self._outputs[event.task] = data
            self._logged.add((event.task, event.attempt))

    def on_command(self, event: TaskStarted, zero_s: float) -> CompletionTicket:
        """Return how the end of a command is to be logged; for ``RunOptions.on_command``."""
        fields = {"device": self._devices[event.device], "attempt": event.attempt, "start_s": event.at_s}
        output = str(self._output / f"{event.task}.{event.attempt}")
        path, name = str(self._completions.path), self._names[event.task]
        return CompletionTicket(path, name, fields, zero_s, self._digests, output)

    def _end(self, event: TaskFinished, data: bytes | None) -> Completion:
        fields: dict[str, object] = {
            "device": self._devices[event.device],
            "attempt": event.attempt,
            "start_s": event.start_s,
            "end_s": event.at_s,
            "digest": event.digest,
        }
        return Completion(self._names[event.task], fields, data)

    def _write_all(self) -> None:
        waiting = self._waiting
        try:
            while not (self._is_closing.is_set() and self._queue.empty() and not waiting.items):
                waiting.add(self._gather())
                if waiting.items:
                    self._write_waiting(waiting)
            self._error = waiting.loss()
        except BaseException as error:  # raised at the end: a full disk must not stop the run itself
            self._error = error

    def _write_waiting(self, waiting: EventBuffer) -> None:
        """Write all that waits as one transaction; if the log cannot be written, it waits for the next time."""
        try:
            with self.run.batch():
                for item in waiting.items:
                    self._write(item)
                waiting.note_delay(self.run)
        except UnwritableLog as error:
            waiting.failed(error, is_last=self._is_closing.is_set())
        else:
            waiting.written()

    def _gather(self) -> list[Event | Completion]:
        items: list[Event | Completion] = []
        try:
            items.append(self._queue.get(timeout=_GATHER_S))
            while True:
                items.append(self._queue.get_nowait())
        except Empty:
            return items

    def _write(self, item: Event | Completion) -> None:
        if isinstance(item, Completion):
            enter(self.run, self.work, item)
        elif isinstance(item, TaskStarted):
            where = self._devices[item.device]
            self.run.record("task-started", self._names[item.task], device=where, attempt=item.attempt, at_s=item.at_s)
        elif isinstance(item, TaskFailed):
            self.run.record(
                "task-failed",
                self._names[item.task],
                device=self._devices[item.device],
                attempt=item.attempt,
                at_s=item.at_s,
                blame=item.blame,
                reason=item.reason,
            )
        elif isinstance(item, (DeviceJoined, DeviceLost)):
            kind = "device-joined" if isinstance(item, DeviceJoined) else "device-lost"
            self.run.record(kind, self._devices[item.device], at_s=item.at_s, reason=getattr(item, "reason", ""))
        elif isinstance(item, PriceChanged):
            where = self._devices[item.device]
            self.run.record("price-changed", where, at_s=item.at_s, price_usd_per_hour=item.price_usd_per_hour)
        elif isinstance(item, Overruled):
            self.run.record("decision-overruled", item.dispatcher, at_s=item.at_s, reason=item.reason)


def enter(run: Run, work: Work, end: Completion) -> None:
    """Enter an end into the run log, with its output."""
    fields = dict(end.fields)
    if end.output is not None and len(end.output) <= _INLINE_BYTES:
        fields["output"] = base64.b64encode(end.output).decode()
    elif end.output is not None:
        run.attach(_artifact(work.graph.index_of[end.task]), end.output)
        fields["attached"] = True
    run.record("task-finished", end.task, **fields)


def catch_up(run: Run, work: Work) -> int:
    """Copy ends from the completion log that an earlier part of the run could not write into the run log."""
    path = completion_log_path(run.log, run.id)
    if not await_writers(path):
        raise EngineFailure(
            f"processes that run {run.id} started earlier are still running; end them, then resume the run again"
        )
    num_new = 0
    with run.batch():
        known = {event.subject for event in run.log.events(run.id, kinds=["task-finished"])}
        # A worker and the coordinator may both have logged an end; the later entry has the exact times.
        for end in {end.task: end for end in read_completions(path)}.values():
            if end.task not in known and end.task in work.graph.index_of:
                enter(run, work, end)
                num_new += 1
    path.unlink(missing_ok=True)
    return num_new


def finished_before(log: RunLog, run_id: str, work: Work) -> dict[int, object]:
    """Return the outputs of tasks that have finished in this run and need not run again.

    Tasks whose output is not data, or whose files are gone, do run again.
    """
    done: dict[int, object] = {}
    for event in log.events(run_id, kinds=["task-finished"]):
        task = work.graph.index_of.get(event.subject)
        if task is None:
            raise InvalidInput(
                f"has finished a task {event.subject!r} that the workflow no longer has; start a new run instead",
                field=f"run {run_id}",
            )
        data = None
        if "output" in event.fields:
            data = base64.b64decode(event.fields["output"])
        elif event.fields.get("attached"):
            data = log.artifact(run_id, _artifact(task))
        action = work.actions[task]
        is_gone = isinstance(action, Command) and missing_files(action, action.writes)
        if data is not None and not is_gone:
            done[task] = decode(data)
    return done


def _artifact(task: int) -> str:
    return f"output-{task}"


def _as_bytes(value: object) -> bytes | None:
    if num_bytes(value) > MAX_OUTPUT_BYTES:
        return None
    try:
        return encode(value)
    except TypeError:
        return None


#: What is kept in memory at most. Beyond it, events other than ends are dropped, and outputs of tasks, which run again
#: when the run is resumed.
MAX_EVENTS = 100_000
MAX_BUFFERED_BYTES = 64 << 20
#: How long the end of a run waits for a log that cannot be written.
LAST_PATIENCE_S = 5.0
_PAUSE_S = 0.2


class EventBuffer:
    """Holds events until the run log can be written (a full disk is often full for moments only), within a bound."""

    def __init__(self, on_notice: Callable[[str], None]) -> None:
        self.items: list[Event | Completion] = []
        self._on_notice = on_notice
        self._since_s: float | None = None  # when the log could no longer be written
        self._last_s: float | None = None  # when the run had ended, and the log could not be written
        self._num_lost = self._num_stripped = 0

    def add(self, items: Iterable[Event | Completion]) -> None:
        """Take events; above the bound, drop everything but ends, and then the outputs of ends."""
        self.items += items
        if self._since_s is None:
            return
        if len(self.items) > MAX_EVENTS:
            kept: list[Event | Completion] = []
            kept += [item for item in self.items if isinstance(item, Completion)][:MAX_EVENTS]
            self._num_lost += len(self.items) - len(kept)
            self.items = kept
        room = MAX_BUFFERED_BYTES
        for place, item in enumerate(self.items):
            size = len(item.output or b"") if isinstance(item, Completion) else 0
            if size > room:
                assert isinstance(item, Completion)
                self.items[place] = item._replace(output=None)
                self._num_stripped += 1
            else:
                room -= size

    def failed(self, error: Exception, *, is_last: bool) -> None:
        """Note that nothing could be written; pause, or raise the error when the run has waited long enough."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
            self._on_notice(
                f"{error}; the run continues, and its events are kept in memory until the log can be written"
            )
        if is_last:
            self._last_s = now_s if self._last_s is None else self._last_s
            if now_s - self._last_s > LAST_PATIENCE_S:
                raise error
        time.sleep(_PAUSE_S)

    def note_delay(self, run: Run) -> None:
        """Record with the delayed events how long they waited."""
        if self._since_s is not None:
            run.record("record-delayed", "", seconds=time.monotonic() - self._since_s, num_lost=self._num_lost)

    def written(self) -> None:
        """Note that everything is in the log."""
        if self._since_s is not None:
            waited_s = time.monotonic() - self._since_s
            self._on_notice(f"the run log can be written again; {len(self.items):,} events waited {waited_s:.1f} s")
        self.items = []
        self._since_s = self._last_s = None

    def loss(self) -> Exception | None:
        """Return an error that says what the record lacks, or None where it is complete."""
        if not (self._num_lost or self._num_stripped):
            return None
        return EngineFailure(
            f"while the run log could not be written, {self._num_lost:,} events and the outputs of"
            f" {self._num_stripped:,} tasks were left out"
        )
