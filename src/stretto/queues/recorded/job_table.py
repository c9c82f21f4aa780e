"""One row per job: when it was submitted, started and ended in a replay, and when in the log."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput, MissingExtra
from stretto.files.clusters.host_list import compress_hosts
from stretto.queues.recorded.occupancy import known_waits
from stretto.queues.recorded.record import RecordedResult
from stretto.queues.result import QueueResult
from stretto.queues.setup import replayed

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from stretto.queues.replay import Machine

#: Rows that are turned into text at a time.
_CHUNK = 100_000
Column = Floats | Ints | NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class JobOutcomes:
    """Columns of equal length, one row per job, in order of submission.

    Attributes
    ----------
    columns
        ``job_id``, ``submit_s``, ``start_s``, ``wait_s``, ``end_s`` (in seconds of the trace's own clock),
        ``num_procs``, ``partition``, ``nodes``, ``recorded_start_s``, ``recorded_wait_s`` and ``promise_s``. NaN, and
        an empty text, say that something is not known; in CSV they are empty.
    """

    columns: dict[str, Column]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise MissingExtra("pandas", "pandas", "a data frame") from None
        return pd.DataFrame(self.columns)

    def to_csv(self) -> str:
        """Return the rows as CSV, numbers to all digits."""
        text = io.StringIO()
        text.write(",".join(self.columns) + "\n")
        for first in range(0, len(self), _CHUNK):
            parts = [_texts(column[first : first + _CHUNK]) for column in self.columns.values()]
            text.writelines(",".join(row) + "\n" for row in zip(*parts, strict=True))
        return text.getvalue()

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table; what is not known is null."""
        try:
            import pyarrow as pa
        except ModuleNotFoundError:
            raise MissingExtra("pyarrow", "parquet", "a Parquet file") from None
        arrays = {}
        for name, column in self.columns.items():
            unknown = column == "" if column.dtype.kind == "U" else np.isnan(column)
            arrays[name] = pa.array(column, mask=np.asarray(unknown))
        return pa.table(arrays)

    def to_bytes(self, name: str) -> bytes:
        """Return the content of a file with this name; ``check_ending`` says which names are known."""
        check_ending(name)
        if name.lower().endswith(".csv"):
            return self.to_csv().encode()
        import pyarrow.parquet as pq

        sink = io.BytesIO()
        pq.write_table(self.to_arrow(), sink)
        return sink.getvalue()


def check_ending(name: str) -> None:
    """Raise where a file's name does not say which format it is to have, or where that cannot be written here."""
    ending = Path(name).suffix.lower()
    if ending not in (".csv", ".parquet"):
        raise InvalidInput(f"{Path(name).name!r} must end in .csv or .parquet", field="--jobs")
    if ending == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ModuleNotFoundError:
            raise MissingExtra("pyarrow", "parquet", "a Parquet file") from None


def _texts(column: Column) -> list[str]:
    if column.dtype.kind == "U":
        return [_quoted(text) for text in column.tolist()]
    if column.dtype.kind == "f":
        return ["" if value != value else repr(value).removesuffix(".0") for value in column.tolist()]
    return [str(value) for value in column.tolist()]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def rows_of_result(trace: Trace, machine: Machine, result: QueueResult) -> NDArray[np.bool_]:
    """Say which jobs of a trace a result has; [n]. An interrupted replay has the first of those that can run."""
    kept = known_waits(trace) if isinstance(result, RecordedResult) else replayed(trace, machine).copy()
    rows = np.flatnonzero(kept)
    if len(rows) < result.trace.num_jobs:
        message = f"the result has {result.trace.num_jobs:,} jobs, of the trace only {len(rows):,} can run"
        raise InvalidInput(message, field="trace")
    kept[rows[result.trace.num_jobs :]] = False
    return kept


def job_table(trace: Trace, machine: Machine, result: QueueResult) -> JobOutcomes:
    """Return what happened to each job that was replayed.

    Parameters
    ----------
    trace, machine
        What was replayed.
    """
    rows = np.flatnonzero(rows_of_result(trace, machine, result))
    n = len(rows)
    origin = float(trace.submit_s[rows[0]])
    nothing = np.full(n, np.nan)
    recorded = nothing if trace.wait_s is None else trace.wait_s[rows].astype(np.float64)
    end = result.end_s + origin
    columns: dict[str, Column] = {
        "job_id": rows.astype(np.int32) if trace.job_id is None else trace.job_id[rows],
        "submit_s": trace.submit_s[rows],
        "start_s": result.start_s + origin,
        "wait_s": result.wait_s,
        "end_s": end,
        "num_procs": trace.num_procs[rows],
        "partition": _partitions(trace, rows, result),
        "nodes": _nodes(result),
        "recorded_start_s": trace.submit_s[rows] + recorded,
        "recorded_wait_s": recorded,
        "promise_s": _promised(result) + origin,
    }
    return JobOutcomes(columns)


def _nodes(result: QueueResult) -> NDArray[np.str_]:
    """Return the host list of each job where the replay was on a site."""
    n = result.trace.num_jobs
    if result.site is None or result.place_ptr is None:
        return np.full(n, "", dtype=np.str_)
    return np.array([compress_hosts(result.nodes_of(job)) for job in range(n)], dtype=np.str_)


def _promised(result: QueueResult) -> Floats:
    """Return the latest start that each job was promised; NaN = none."""
    if result.due_s is None:
        return np.full(result.trace.num_jobs, np.nan)
    return np.where(np.isfinite(result.due_s), result.due_s, np.nan)


def _partitions(trace: Trace, rows: NDArray[np.int64], result: QueueResult) -> NDArray[np.str_]:
    """Return the pool of each job where there are several, otherwise the partition that the log names."""
    if len(result.pools) > 1:
        return np.array([pool.name for pool in result.pools], dtype=np.str_)[result.pool]
    column = trace.partition
    if column is None:
        return np.full(len(rows), "", dtype=np.str_)
    names = [str(name) for name in trace.meta.get("partition_names", ())]
    numbers, index = np.unique(column[rows], return_inverse=True)
    texts = ["" if n == UNKNOWN else names[n] if n < len(names) else str(n) for n in numbers.tolist()]
    return np.array(texts, dtype=np.str_)[index]
