"""A log that clients cannot fill: only so many lines a minute, and a count of those that were left out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

#: Everything that clients can cause lines in.
_LOGGERS = ("uvicorn.error", "asyncio", "stretto.web")
_NUM_PER_MINUTE = 20


class FewLines(logging.Filter):
    """Lets through so many lines a minute, and says with the next how many there were besides."""

    def __init__(self, num_per_minute: int = _NUM_PER_MINUTE, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.num_per_minute = num_per_minute
        self._clock = clock
        self._began_s = clock()
        self._num_told = 0
        self._num_left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a line is written."""
        if self._clock() - self._began_s >= 60.0:
            self._began_s, self._num_told = self._clock(), 0
        if self._num_told >= self.num_per_minute:
            self._num_left_out += 1
            return False
        self._num_told += 1
        if self._num_left_out:
            record.msg = f"{record.getMessage()} ({self._num_left_out} lines before this one were left out)"
            record.args = ()
            self._num_left_out = 0
        return True


def limit_log() -> None:
    """Limit what is logged in this process from now on."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(FewLines())
