"""What a format is: it recognises a document, reads it, and may write one."""

from __future__ import annotations

from typing import Protocol

from stretto.core.graph import TaskGraph
from stretto.core.workload import Workload
from stretto.files.document import Document


class Format(Protocol):
    """A file format of task graphs; instances are the module-level ``FORMAT`` objects.

    A format that can write also has ``write(graph) -> bytes`` and satisfies :class:`WritableFormat`.
    """

    #: One line for ``stretto list formats``.
    summary: str
    #: Usual endings, without a dot; only for output and for people.
    endings: tuple[str, ...]

    def matches(self, document: Document) -> bool:
        """Say whether the content looks like this format; quick, and never raises."""
        ...

    def read(self, document: Document) -> TaskGraph | Workload:
        """Read one graph, or a workload where the file holds several."""
        ...


class WritableFormat(Format, Protocol):
    """A format that graphs can be converted to."""

    def write(self, graph: TaskGraph) -> bytes:
        """Return the file's content."""
        ...
