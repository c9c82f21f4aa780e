"""The execution trace of Nextflow (``-with-trace``): one row per attempt of a task.

All documented forms are read: any separator, any choice of fields, values for people (``1m 12s``, ``1.2 GB``,
``98.5%``, dates) or raw ones (``trace.raw = true``: milliseconds, bytes, milliseconds since 1970), and ``-`` where a
value is missing. Sizes are in powers of 1024, as Nextflow counts.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from datetime import datetime, timezone

from stretto.files.document import Document

#: Separators of ``trace.sep`` that are recognized.
SEPARATORS = ("\t", ",", ";", "|")
#: Fields that every trace that can be used has.
REQUIRED = ("hash", "name", "status")
FINISHED = ("COMPLETED", "CACHED")
_UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9.]+)\s*(ms|s|m|h|d)(?![a-z])")
_SIZE = re.compile(r"^([0-9.,]+)\s*([KMGTPEZY]?)i?B?$", re.IGNORECASE)
_TAG = re.compile(r"^(?P<process>.*?)\s*\((?P<tag>.*)\)$", re.DOTALL)
_DATES = ("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S")


@dataclass(frozen=True)
class TraceRow:
    """One attempt of a task; None where the trace does not say.

    Attributes
    ----------
    hash
        The first letters of its work directory, such as ``4f/0f2a6b``.
    cpu_share
        Mean use of CPUs: 2.5 for 250 %.
    """

    line: int
    task_id: str | None
    hash: str
    name: str
    process: str
    tag: str | None
    status: str
    exit: str | None
    attempt: int
    submit_s: float | None
    start_s: float | None
    complete_s: float | None
    duration_s: float | None
    realtime_s: float | None
    cpu_share: float | None
    cpus: float | None
    memory_bytes: float | None
    time_s: float | None
    peak_rss_bytes: float | None
    read_bytes: float | None
    write_bytes: float | None
    queue: str | None
    workdir: str | None

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED


def header_of(document: Document) -> tuple[list[str], str] | None:
    """Return the fields and the separator of a trace; None where the first line is not the header of one."""
    first = document.head.decode("utf-8-sig", "replace").partition("\n")[0].strip("\r")
    for separator in SEPARATORS:
        names = [name.strip().strip('"') for name in first.split(separator)]
        if all(name in names for name in REQUIRED) and ("task_id" in names or "native_id" in names):
            return names, separator
    return None


def read_trace_rows(document: Document) -> list[TraceRow]:
    """Read all rows of a trace; a value that cannot be one is an error with its line and field."""
    found = header_of(document)
    if found is None:
        document.fail(f"is not a trace of Nextflow: its first line must name at least {', '.join(REQUIRED)}", line=1)
    names, separator = found
    rows = []
    reader = csv.reader(io.StringIO(document.text), delimiter=separator)
    try:
        next(reader)
        for values in reader:
            if values and any(value.strip() for value in values):
                rows.append(_row(document, names, values, reader.line_num))
    except csv.Error as error:
        document.fail(str(error), line=reader.line_num)
    if not rows:
        document.fail("the trace has no rows")
    return rows


def _row(document: Document, names: list[str], values: list[str], line: int) -> TraceRow:
    if len(values) != len(names):
        document.fail(f"{len(values)} values for {len(names)} fields", line=line)
    texts = {
        name: value.strip() for name, value in zip(names, values, strict=True) if value.strip() not in ("", "-", "null")
    }
    for field in REQUIRED:
        if field not in texts:
            document.fail("is missing", line=line, field=field)
    cells = _Cells(document, texts, line)
    named = _TAG.match(texts["name"])
    process = texts.get("process") or (named["process"] if named else texts["name"])
    share = cells.share("%cpu")
    return TraceRow(
        line=line,
        task_id=texts.get("task_id"),
        hash=texts["hash"],
        name=texts["name"],
        process=process,
        tag=texts.get("tag") or (named["tag"] if named else None),
        status=texts["status"].upper(),
        exit=texts.get("exit"),
        attempt=int(cells.number("attempt") or 1),
        submit_s=cells.moment("submit"),
        start_s=cells.moment("start"),
        complete_s=cells.moment("complete"),
        duration_s=cells.seconds("duration"),
        realtime_s=cells.seconds("realtime"),
        cpu_share=share,
        cpus=cells.number("cpus"),
        memory_bytes=cells.size("memory"),
        time_s=cells.seconds("time"),
        peak_rss_bytes=cells.size("peak_rss"),
        read_bytes=cells.size("rchar"),
        write_bytes=cells.size("wchar"),
        queue=texts.get("queue"),
        workdir=texts.get("workdir"),
    )


class _Cells:
    """The values of one row, by field."""

    def __init__(self, document: Document, texts: dict[str, str], line: int) -> None:
        self.document, self.texts, self.line = document, texts, line

    def number(self, field: str) -> float | None:
        text = self.texts.get(field)
        return None if text is None else self.document.number(text, field, line=self.line)

    def share(self, field: str) -> float | None:
        text = self.texts.get(field)
        return None if text is None else self.document.number(text.rstrip("%"), field, line=self.line) / 100

    def seconds(self, field: str) -> float | None:
        """Return a duration: ``1m 12s``, or raw milliseconds."""
        text = self.texts.get(field)
        if text is None:
            return None
        if re.fullmatch(r"[0-9.]+", text):
            return self.document.number(text, field, line=self.line) / 1e3
        parts = _DURATION.findall(text)
        if not parts or _DURATION.sub("", text).strip():
            self.document.fail(f"{text!r} is not a duration such as '1m 12s'", line=self.line, field=field)
        return sum(self.document.number(value, field, line=self.line) * _UNITS_S[unit] for value, unit in parts)

    def size(self, field: str) -> float | None:
        """Return a size: ``1.2 GB``, or raw bytes."""
        text = self.texts.get(field)
        if text is None:
            return None
        found = _SIZE.match(text)
        if found is None:
            self.document.fail(f"{text!r} is not a size such as '1.2 GB'", line=self.line, field=field)
        value = self.document.number(found[1].replace(",", ""), field, line=self.line)
        return float(value * 1024.0 ** " KMGTPEZY".index(found[2].upper() or " "))

    def moment(self, field: str) -> float | None:
        """Return a moment in seconds since 1970: a date, or raw milliseconds."""
        text = self.texts.get(field)
        if text is None:
            return None
        if re.fullmatch(r"[0-9.]+", text):
            return self.document.number(text, field, line=self.line) / 1e3
        for form in _DATES:
            try:
                return datetime.strptime(text, form).replace(tzinfo=timezone.utc).timestamp()  # noqa: UP017
            except ValueError:
                continue
        self.document.fail(f"{text!r} is not a date such as '2026-01-31 12:00:00.000'", line=self.line, field=field)
