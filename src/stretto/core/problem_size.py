"""How much memory a problem takes, estimated before any of it is allocated."""

from __future__ import annotations

from stretto.core.host.memory_limit import process_memory_bytes
from stretto.errors import InvalidInput

#: Of each pair of devices: matrices of the cluster and of the problem, and what bounds and simulators derive from them.
_PAIR_BYTES = 80
#: Of each task on each device: two tables, as most policies make them.
_ENTRY_BYTES = 16
#: Of each task and each object that it reads: columns, orders and names.
_TASK_BYTES, _READ_BYTES = 200, 60
#: The part of the memory that one problem may take.
_SHARE = 0.5


def check_num_devices(num_devices: int) -> None:
    """Raise InvalidInput where the links between so many devices would not fit into memory."""
    pairs = num_devices**2 * _PAIR_BYTES
    _check(pairs, f"{num_devices:,} devices", "links join every pair of them: take fewer devices")


def check_problem_size(num_tasks: int, num_reads: int, num_devices: int) -> None:
    """Raise InvalidInput where a problem would not fit into memory."""
    pairs = num_devices**2 * _PAIR_BYTES
    table = num_tasks * num_devices * _ENTRY_BYTES
    rest = num_tasks * _TASK_BYTES + num_reads * _READ_BYTES
    what = f"{num_tasks:,} tasks on {num_devices:,} devices"
    _check(pairs + table + rest, what, "take fewer devices, or plan the graph in parts")


def _check(need_bytes: int, what: str, advice: str) -> None:
    has_bytes = process_memory_bytes()
    if need_bytes > _SHARE * has_bytes:
        raise InvalidInput(
            f"{what} need about {need_bytes / 2**30:,.1f} GiB; a problem may take half of the"
            f" {has_bytes / 2**30:,.1f} GiB that this process may use ({advice})",
            field="cluster",
        )
