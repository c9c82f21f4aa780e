"""Slack as operators write it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.promises.slack import Slack, SlackTable, slack_of_jobs


@pytest.mark.parametrize(
    ("text", "time_s", "share"),
    [
        ("24h+4e", 86400, 4),
        ("4e+24h", 86400, 4),
        ("2d + 0.5e", 172800, 0.5),
        ("90min", 5400, 0),
        ("1.5e", 0, 1.5),
        ("0", 0, 0),
        (0, 0, 0),
        ("inf", math.inf, 0),
        (30.0, 30, 0),
    ],
)
def test_texts_are_understood(text: str | float, time_s: float, share: float) -> None:
    assert Slack.parse(text) == Slack(time_s, share)


@pytest.mark.parametrize("text", ["24", "h", "4x", "24h+", "-1h", "24h+-1e", "", "1e5e", "e"])
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="24h\\+4e"):
        Slack.parse(text)


def test_negative_numbers_are_refused() -> None:
    for wrong in (-1.0, math.nan):
        with pytest.raises(InvalidInput):
            Slack.parse(wrong)
    assert str(Slack.parse("1d+4e")) == "24h+4e"
    for text in ("24h+4e", "10s", "0", "inf", "1.5e", "90min"):
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
    by = {("partition", 1): "1min", ("user", 1): "inf"}
    assert slack_of_jobs(trace, "2e", by).tolist() == [200.0, 60.0, 60.0, math.inf]
    with pytest.raises(InvalidInput, match="no column qos"):
        slack_of_jobs(trace, "2e", {("qos", 1): "0"})
    with pytest.raises(InvalidInput, match="cannot differ"):
        slack_of_jobs(trace, "2e", {("color", 1): "0"})


def test_tables_of_slack_are_texts() -> None:
    text = "24h+4e,partition:debug=1h,qos:high=0,user:alice=2h"
    table = SlackTable.parse(text)
    assert table.default == Slack(86400.0, 4.0)
    assert [name for _, name, _ in table.rows] == ["debug", "high", "alice"]
    assert str(table) == text
    for wrong in ("24h,debug=1h", "24h,partition:=1h", "24h,partition:debug", "24h,color:red=1h", "24h,user:a=soon"):
        with pytest.raises(InvalidInput, match="slack"):
            SlackTable.parse(wrong)
