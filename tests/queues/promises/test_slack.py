"""Slack as operators write it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from stretto.core.request import ResourceRequest
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.promises.slack import COLUMNS, DEFAULT_SLACK, Slack, SlackTable, parts_of_slack


@pytest.mark.parametrize(
    ("text", "time_s", "share", "wait_share"),
    [
        ("24h+4e", 86400, 4, 0),
        (DEFAULT_SLACK, 86400, 4, 1),
        ("4e+24h", 86400, 4, 0),
        ("2d + 0.5e", 172800, 0.5, 0),
        ("90min", 5400, 0, 0),
        ("1.5e", 0, 1.5, 0),
        ("0.5wait", 0, 0, 0.5),
        ("1wait + 2h + 1wait", 7200, 0, 2),
        ("0", 0, 0, 0),
        (0, 0, 0, 0),
        ("inf", math.inf, 0, 0),
        (30.0, 30, 0, 0),
    ],
)
def test_texts_are_understood(text: str | float, time_s: float, share: float, wait_share: float) -> None:
    assert Slack.parse(text) == Slack(time_s, share, wait_share)


@pytest.mark.parametrize("text", ["24", "h", "4x", "24h+", "-1h", "24h+-1e", "", "1e5e", "e", "wait", "1w", "-1wait"])
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="24h\\+4e"):
        Slack.parse(text)


def test_negative_numbers_are_refused() -> None:
    for wrong in (-1.0, math.nan):
        with pytest.raises(InvalidInput):
            Slack.parse(wrong)
    assert str(Slack.parse("1d+4e")) == "24h+4e"
    for text in ("24h+4e", DEFAULT_SLACK, "10s", "0", "inf", "1.5e", "90min", "2wait"):
        assert Slack.parse(str(Slack.parse(text))) == Slack.parse(text)


def test_slack_differs_by_partition_and_user() -> None:
    trace = Trace.of(
        [0, 1, 2, 3],
        [10, 10, 10, 10],
        [1, 1, 1, 1],
        [100, 100, 100, 100],
        partition=np.array([0, 1, 1, 0], np.int32),
        user=np.array([0, 0, 1, 1], np.int32),
    )
    assert SlackTable.parse("2e,partition:1=1min,user:1=inf").of(trace, trace.estimate_s).tolist() == [
        200.0,
        60.0,
        60.0,
        math.inf,
    ]
    mixed = SlackTable.parse("2e,partition:1=1min+2wait").of(trace, trace.estimate_s)
    assert mixed.tolist() == [[200.0, 0.0], [60.0, 2.0], [60.0, 2.0], [200.0, 0.0]]
    with pytest.raises(InvalidInput, match="no column qos"):
        SlackTable.parse("2e,qos:1=0").of(trace, trace.estimate_s)


def test_arrays_of_slack_have_one_row_per_job() -> None:
    for slack, time, share in ((5.0, [5, 5], [0, 0]), (np.array([1.0, np.inf]), [1, math.inf], [0, 0])):
        assert [part.tolist() for part in parts_of_slack(slack, 2)] == [time, share]
    assert [part.tolist() for part in parts_of_slack(np.array([[1.0, 2.0], [3.0, 4.0]]), 2)] == [[1, 3], [2, 4]]
    for wrong in (np.zeros(3), np.zeros((2, 3)), np.array([1.0, -1.0]), np.array([[1.0, np.nan], [1.0, 1.0]])):
        with pytest.raises(InvalidInput, match="slack"):
            parts_of_slack(wrong, 2)


def test_tables_of_slack_are_texts() -> None:
    text = "24h+4e,partition:debug=1h,qos:high=0,user:alice=2h"
    table = SlackTable.parse(text)
    assert table.default == Slack(86400.0, 4.0)
    assert [name for _, name, _ in table.rows] == ["debug", "high", "alice"]
    assert str(table) == text
    for wrong in ("24h,debug=1h", "24h,partition:=1h", "24h,partition:debug", "24h,color:red=1h", "24h,user:a=soon"):
        with pytest.raises(InvalidInput, match="slack"):
            SlackTable.parse(wrong)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("24", "24 has no unit"),
        ("2.5+1h", "2.5 has no unit"),
        (".5", ".5 has no unit"),
        ("4x", "'4x' is not a time; units: s, ms, us, ns, min, h"),
        ("1h+", "'' is not a time; units: s, ms, us, ns, min, h"),
    ],
)
def test_a_slack_that_is_no_slack_is_told_with_its_part(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Slack.parse(text)
    help_text = "add a time, a multiple of the estimate and one of the planned wait: 24h+4e+1wait, 6h, 2e, 0 or inf"
    assert str(caught.value) == f"slack: {text!r}: {reason}; {help_text}"


@pytest.mark.parametrize(
    ("text", "slack"),
    [
        *(
            ("INF", Slack(math.inf)),
            (" infinite ", Slack(math.inf)),
            ("None", Slack(math.inf)),
            ("1.5d", Slack(129600.0)),
        ),
        *(
            (".5e", Slack(0.0, 0.5)),
            ("2.e", Slack(0.0, 2.0)),
            ("1e+2e+1h+30min", Slack(5400.0, 3.0)),
            ("0+0", Slack(0.0)),
        ),
        *((Slack(1.0, 2.0, 3.0), Slack(1.0, 2.0, 3.0)), (7, Slack(7.0))),
    ],
)
def test_parts_of_a_slack_add_up(text: str | float | Slack, slack: Slack) -> None:
    assert Slack.parse(text) == slack


@pytest.mark.parametrize(
    ("slack", "text"),
    [
        (Slack(0.0), "0"),
        (Slack(math.inf, 2.0), "inf"),
        (Slack(5400.0), "1.5h"),
        (Slack(36.0), "0.01h"),
        (Slack(10.0), "10.0s"),
        (Slack(0.0, 0.5, 2.0), "0.5e+2wait"),
        (Slack(3600.0, 0.0, 1.0), "1h+1wait"),
    ],
)
def test_slack_in_words(slack: Slack, text: str) -> None:
    assert str(slack) == text


def test_shares_are_finite_and_not_negative() -> None:
    assert Slack(0.0, 0.0, 0.0) == Slack(0.0)
    for values in (
        (0.0, -1.0, 0.0),
        (0.0, 0.0, -1.0),
        (0.0, math.inf, 0.0),
        (0.0, 0.0, math.inf),
        (0.0, math.nan, 0.0),
    ):
        with pytest.raises(InvalidInput, match="must not be negative") as caught:
            Slack(*values)
        assert caught.value.field == "slack"


def test_slack_of_jobs_has_a_column_for_the_planned_wait_where_it_counts() -> None:
    estimates = np.array([10.0, 0.0])
    assert Slack(5.0, 2.0).of(estimates).tolist() == [25.0, 5.0]
    assert Slack(5.0, 2.0, 0.5).of(estimates).tolist() == [[25.0, 0.5], [5.0, 0.5]]
    assert Slack(5.0, 0.0, 0.5).of(np.array([7], np.int32)).tolist() == [[5.0, 0.5]]
    given = np.array([1.0, 2.0])
    time, share = parts_of_slack(given, 2)
    time[0] = share[0] = 9.0
    assert given.tolist() == [1.0, 2.0]  # what a caller gave stays as it is
    assert parts_of_slack(np.zeros((0,)), 0)[0].tolist() == []
    with pytest.raises(InvalidInput, match=r"slack: \(3,\) slacks for 2 jobs"):
        parts_of_slack(np.zeros(3), 2)
    for wrong in (np.array([[1.0, -1.0]]), np.array([[-1.0, 1.0]]), np.array([[1.0, math.inf]]), np.array([math.nan])):
        with pytest.raises(InvalidInput, match="slack: slack must not be negative or NaN"):
            parts_of_slack(wrong, 1)


def named_trace(**columns: Any) -> Trace:
    return Trace.of([0, 1, 2], [10, 10, 10], [1, 1, 1], [100, 100, 100], **columns)


def slack_of(text: str, trace: Trace) -> list[float]:
    found: list[float] = SlackTable.parse(text).of(trace, trace.estimate_s).tolist()
    return found


@pytest.mark.parametrize("column", COLUMNS)
def test_slack_may_differ_by_every_column_by_name_or_number(column: str) -> None:
    values = np.array([0, 1, 0], np.int32)
    assert slack_of(f"0,{column}:1=5s", named_trace(**{column: values})) == [0, 5, 0]
    named = named_trace(**{column: values}, meta={f"{column}_names": ("a", "b")})
    assert slack_of(f"0,{column}:b=5s", named) == [0, 5, 0]
    assert slack_of(f"0,{column}:a=5s", named) == [5, 0, 5]
    with pytest.raises(UnknownName, match=rf"unknown {column} of 'trace': '1'"):
        slack_of(f"0,{column}:1=5s", named)  # it has names, so a number is none
    with pytest.raises(UnknownName, match=rf"unknown {column} of 'trace': '2'"):
        slack_of(f"0,{column}:2=5s", named_trace(**{column: values}))
    with pytest.raises(InvalidInput) as caught:
        slack_of(f"0,{column}:1=5s", named_trace())
    assert str(caught.value) == f"slack: 'trace' has no column {column}, by which slack is to differ"


def test_the_first_row_that_names_a_job_counts() -> None:
    trace = named_trace(user=np.array([0, 1, 1], np.int32), group=np.array([0, 0, -1], np.int32))
    assert slack_of("1s,user:1=2s,group:0=3s", trace) == [3, 2, 2]
    assert slack_of("1s,group:0=3s,user:1=2s", trace) == [3, 3, 2]
    assert slack_of("1s, group:-1=3s", trace) == [1, 1, 3]
    assert SlackTable.parse(5.0).of(trace, trace.estimate_s).tolist() == [5, 5, 5]
    table = SlackTable(Slack(1.0))
    assert SlackTable.parse(table) is table


def test_partitions_are_those_that_jobs_ask_for() -> None:
    asked = (ResourceRequest(partitions=("debug", "long")), ResourceRequest(partitions=("long",)))
    both = (*asked, (ResourceRequest(), ResourceRequest(partitions=("gpu",))))
    trace = named_trace(request=np.array([1, 0, 2], np.int32), requests=both, partition=np.array([7, 7, 7], np.int32))
    assert slack_of("0,partition:debug=5s", trace) == [0, 5, 0]
    assert slack_of("0,partition:long=5s", trace) == [5, 5, 0]
    assert slack_of("0,partition:gpu=5s", trace) == [0, 0, 5]
    assert slack_of("0,partition:7=5s", trace) == [5, 5, 5]  # nobody asks for it by name: it is a number


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1h,debug=1h", "'1h,debug=1h': 'debug=1h' is not COLUMN:NAME=SLACK, such as partition:debug=1h"),
        ("1h, user:a", "'1h, user:a': 'user:a' is not COLUMN:NAME=SLACK, such as partition:debug=1h"),
        ("1h,user:=1h", "'1h,user:=1h': 'user:=1h' is not COLUMN:NAME=SLACK, such as partition:debug=1h"),
        ("1h,size:a=1h", "slack cannot differ by 'size'; by partition, queue, qos, account, group, user"),
    ],
)
def test_rows_that_are_none_are_told(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        SlackTable.parse(text)
    assert str(caught.value) == f"slack: {reason}"
