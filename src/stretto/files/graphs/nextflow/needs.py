"""What the tasks of each process of a Nextflow run really used, and what to ask for the next time.

Memory and time are a stated quantile of what the next task will need, as a lognormal distribution fitted to the tasks
of the process predicts it, and never below the largest value that was observed. CPUs are the same quantile of the
measured use, rounded up, and never more than were asked for: nobody knows whether a task could have used more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stretto.core.units import is_count
from stretto.errors import InvalidInput
from stretto.files.graphs.nextflow.trace import TraceRow

#: Exit codes of tasks that were killed, mostly for memory, as nf-core's configurations retry them.
KILLED = (*range(130, 146), 104, 175)
#: Spread of log memory and log time where a process ran once, as if it were half as much again.
ONE_TASK_SD = 0.25
#: Sizes and times are rounded up to these.
MEMORY_STEP, TIME_STEP_S = 64 * 2**20, 60.0
#: A task that began and ended within the interval of measurement has no trustworthy peak.
MIN_MEMORY = 128 * 2**20


@dataclass(frozen=True)
class ProcessNeeds:
    """What a process asked for, what it used, and what to ask for; None where the trace does not say.

    Attributes
    ----------
    num_killed
        Attempts that failed with an exit code of a killed process; what they had asked for was too little.
    """

    process: str
    num_tasks: int
    num_killed: int
    asked_cpus: float | None
    used_cpus: float | None
    peak_memory_bytes: float | None
    longest_s: float | None
    cpus: int | None
    memory_bytes: float | None
    time_s: float | None
    queue: str | None


def process_needs(rows: Sequence[TraceRow], quantile: float = 0.95) -> list[ProcessNeeds]:
    """Return the needs of every process with a finished task, in the order of the trace."""
    if not 0.5 <= quantile < 1:
        raise InvalidInput(f"{quantile} is not a quantile from 0.5 to below 1", field="quantile")
    processes = dict.fromkeys(row.process for row in rows if row.is_finished)
    return [_needs(process, [row for row in rows if row.process == process], quantile) for process in processes]


def _needs(process: str, rows: list[TraceRow], quantile: float) -> ProcessNeeds:
    done = [row for row in rows if row.is_finished]
    killed = [row for row in rows if not row.is_finished and row.exit is not None and _is_killed(row.exit)]
    asked_cpus = _most(done, "cpus")
    shares = [row.cpu_share for row in done if row.cpu_share is not None]
    peaks = _values([*done, *killed], "peak_rss_bytes")
    times = _values(done, "realtime_s") or _values(done, "duration_s")
    used = _empirical(shares, quantile) if shares else None
    return ProcessNeeds(
        process=process,
        num_tasks=len(done),
        num_killed=len(killed),
        asked_cpus=asked_cpus,
        used_cpus=used,
        peak_memory_bytes=max(peaks) if peaks else None,
        longest_s=max(times) if times else None,
        cpus=_cpus(used, asked_cpus),
        memory_bytes=_memory(peaks, killed, quantile),
        time_s=_stepped(predicted_quantile(times, quantile), TIME_STEP_S) if times else None,
        queue=next((row.queue for row in reversed(done) if row.queue), None),
    )


def _is_killed(text: str) -> bool:
    return is_count(text) and int(text) in KILLED


def _values(rows: Sequence[TraceRow], name: str) -> list[float]:
    return [value for row in rows if (value := getattr(row, name)) is not None and value > 0]


def _most(rows: Sequence[TraceRow], name: str) -> float | None:
    return max(_values(rows, name), default=None)


def _cpus(used: float | None, asked: float | None) -> int | None:
    if used is None:
        return None if asked is None else int(asked)
    wanted = max(1, math.ceil(used - 0.05))  # measured shares exceed a whole number of CPUs by a little
    return wanted if asked is None else min(wanted, max(int(asked), 1))


def _memory(peaks: list[float], killed: list[TraceRow], quantile: float) -> float | None:
    """Return the memory to ask for: more than what a killed attempt had, too."""
    if not peaks:
        return None
    had = [row.memory_bytes for row in killed if row.memory_bytes is not None]
    beyond = max(had, default=0.0) * (1 + ONE_TASK_SD)
    return _stepped(max(predicted_quantile(peaks, quantile), beyond, MIN_MEMORY), MEMORY_STEP)


def predicted_quantile(values: Sequence[float], quantile: float) -> float:
    """Return a quantile of the next value, by a lognormal distribution, and never below the largest of the values."""
    from scipy.stats import t as student

    logs = [math.log(value) for value in values]
    count, mean = len(logs), sum(logs) / len(logs)
    # One more degree of freedom with the assumed spread keeps few equal values from looking certain.
    variance = (sum((log - mean) ** 2 for log in logs) + ONE_TASK_SD**2) / count
    reach = float(student.ppf(quantile, count)) * math.sqrt(variance * (1 + 1 / count))
    return max(math.exp(min(mean + reach, math.log(max(values)) + math.log(4.0))), *values)


def _empirical(values: Sequence[float], quantile: float) -> float:
    ordered = sorted(values)
    return ordered[min(math.ceil(quantile * len(ordered)), len(ordered)) - 1]


def _stepped(value: float, step: float) -> float:
    return math.ceil(value / step) * step
