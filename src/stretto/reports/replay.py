"""A replay in the run log: jobs with their outcomes as columns, and the choices of a strategy with their reasons."""

from __future__ import annotations

import dataclasses
import io
import zipfile
from collections.abc import Mapping
from typing import Literal

import numpy as np

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.clusters.pool_toml import read_pools, write_pools
from stretto.files.document import Document
from stretto.queues.evaluate import Evaluation, Machine, figures
from stretto.queues.result import QueueResult
from stretto.reports.strict_json import dumps, packed, plain, unpacked
from stretto.runlog import Run, RunLog
from stretto.runlog.record import Json

JOBS, ABOUT = "jobs.npz", "replay.json.gz"
_TRACE = ("submit_s", "run_s", "num_procs", "estimate_s", "user", "memory_bytes", "num_gpus", "deadline_s")
_PAIRS = ("parent", "child")
#: For tables of waits: who the jobs belong to, and what was recorded of them.
_ABOUT_JOBS = ("job_id", "wait_s", "partition", "account", "group", "queue")
_NAMES = ("user_names", "partition_names", "account_names", "group_names", "queue_names", "job_names")
_PROMISES = ("due_s", "margin_s")
_RESULT = ("start_s", "end_s", "ready_s", "pool", "is_killed", "num_interruptions", "cost_usd", "billed_node_s")
#: The kind of event that a choice is.
_CHOICE = "choice"


def record_replay(run: Run, found: Evaluation, status: Literal["done", "interrupted"] = "done") -> dict[str, Json]:
    """Keep a replay and its choices, close the run, and return the figures."""
    summary: dict[str, Json] = plain({"answer": found.answer, **figures(found.metrics)})
    with run.batch():
        run.attach(JOBS, _columns(found.result, found.trace))
        run.attach(ABOUT, packed(_about(found.result, found.trace)))
        if not run.log.events(run.id, kinds=[_CHOICE], limit=1):  # some selectors write them down while they play
            for choice in found.choices:
                run.record(_CHOICE, str(choice["chosen"]), **plain(choice))
        run.finish(status, summary)
    return summary


def _columns(result: QueueResult, given: Trace) -> bytes:
    columns = {name: getattr(result.trace, name) for name in (*_TRACE, *_PAIRS)}
    # Replays of plain machines keep only what they need; who the jobs belong to is in what was given.
    whole = given if given.num_jobs == result.trace.num_jobs else result.trace
    columns |= {name: getattr(whole, name) for name in _ABOUT_JOBS}
    columns |= {name: getattr(result, name) for name in (*_RESULT, *_PROMISES)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: column for name, column in columns.items() if column is not None})
    return buffer.getvalue()


def _about(result: QueueResult, given: Trace) -> dict[str, Json]:
    pools = write_pools(result.pools).decode()
    about = {"trace": result.trace.name, "max_procs": result.trace.max_procs, "num_dropped": result.num_dropped}
    about["names"] = plain({name: given.meta[name] for name in _NAMES if name in given.meta})
    return {**about, "pools": pools, "spec": dict(result.spec)}


def replay_of(log: RunLog, run_id: str) -> QueueResult | None:
    """Return the replay that a run keeps, None where it has none yet."""
    data, about = log.artifact(run_id, JOBS), log.artifact(run_id, ABOUT)
    if data is None or about is None:
        return None
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as columns:
            return _result({name: columns[name] for name in columns.files}, unpacked(about, ABOUT))
    except (KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"its replay cannot be read: {error}", field=f"run {run_id}") from None


def _result(columns: Mapping[str, Json], about: Mapping[str, Json]) -> QueueResult:
    jobs = {name: columns[name] for name in (*_TRACE, *_PAIRS, *_ABOUT_JOBS) if name in columns}
    trace = Trace(name=about["trace"], max_procs=about["max_procs"], meta=about.get("names", {}), **jobs)
    kept = about["pools"]
    # Logs of older versions have the main fields of each pool, as JSON.
    text = kept if isinstance(kept, str) else dumps({"pool": kept})
    pools = read_pools(Document("pools", text.encode()))
    outcome = {name: columns[name] for name in _RESULT}
    outcome |= {name: columns[name] for name in _PROMISES if name in columns}
    return QueueResult(
        trace=trace, pools=pools, num_dropped=int(about["num_dropped"]), spec=dict(about["spec"]), **outcome
    )


def same_jobs(result: QueueResult) -> tuple[Trace, Machine]:
    """Return trace and machine of a replay, to replay them again."""
    if result.site is not None:
        return dataclasses.replace(result.trace), result.site
    is_plain = len(result.pools) == 1 and result.pools[0].name == "machine"
    return dataclasses.replace(result.trace), result.pools[0].num_procs if is_plain else result.pools
