"""Finished jobs of Snakemake: from its metadata, from benchmark files, and from Stretto's own log of jobs.

Snakemake keeps one metadata record per output file, in ``.snakemake/metadata``, of its latest run only, and without
the size of the inputs. The scheduler plugin therefore appends every job that it saw finish to
``.snakemake/stretto/jobs.jsonl``, with wildcards, input size and cores.
"""

from __future__ import annotations

import base64
import binascii
import csv
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

METADATA, OWN_LOG = Path(".snakemake/metadata"), Path(".snakemake/stretto/jobs.jsonl")
#: No more records than this are read of one kind: reading must not delay a run of very many jobs.
MAX_RECORDS = 20_000
#: A record of the own log and one of the metadata that end this close together are the same run of a job.
SAME_RUN_S = 5.0


@dataclass(frozen=True)
class JobRecord:
    """One job that was run.

    Attributes
    ----------
    output
        Its alphabetically first output file, or ``rule:wildcards`` where it has none; the same job has the same output.
    wildcards
        None where the source does not say.
    input_bytes
        Size of all inputs; None where it is unknown.
    end_unix_s
        When it ended; 0 where it is unknown.
    """

    rule: str
    seconds: float
    output: str = ""
    wildcards: Mapping[str, str] | None = None
    input_bytes: float | None = None
    cores: float | None = None
    memory_bytes: float | None = None
    end_unix_s: float = 0.0


@dataclass
class JobHistory:
    """What is known of finished jobs, and where it was read."""

    records: list[JobRecord] = field(default_factory=list)
    num_metadata: int = 0
    num_own: int = 0

    @property
    def text(self) -> str:
        """How many records there are of which kind, for people."""
        return f"{self.num_metadata} of Snakemake's metadata, {self.num_own} of Stretto's log"


def read_history(directory: Path) -> JobHistory:
    """Read the metadata and the own log below the working directory of a workflow; damaged records are left out."""
    own = read_own_log(directory / OWN_LOG)
    latest: dict[str, float] = {}
    for record in own:
        latest[record.output] = max(latest.get(record.output, 0.0), record.end_unix_s)
    recent = [
        record
        for record in read_metadata(directory)
        if abs(record.end_unix_s - latest.get(record.output, -1e18)) > SAME_RUN_S
    ]
    return JobHistory(recent + own, num_metadata=len(recent), num_own=len(own))


def read_metadata(directory: Path) -> list[JobRecord]:
    """Return the jobs of ``.snakemake/metadata``, one for all outputs of a job."""
    found: dict[tuple[object, ...], JobRecord] = {}
    for number, path in enumerate(_metadata_files(directory / METADATA)):
        if number >= MAX_RECORDS:
            break
        record = _metadata_record(path, directory)
        if record is not None:
            started = round(record.end_unix_s - record.seconds, 3)
            job = (record.rule, started, record.input_bytes)
            kept = found.get(job)
            longest = max(record.seconds, kept.seconds if kept else 0.0)
            first = min(record.output, kept.output) if kept else record.output
            found[job] = replace(record, seconds=longest, output=first)
    return list(found.values())


def _metadata_files(folder: Path) -> Iterable[Path]:
    """Return the metadata files; long names are split over directories that begin with ``@``."""
    for parent, _, names in os.walk(folder):
        for name in names:
            yield Path(parent) / name


def _metadata_record(path: Path, directory: Path) -> JobRecord | None:
    output = _decoded(path)
    try:
        body = json.loads(path.read_bytes())
        seconds = float(body["endtime"]) - float(body["starttime"])
        rule, inputs = str(body["rule"]), [str(item) for item in body.get("input") or []]
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    if output is None or body.get("incomplete") or not 0 < seconds < 1e9:
        return None
    size = total_bytes(directory / item for item in inputs)
    return JobRecord(rule, seconds, output, input_bytes=size, end_unix_s=float(body["endtime"]))


def _decoded(path: Path) -> str | None:
    parts = [part.removeprefix("@") for part in path.parts if part.startswith("@")] + [path.name]
    try:
        return base64.urlsafe_b64decode("".join(parts)).decode()
    except (binascii.Error, ValueError):
        return None


def total_bytes(paths: Iterable[Path | str]) -> float | None:
    """Return the size of some files; None where one of them is not there."""
    total = 0
    for path in paths:
        try:
            total += os.stat(path).st_size
        except (OSError, ValueError):  # also of a name that no file can have
            return None
    return float(total)


def read_own_log(path: Path) -> list[JobRecord]:
    """Return the newest records of the own log; lines that were cut short are left out."""
    try:
        lines = path.read_bytes().splitlines()[-MAX_RECORDS:]
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            record = JobRecord(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            continue
        if _is_whole(record):
            found.append(record)
    return found


def _is_whole(record: JobRecord) -> bool:
    """Say whether a record that was read holds numbers and names where they belong."""
    numbers = (record.seconds, record.end_unix_s, record.input_bytes, record.cores, record.memory_bytes)
    return (
        isinstance(record.rule, str)
        and isinstance(record.output, str)
        and (record.wildcards is None or isinstance(record.wildcards, dict))
        and all(number is None or _is_number(number) for number in numbers)
        and record.seconds is not None
        and record.end_unix_s is not None
        and record.seconds > 0
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) < 1e18  # neither NaN nor more than a float holds


def append_own_log(path: Path, records: Iterable[JobRecord]) -> None:
    """Append finished jobs to the own log, and shorten a log that has become very long."""
    text = "".join(json.dumps(asdict(record)) + "\n" for record in records)
    if not text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)
    if path.stat().st_size > 400 * 2 * MAX_RECORDS:
        kept = path.read_bytes().splitlines(keepends=True)[-MAX_RECORDS:]
        shorter = path.with_suffix(".tmp")
        shorter.write_bytes(b"".join(kept))
        os.replace(shorter, path)


def read_benchmark(path: Path) -> tuple[float, float | None] | None:
    """Return the seconds and the peak memory in bytes of a benchmark file; None where it has no row of numbers.

    A benchmark that is repeated has a row per repetition, and the job takes all of them.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        seconds = [float(row["s"]) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return None
    peaks = [peak for row in rows if (peak := _megabytes(row.get("max_rss"))) is not None]
    if not seconds or not sum(seconds) > 0:
        return None
    return sum(seconds), max(peaks) if peaks else None


def _megabytes(text: str | None) -> float | None:
    try:
        return float(text or "") * 2**20
    except ValueError:
        return None  # "-" and "NA": the job was too short to be measured
