"""Ports that nobody uses."""

from __future__ import annotations

import random
import socket

from stretto.errors import StrettoError

#: Below the range from which the kernel draws ports for outgoing connections: those come and go, and a daemon
#: that is started again must find its port free.
_FIRST, _LAST = 20_000, 32_000


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that are free now, in random places: several testbeds may start at once."""
    candidates = random.SystemRandom().sample(range(_FIRST, _LAST), _LAST - _FIRST)
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            return found
        if _is_free(port):
            found.append(port)
    raise StrettoError(f"there are no {count} free ports between {_FIRST} and {_LAST}")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        try:
            trial.bind(("", port))  # daemons listen on all addresses
        except OSError:
            return False
    return True
