"""Run a real server in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx

#: The machine may be busy with other tests.
PATIENCE_S = 300.0
_SERVE = """
import json, sys
from stretto.web.server import serve
serve(lambda address: print(address, flush=True), **json.loads(sys.argv[1]))
"""


@dataclass(frozen=True)
class Server:
    """Where a server is, and the log that it shows."""

    url: str
    runs: Path
    pid: int

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=PATIENCE_S, **options)


@contextmanager
def serving(runs: Path, *, stderr: IO[bytes] | None = None, **settings: Any) -> Iterator[Server]:
    """Run a server until the block ends; it must then go when asked to."""
    words = [sys.executable, "-c", _SERVE, json.dumps({"port": 0, "runs_path": str(runs), **settings})]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment)
    try:
        assert process.stdout is not None
        yield Server(process.stdout.readline().strip(), runs, process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
