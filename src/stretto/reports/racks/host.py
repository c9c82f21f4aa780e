"""Monitor this host during a run: read its counters, estimate its load, and record a sample every second."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import StrettoError
from stretto.racks.telemetry.host import HostReading, HostTelemetry
from stretto.reports.racks.belief import BeliefSample, record_sample
from stretto.reports.racks.topology import TOPOLOGY, MachineJson, PartJson, Topology
from stretto.reports.strict_json import packed
from stretto.runlog import Run, RunLog

EVERY_S = 1.0
_NUM_SAMPLES = 4
#: So many samples are all kept, then every second one of as many, every third, and so on.
DENSE = 600
#: Networks of containers come by the dozen; the first few are shown.
_MAX_NICS = 4
#: The estimate of a load before it is read, and the time after which an old reading counts for little.
_PRIOR_MEAN, _PRIOR_SD, _MEMORY_S = 0.3, 0.4, 10.0
#: Spread of samples that is expected, and how many degrees of freedom that expectation is worth.
_EXPECTED_SD, _NU = 0.1, 4.0
#: No reading is better than this share of full scale.
_FLOOR = 0.02


class HostBelief:
    """A level per source that wanders back to its prior, and readings that are trusted as far as their spread goes.

    A reading enters as a Gaussian whose variance grows with its own surprise, as in ``racks/kernels/belief.py``; here
    every source has a counter of its own, so there is nothing to infer from one to the other.
    """

    def __init__(self, num: int) -> None:
        self.mean = np.full(num, _PRIOR_MEAN)
        self.variance = np.full(num, _PRIOR_SD**2)

    def take_in(self, mean: Floats, sd: Floats, num: NDArray[np.int64], dt_s: float) -> None:
        """Let time pass, and take in the readings of sources that were read."""
        decay = math.exp(-dt_s / _MEMORY_S)
        self.mean = _PRIOR_MEAN + decay * (self.mean - _PRIOR_MEAN)
        self.variance = decay**2 * self.variance + (1.0 - decay**2) * _PRIOR_SD**2
        is_read = (num >= 2) & np.isfinite(mean) & np.isfinite(sd)
        count = np.maximum(num, 2)
        freedom = _NU + count - 1  # the spread of so few samples is itself a guess, and helped by an expected one
        spread = (_NU * _EXPECTED_SD**2 + (count - 1) * np.where(is_read, sd, 0.0) ** 2) / freedom
        noise = spread / count + _FLOOR**2
        surprise = np.where(is_read, mean, self.mean) - self.mean
        noise *= (freedom + surprise**2 / (self.variance + noise)) / (freedom + 1)  # a t as a mixture of scales
        gain = np.where(is_read, self.variance / (self.variance + noise), 0.0)
        self.mean = np.clip(self.mean + gain * surprise, 0.0, 1.0)
        self.variance = (1.0 - gain) * self.variance


class HostWatch:
    """Writes the estimated load of this host into a run, from a thread of its own; a context manager."""

    def __init__(self, path: Path, *, every_s: float = EVERY_S, telemetry: HostTelemetry | None = None) -> None:
        self.path, self.every_s = path, every_s
        self.telemetry = telemetry or HostTelemetry()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> HostWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def begin(self, run_id: str) -> None:
        """Begin to watch for a run."""
        self._thread = threading.Thread(target=self._watch, args=(run_id,), name="stretto-telemetry", daemon=True)
        self._thread.start()

    def _watch(self, run_id: str) -> None:
        try:
            with RunLog.open(self.path) as log:
                self._write(Run(log, run_id), log.run(run_id).started_s)
        except StrettoError:
            return  # a log that cannot be written is the run's own trouble, and it will say so

    def _write(self, run: Run, started_s: float) -> None:
        first = self._read()
        names = _shown(first.names)
        belief, before_s = HostBelief(len(names)), started_s
        if TOPOLOGY not in run.log.artifacts(run.id):
            run.attach(TOPOLOGY, packed(host_topology(names)))
        reading, num_read = first, 0
        while True:
            is_over, now_s = self._is_over.is_set(), run.log.clock()
            mean, sd, num = _columns(reading, names)
            belief.take_in(mean, sd, num, max(0.0, now_s - before_s))
            before_s = now_s
            # The longer a run, the fewer of its samples are kept: a page shows a few hundred at most.
            if is_over or num_read % (1 + num_read // DENSE) == 0:
                raw = np.where(num > 0, mean, np.nan)
                record_sample(run, BeliefSample(now_s - started_s, belief.mean, np.sqrt(belief.variance), raw))
            if is_over:
                return
            num_read += 1
            reading = self._read()

    def _read(self) -> HostReading:
        return self.telemetry.read(num_samples=_NUM_SAMPLES, interval_s=self.every_s / _NUM_SAMPLES)


def host_topology(names: Sequence[str]) -> Topology:
    """Return this host as a machine: memory, and below it all that has a counter."""
    memory: PartJson = {"name": "memory", "kind": "memory", "model": "", "capacity": None}
    parts: list[PartJson] = [memory]
    links: list[list[str]] = []
    resources: list[str] = []
    for name in names:
        kind, _, what = name.partition("/")
        part = "memory" if kind == "memory" else what
        resources.append(f"host/{part}")
        if kind != "memory":
            parts.append({"name": part, "kind": kind, "model": "", "capacity": None})
            links.append([part, "memory"])
    machine: MachineJson = {"name": "host", "parts": parts, "links": links}
    return {"name": "host", "machines": [machine], "resources": resources, "processors": []}


def _shown(names: Sequence[str]) -> list[str]:
    """Return the sources that are shown: the cores in the order of their numbers, then memory and some networks."""
    cores = sorted((name for name in names if name.startswith("core/")), key=lambda name: (len(name), name))
    nics = [name for name in names if name.startswith("nic/")][:_MAX_NICS]
    return [*(name for name in names if name.startswith("memory/")), *cores, *nics]


def _columns(reading: HostReading, names: Sequence[str]) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return mean, spread and number of samples of the named sources; none for what was not read this time."""
    place = {name: k for k, name in enumerate(reading.names)}
    found = [place.get(name) for name in names]
    mean = np.array([reading.mean[k] if k is not None else np.nan for k in found])
    sd = np.array([reading.sd[k] if k is not None else np.nan for k in found])
    num = np.array([int(reading.num[k]) if k is not None else 0 for k in found])
    return mean, sd, num
