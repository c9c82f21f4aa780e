"""What a run has learned about contention on this host, kept in the run log for later runs."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from stretto.core.problem import Problem
from stretto.engines.host.dispatcher import HostDispatcher, kinds_of
from stretto.errors import InvalidInput
from stretto.racks.host.law import ContentionLaw
from stretto.racks.telemetry.host_machine import HostMachine, host_machine
from stretto.runlog import Run, RunLog

DEMANDS = "demands.json"
#: Runs of the log that are looked at for something to begin with.
_MAX_RUNS = 50


def signature(host: HostMachine) -> str:
    """Return what tells hosts of different topology apart, without naming any."""
    caches = sorted(set(host.caches.values()))
    text = json.dumps([host.cpus, sorted(host.core_of.items()), caches])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def keep_learned(run: Run, dispatcher: HostDispatcher) -> None:
    """Attach what was learned to a run."""
    learned = dispatcher.learned_json()
    if learned is not None:
        content = {"host": signature(host_machine(dispatcher.root)), "law": learned}
        run.attach(DEMANDS, json.dumps(content, indent=1).encode())


def learned_before(log: RunLog, problem: Problem) -> dict[str, Any] | None:
    """Return what the latest run on a host like this one has learned about the kinds of tasks of this problem.

    The coupling of cores is a fact of the host and is taken over in any case; None where no run has learned anything.
    """
    here, kinds = signature(host_machine()), set(kinds_of(problem))
    first: dict[str, Any] | None = None
    for info in log.runs("run", limit=_MAX_RUNS):
        law = _law_of(log, info.id, here)
        if law is None:
            continue
        common = {name: row for name, row in law["categories"].items() if name in kinds}
        if common and info.name == problem.graph.name:
            return {**law, "categories": common}
        first = first or {**law, "categories": {}}
    return first


def _law_of(log: RunLog, run_id: str, here: str) -> dict[str, Any] | None:
    """Return what a run has learned, None where it learned nothing, elsewhere, or nothing that can be read."""
    data = log.artifact(run_id, DEMANDS)
    if data is None:
        return None
    try:
        content = json.loads(data)
        if content["host"] != here:
            return None
        law: dict[str, Any] = content["law"]
        ContentionLaw().start_from(law)
    except (ValueError, KeyError, TypeError, InvalidInput):
        return None
    return law
