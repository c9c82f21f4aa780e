"""What the cores of this host do beside our own tasks: counters, cleaned and averaged, with a word when they fail."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stretto.core.csr import Floats
from stretto.racks.host.loads import CoreLoads
from stretto.racks.host.parameters import HostParams
from stretto.racks.telemetry.core_times import (
    ThreadTime,
    commands_time,
    core_times,
    online_cpus,
    process_time,
    thread_time,
    tree_time,
)

#: A core that worked this much longer than time passed was counted wrongly, whatever the clock's steps.
_ABSURD, _STEP_S = 1.5, 0.05
#: A task that ran for this share of a window tells by its waiting how much of the core it lost.
_ACTIVE = 0.2


@dataclass(frozen=True)
class DeviceWorker:
    """The thread or process that serves a device.

    Attributes
    ----------
    cores
        Where it is pinned; empty for anywhere.
    has_children
        Whether its tasks may be processes of their own, below it.
    is_whole
        Whether all threads of the process count, which then tell no waiting.
    guard
        The process below which its commands run, where it is a thread; 0 for none.
    """

    pid: int
    thread: int
    cores: tuple[int, ...] = ()
    has_children: bool = False
    guard: int = 0
    is_whole: bool = False


class HostSense:
    """Foreign load of the cores, from samples that somebody takes (:class:`HostSampler`, or a test).

    Parameters
    ----------
    root
        Of the file system; tests bring their own.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        *,
        params: HostParams | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root, self.params, self.clock = root, params or HostParams(), clock
        self.cpus = tuple(sorted(core_times(root)))
        self.loads = CoreLoads(len(self.cpus), self.params)
        self.at_s = clock()
        self._online = online_cpus(root)
        self._place = {cpu: at for at, cpu in enumerate(self.cpus)}
        self._workers: dict[int, DeviceWorker] = {}
        self._before: dict[int, float] = core_times(root)
        self._own_before: dict[int, ThreadTime] = {}
        self._trouble = "" if self.cpus else "core utilization: /proc/stat cannot be read"
        self._lock = threading.Lock()

    def watch(self, device: int, worker: DeviceWorker) -> None:
        """Count the time of this worker as our own from now on."""
        with self._lock:
            self._workers[device] = worker
            self._own_before.pop(device, None)

    def worker_time(self, device: int) -> ThreadTime | None:
        """Return the CPU time that a device's worker has taken until now."""
        worker = self._workers.get(device)
        return None if worker is None else self._time_of(worker)

    def step(self) -> None:
        """Take one sample; what is missing or absurd becomes the trouble that :meth:`problem` reports."""
        with self._lock:
            now_s, busy, online = self.clock(), core_times(self.root), online_cpus(self.root)
            dt_s = now_s - self.at_s
            if dt_s <= 0:
                return
            self._trouble = self._judge(busy, online, dt_s)
            own = self._own(dt_s)
            if not self._trouble:
                used = np.array([(busy[cpu] - self._before[cpu]) / dt_s for cpu in self.cpus])
                self.loads.take_in(_lost(np.clip(used, 0.0, 1.0), own), dt_s)
            self._before, self.at_s = busy or self._before, now_s

    def problem(self) -> str | None:
        """Return why the loads cannot be used now, None while they can."""
        age_s = self.clock() - self.at_s
        if not self._trouble and age_s > self.params.max_age_s:
            return f"the last reading of the counters is {age_s:.1f} s old"
        return self._trouble or None

    def lost(self, device: int, horizon_s: float) -> float:
        """Return the share that a task on a device is expected to lose over the coming seconds."""
        with self._lock:
            if not self._workers:  # nobody says which part of the load is our own
                return 0.0
            forecast = self.loads.forecast(horizon_s)
            worker = self._workers.get(device)
            places = [self._place[core] for core in (worker.cores if worker else ()) if core in self._place]
            return float(np.mean(forecast[places])) if places else float(np.mean(forecast)) if len(forecast) else 0.0

    def cpu_of(self, device: int) -> int | None:
        """Return the CPU that a device is pinned to, None for several or any."""
        worker = self._workers.get(device)
        return worker.cores[0] if worker is not None and len(worker.cores) == 1 else None

    def _judge(self, busy: dict[int, float], online: frozenset[int], dt_s: float) -> str:
        gone = sorted(self._online - online) if online else []
        if gone:
            return f"cpu{gone[0]} went offline"
        missing = [cpu for cpu in self.cpus if cpu not in busy]
        if missing or not self.cpus:
            return f"core utilization: /proc/stat no longer has cpu{missing[0]}" if missing else self._trouble
        for cpu in self.cpus:
            gained = busy[cpu] - self._before[cpu]
            if gained < -_STEP_S or not math.isfinite(gained):
                return f"the counter of cpu{cpu} went backwards by {-gained:.2f} s"
            if gained > _ABSURD * dt_s + _STEP_S:
                return f"the counter of cpu{cpu} says {gained:.2f} s of work in {dt_s:.2f} s"
        return ""

    def _time_of(self, worker: DeviceWorker) -> ThreadTime | None:
        if worker.is_whole:
            return process_time(self.root, worker.pid)
        own = thread_time(self.root, worker.pid, worker.thread)
        if own is None or not (worker.has_children or worker.guard):
            return own
        if worker.guard:
            below_s = commands_time(self.root, worker.guard, frozenset(worker.cores))
        else:
            below_s = tree_time(self.root, worker.pid)
        return ThreadTime(own.run_s + below_s, math.nan if below_s > 0 else own.wait_s)

    def _own(self, dt_s: float) -> Floats:
        """Return what our workers had of each core since the last sample: seconds run and waited per second, [2, C]."""
        found = np.zeros((2, len(self.cpus)))
        for device, worker in self._workers.items():
            now, before = self._time_of(worker), self._own_before.get(device)
            if now is None:
                self._own_before.pop(device, None)
                continue
            self._own_before[device] = now
            places = [self._place[core] for core in worker.cores if core in self._place] or list(range(len(self.cpus)))
            if before is None or now.run_s < before.run_s:  # a command ended, and its time with it
                found[:, places] = math.nan
                continue
            found[0, places] += (now.run_s - before.run_s) / dt_s / len(places)
            found[1, places] += (now.wait_s - before.wait_s) / dt_s / len(places)
        return found


