"""Where a training keeps its state: a file of the user, and the run log, from which it can be resumed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.cli.training.request import TrainRequest
    from stretto.runlog import Run

STATE = "checkpoint.npz"


class TrainState:
    """A file for the state of a training, copied into its run whenever it has been written anew.

    A context manager: a file that nobody asked for goes when the training is over.
    """

    def __init__(self, request: TrainRequest) -> None:
        self.request = request
        self.run: Run | None = None
        self.path = request.checkpoint
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._kept_ns = -1

    def __enter__(self) -> TrainState:
        if self.path is None and (self.request.is_logged or self.request.run_id):
            self._folder = tempfile.TemporaryDirectory(prefix="stretto-train-")
            self.path = Path(self._folder.name) / STATE
        if self.request.run_id is not None:
            assert self.path is not None
            self.path.write_bytes(self._earlier(self.request.run_id))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def is_going_on(self) -> bool:
        """Whether the file holds a training that is to be taken up."""
        return self.request.is_resumed or self.request.run_id is not None

    def keep(self) -> None:
        """Copy the file into the run, if it has changed; called between steps."""
        if self.run is None or self.path is None or not self.path.is_file():
            return
        changed_ns = self.path.stat().st_mtime_ns
        if changed_ns != self._kept_ns:
            self._kept_ns = changed_ns
            self.run.attach(STATE, self.path.read_bytes())

    @staticmethod
    def _earlier(run_id: str) -> bytes:
        from stretto.runlog import RunLog

        with RunLog.open() as log:
            data = log.artifact(run_id, STATE)
        if data is None:
            raise InvalidInput("keeps no state of a training", field=f"run {run_id}")
        return data
