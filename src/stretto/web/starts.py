"""Answer when jobs will start, for a request of the server."""

from __future__ import annotations

from collections.abc import Mapping

from stretto.api import when, when_all
from stretto.errors import InvalidInput
from stretto.reports.page.view_types import JsonObject
from stretto.reports.strict_json import plain
from stretto.runlog.record import Json
from stretto.web import inputs


def starts_of(request: Mapping[str, Json]) -> JsonObject:
    """Return what ``stretto when --output json`` prints, with the sentences that people read."""
    trace = inputs.trace_of(request)
    procs = inputs.machine_of(trace, request["procs"], None)
    told = {name: request[name] for name in ("at", "strategy", "backfill", "slack", "coverage", "learn", "seed")}
    if not request["all"]:
        found = when(trace, procs, job=request["job"], change=request["change"], **told)
        instead = None if found.instead is None else found.instead.sentence
        return {**plain(found.to_json()), "sentence": found.start.sentence, "if_sentence": instead}
    for name in ("job", "change"):
        if request[name] is not None:
            raise InvalidInput("is for one job, and all are asked for", field=name)
    if told["at"] is None:
        raise InvalidInput("is missing: a moment at which jobs wait", field="at")
    listed: JsonObject = plain(when_all(trace, procs, **told).all_to_json())
    return listed
