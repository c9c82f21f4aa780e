"""Slack: how much later than planned at submission a job may start.

A time, plus a multiple of the estimate, plus a multiple of the wait that was planned at submission. Arrays of slacks
have one row per job: seconds, or seconds and the multiple of the planned wait.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.request import components_of
from stretto.core.trace import Trace
from stretto.core.units import parse_seconds
from stretto.errors import InvalidInput, UnknownName

#: What is promised where the operator says nothing.
DEFAULT_SLACK = "24h+4e+1wait"
_MULTIPLE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(e|wait)")
#: Columns of a trace by which slack may differ.
COLUMNS = ("partition", "queue", "qos", "account", "group", "user")


@dataclass(frozen=True)
class Slack:
    """A time, a multiple of the estimate, and one of the planned wait; infinite = nothing is promised.

    Attributes
    ----------
    time_s
        The same for all jobs.
    share
        Of the estimate of the job.
    wait_share
        Of the wait that is planned when the job is submitted: promises of a day are cheap in a quiet week, and cost all
        other jobs much when the queue is a week long.
    """

    time_s: float
    share: float = 0.0
    wait_share: float = 0.0

    def __post_init__(self) -> None:
        shares = (self.share, self.wait_share)
        if not (self.time_s >= 0 and all(share >= 0 and math.isfinite(share) for share in shares)):
            raise InvalidInput(f"{self} must not be negative", field="slack")

    @staticmethod
    def parse(text: str | float | Slack) -> Slack:
        """Return the slack that a text such as ``24h+4e+1wait``, ``6h``, ``2e``, ``0`` or ``inf`` stands for."""
        if isinstance(text, Slack):
            return text
        if not isinstance(text, str):
            return Slack(float(text))
        if text.strip().lower() in ("inf", "infinite", "none"):
            return Slack(math.inf)
        time_s = 0.0
        shares = {"e": 0.0, "wait": 0.0}
        for part in text.split("+"):
            word = part.strip()
            multiple = _MULTIPLE.fullmatch(word)
            if multiple is not None:
                shares[multiple.group(2)] += float(multiple.group(1))
            else:
                time_s += _time_s(word, text)
        return Slack(time_s, shares["e"], shares["wait"])

    def of(self, estimate_s: Floats) -> Floats:
        """Return the slack of jobs with these estimates; see the top of this file."""
        slack: Floats = self.time_s + self.share * np.asarray(estimate_s, np.float64)
        if not self.wait_share:
            return slack
        return np.stack([slack, np.full_like(slack, self.wait_share)], axis=-1)

    def __str__(self) -> str:
        if self.time_s == math.inf:
            return "inf"
        hours = self.time_s / 3600.0
        time = f"{hours:g}h" if hours == round(hours, 2) else f"{self.time_s!r}s"
        told = ((time, self.time_s), (f"{self.share:g}e", self.share), (f"{self.wait_share:g}wait", self.wait_share))
        return "+".join(text for text, value in told if value) or "0"


def parts_of_slack(slack_s: Floats | float, num_jobs: int) -> tuple[Floats, Floats]:
    """Return the seconds and the multiples of the planned wait, one of each per job; raise where there is no slack."""
    slack = np.asarray(slack_s, np.float64)
    if slack.ndim == 2 and slack.shape == (num_jobs, 2):
        time, share = slack[:, 0].copy(), slack[:, 1].copy()
    elif slack.ndim == 0 or slack.shape == (num_jobs,):
        time, share = np.array(np.broadcast_to(slack, num_jobs)), np.zeros(num_jobs)
    else:
        raise InvalidInput(f"{slack.shape} slacks for {num_jobs} jobs", field="slack")
    if not bool(np.all(time >= 0) and np.all(share >= 0) and np.all(np.isfinite(share))):
        raise InvalidInput("slack must not be negative or NaN", field="slack")
    return time, share


def _time_s(word: str, text: str) -> float:
    """Return the seconds of one part of a slack."""
    help_text = "add a time, a multiple of the estimate and one of the planned wait: 24h+4e+1wait, 6h, 2e, 0 or inf"
    days = re.fullmatch(r"([0-9]+\.?[0-9]*)d", word)
    if days is not None:
        return 86400.0 * float(days.group(1))
    if re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", word) and float(word) != 0:
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
        """Return the table that a text such as ``24h+4e+1wait,partition:debug=1h,user:alice=2h`` stands for."""
        if isinstance(text, SlackTable):
            return text
        if not isinstance(text, str):
            return SlackTable(Slack.parse(text))
        first, *others = text.split(",")
        return SlackTable(Slack.parse(first), tuple(_row(part, text) for part in others))

    def of(self, trace: Trace, estimate_s: Floats) -> Floats:
        """Return the slack of every job of a trace with these estimates; see the top of this file."""
        count = len(estimate_s)
        time, share = parts_of_slack(self.default.of(estimate_s), count)
        for column, name, slack in reversed(self.rows):
            chosen = _named(trace, column, name)
            time[chosen], share[chosen] = parts_of_slack(slack.of(estimate_s[chosen]), int(np.count_nonzero(chosen)))
        return np.stack([time, share], axis=-1) if bool(np.any(share)) else time

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
