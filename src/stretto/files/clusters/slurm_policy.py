"""How a Slurm site orders its queue: settings of ``slurm.conf``, tables of ``sacctmgr show qos`` and ``sshare``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from stretto.core.site import MAX_COUNT
from stretto.core.site_policy import Account, PriorityFactors, Qos, SchedulerTiming
from stretto.errors import InvalidInput
from stretto.files.clusters.site_builder import FilePlace, SiteBuilder, some
from stretto.files.traces import slurm_values as slurm

#: Values by key in lower case, with their lines.
Settings = Mapping[str, tuple[str, int]]
_WEIGHTS = {
    "priorityweightage": "age",
    "priorityweightfairshare": "fair_share",
    "priorityweightjobsize": "job_size",
    "priorityweightpartition": "partition",
    "priorityweightqos": "qos",
}
_OTHER_WEIGHTS = ("priorityweightassoc", "priorityweighttres")
_TIMES = {"bf_interval": 1.0, "bf_window": 60.0, "bf_resolution": 1.0, "sched_interval": 1.0}
#: Columns of ``sacctmgr show qos``: counts, resources by whose jobs they count, and what has no place in a site.
_QOS_COUNTS = {
    "max_jobs_per_user": ("maxjobspu", "maxjobsperuser"),
    "max_jobs_per_account": ("maxjobspa", "maxjobsperaccount"),
    "max_jobs": ("grpjobs",),
    "max_submitted_per_user": ("maxsubmitpu", "maxsubmitjobsperuser", "maxsubmitjobspu"),
    "max_submitted": ("grpsubmit", "grpsubmitjobs"),
}
_QOS_TRES = {
    "_per_user": ("maxtrespu", "maxtresperuser"),
    "_per_account": ("maxtrespa", "maxtresperaccount"),
    "": ("grptres", "grpcpus"),
    "_per_job": ("maxtres", "maxtresperjob", "maxtrespj"),
}
_QOS_UNREAD = (
    *("grptresmins", "grptresrunmins", "grpwall", "maxtrespernode", "maxtresmins", "maxsubmitpa"),
    *("maxsubmitjobsperaccount", "mintres"),
)
_COUNTS = {"bf_max_job_test": "bf_max_job_test", "default_queue_depth": "queue_depth"}


def priority_of(builder: SiteBuilder, settings: Settings) -> PriorityFactors | None:
    """Return the weights of the multifactor priority; None where the configuration names none."""
    if settings.get("prioritytype", ("", 0))[0].lower().endswith("basic"):
        return None
    if not any(key in settings for key in _WEIGHTS):
        return None
    for key in _OTHER_WEIGHTS:
        if key in settings and settings[key][0] not in ("0", ""):
            builder.notes.append(f"{key}={settings[key][0]} is not part of the model of a site, and has no effect")
    values: dict[str, float] = {}
    for key, name in _WEIGHTS.items():
        if key in settings:
            values[name] = float(_whole(builder, settings, key))
    for key, name in (("prioritymaxage", "max_age_s"), ("prioritydecayhalflife", "half_life_s")):
        if key in settings:
            text, line = settings[key]
            with builder.at(FilePlace(line, key)):
                seconds = slurm.duration_s(text)
            values[name] = seconds if seconds > 0 else math.inf  # a half-life of 0 means that usage never fades
    last = max(settings[key][1] for key in _WEIGHTS if key in settings)
    with builder.at(FilePlace(last)):
        return PriorityFactors(**values, favors_small=settings.get("priorityfavorsmall", ("", 0))[0].lower() == "yes")


def _whole(builder: SiteBuilder, settings: Settings, key: str) -> int:
    text, line = settings[key]
    if not re.fullmatch(r"-?[0-9]{1,40}", text):
        builder.document.fail(f"{text[:60]!r} is not a whole number", line=line, field=key)
    return int(text)


def scheduler_of(builder: SiteBuilder, settings: Settings) -> SchedulerTiming | None:
    """Return when the scheduler looks; None where the configuration says nothing of it."""
    if "schedulertype" not in settings and "schedulerparameters" not in settings:
        return None
    kind, kind_line = settings.get("schedulertype", ("sched/backfill", 0))
    text, line = settings.get("schedulerparameters", ("", kind_line))
    times: dict[str, float] = {}
    counts: dict[str, int] = {}
    others: list[str] = []
    has_backfill, continues = kind.lower().endswith("backfill"), False
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, value = part.partition("=")
        if key in _TIMES:
            seconds = _number(builder, key, value, line) * _TIMES[key]
            if seconds < 0 and key == "bf_interval":  # -1 turns backfilling off
                has_backfill = False
            elif seconds < 0 and key == "sched_interval":
                builder.notes.append(f"{part} turns the main scheduler off; the model of a site always has one")
            else:
                times[f"{key}_s"] = seconds
        elif key in _COUNTS:
            counts[_COUNTS[key]] = int(_number(builder, key, value, line))
        elif key == "bf_continue":
            continues = True
        else:
            others.append(key)
    if others:
        builder.notes.append(f"SchedulerParameters without a place in the model of a site: {some(others)}")
    with builder.at(FilePlace(line)):
        return SchedulerTiming(has_backfill, bf_continue=continues, **times, **counts)  # type: ignore[arg-type]


def _number(builder: SiteBuilder, key: str, value: str, line: int) -> float:
    if not re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,9})?", value.strip()):
        builder.document.fail(f"{value[:60]!r} is not a number", line=line, field=key)
    return float(value)


def qos_of(builder: SiteBuilder, row: Mapping[str, str], line: int) -> Qos:
    """Return a row of ``sacctmgr show qos -P``; limits that the model of a site has no place for are told."""
    name = row["name"].strip()
    if not name:
        builder.document.fail("a row of sacctmgr without a name", line=line, field="qos")
    with builder.at(FilePlace(line, "qos")):
        wall = slurm.duration_s(row.get("maxwall", ""))
        limits = {field: _limit(row, columns) for field, columns in _QOS_COUNTS.items()}
        unread = [column for column in _QOS_UNREAD if row.get(column, "").strip()]
        for scope, columns in _QOS_TRES.items():
            parts = slurm.tres(_first(row, columns))
            unread += [f"{columns[0]} {key}" for key in parts if key not in ("cpu", "gres/gpu")]
            for key, what in (("cpu", "cpus"), ("gres/gpu", "gpus")):
                limits[f"max_{what}{scope}"] = slurm.whole(parts[key]) if key in parts else None
        if unread:
            builder.notes.append(f"limits of QOS {name!r} without a place in the model of a site: {some(unread)}")
        priority = min(slurm.whole(row.get("priority", "")), MAX_COUNT)
        return Qos(name, priority, wall if wall > 0 else math.inf, **limits)


def _first(row: Mapping[str, str], columns: Sequence[str]) -> str:
    """Return what the first of several columns says; versions of Slurm name them differently."""
    return next((text for column in columns if (text := row.get(column, "").strip())), "")


def _limit(row: Mapping[str, str], columns: Sequence[str]) -> int | None:
    text = _first(row, columns)
    return slurm.whole(text) if text else None


def accounts_of(builder: SiteBuilder, rows: Sequence[tuple[int, Mapping[str, str]]]) -> tuple[Account, ...]:
    """Return the rows of ``sshare -P``; blanks before an account say how deep in the tree it stands."""
    path: list[tuple[int, str]] = []
    accounts: list[Account] = []
    for line, row in rows:
        text, user = row.get("account", ""), row.get("user", "").strip()
        depth, name = len(text) - len(text.lstrip()), text.strip()
        if not name:
            builder.document.fail("a row of sshare without an account", line=line, field="Account")
        if not user:
            while path and path[-1][0] >= depth:
                path.pop()
        parent = path[-1][1] if path and not user else None
        with builder.at(FilePlace(line, "RawShares")):
            accounts.append(Account(name, parent, _shares(builder, row, line), user or None))
        if not user:
            path.append((depth, name))
    return tuple(accounts)


def _shares(builder: SiteBuilder, row: Mapping[str, str], line: int) -> int:
    text = row.get("rawshares", "").strip()
    if text.lower() in ("parent", ""):
        builder.notes.append(f"line {line}: the shares {text!r} of {row.get('account', '').strip()} count as 1")
        return 1
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise InvalidInput(f"{text[:60]!r} is not a number of shares")
    return int(text)
