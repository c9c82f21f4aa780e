"""Settings of a server: the only place of every limit and its default."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from stretto.core.host.memory_limit import machine_memory_bytes
from stretto.errors import InvalidInput

#: A token shorter than this can be guessed.
MIN_TOKEN_LETTERS = 16
_POSITIVE: tuple[str, ...] = (
    "max_job_s",
    "max_body_bytes",
    "max_body_s",
    "rate_per_s",
    "burst",
    "max_header_s",
    "max_write_s",
)
_POSITIVE += ("max_connections", "max_connections_per_client")
#: What workers leave to the server itself and to the rest of the machine: this, or an eighth where that is more.
_SERVER_BYTES = 2**29
#: No worker gets more, however large the machine; with less there is room for the compiled code and little else.
_MAX_WORKER_BYTES, _MIN_WORKER_BYTES = 16 * 2**30, 2**29


@dataclass(frozen=True)
class ServeSettings:
    """Where to listen, who may come in, and how much each may ask for.

    Attributes
    ----------
    token
        What clients must show. Without one every user of this machine may do everything; on addresses that other
        machines can reach it is needed.
    login_code
        Logs one browser in, once, shortly after the start.
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
        What a worker may allocate; None shares the machine's memory between them and leaves some to the server.
    max_connections, max_connections_per_client
        Beyond these the connection goes that has waited longest without a request.
    max_header_s
        How long the headers of a request may take to arrive.
    max_write_s
        How long a client may leave an answer unread.
    rate_per_s, burst
        Requests of one client: how many a second in the long run, and at once.
    """

    host: str = "127.0.0.1"
    port: int = 8137
    token: str | None = None
    login_code: str | None = None
    runs_path: Path | None = None
    num_workers: int = 2
    max_job_s: float = 300.0
    max_waiting: int = 16
    max_body_bytes: int = 32 * 2**20
    max_body_s: float = 30.0
    max_memory_bytes: int | None = None
    max_connections: int = 512
    max_connections_per_client: int = 256
    max_header_s: float = 10.0
    max_write_s: float = 60.0
    rate_per_s: float = 50.0
    burst: int = 200

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidInput(f"{self.port} is not a port, 0 to 65535", field="port")
        if self.num_workers < 1:
            raise InvalidInput(f"{self.num_workers} must be at least 1", field="workers")
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{getattr(self, name)} must be positive", field=name)
        if self.worker_bytes < _MIN_WORKER_BYTES:
            raise InvalidInput(
                f"{self.num_workers} workers and the one that reads runs get {self.worker_bytes // 2**20} MiB each of"
                f" this machine's memory, and need {_MIN_WORKER_BYTES // 2**20} MiB: take fewer",
                field="--workers",
            )
        if self.token is not None and len(self.token) < MIN_TOKEN_LETTERS:
            raise InvalidInput(f"has fewer than {MIN_TOKEN_LETTERS} characters: too easy to guess", field="token")
        if self.token is None and not is_loopback(self.host):
            raise InvalidInput(
                f"{self.host} can be reached from other machines and needs a token: omit --no-token",
                field="--host",
            )

    @property
    def worker_bytes(self) -> int:
        """What each of the workers may allocate, the one that reads runs among them."""
        if self.max_memory_bytes is not None:
            return self.max_memory_bytes
        has_bytes = machine_memory_bytes()
        share = (has_bytes - max(_SERVER_BYTES, has_bytes // 8)) // (self.num_workers + 1)
        return min(share, _MAX_WORKER_BYTES)


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
