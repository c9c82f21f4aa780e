"""The commands that do on a terminal what was asked for over HTTP."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from stretto.runlog.record import Json
from stretto.web import inputs

Request = Mapping[str, Json]


def plan_command(request: Request, sources: Mapping[str, Json]) -> str | None:
    """Return the command that makes the same plan, None where the graph came with the request."""
    if sources["graph_source"] is None:
        return None
    words = ["stretto", "plan", sources["graph_source"], "--policy", request["policy"], "--seed", str(request["seed"])]
    if sources["cluster_source"] is not None:
        words += ["--cluster", sources["cluster_source"]]
    if request["time_limit_s"] is not None:
        words += ["--time-limit", f"{request['time_limit_s']:g}"]
    return shlex.join(words)


def replay_command(settings: Mapping[str, Json], request: Request, source: str | None) -> str | None:
    """Return the command that replays the same, None where the jobs or the pools came with the request."""
    is_on_pools = settings["procs"] is None
    if source is None or (is_on_pools and (not settings["pools"] or inputs.is_document(settings["pools"]))):
        return None
    words = ["stretto", "replay", source, "--strategy", settings["strategy"], "--backfill", settings["backfill"]]
    if is_on_pools:
        words += ["--pools", settings["pools"], "--pool-rule", settings["pool_rule"]]
    elif request.get("procs") is not None:
        words += ["--procs", str(request["procs"])]
    return shlex.join(words)


def rack_command(settings: Mapping[str, Json]) -> str:
    """Return the command that plays the same stream by the same rule."""
    words = ["stretto", "rack", settings["cluster"], "--by", settings["policy"]]
    return shlex.join([*words, "--stream", str(settings["stream"]), "--seed", str(settings["seed"])])
