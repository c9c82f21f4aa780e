"""A process that does one piece of work after another; the server talks to it over pipes, in JSON with lengths.

Work runs apart from the server so that it can be ended at any moment, may use all of a core, and takes nothing else
with it when it runs out of memory. Requests and answers are JSON: nothing that comes from a client is ever unpickled.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import struct
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from stretto.reports.page.view_types import JsonObject
    from stretto.web.work import Desk

#: Before every message: its kind (one letter) and its length.
HEADER = struct.Struct("!cQ")
NEWS, RESULT, ERROR = b"n", b"r", b"e"
#: Address space that costs no memory: libraries, and what compilers reserve and never touch.
_MAPPED_BYTES = 2 * 2**30


def main() -> None:
    """Serve until the pipe is closed."""
    runs_path, max_memory_bytes = sys.argv[1] or None, int(sys.argv[2])
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not speak into the pipe
    _limit_memory(max_memory_bytes)
    waiting: queue.SimpleQueue[JsonObject] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, waiting), daemon=True).start()
    from stretto.web.quiet_log import limit_log
    from stretto.web.work import Desk, warm

    limit_log()
    warm()
    desk = Desk(runs_path)
    while True:
        request = waiting.get()

        def tell(kind: bytes, content: bytes) -> None:
            try:
                answers.write(HEADER.pack(kind, len(content)) + content)
                answers.flush()
            except BrokenPipeError:  # the server is gone, and with it whoever asked
                os._exit(0)

        _serve(desk, request, tell)


def _serve(desk: Desk, request: JsonObject, tell: Callable[[bytes, bytes], None]) -> None:
    from stretto.errors import StrettoError
    from stretto.reports.strict_json import dumps
    from stretto.web.failures import failure_of

    try:
        result = desk.do(request, lambda news: tell(NEWS, dumps(news).encode()))
        tell(RESULT, result if isinstance(result, bytes) else dumps(result).encode(errors="replace"))
    except (StrettoError, MemoryError, KeyboardInterrupt, Exception) as error:
        tell(ERROR, dumps(failure_of(error)).encode(errors="replace"))


def _read(requests: BinaryIO, waiting: queue.SimpleQueue[JsonObject]) -> None:
    """Take requests as they come; when the server is gone, so is this process, whatever it is doing."""
    while True:
        head = requests.read(HEADER.size)
        if len(head) < HEADER.size:
            os._exit(0)
        _, length = HEADER.unpack(head)
        waiting.put(json.loads(requests.read(length)))


def _limit_memory(num_bytes: int) -> None:
    """Limit what may be allocated, and a little above it the address space, which holds the libraries too."""
    for kind, wanted in ((resource.RLIMIT_DATA, num_bytes), (resource.RLIMIT_AS, num_bytes + _MAPPED_BYTES)):
        _, hard = resource.getrlimit(kind)
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (limit, hard))


if __name__ == "__main__":
    main()
