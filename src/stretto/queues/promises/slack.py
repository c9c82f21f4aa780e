"""Slack: how much later than planned at submission a job may start, as a time plus a multiple of its estimate."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.request import components_of
from stretto.core.trace import Trace
from stretto.core.units import parse_seconds
from stretto.errors import InvalidInput, UnknownName

#: What is promised where the operator says nothing.
DEFAULT_SLACK = "24h+4e"
_MULTIPLE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)e")
#: Columns of a trace by which slack may differ.
COLUMNS = ("partition", "queue", "qos", "account", "group", "user")


@dataclass(frozen=True)
class Slack:
    """A time plus a multiple of the estimate; infinite = nothing is promised.

    Attributes
    ----------
    time_s
        The same for all jobs.
    share
        Of the estimate of the job.
    """

    time_s: float
    share: float = 0.0

    def __post_init__(self) -> None:
        if not (self.time_s >= 0 and self.share >= 0 and math.isfinite(self.share)):
            raise InvalidInput(f"{self} must not be negative", field="slack")

    @staticmethod
    def parse(text: str | float | Slack) -> Slack:
        """Return the slack that a text such as ``24h+4e``, ``6h``, ``2e``, ``0`` or ``inf`` stands for."""
        if isinstance(text, Slack):
            return text
        if not isinstance(text, str):
            return Slack(float(text))
        if text.strip().lower() in ("inf", "infinite", "none"):
            return Slack(math.inf)
        time_s = share = 0.0
        for part in text.split("+"):
            word = part.strip()
            multiple = _MULTIPLE.fullmatch(word)
            if multiple is not None:
                share += float(multiple.group(1))
            else:
                time_s += _time_s(word, text)
        return Slack(time_s, share)

    def of(self, estimate_s: Floats) -> Floats:
        """Return the slack of jobs with these estimates, in seconds."""
        slack: Floats = self.time_s + self.share * np.asarray(estimate_s, np.float64)
        return slack

    def __str__(self) -> str:
        if self.time_s == math.inf:
            return "inf"
        hours = self.time_s / 3600.0
        time = f"{hours:g}h" if hours == round(hours, 2) else f"{self.time_s!r}s"
        parts = [*([time] if self.time_s else []), *([f"{self.share:g}e"] if self.share else [])]
        return "+".join(parts) or "0"


def _time_s(word: str, text: str) -> float:
    """Return the seconds of one part of a slack."""
    help_text = "write a time plus a multiple of the estimate, such as 24h+4e, 6h, 2e, 0 or inf"
    days = re.fullmatch(r"([0-9]+\.?[0-9]*)d", word)
    if days is not None:
        return 86400.0 * float(days.group(1))
    if re.fullmatch(r"[0-9.]+", word) and float(word.strip(".") or 0) != 0:
        raise InvalidInput(f"{text!r}: {word} has no unit; {help_text}", field="slack")
    try:
        return parse_seconds(word)
    except InvalidInput as error:
        raise InvalidInput(f"{text!r}: {error.message}; {help_text}", field="slack") from None


@dataclass(frozen=True)
class SlackTable:
    """Slack that may differ by partition, QOS, account, queue, group or user.

    Attributes
    ----------
    default
        Of all jobs that no row names.
    rows
        A column, the name or number that it has there, and the slack; the first row that names a job counts.
    """

    default: Slack
    rows: tuple[tuple[str, str, Slack], ...] = ()

    @staticmethod
    def parse(text: str | float | Slack | SlackTable) -> SlackTable:
        """Return the table that a text such as ``24h+4e,partition:debug=1h,user:alice=2h`` stands for."""
        if isinstance(text, SlackTable):
            return text
        if not isinstance(text, str):
            return SlackTable(Slack.parse(text))
        first, *others = text.split(",")
        return SlackTable(Slack.parse(first), tuple(_row(part, text) for part in others))

    def of(self, trace: Trace, estimate_s: Floats) -> Floats:
        """Return the slack of every job of a trace with these estimates, in seconds."""
        found = self.default.of(estimate_s)
        for column, name, slack in reversed(self.rows):
            chosen = _named(trace, column, name)
            found[chosen] = slack.of(estimate_s[chosen])
        return found

    def __str__(self) -> str:
        return ",".join([str(self.default), *(f"{column}:{name}={slack}" for column, name, slack in self.rows)])


def _row(part: str, text: str) -> tuple[str, str, Slack]:
    """Return one row of a table of slacks."""
    who, equals, slack = part.strip().partition("=")
    column, colon, name = who.partition(":")
    if not (equals and colon and name):
        message = f"{text!r}: {part.strip()!r} is not COLUMN:NAME=SLACK, such as partition:debug=1h"
        raise InvalidInput(message, field="slack")
    if column not in COLUMNS:
        raise InvalidInput(f"slack cannot differ by {column!r}; by {', '.join(COLUMNS)}", field="slack")
    return column, name, Slack.parse(slack)


def _named(trace: Trace, column: str, name: str) -> NDArray[np.bool_]:
    """Say which jobs have a name in a column; raise where the trace has no such column or name."""
    numbers = getattr(trace, column)
    if column == "partition" and trace.request is not None:
        asked = [any(name in part.partitions for part in components_of(one)) for one in trace.requests]
        if any(asked):
            return np.array(asked, np.bool_)[trace.request]
    if numbers is None:
        raise InvalidInput(f"{trace.name!r} has no column {column}, by which slack is to differ", field="slack")
    names = [str(known) for known in trace.meta.get(f"{column}_names", ())]
    if name in names:
        return np.asarray(numbers == names.index(name), np.bool_)
    if not names and re.fullmatch(r"-?[0-9]+", name) and bool(np.any(numbers == int(name))):
        return np.asarray(numbers == int(name), np.bool_)
    raise UnknownName(f"{column} of {trace.name!r}:", name, names or [str(n) for n in np.unique(numbers)[:20]])


def slack_of_jobs(
    trace: Trace, slack: str | float | Slack, by: Mapping[tuple[str, int], str | float | Slack] | None = None
) -> Floats:
    """Return the slack of every job of a trace, in seconds.

    Parameters
    ----------
    slack
        Of all jobs for which ``by`` says nothing else.
    by
        Slack of some jobs: ``{("partition", 2): "6h+1e"}``. A job that several of them name gets the first one's.
    """
    estimate = np.where(np.isfinite(trace.estimate_s), trace.estimate_s, trace.run_s)
    found = Slack.parse(slack).of(estimate)
    for (name, number), other in reversed(list((by or {}).items())):
        if name not in COLUMNS:
            raise InvalidInput(f"slack cannot differ by {name!r}; by {', '.join(COLUMNS)}", field="slack")
        column = getattr(trace, name)
        if column is None:
            raise InvalidInput(f"{trace.name!r} has no column {name}, by which slack is to differ", field="slack")
        chosen = column == number
        found[chosen] = Slack.parse(other).of(estimate[chosen])
    return found
