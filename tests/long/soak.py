"""Load that goes on: ``python tests/long/soak.py server|steering|decisions|orders|tasks AMOUNT [...]`` prints JSON.

``server SECONDS [NUM_CLIENTS [REQUESTS_PER_S]]`` has clients ask a server; ``steering SECONDS [STEPS_PER_S]`` has a
steering layer follow a queue that moves on; ``decisions`` plays simulated runs until a safe dispatcher was asked
AMOUNT times; ``orders`` has each order of live queues decide AMOUNT times; ``tasks`` and ``dask-tasks`` run AMOUNT
tasks in one run, on the engines ``local`` and ``dask``. All tell how much memory the process held over time;
more than 5 % of growth, or 1,000 bytes for every task, is an exit code of 1. ``--ledger`` adds the growth to
benchmarks/ledger.jsonl.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from soak_decisions import decisions, orders
from soak_memory import MAX_GROWTH, growth
from soak_server import server
from soak_steering import steering
from soak_tasks import MOST_BYTES_PER_TASK, tasks


def main() -> int:
    words = [word for word in sys.argv[1:] if word != "--ledger"]
    kind, amount, *more = words[0], *map(float, words[1:])
    if kind == "server":
        found = server(amount, int(more[0]) if more else 100, *more[1:])
    else:
        dask_tasks = partial(tasks, engine_name="dask")
        loads = {"steering": steering, "decisions": decisions, "orders": orders}
        found = {**loads, "tasks": tasks, "dask-tasks": dask_tasks}[kind](amount, *more)
    samples = found.pop("bytes")
    found["mib"] = [round(number / 2**20, 1) for number in samples[:: max(1, len(samples) // 20)]]
    found["growth"] = growth(samples)
    print(json.dumps(found, indent=1))
    if "--ledger" in sys.argv:
        _add_to_ledger(words, found)
    if "bytes_per_task" in found:
        return 0 if found["bytes_per_task"] <= MOST_BYTES_PER_TASK[kind] else 1
    return 0 if found["growth"] <= MAX_GROWTH else 1


def _add_to_ledger(words: list[str], found: dict[str, Any]) -> None:
    sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    from ledger import record

    command = f"PYTHONPATH=tests python tests/long/soak.py {' '.join(words)}"
    claim = f"load/{'-'.join(words)}"
    record(f"{claim}/memory-growth", 100 * found["growth"], "%", command=command, bar=f"<= {100 * MAX_GROWTH:g}")
    if "bytes_per_task" in found:
        record(f"{claim}/memory-per-task", found["bytes_per_task"] / 1e3, "KB", command=command)


if __name__ == "__main__":
    sys.exit(main())
