"""SkyPilot's catalogue: a ``vms.csv`` for each provider, one by one or all in a tar archive."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath

from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.prices.csv_rows import read_csv
from stretto.files.prices.offer import GIB, Offer

MAX_MEMBERS = 10_000
_FILE = "vms.csv"


def is_catalogue(document: Document) -> bool:
    """Say whether the first line has the columns of such a file."""
    first = document.head.split(b"\n", 1)[0]
    return b"InstanceType" in first and b"vCPUs" in first


def is_archive(document: Document) -> bool:
    """Say whether the content is a tar file; gzip around it is already gone."""
    return document.data[257:262] == b"ustar"


def read_archive(document: Document) -> list[Offer]:
    """Return the offers of all providers in an archive of ``.../provider/vms.csv``."""
    offers: list[Offer] = []
    for member in _members(document):
        offers.extend(read_provider(member))
    if not offers:
        document.fail(f"the archive has no offers in any {_FILE}")
    return offers


def read_provider(document: Document) -> list[Offer]:
    """Return the offers of one file; the folder that it lies in names the provider."""
    columns, rows = read_csv(document)
    kind, vcpus, memory = columns.find("InstanceType"), columns.find("vCPUs"), columns.find("MemoryGiB")
    name, count = columns.find("AcceleratorName"), columns.find("AcceleratorCount")
    price, spot, region = columns.find("Price"), columns.find("SpotPrice"), columns.find("Region")
    zone = columns.find_any("AvailabilityZone")
    provider = _provider(document)

    def number(text: str, field: str, line: int) -> float:
        return document.number(text, field, line=line) if text else 0.0

    offers: list[Offer] = []
    for line, row in rows:
        num_accelerators = number(row[count], "AcceleratorCount", line)
        offers.append(
            Offer(
                provider,
                row[kind],
                number(row[vcpus], "vCPUs", line),
                number(row[memory], "MemoryGiB", line) * GIB,
                row[name] if row[name] and num_accelerators > 0 else None,
                num_accelerators,
                row[region],
                row[zone] if zone is not None else "",
                number(row[price], "Price", line) or None,
                number(row[spot], "SpotPrice", line) or None,
            )
        )
    return offers


def _provider(document: Document) -> str:
    path = PurePosixPath(document.name.rpartition("#")[2].replace("\\", "/"))
    return path.parent.name or path.name.partition(".")[0]


def _members(document: Document) -> Iterator[Document]:
    """Yield the price lists of the archive; they lie in it as they are, so its own size bounds theirs."""
    try:
        with tarfile.open(fileobj=io.BytesIO(document.data), mode="r:") as archive:
            for number, info in enumerate(archive):
                if number >= MAX_MEMBERS:
                    document.fail(f"more than {MAX_MEMBERS:,} members")
                # A sparse member is the one kind that is larger outside than in the archive.
                if not info.isreg() or info.issparse() or PurePosixPath(info.name).name != _FILE:
                    continue
                member = archive.extractfile(info)
                assert member is not None  # it is a regular file
                yield Document(f"{document.name}#{info.name}", member.read())
    except InvalidInput:
        raise
    except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError) as error:
        document.fail(f"damaged archive: {error}")
