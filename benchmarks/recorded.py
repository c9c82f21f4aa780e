"""The recorded past of every log beside its plain and its calibrated replay (FCFS with EASY backfilling).

A log counts as nearer where the mean wait of the calibrated replay differs less from the record than that of the plain
one, over the jobs that both have. "Held out" is the second half of the log, replayed with what was fitted and chosen on
the first half. Logs without recorded waits (generated ones, and two whose source holds none) have nothing to compare;
they are listed, and count as not nearer.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from peer_venv import HERE
from queue_logs import commit, find_logs

from stretto.api.replay import measured_replay
from stretto.core.trace import Trace
from stretto.files.traces.load import load_trace
from stretto.queues.evaluate import Evaluation
from stretto.queues.recorded.record import has_waits

DATA = Path(os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data"))
#: Of logs whose header does not say it: the machines that ``*.machines.txt`` beside the log lists, 20 x 80 and 48 x 12.
NUM_PROCS = {"CERIT-SC-wagap-2013": 2176}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--logs", default="", help="beginnings of names, with commas between them; empty = all")
    parser.add_argument("--strategy", default="fcfs")
    given = parser.parse_args()
    print(f"commit {commit()}, {given.strategy} with easy backfilling; waits in hours")
    print(f"{'log':<22}{'recorded':>9}{'same jobs':>10}{'plain':>8}{'cal.':>8}{'nearer':>7}  ", end="")
    print("p95 rec./plain/cal.    rank corr.   held out rec./plain/cal.  CPU s  applied")
    logs = find_logs(given.data, given.logs)
    nearer = held = 0
    for path in logs:
        near, held_near = _one(path, given.strategy)
        nearer += near
        held += held_near
    print(f"nearer to the record: {nearer} of {len(logs)} logs; on the held-out half {held} of {len(logs)}")


def _one(path: Path, strategy: str) -> tuple[bool, bool]:
    trace = load_trace(path)
    name = path.name.split(".")[0].removesuffix("-cln")[:21]
    if not has_waits(trace):
        print(f"{name:<22}no recorded waits")
        return False, False
    num_procs = trace.max_procs or NUM_PROCS[trace.name.removesuffix(".ext")]
    begin = time.process_time()
    found = measured_replay(trace, num_procs, strategy=strategy, calibrate=True, timed=False)
    seconds = time.process_time() - begin
    _check_recorded(trace, found)
    return _print(name, found, seconds)


def _check_recorded(trace: Trace, found: Evaluation) -> None:
    """Stop where the record has not the mean wait of the log's own column."""
    assert trace.wait_s is not None
    assert found.recorded is not None
    own = float(np.mean(trace.wait_s[np.isfinite(trace.wait_s)]))
    if found.recorded.metrics.wait_s.mean != own:
        raise SystemExit(f"{trace.name}: recorded {found.recorded.metrics.wait_s.mean!r}, the log's own {own!r}")


def _print(name: str, found: Evaluation, seconds: float) -> tuple[bool, bool]:
    fit = found.calibration
    assert fit is not None
    assert found.recorded is not None
    assert fit.held_out is not None
    plain, calibrated, out = fit.plain, fit.calibrated, fit.held_out
    near = abs(calibrated.mean_difference_s) < abs(plain.mean_difference_s)
    held = abs(out.calibrated_mean_wait_s - out.recorded_mean_wait_s) < abs(
        out.plain_mean_wait_s - out.recorded_mean_wait_s
    )
    hours = [found.recorded.metrics.wait_s.mean, plain.recorded.mean, plain.replayed.mean, calibrated.replayed.mean]
    first = "".join(f"{value / 3600:>{width}.2f}" for value, width in zip(hours, (9, 10, 8, 8), strict=True))
    tails = "/".join(f"{s / 3600:.1f}" for s in (plain.recorded.p95, plain.replayed.p95, calibrated.replayed.p95))
    ranks = f"{plain.rank_correlation:.2f}->{calibrated.rank_correlation:.2f}"
    second = (out.recorded_mean_wait_s, out.plain_mean_wait_s, out.calibrated_mean_wait_s)
    halves = "/".join(f"{s / 3600:.2f}" for s in second) + (" nearer" if held else "")
    parts = fit.corrections
    applied = [
        *([f"by {parts.split_by}"] if parts.split_by else []),
        *([f"windows {parts.window_s / 3600:g} h"] if parts.window_s else []),
        *(["outages"] if parts.has_outages else []),
        *([f"share {parts.share:.3f}"] if parts.share != 1.0 else []),
    ]
    says = "yes" if near else "no"
    print(
        f"{name:<22}{first}{says:>7}  {tails:<22} {ranks:<12} {halves:<26}{seconds:>5.0f}  {', '.join(applied)}",
        flush=True,
    )
    return near, held


if __name__ == "__main__":
    main()
