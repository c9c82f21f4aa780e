"""The text of ``slurm.conf``: nodes, partitions, the weights of priorities, and when the scheduler looks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from stretto.core.site import Site
from stretto.core.site_policy import SitePolicy
from stretto.files.clusters.site_builder import SiteBuilder, some
from stretto.files.clusters.slurm_policy import priority_of, scheduler_of
from stretto.files.clusters.slurm_site import SlurmParts
from stretto.files.document import Document
from stretto.files.sniff import graph_name

_PAIR = re.compile(r'([A-Za-z][A-Za-z0-9_/]*)\s*[+-]?=\s*("[^"]*"|\S*)')
_LOOKS_SO = re.compile(rb"(?im)^[ \t]*(?:NodeName|PartitionName|ClusterName|SlurmctldHost|ControlMachine)[ \t]*=")
_PARTS = ("nodename", "partitionname", "nodeset")


class Statement(NamedTuple):
    """One line, continuations joined: the line where it begins, and its pairs with keys in lower case."""

    line: int
    pairs: dict[str, str]

    @property
    def key(self) -> str:
        return next(iter(self.pairs))


class SlurmConf:
    """Reads ``slurm.conf``."""

    summary = "Slurm's configuration: the text of slurm.conf"
    endings = ("conf",)

    def matches(self, document: Document) -> bool:
        """Say whether there is a line that only such a file has."""
        return _LOOKS_SO.search(document.data) is not None

    def read(self, document: Document) -> Site:
        """Read the site; an ``Include`` is told, not followed."""
        builder = SiteBuilder(document)
        parts = SlurmParts(builder)
        defaults: dict[str, dict[str, str]] = {name: {} for name in _PARTS}
        settings: dict[str, tuple[str, int]] = {}
        includes: list[str] = []
        for statement in _statements(document):
            if statement.key in _PARTS:
                _add(parts, statement, defaults[statement.key])
            elif statement.key == "include":
                includes.append(f"{statement.pairs['include']} (line {statement.line})")
            else:
                settings |= {key: (value, statement.line) for key, value in statement.pairs.items()}
        if includes:
            builder.notes.append(f"included files are not read; append their text to this one: {some(includes)}")
        parts.settle()
        policy = SitePolicy(priority_of(builder, settings), scheduler_of(builder, settings))
        return builder.build(settings.get("clustername", (graph_name(document), 0))[0], policy)


def _add(parts: SlurmParts, statement: Statement, defaults: dict[str, str]) -> None:
    """Add a part; a line of the name ``DEFAULT`` changes what the lines after it leave out."""
    line, pairs = statement
    name = pairs[statement.key]
    if name.upper() == "DEFAULT":
        defaults |= {key: value for key, value in pairs.items() if key != statement.key}
    elif statement.key == "nodename":
        parts.add_node(name, defaults | pairs, line)
    elif statement.key == "partitionname":
        parts.add_partition(name, defaults | pairs, line)
    else:
        parts.builder.add_set(name, pairs.get("nodes", ""), pairs.get("feature", ""))


def _statements(document: Document) -> Iterator[Statement]:
    begin, text = 0, ""
    lines = document.text.splitlines()
    for line, raw in enumerate([*lines, ""], start=1):
        part = re.sub(r"(?<!\\)#.*", "", raw).rstrip()
        begin = begin or line
        if part.endswith("\\") and line <= len(lines):
            text += part[:-1]
            continue
        text = (text + part).strip()
        if text:
            yield Statement(begin, _pairs(document, text, begin))
        begin, text = 0, ""


def _pairs(document: Document, text: str, line: int) -> dict[str, str]:
    included = re.fullmatch(r"include\s+(\S+)", text, re.IGNORECASE)
    if included is not None:
        return {"include": included[1]}
    found = {key.lower(): value.strip('"') for key, value in _PAIR.findall(text)}
    if not found or not _PAIR.match(text):
        document.fail(f"{text[:60]!r} is not Key=Value", line=line)
    return found


FORMAT = SlurmConf()
