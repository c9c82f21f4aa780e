"""TPC-H query plans as measured for Decima: stages with task durations by executor count (JSON).

Each query has an adjacency matrix of its stages and, per stage, the durations in milliseconds
of its tasks: ``first_wave`` for the first task of each executor, ``rest_wave`` for the others,
by the number of executors. ``fresh_durations`` repeats those of the first wave that ran on an
executor that had just started.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, MEASURED
from stretto.core.workload import Workload
from stretto.files.document import Document
from stretto.files.fields import as_array, as_object, member
from stretto.files.sniff import graph_name

_HEAD = re.compile(rb'\s*\{\s*"[^"]{1,40}"\s*:\s*\{\s*"(?:adjacency"\s*:\s*\[\s*\[|task_duration_ms"\s*:\s*\{)')
Granularity = Literal["stage", "task"]


@dataclass(frozen=True)
class DecimaFormat:
    """Reads a workload of one graph per query; edges are pure precedence, as no sizes are known.

    Attributes
    ----------
    granularity
        ``stage``: one task per stage, whose work is the sum of its tasks' durations at the
        smallest measured executor count, where waiting for data distorts them least.
        ``task``: every task of a stage by itself; between two stages stands a task of no
        length that waits for all of the first one's. ``meta["num_stage_tasks"]`` holds the
        number of tasks per stage in both cases.
    """

    granularity: Granularity = "stage"
    summary: str = "Decima TPC-H stages (JSON): 22 query graphs with measured task durations"
    endings: tuple[str, ...] = ("json",)

    def matches(self, document: Document) -> bool:
        # The first query's matrix may fill the head, so its place must do: other JSON has the word too.
        return _HEAD.match(document.head) is not None

    def read(self, document: Document) -> Workload:
        root = as_object(document, document.json, "document")
        if not root:
            document.fail("the file holds no queries")
        graphs = [self._query(document, name, query) for name, query in root.items()]
        return Workload.of(graphs, name=graph_name(document))

    def _query(self, document: Document, name: str, value: object) -> TaskGraph:
        field = f"query {name}"
        query = as_object(document, value, field)
        matrix = as_array(document, member(document, query, "adjacency", field), f"{field} adjacency")
        measured = as_object(document, member(document, query, "task_duration_ms", field), field)
        if len(measured) != len(matrix):
            document.fail(f"{len(matrix)} rows for {len(measured)} stages", field=f"{field} adjacency")
        stages = []
        for stage in range(len(matrix)):
            place = f"{field} stage {stage}"
            stages.append(_durations_s(document, member(document, measured, str(stage), place), place))
        build = GraphBuilder(f"q{name}")
        build.meta[DURATIONS] = MEASURED
        build.meta["num_stage_tasks"] = tuple(len(stage) for stage in stages)
        add = _add_stages if self.granularity == "stage" else _add_tasks
        add(build, stages, _edges(document, matrix, field))
        return build.graph()


def _durations_s(document: Document, value: object, field: str) -> list[float]:
    """Return the durations of a stage's tasks at the smallest executor count that has any."""
    waves = as_object(document, value, field)
    first = as_object(document, member(document, waves, "first_wave", field), field)
    rest = as_object(document, waves.get("rest_wave", {}), field)
    counts = {int(document.number(key, f"{field} executors")): key for key in first}
    for count in sorted(counts):
        key = counts[count]
        place = f"{field} executors {key}"
        both = as_array(document, first[key], place) + as_array(document, rest.get(key, []), place)
        if both:
            return [document.number(duration, place) / 1e3 for duration in both]
    document.fail("the stage has no durations", field=field)


def _edges(document: Document, matrix: list[object], field: str) -> list[tuple[int, int]]:
    edges = []
    for source, row in enumerate(matrix):
        values = as_array(document, row, f"{field} adjacency")
        if len(values) != len(matrix):
            document.fail(f"row {source} has {len(values)} entries, not {len(matrix)}", field=f"{field} adjacency")
        edges += [(source, target) for target, value in enumerate(values) if value]
    return edges


def _add_stages(build: GraphBuilder, stages: list[list[float]], edges: list[tuple[int, int]]) -> None:
    for number, durations_s in enumerate(stages):
        build.task(f"stage{number}", sum(durations_s), category="stage")
    for source, target in edges:
        build.edge(source, target)


def _add_tasks(build: GraphBuilder, stages: list[list[float]], edges: list[tuple[int, int]]) -> None:
    members = [
        [build.task(f"stage{number}/{k}", duration, category=f"stage{number}") for k, duration in enumerate(durations)]
        for number, durations in enumerate(stages)
    ]
    done: dict[int, int] = {}
    for source, target in edges:
        if source not in done:
            barrier = build.task(f"stage{source}/done", 0.0, category="barrier")
            for task in members[source]:
                build.edge(task, barrier)
            done[source] = build.object(barrier, 0.0)
        for task in members[target]:
            build.read(task, done[source])


FORMAT = DecimaFormat()
