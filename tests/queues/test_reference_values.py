"""Whole logs against figures that independent simulators agree on, to every printed digit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stretto.core.trace import Trace
from stretto.files.traces.load import load_trace
from stretto.queues.metrics import measure
from stretto.queues.replay import replay
from stretto.queues.validate import check_replay

LOGS = {
    "lublin-1": ("lublin_256.swf.gz", 256),
    "lublin-2": ("lublin_256_new2.swf.gz", 256),
    "sdsc-sp2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
    "hpc2n": ("HPC2N-2002-2.2-cln.swf.gz", 240),
}
#: (log, backfill) -> bounded slowdown, mean wait, max wait, utilization, makespan; strategy FCFS, batch order.
FIGURES = {
    ("lublin-1", "none"): ("66502.4755", "2388443.76", 4759976, "0.65491", 12482549),
    ("lublin-1", "easy"): ("590.0538", "97155.99", 1029731, "0.93634", 8730698),
    ("lublin-1", "conservative"): ("489.2013", "131567.51", 994667, "0.93647", 8729497),
    ("lublin-2", "none"): ("54575.2455", "1172120.15", 2304812, "0.41188", 6886877),
    ("lublin-2", "easy"): ("256.6287", "9703.56", 283744, "0.60262", 4707047),
    ("lublin-2", "conservative"): ("239.5705", "9659.31", 282677, "0.60166", 4714530),
    ("sdsc-sp2", "none"): ("13993.2603", "1551989.43", 5509181, "0.76795", 68440542),
    ("sdsc-sp2", "easy"): ("92.6288", "21183.67", 459636, "0.83393", 63025400),
    ("sdsc-sp2", "conservative"): ("102.4356", "25147.16", 434313, "0.83372", 63041942),
    ("hpc2n", "none"): ("209.1992", "16702.46", 1163459, "0.60149", 109256855),
    ("hpc2n", "easy"): ("88.1741", "11259.43", 1163514, "0.60149", 109256855),
    ("hpc2n", "conservative"): ("94.0185", "12373.30", 1163644, "0.60149", 109256855),
}
#: The same with EASY in one-event order.
ONE_EVENT = {
    "sdsc-sp2": ("92.4272", "21187.54", 459636, "0.83393", 63025400),
    "hpc2n": ("88.7428", "11265.64", 1163514, "0.60149", 109256855),
}
#: Bounded slowdown on lublin-2 with EASY, the queue sorted anew at each event.
CLASSICS = {
    ("sjf", "none"): "276.9482",
    ("sjf", "easy"): "101.0057",
    ("wfp3", "easy"): "106.3242",
    ("unicep", "easy"): "127.3379",
    ("f1", "easy"): "149.3360",
    ("f2", "easy"): "118.9046",
    ("f3", "easy"): "105.6800",
    ("f4", "easy"): "78.3300",
}
NUM_JOBS = {"lublin-1": 10_000, "lublin-2": 10_000, "sdsc-sp2": 54_034, "hpc2n": 202_871}


@pytest.fixture(scope="module")
def logs(data_dir: Path) -> dict[str, Trace]:
    return {name: load_trace(data_dir / "swf" / file, format="swf") for name, (file, _) in LOGS.items()}


def replayed(logs: dict[str, Trace], log: str, **options: Any) -> tuple[str, str, float, str, float]:
    result = replay(logs[log], LOGS[log][1], **options)
    check_replay(logs[log], LOGS[log][1], result)
    figures = measure(result)
    assert figures.num_jobs == NUM_JOBS[log]
    return (
        f"{figures.bounded_slowdown.mean:.4f}",
        f"{figures.wait_s.mean:.2f}",
        figures.wait_s.max,
        f"{figures.utilization:.5f}",
        figures.makespan_s,
    )


@pytest.mark.parametrize(("log", "backfill"), FIGURES)
def test_fcfs(logs: dict[str, Trace], log: str, backfill: str) -> None:
    assert replayed(logs, log, backfill=backfill) == FIGURES[log, backfill]


@pytest.mark.parametrize("log", ONE_EVENT)
def test_one_event_at_a_time(logs: dict[str, Trace], log: str) -> None:
    assert replayed(logs, log, tie="one-event") == ONE_EVENT[log]


@pytest.mark.parametrize(("strategy", "backfill"), CLASSICS)
def test_classics(logs: dict[str, Trace], strategy: str, backfill: str) -> None:
    assert replayed(logs, "lublin-2", strategy=strategy, backfill=backfill)[0] == CLASSICS[strategy, backfill]


def test_the_general_kernel_agrees_on_a_whole_log(logs: dict[str, Trace]) -> None:
    # Estimates of Lublin's jobs are exact: with kill nothing changes but the kernel that runs.
    assert replayed(logs, "lublin-2", kill=True) == FIGURES["lublin-2", "easy"]
