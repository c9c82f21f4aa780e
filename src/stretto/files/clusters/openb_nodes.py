"""The list of nodes that goes with Alibaba's openb trace, as a site of one partition."""

from __future__ import annotations

from stretto.core.site import Site, SiteNode
from stretto.core.site_policy import SitePolicy
from stretto.files.clusters.site_builder import FilePlace, SiteBuilder
from stretto.files.document import Document
from stretto.files.sniff import graph_name
from stretto.files.traces.csv_rows import column_names, csv_rows, number
from stretto.files.traces.reader import Faults

_MILLI = 1000.0
_MIB = 2.0**20
_NEEDED = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


class OpenbNodes:
    """Reads lists of nodes with processors, memory and GPUs of one model each."""

    summary = "Alibaba GPU cluster 2023 (openb): list of nodes"
    endings = ("csv",)

    def matches(self, document: Document) -> bool:
        """Say whether the header is that of a list of nodes."""
        return set(_NEEDED) <= column_names(document)

    def read(self, document: Document) -> Site:
        """Read one node per row; the model of its GPUs is their type, and a feature of the node."""
        names = column_names(document)
        for needed in _NEEDED:
            if needed not in names:
                document.fail(f"no column {needed}; this is not a list of nodes", line=1)
        builder = SiteBuilder(document)
        faults = Faults(document, strict=True)
        for line, row in csv_rows(document, faults):
            place = FilePlace(line)
            with builder.at(place):
                node = _node(row)
            builder.add_nodes(node.name, lambda _, node=node: node, place)  # type: ignore[misc]
        faults.settle(1)
        return builder.build(graph_name(document), SitePolicy())


def _node(row: dict[str, str]) -> SiteNode:
    gpus, model = int(number(row, "gpu", 0.0)), row.get("model", "")
    return SiteNode(
        row.get("sn", ""),
        int(number(row, "cpu_milli") // _MILLI),
        number(row, "memory_mib") * _MIB,
        {model or "gpu": gpus} if gpus else {},
        frozenset({model} if model else ()),
    )


FORMAT = OpenbNodes()
