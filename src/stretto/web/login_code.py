"""The code in the link that ``stretto serve`` prints: it logs one browser in, once."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable

#: A link that nobody has opened by then may have been read by somebody else.
VALID_S = 900.0


class LoginCode:
    """A secret that is good for one use, shortly after the start."""

    def __init__(self, code: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._code = code
        self._clock = clock
        self._until_s = clock() + VALID_S

    def redeem(self, shown: str) -> bool:
        """Use the code up, and say whether it was the right one and in time."""
        if self._code is None or self._clock() > self._until_s:
            return False
        if not hmac.compare_digest(shown.encode(errors="replace"), self._code.encode()):
            return False
        self._code = None
        return True
