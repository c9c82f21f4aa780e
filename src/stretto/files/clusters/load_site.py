"""Sites in and out: find the format by content, read, write."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from stretto.catalog import SITES
from stretto.core.site import Site
from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.load import write_atomically
from stretto.registry import lookup, resolve

#: Larger files are refused; a hundred thousand nodes of scontrol are far below it.
MAX_SITE_BYTES = 512 * 2**20


class SiteFormat(Protocol):
    """A file format of sites; one that can write also has ``write(site) -> bytes``."""

    #: One line for people.
    summary: str
    #: Usual endings, without a dot.
    endings: tuple[str, ...]

    def matches(self, document: Document) -> bool:
        """Say whether the content looks like this format; quick, and never raises."""
        ...

    def read(self, document: Document) -> Site:
        """Read the site; what is read and not used is in its notes."""
        ...


def find_site_format(document: Document) -> str | None:
    """Return the name of the first format whose content matches, or None."""
    return next((name for name, target in SITES.items() if resolve(target).matches(document)), None)


def load_site(source: str | Path, *, format: str | None = None) -> Site:
    """Read a site from a file; the content decides on its format unless one is named."""
    document = read_document(source, max_bytes=MAX_SITE_BYTES)
    if not document.data.strip():
        document.fail("the file is empty")
    return read_site(document, format=format)


def read_site(document: Document, *, format: str | None = None) -> Site:
    """Read a site from a document."""
    name = format if format is not None else find_site_format(document)
    if name is None:
        document.fail(f"no known format of sites matches the content; known: {', '.join(SITES)}")
    reader: SiteFormat = lookup("site format", name, SITES)
    try:
        return reader.read(document)
    except InvalidInput as error:
        raise error.at(document.name) from None


def save_site(site: Site, path: str | Path) -> None:
    """Write a site as TOML, all or nothing."""
    if not str(path).lower().endswith(".toml"):
        raise InvalidInput("a site is written as TOML; give a name that ends with .toml", source=str(path))
    data: bytes = resolve(SITES["site"]).write(site)
    write_atomically(Path(path), data)
