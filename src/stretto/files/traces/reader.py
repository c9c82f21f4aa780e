"""What a trace format is, and how readers deal with rows that they cannot use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from stretto.core.trace import Trace
from stretto.files.document import Document

#: More faults than this are counted but not listed.
MAX_LISTED = 1000


@dataclass(frozen=True)
class ReadOptions:
    """How to read.

    Attributes
    ----------
    strict
        Stop at the first row at fault; otherwise such rows are skipped and counted.
    dependencies
        Turn "preceding job" into dependencies, where the format has it.
    """

    strict: bool = False
    dependencies: bool = False


class TraceFormat(Protocol):
    """A file format of traces; instances are the module-level ``FORMAT`` objects.

    A format that can write also has ``write(trace) -> bytes``.
    """

    #: One line for people.
    summary: str
    #: Usual endings, without a dot.
    endings: tuple[str, ...]

    def matches(self, document: Document) -> bool:
        """Say whether the content looks like this format; quick, and never raises."""
        ...

    def read(self, document: Document, options: ReadOptions) -> Trace:
        """Read the jobs, in order of submission."""
        ...


@dataclass
class Faults:
    """Rows at fault: listed and counted; strict reading stops at the first of them."""

    document: Document
    strict: bool
    listed: list[tuple[int, str]] = field(default_factory=list)
    total: int = 0
    first: tuple[int, str, str | None] | None = None

    def add(self, line: int, reason: str, *, name: str | None = None) -> None:
        """Note that the row at a line is malformed and left out."""
        if self.first is None or line < self.first[0]:
            self.first = line, reason, name
        self.leave_out(line, f"{name}: {reason}" if name else reason)

    def leave_out(self, line: int, reason: str) -> None:
        """Note that the row at a line is left out although it is well-formed."""
        self.total += 1
        if len(self.listed) < MAX_LISTED:
            self.listed.append((line, reason))

    def settle(self, num_jobs: int) -> None:
        """Raise where reading is strict and a row was malformed, or where no job is left."""
        if self.strict and self.first is not None:
            line, reason, name = self.first
            self.document.fail(reason, line=line, field=name)
        if num_jobs > 0:
            return
        if self.listed:
            line, reason = min(self.listed)
            self.document.fail(f"no usable job; the first of {self.total:,} rows left out: {reason}", line=line)
        self.document.fail("the file holds no jobs")

    def meta(self) -> dict[str, object]:
        """Return what the trace says about the rows that are not in it."""
        return {"skipped": sorted(self.listed), "num_skipped": self.total}


def short(value: object) -> str:
    """Return a value for an error message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
