"""A replay inside a run: jobs and what became of them as columns, and the choices with their reasons."""

from __future__ import annotations

import dataclasses
import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from stretto.catalog import SELECTOR_REPLAYS, SELECTORS
from stretto.domain.queue_metrics import measure
from stretto.domain.queue_result import QueueResult
from stretto.domain.trace import Trace
from stretto.errors import InvalidInput
from stretto.experiments.queue_evaluate import Machine, figures
from stretto.experiments.queue_play import check_rules, play, selector_result
from stretto.experiments.report_json import dumps, packed, plain, unpacked
from stretto.formats.document import Document
from stretto.formats.pool_toml import read_pools, write_pools
from stretto.registry import lookup
from stretto.runlog import Run, RunLog

JOBS, ABOUT = "jobs.npz", "replay.json.gz"
_TRACE = ("submit_s", "run_s", "num_procs", "estimate_s", "user", "memory_bytes", "num_gpus", "deadline_s")
_PAIRS = ("parent", "child")
_RESULT = ("start_s", "end_s", "ready_s", "pool", "is_killed", "num_interruptions", "cost_usd", "billed_node_s")
#: Choices that are told one by one; beyond them every k-th is.
_NUM_CHOICES = 2000


def play_with_choices(
    trace: Trace, machine: Machine, *, strategy: str, seed: int, **rules: Any
) -> tuple[QueueResult, list[dict[str, Any]]]:
    """Replay a trace, and say what was followed from when on and why; a fixed strategy needs no reasons."""
    check_rules(strategy, **rules)
    if strategy not in SELECTORS or not isinstance(machine, int):
        result = play(trace, machine, strategy=strategy, seed=seed, **rules)
        return result, [{"at_s": 0.0, "chosen": strategy, "reason": "a fixed strategy"}]
    found = lookup("selector", strategy, SELECTOR_REPLAYS)(trace, machine, seed=seed)
    result = selector_result(found, machine, strategy, seed)
    told = getattr(found, "choices", None)
    return result, _told(told) if told is not None else _followed(found)


def _told(choices: Any) -> list[dict[str, Any]]:
    """Return choices that come with the estimates behind them."""
    rows = []
    for one in choices:
        cost = dict(one.cost)
        reason = "the default: nothing else saved enough" if one.is_fallback else "the least cost, by enough"
        if one.has_drifted:
            reason += "; the workload has changed"
        rows.append({"at_s": one.time_s, "job": one.job, "chosen": one.chosen, "reason": reason, "cost": cost})
    return rows[:: max(1, len(rows) // _NUM_CHOICES)]


def _followed(found: Any) -> list[dict[str, Any]]:
    """Return the changes of a selector that keeps only what it followed."""
    chosen = np.asarray(found.chosen)
    order = np.argsort(found.start_s, kind="stable")
    names = np.asarray(found.strategies)[chosen[order]]
    new = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]]))
    reason = "did best in simulated futures of the present queue"
    rows = [
        {"at_s": float(found.start_s[order[place]]), "job": int(order[place]), "chosen": str(names[place])}
        for place in new.tolist()
    ]
    return [row | {"reason": reason} for row in rows[:: max(1, len(rows) // _NUM_CHOICES)]]


def record_replay(run: Run, result: QueueResult, choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Keep a replay and its choices, close the run, and return the figures."""
    summary: dict[str, Any] = plain(figures(measure(result)))
    with run.batch():
        run.attach(JOBS, _columns(result))
        run.attach(ABOUT, packed(_about(result)))
        for choice in choices:
            run.record("choice", str(choice["chosen"]), **plain(choice))
        run.finish("done", summary)
    return summary


def _columns(result: QueueResult) -> bytes:
    columns = {name: getattr(result.trace, name) for name in (*_TRACE, *_PAIRS)}
    columns |= {name: getattr(result, name) for name in _RESULT}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: column for name, column in columns.items() if column is not None})
    return buffer.getvalue()


def _about(result: QueueResult) -> dict[str, Any]:
    pools = write_pools(result.pools).decode()
    about = {"trace": result.trace.name, "max_procs": result.trace.max_procs, "num_dropped": result.num_dropped}
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


def _result(columns: Mapping[str, Any], about: Mapping[str, Any]) -> QueueResult:
    jobs = {name: columns[name] for name in (*_TRACE, *_PAIRS) if name in columns}
    trace = Trace(name=about["trace"], max_procs=about["max_procs"], **jobs)
    kept = about["pools"]
    # Logs of older versions have the main fields of each pool, as JSON.
    text = kept if isinstance(kept, str) else dumps({"pool": kept})
    pools = read_pools(Document("pools", text.encode()))
    outcome = {name: columns[name] for name in _RESULT}
    return QueueResult(
        trace=trace, pools=pools, num_dropped=int(about["num_dropped"]), spec=dict(about["spec"]), **outcome
    )


def same_jobs(result: QueueResult) -> tuple[Trace, Machine]:
    """Return trace and machine of a replay, for playing them once more."""
    is_plain = len(result.pools) == 1 and result.pools[0].name == "machine"
    return dataclasses.replace(result.trace), result.pools[0].num_procs if is_plain else result.pools
