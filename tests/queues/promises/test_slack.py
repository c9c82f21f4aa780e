"""Slack as operators write it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.promises.slack import DEFAULT_SLACK, Slack, SlackTable, parts_of_slack


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
