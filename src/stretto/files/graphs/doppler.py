"""The text graphs that the Doppler paper's code ships (chain-mm, ffnn, transformer blocks).

Line 1: number of nodes including inputs. Line 2: ids of the input nodes. Lines 3 and 4: sources
and destinations of the edges, numbered over the other nodes. Then a line
``compute,communication[,op type]`` for each node that is not an input. The released simulator
divides both costs by 1e10; so do we, and call the result seconds.
"""

from __future__ import annotations

import re

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.sniff import graph_name

COST_PER_SECOND = 1e10
#: A number on its own, then a list of numbers with commas (line 2, or line 3 where there are no inputs).
_LOOK = re.compile(rb"\A\s*+\d++[ \t\r]*+\n\s*+(?:\d++[ \t\r]*+\n\s*+)?+\d++\s*+,[\d, \t]*+(?:[\r\n]|\Z)")


class DopplerText:
    """Reads one graph per file; inputs are no tasks, they are where the data already is."""

    summary = "Doppler text graphs: compute and transfer cost per operation"
    endings = ("doppler.txt",)

    def matches(self, document: Document) -> bool:
        return _LOOK.match(document.head) is not None

    def read(self, document: Document) -> TaskGraph:
        lines = document.text.splitlines()
        if len(lines) < 5:
            document.fail(f"expected at least 5 lines, got {len(lines)}", line=max(len(lines), 1))
        num_nodes = int(document.number(lines[0].strip(), "nodes", line=1))
        num_inputs = len(_ids(document, lines[1], 2))
        sources, targets = _ids(document, lines[2], 3), _ids(document, lines[3], 4)
        if len(sources) != len(targets):
            document.fail(f"{len(sources)} sources but {len(targets)} destinations", line=4, field="edges")
        build = GraphBuilder(graph_name(document), transfer_unit="seconds")
        build.meta[DURATIONS] = "assumed (costs of the paper's simulator, divided by 1e10)"
        build.meta.update(format="doppler", num_inputs=num_inputs)
        outputs = [_task(document, build, text, line) for line, text in enumerate(lines[4:], start=5) if text.strip()]
        if len(outputs) != num_nodes - num_inputs:
            document.fail(
                f"{num_nodes} nodes less {num_inputs} inputs should leave {num_nodes - num_inputs} operations, "
                f"the file holds {len(outputs)}",
                field="nodes",
            )
        for source, target in zip(sources, targets, strict=True):
            for line, node in ((3, source), (4, target)):
                if node >= len(outputs):
                    document.fail(f"node {node} is not below {len(outputs)}", line=line, field="edges")
            build.read(target, outputs[source])
        try:
            return build.graph()
        except InvalidInput as error:
            raise error.at(document.name) from None


def _task(document: Document, build: GraphBuilder, text: str, line: int) -> int:
    """Add the operation of one line and return the handle of its output."""
    words = [word.strip() for word in text.split(",")]
    if len(words) not in (2, 3):
        document.fail(f"expected compute,communication[,type], got {text.strip()[:60]!r}", line=line)
    compute, transfer = (document.number(word, "cost", line=line) / COST_PER_SECOND for word in words[:2])
    task = build.task(str(build.num_tasks), compute, category=words[2] if len(words) == 3 else "")
    return build.object(task, transfer)


def _ids(document: Document, text: str, line: int) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    ids = []
    for word in words:
        if not word:
            continue
        if not (word.isascii() and word.isdigit() and len(word) < 10):
            document.fail(f"{word[:60]!r} is not a node number", line=line)
        ids.append(int(word))
    return ids


FORMAT = DopplerText()
