"""How a server is set up; every limit has a name and a default here and nowhere else."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from stretto.errors import InvalidInput

#: A token shorter than this can be guessed.
MIN_TOKEN_LETTERS = 16


@dataclass(frozen=True)
class ServeSettings:
    """Where to listen, who may come in, and how much each may ask for.

    Attributes
    ----------
    token
        What clients must show. Needed wherever others than this machine's users can reach the server.
    runs_path
        The run log; None is the user's own.
    num_workers
        Processes that plan and replay; one more reads runs for the pages.
    max_job_s
        A job that takes longer is ended.
    max_waiting
        Jobs that may wait for a worker; more are turned away.
    max_body_bytes, max_body_s
        Of a request: its size, and how long it may take to arrive.
    max_memory_bytes
        Address space of a worker.
    rate_per_s, burst
        Requests of one client: how many a second in the long run, and at once.
    """

    host: str = "127.0.0.1"
    port: int = 8137
    token: str | None = None
    runs_path: Path | None = None
    num_workers: int = 2
    max_job_s: float = 300.0
    max_waiting: int = 16
    max_body_bytes: int = 32 * 2**20
    max_body_s: float = 30.0
    max_memory_bytes: int = 16 * 2**30
    rate_per_s: float = 50.0
    burst: int = 200

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidInput(f"{self.port} is not a port, 0 to 65535", field="port")
        if self.num_workers < 1:
            raise InvalidInput(f"{self.num_workers} must be at least 1", field="workers")
        for name in ("max_job_s", "max_body_bytes", "max_body_s", "rate_per_s", "burst", "max_memory_bytes"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{getattr(self, name)} must be positive", field=name)
        if self.token is not None and len(self.token) < MIN_TOKEN_LETTERS:
            raise InvalidInput(f"has fewer than {MIN_TOKEN_LETTERS} letters; it could be guessed", field="token")
        if self.token is None and not is_loopback(self.host):
            raise InvalidInput(
                f"{self.host} can be reached from other machines: name a --token-file, or set STRETTO_TOKEN",
                field="--host",
            )


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
