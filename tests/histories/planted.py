"""Bugs to be found: small patches of production code, each of which breaks something that histories check."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

_DRIVER = "stretto.engines.driver"
_STEER = "stretto.engines.slurm.steer"


@dataclass(frozen=True)
class Patch:
    """A change of one function: the first text is replaced by the second."""

    module: str
    function: str
    old: str
    new: str


#: By name: what goes wrong.
PLANTED: dict[str, Patch] = {
    "tasks of a lost device are not moved": Patch(
        f"{_DRIVER}.driver",
        "Driver._on_lost",
        "self._move([t for t, d in enumerate(states.device) if d == lost and states.state[t] in (WAITING, READY)])",
        "pass",
    ),
    "a lost device counts as alive": Patch(
        f"{_DRIVER}.driver", "Driver._on_lost", "states.is_alive[lost] = False", "states.is_alive[lost] = True"
    ),
    "a task may fail once too often": Patch(
        f"{_DRIVER}.driver", "Driver._on_failed", "if len(self.failures[task]) >=", "if len(self.failures[task]) >"
    ),
    "lost outputs are not computed again": Patch(f"{_DRIVER}.driver", "Driver._on_lost", "self._revive()", "pass"),
    "a device gets one task too many": Patch(
        f"{_DRIVER}.states", "TaskStates._fill", "len(issued) < self.capacity", "len(issued) <= self.capacity"
    ),
    "a node is not asked for room": Patch(f"{_DRIVER}.rooms", "NodeRooms.fits", "need <= free", "True"),
    "the memory of a node is not asked": Patch(
        f"{_DRIVER}.rooms",
        "NodeRooms.fits",
        "zip(self._need[task], self._free[node], ",
        "zip(self._need[task][:1], self._free[node][:1], ",
    ),
    "the bytes that a task itself takes are not reserved": Patch(
        f"{_DRIVER}.memory",
        "DeviceMemory.reserve",
        "size = self._own[task] + self._expected[task]",
        "size = self._expected[task]",
    ),
    "outputs that were read before a restart count": Patch(
        "stretto.engines.work", "OpenReads.__init__", "for task in done:", "for task in ():"
    ),
    "a task does not wait for its data": Patch(
        f"{_DRIVER}.states", "TaskStates.finish", "if stays or target in (device, UNPLACED):", "if True:"
    ),
    "an idle dispatcher is not overruled": Patch(
        f"{_DRIVER}.dispatch", "SafeDispatcher._ask", "if not chosen and not any(view.issued):", "if False:"
    ),
    "a dispatcher has all the time in the world": Patch(
        f"{_DRIVER}.dispatch",
        "SafeDispatcher._ask",
        "self._pending.result(self.budget_s)",
        "self._pending.result(None)",
    ),
    "an impossible device is accepted": Patch(
        f"{_DRIVER}.dispatch",
        "checked_choice",
        "if not (0 <= device < len(view.is_alive) and view.is_alive[device] and tables.can_run(task, device)):",
        "if False:",
    ),
    "a rented node is kept for ever": Patch(
        "stretto.engines.rented_nodes", "RentedNodes.follow", "if not self._left[rental]:", "if False:"
    ),
    "a rented node is released before its last task": Patch(
        "stretto.engines.rented_nodes", "RentedNodes.follow", "if not self._left[rental]:", "if True:"
    ),
    "the least time of a rental is not paid": Patch(
        "stretto.engines.rented_nodes", "RentedNodes.actual", "terms.minimum_s", "0.0"
    ),
    "ends are not in the completion log": Patch(
        "stretto.engines.completion_log", "CompletionLog.add", "os.write(self._handle, pack_completion(*end))", "pass"
    ),
    "ends are copied into the run log twice": Patch(
        "stretto.engines.event_writer", "catch_up", "if end.task not in known and ", "if "
    ),
    "events are dropped while the disk is full": Patch(
        "stretto.engines.event_writer",
        "EventWriter._write_waiting",
        "waiting.failed(error, is_last=self._is_closing.is_set())",
        "waiting.items = []",
    ),
    "two processes may write one run": Patch(
        "stretto.runlog.log",
        "RunLog.check_free",
        'if info.status == "running" and writer != this_process():',
        "if False:",
    ),
    "a failed transaction stays open": Patch(
        "stretto.runlog.log", "RunLog.transaction", 'self._connection.execute("ROLLBACK")', "pass"
    ),
    "labels are told without a tag": Patch(
        f"{_STEER}.label_store",
        "LabelStore._set",
        "admincomment=retagged(job.admin_comment, tag)",
        "admincomment=job.admin_comment",
    ),
    "our own label is taken for the value before it": Patch(
        f"{_STEER}.label_store",
        "LabelStore._set",
        "Tag(self.mode, entry.told[-1], entry.before, self.partition)",
        "Tag(self.mode, entry.told[-1], entry.told[-1], self.partition)",
    ),
    "a tag stays on its job": Patch(
        f"{_STEER}.restore_priorities", "_untagged", "if store.is_tagged and plain != job.admin_comment", "if False"
    ),
    "a claim sees no others": Patch(f"{_STEER}.claims", "_rivals", "for seen in found if", "for seen in found[:0] if"),
    "an idle steerer gives no sign of life": Patch(f"{_STEER}.steer", "Steerer.follow", "self._keep()", "pass"),
    "nobody is ever found dead": Patch(
        f"{_STEER}.claims", "_is_found_dead", "if abs(time.time() - seen.at_s) <= seen.mark.lease_s:", "if True:"
    ),
    "a site factor of others comes back as zero": Patch(
        f"{_STEER}.restore_priorities", "_restore_one", "sitefactor=before or 0", "sitefactor=0"
    ),
    "jobs of other partitions are steered": Patch(
        f"{_STEER}.steer", "Steerer._look", "[job for job in queue if job.is_in(partition)]", "list(queue)"
    ),
    "a job that was moved keeps its label": Patch(
        f"{_STEER}.steer",
        "Steerer._tell",
        "is_moved = found is not None and not found.is_in(partition)",
        "is_moved = False",
    ),
    "an order is not checked": Patch(
        f"{_STEER}.steer", "Steerer._decide", "if sorted(decision.order) != view.waiting.tolist():", "if False:"
    ),
    "the guard does nothing": Patch(
        f"{_STEER}.steering_guard",
        "watch",
        'if all(seen.mark.token != mark.token for seen in marks.seen("steering")):',
        "if True:",
    ),
    "promises are given anew at every look": Patch(
        "stretto.queues.promises.live",
        "PromisedOrder._promise",
        "new = sorted(job for job in able if int(view.job_id[job]) not in self._allowed)",
        "new = sorted(able)",
    ),
    "promises are forgotten by a restart": Patch(
        "stretto.queues.promises.live",
        "PromisedOrder.restore",
        'self._allowed = {int(job): float(value) for job, value in state["promises"].items()}',
        "self._allowed = {}",
    ),
    "a job starts without room": Patch(
        "stretto.queues.promises.queue",
        "PromiseQueue.start",
        'or self.jobs.procs[job] > self.state.moment["free"][0]',
        "",
    ),
    "waiting for spot ignores the changeover": Patch(
        "stretto.graphs.rental.spot", "SpotDecider.may_wait_s", " - job.changeover_s", ""
    ),
}


def planted(name: str) -> contextlib.AbstractContextManager[None]:
    """Have one bug in production code."""
    return patched(PLANTED[name])


@contextlib.contextmanager
def patched(patch: Patch) -> Iterator[None]:
    """Have one function of production code changed."""
    module = importlib.import_module(patch.module)
    *path, last = patch.function.split(".")
    owner: Any = getattr(module, path[0]) if path else module
    old = getattr(owner, last)
    new = _changed(module, patch, old)
    places = [owner] if path else [one for key, one in sys.modules.items() if _uses(key, one, last, old)]
    with contextlib.ExitStack() as stack:
        for place in places:
            stack.enter_context(mock.patch.object(place, last, new))
        for table in [one for one in vars(module).values() if isinstance(one, dict)]:  # such as handlers of events
            changed = {key: new for key, value in table.items() if value is old}
            stack.enter_context(mock.patch.dict(table, changed))
        yield


def _uses(key: str, module: Any, name: str, function: Any) -> bool:
    return key.partition(".")[0] in ("stretto", "tests", "histories") and getattr(module, name, None) is function


def _changed(module: Any, patch: Patch, function: Any) -> Any:
    text = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    if patch.old not in text:
        raise LookupError(f"{patch.module}.{patch.function} no longer has {patch.old!r}: write this planted bug anew")
    space: dict[str, Any] = {}
    source = "from __future__ import annotations\n" + text.replace(patch.old, patch.new, 1)
    # Names such as ``super`` cells do not occur in these functions, so the globals of the module are all they need.
    exec(compile(source, f"<planted in {patch.module}>", "exec"), vars(module), space)
    return space[patch.function.rpartition(".")[2]]