def _lost(used: Floats, own: Floats) -> Floats:
    """Return the share of each core that a task lost, or would lose: from its waiting where one ran."""
    run, wait = np.minimum(own[0], 1.0), own[1]
    foreign = np.maximum(used - run, 0.0)
    held = np.where(np.isfinite(wait), np.clip(wait, 0.0, 1.0), foreign)
    is_active = np.nan_to_num(run) > _ACTIVE
    return np.asarray(np.where(is_active, held / np.maximum(run + held, 1e-9), foreign / (1.0 + foreign)))


class HostSampler:
    """Takes samples from a thread of its own, at a pace that costs at most a given share of a core.

    Attributes
    ----------
    max_cost
        Share of a core; the pace follows what samples cost, by the thread's own CPU time.
    """

    def __init__(self, takers: Sequence[Callable[[], None]], *, every_s: float = 0.05, max_cost: float = 0.008) -> None:
        self.takers, self.every_s, self.max_cost = tuple(takers), every_s, max_cost
        self.num_samples, self.cpu_s, self.elapsed_s = 0, 0.0, 0.0
        self.failure: str | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stretto-sampler", daemon=True)

    def start(self) -> None:
        """Begin to take samples."""
        self._thread.start()

    def close(self) -> None:
        """Take no more samples."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def cost(self) -> float:
        """Share of a core that sampling took until now."""
        return self.cpu_s / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        begin_s, begin_cpu_s, pause_s = time.monotonic(), time.thread_time(), self.every_s
        try:
            while not self._is_over.wait(pause_s):
                for take in self.takers:
                    take()
                self.num_samples += 1
                self.cpu_s, self.elapsed_s = time.thread_time() - begin_cpu_s, time.monotonic() - begin_s
                # As slow as the mean cost so far demands: a single dear sample is made up for by the next pauses.
                owed_s = self.cpu_s / self.max_cost - self.elapsed_s
                pause_s = max(self.every_s, self.cpu_s / self.num_samples / self.max_cost, min(owed_s, 1.0))
        except Exception as error:  # whoever asks is told, and decides without counters
            self.failure = f"the sampler of the counters failed: {type(error).__name__}: {error}"
