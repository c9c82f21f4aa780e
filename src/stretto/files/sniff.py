"""Quick looks at a document, for ``matches`` and for naming; none of them raises."""

from __future__ import annotations

from pathlib import PurePosixPath

from stretto.errors import StrettoError
from stretto.files.document import Document

_BOM = b"\xef\xbb\xbf"


def graph_name(document: Document) -> str:
    """Return the file's name without folders, ``.gz`` and its ending."""
    base = PurePosixPath(document.name.rpartition("#")[2].replace("\\", "/")).name
    base = base.removesuffix(".gz")
    return (base.rpartition(".")[0] or base) or "graph"


def json_object(document: Document) -> dict[str, object] | None:
    """Return the document's top-level JSON object, or None when it is anything else."""
    if not document.head.removeprefix(_BOM).lstrip().startswith(b"{"):
        return None
    try:
        root = document.json
    except StrettoError:
        return None
    return root if isinstance(root, dict) else None


def first_lines(document: Document, num_lines: int, comment: str = "#") -> list[str]:
    """Return the first lines of the head that say something, stripped.

    The last line of the head may be cut; it is left out when there is more to come.
    """
    text = document.head.removeprefix(_BOM).decode("ascii", errors="replace")
    lines = text.splitlines()
    if len(document.data) > len(document.head):
        lines = lines[:-1] or lines
    said = (line.strip() for line in lines)
    return [line for line in said if line and not line.startswith(comment)][:num_lines]
