"""The text of ``scontrol show node``, ``show partition`` and ``show reservation``, one after the other in any order.

``--oneliner`` will do, too. Tables of ``sacctmgr show qos -P`` and ``sshare -l -P -a`` may follow in the same file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from stretto.core.site import Site
from stretto.core.site_policy import Qos, SitePolicy
from stretto.files.clusters.site_builder import SiteBuilder
from stretto.files.clusters.slurm_policy import accounts_of, qos_of
from stretto.files.clusters.slurm_site import SlurmParts
from stretto.files.document import Document
from stretto.files.sniff import graph_name

#: Words that ``scontrol`` prints and a configuration never holds.
_TELLING = (b"CPUTot=", b"CPUAlloc=", b"TotalCPUs=", b"TotalNodes=", b"ReservationName=", b"CfgTRES=")
#: A value ends where the next key begins: reasons and names of systems hold blanks.
_PAIR = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_/]*)=(.*?)(?=\s+[A-Za-z][A-Za-z0-9_/]*=|\s*$)")
_BEGIN = re.compile(r"(NodeName|PartitionName|ReservationName)=", re.IGNORECASE)


class ScontrolText:
    """Reads what ``scontrol show`` prints."""

    summary = "Slurm's scontrol show node, partition and reservation, also with sacctmgr and sshare tables"
    endings = ("txt",)

    def matches(self, document: Document) -> bool:
        """Say whether the text holds records of ``scontrol``."""
        data = document.data
        return any(word in data for word in _TELLING) and (b"NodeName=" in data or b"PartitionName=" in data)

    def read(self, document: Document) -> Site:
        """Read the site; see the module."""
        builder = SiteBuilder(document)
        parts = SlurmParts(builder)
        qos: dict[str, Qos] = {}
        shares: list[tuple[int, Mapping[str, str]]] = []
        table: list[str] | None = None
        record: tuple[int, dict[str, str]] | None = None
        for line, text in enumerate(document.text.splitlines(), start=1):
            if not text.strip():
                _end(parts, record)
                record = None
            elif _BEGIN.match(text):
                _end(parts, record)
                table, record = None, (line, _pairs(text))
            elif "|" in text and record is None:
                row = [cell if at == 0 else cell.strip() for at, cell in enumerate(text.split("|"))]
                if table is None or _is_header(row):
                    table = _header(document, row, line)
                elif len(row) < len(table):
                    document.fail(f"{len(row)} fields where the header names {len(table)}", line=line)
                else:
                    _add_row(builder, dict(zip(table, row, strict=False)), line, qos, shares)
            elif record is not None:
                record[1].update(_pairs(text))
            else:
                document.fail(f"{text.strip()[:60]!r} belongs to no record of scontrol", line=line)
        _end(parts, record)
        parts.settle()
        if shares or qos:
            builder.notes.append(f"{len(qos)} QOS and {len(shares)} rows of sshare were read")
        policy = SitePolicy(qos=tuple(qos.values()), accounts=accounts_of(builder, shares))
        return builder.build(graph_name(document), policy)


def _pairs(text: str) -> dict[str, str]:
    return {key.lower(): value for key, value in _PAIR.findall(text.strip())}


def _end(parts: SlurmParts, record: tuple[int, dict[str, str]] | None) -> None:
    """Add the record that ends here."""
    if record is None:
        return
    line, pairs = record
    key, name = next(iter(pairs.items()))
    add = {"nodename": parts.add_node, "partitionname": parts.add_partition, "reservationname": parts.add_reservation}
    add[key](name, pairs, line)


def _is_header(row: list[str]) -> bool:
    names = {cell.strip().lower() for cell in row}
    return {"account", "rawshares"} <= names or {"name", "priority"} <= names


def _header(document: Document, row: list[str], line: int) -> list[str]:
    if not _is_header(row):
        document.fail("not the header of sacctmgr show qos -P or sshare -l -P -a", line=line)
    return [cell.strip().lower() for cell in row]


def _add_row(
    builder: SiteBuilder,
    row: Mapping[str, str],
    line: int,
    qos: dict[str, Qos],
    shares: list[tuple[int, Mapping[str, str]]],
) -> None:
    if "rawshares" in row:
        shares.append((line, row))
        return
    one = qos_of(builder, row, line)
    if one.name in qos:
        builder.document.fail(f"QOS {one.name!r} is listed twice", line=line, field="qos")
    qos[one.name] = one


FORMAT = ScontrolText()
