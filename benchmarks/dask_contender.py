"""The same kernels left to Dask: its own scheduler, two processes of one thread, pinned as ours are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from stretto.engines.local.cores import usable_cores, use_one_blas_thread
from stretto.engines.work import Call, Work


class DaskContender:
    """A Dask cluster that runs one piece of work many times; constant arguments are there before the clock runs."""

    def __init__(self, work: Work) -> None:
        from distributed import Client, LocalCluster

        self.work = work
        self.cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        self.client = Client(self.cluster)
        addresses = list(self.client.scheduler_info(n_workers=-1)["workers"])
        for address, core in zip(addresses, usable_cores(), strict=False):
            self.client.run(_prepare, core, workers=[address])
        self.constants = {}
        for task, action in enumerate(work.actions):
            assert isinstance(action, Call)
            if action.args:
                self.constants[task] = self.client.scatter(list(action.args), broadcast=True)
        self.run()

    def run(self) -> float:
        """Run all tasks and return the seconds from the first start to the last end, as the local engine counts."""
        from distributed import wait

        key = f"run-{time.monotonic_ns()}"
        futures: dict[int, Any] = {}
        self.client.run(_clear)
        for task in self.work.graph.topo.tolist():
            action = self.work.actions[task]
            assert isinstance(action, Call)
            inputs = [futures[parent] for parent in self.work.inputs(task)]
            constants = self.constants.get(task, [])
            futures[task] = self.client.submit(
                _clocked, action.function, *inputs, *constants, key=f"{key}-{task}", pure=False
            )
        wait([future for task, future in futures.items() if self.work.num_children[task] == 0])
        times = [pair for pairs in self.client.run(_collect).values() for pair in pairs]
        return max(end for _, end in times) - min(start for start, _ in times)

    def __enter__(self) -> DaskContender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self.cluster.close()


#: Start and end of every task that this process has run, by a clock that all processes of a machine share.
_TIMES: list[tuple[float, float]] = []


def _clocked(function: Callable[..., Any], *values: Any) -> Any:
    start_s = time.perf_counter()
    value = function(*values)
    _TIMES.append((start_s, time.perf_counter()))
    return value


def _collect() -> list[tuple[float, float]]:
    return list(_TIMES)


def _clear() -> None:
    _TIMES.clear()


def _prepare(core: int) -> None:
    os.sched_setaffinity(0, {core})
    use_one_blas_thread()
