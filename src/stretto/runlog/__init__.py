"""The durable record of runs and decisions, in one SQLite file that anybody can read."""

from stretto.runlog.log import RunLog
from stretto.runlog.record import Event, RunInfo
from stretto.runlog.run import Run

__all__ = ["Event", "Run", "RunInfo", "RunLog"]
