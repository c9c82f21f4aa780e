"""Alea's list of clusters that goes with an extended SWF file, as a site of one partition."""

from __future__ import annotations

from stretto.core.site import Site, SiteNode
from stretto.core.site_policy import SitePolicy
from stretto.files.clusters.host_list import MAX_HOSTS
from stretto.files.clusters.site_builder import FilePlace, SiteBuilder
from stretto.files.document import Document
from stretto.files.sniff import first_lines, graph_name
from stretto.files.traces.swf_alea import CLUSTER

_KB = 1024.0
_NUM_FIELDS = 6


class AleaMachines:
    """Reads clusters: number, name, nodes, processors per node, speed, kilobytes of memory per node."""

    summary = "Alea's list of machines, which goes with an extended SWF file"
    endings = ("machines.txt",)

    def matches(self, document: Document) -> bool:
        """Say whether the first line is a cluster."""
        lines = first_lines(document, 1)
        fields = lines[0].split() if lines else []
        if len(fields) != _NUM_FIELDS or fields[1].isdigit():
            return False
        return all(field.isdigit() for at, field in enumerate(fields) if at in (0, 2, 3, 5))

    def read(self, document: Document) -> Site:
        """Read the site; the name of its cluster is a feature of each node."""
        builder = SiteBuilder(document)
        for line, text in enumerate(document.text.splitlines(), start=1):
            fields = text.split()
            if not fields or fields[0].startswith((";", "#")):
                continue
            if len(fields) < _NUM_FIELDS:
                document.fail(f"{len(fields)} fields where a cluster has {_NUM_FIELDS}", line=line)
            _add(builder, fields, line)
        return builder.build(graph_name(document), SitePolicy())


def _add(builder: SiteBuilder, fields: list[str], line: int) -> None:
    document, name = builder.document, fields[1]
    nodes, procs = (
        int(document.number(fields[at], what, line=line, minimum=1.0))
        for at, what in ((2, "nodes"), (3, "processors per node"))
    )
    if nodes > MAX_HOSTS:
        document.fail(f"{nodes:,} is more than {MAX_HOSTS:,} nodes", line=line, field="nodes")
    if document.number(fields[4], "speed", line=line) != 1:
        builder.notes.append(f"the speed {fields[4]} of {name} is not part of the model of a site, and has no effect")
    memory = document.number(fields[5], "memory", line=line) * _KB

    def make(host: str) -> SiteNode:
        return SiteNode(host, procs, memory, features=frozenset({CLUSTER + name}))

    builder.add_nodes(f"{name}[1-{nodes}]", make, FilePlace(line))


FORMAT = AleaMachines()
