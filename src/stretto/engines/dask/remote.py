"""What runs on Dask's workers: one task of some work, which reports its own beginning and end."""

from __future__ import annotations

import threading
import time

from distributed import get_worker
from distributed.protocol.pickle import dumps

from stretto.engines.local.perform import TaskError, perform
from stretto.engines.outputs import digest, outline
from stretto.engines.work import Action


def run_remote(
    topic: str, task: int, attempt: int, action: Action, seconds: float, wants_digest: bool, *inputs: object
) -> object:
    """Do one task and return its output, which stays on this worker; what happened goes to the topic.

    A failing task is reported, not raised: to Dask it has ended, and whether it runs again is the driver's decision.
    """
    worker = get_worker()
    told = {"task": task, "attempt": attempt, "start": time.time()}
    worker.log_event(topic, {"op": "started", **told})
    begin_s = time.perf_counter()
    try:
        output = perform(action, task, inputs, seconds, threading.Event())
        _check_sendable(output)
    except TaskError as error:
        failed = {"op": "failed", **told, "blame": error.blame, "reason": error.reason}
        worker.log_event(topic, {**failed, "end": told["start"] + time.perf_counter() - begin_s})
        return None
    end = told["start"] + time.perf_counter() - begin_s
    found = digest(output) if wants_digest else None
    worker.log_event(topic, {"op": "finished", **told, "end": end, "digest": found})
    return output


def _check_sendable(output: object) -> None:
    """Blame a task for an output that no other worker can be given; Dask would lose its way over it later."""
    try:
        outline(output, lambda buffer: 0)  # plain data, which is quick to see
        return
    except TypeError:
        pass
    try:
        dumps(output)
    except Exception as error:
        raise TaskError(
            "task", f"its output, a {type(output).__name__}, cannot be sent to other workers: {error}"
        ) from error
