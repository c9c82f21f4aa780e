"""The JSON that pages draw: one type per part of a view, with the names that the scripts read."""

from __future__ import annotations

from typing import NotRequired, TypeAlias, TypedDict

from stretto.runlog.record import Json

#: Settings and figures of a run, whose names differ from kind to kind.
JsonObject: TypeAlias = dict[str, Json]
#: Numbers of a curve, None where there is none.
Column: TypeAlias = list[float | None]


class TransferBars(TypedDict):
    """Transfers below the bars of a Gantt chart, in columns."""

    row: list[int]
    source: list[int]
    start: Column
    length: Column
    names: list[str]


class WaitBars(TypedDict):
    """Times in which a device waits for data: the bar after them, and the bar that the data come from."""

    bar: list[int]
    length: Column
    source: list[int]


class DelaysJson(TypedDict):
    """What tasks waited for, and the bars of the critical path in order."""

    waits: WaitBars
    critical: list[int]


class ColoringJson(TypedDict):
    """Another way to color the bars."""

    legend: list[tuple[str, str, str]]
    color: list[int]


class GanttJson(TypedDict):
    """A Gantt chart: rows (name, share busy, starts a group), legend (label, color, text color), bars in columns."""

    rows: list[tuple[str, float, int]]
    legend: list[tuple[str, str, str]]
    makespan: float
    bound: float | None
    task: list[int]
    num_tasks: NotRequired[int]
    row: list[int]
    start: Column
    length: Column
    color: list[int]
    names: list[str] | None
    moves: TransferBars | None
    state: NotRequired[list[int]]  # 0 running, 1 done, 2 failed
    colored_by: NotRequired[str]
    by_job: NotRequired[ColoringJson | None]
    waits: NotRequired[WaitBars]
    critical: NotRequired[list[int]]


class Series(TypedDict):
    """A named curve."""

    name: str
    mean: Column


class UseJson(TypedDict):
    """Share of devices in use over time, in equal bins up to the end."""

    end_s: float
    series: list[Series]


class QueueJson(TypedDict):
    """Processors in use and waiting jobs over time, in equal bins up to the end."""

    end_s: float
    num_procs: int
    use: list[Series]
    waiting_mean: Column
    waiting_most: Column
    waiting_procs: Column


class TileGroup(TypedDict):
    """Tiles of a map in one box."""

    name: str
    tiles: list[int]


class MapJson(TypedDict):
    """A map of devices: tiles with their utilization in equal bins up to the end, and over the whole time."""

    kind: str
    groups: list[TileGroup]
    names: list[str]
    notes: list[str]
    end_s: float
    use: list[Column]
    total: list[float]


class BeliefJson(TypedDict):
    """A map of estimated load: a row per resource, a column per moment."""

    kind: str
    machines: list[JsonObject]
    resources: list[str]
    processors: list[str]
    at_s: list[float]
    mean: list[Column]
    low: list[Column]
    high: list[Column]
    raw: NotRequired[list[Column]]
    truth: NotRequired[list[Column]]
    doing: list[str]
    running: list[list[int]]


class TrainingSeries(TypedDict):
    """A measured figure of a training."""

    name: str
    values: Column


class TrainingGroup(TypedDict):
    """Figures that share one chart."""

    title: str
    unit: str
    names: list[str]


class TrainingJson(TypedDict):
    """Curves of a training."""

    x_name: str
    x: Column
    seconds: Column
    stage: list[str]
    series: list[TrainingSeries]
    groups: list[TrainingGroup]
    baselines: dict[str, float]


class GraphJson(TypedDict):
    """A placement: nodes ``[x, y, label, row, number of tasks]``, edges ``[from, to, bytes, crosses devices]``."""

    kind: str
    nodes: list[tuple[int, float, str, int, int]]
    edges: list[tuple[int, int, float | None, int]]
    rows: list[str]
    num_layers: int


class CostLine(TypedDict):
    """What a device, a kind of devices or a pool costs."""

    name: str
    count: int
    held_s: float
    busy_s: float
    usd: float


class WhyJson(TypedDict):
    """Explanations of tasks; the alternatives of all tasks in columns, ``first`` says where those of a task begin."""

    task: list[int]
    first: list[int]
    reason: list[str]
    devices: list[str]
    device: list[int]
    parent: list[int]
    ready_s: Column
    start_s: Column
    finish_s: Column


class TableJson(TypedDict):
    """A table; ``best`` lists the marked cells as (row, column)."""

    title: str
    note: str
    heads: list[str]
    rows: list[list[str]]
    best: list[list[int]]


class WaitsJson(TypedDict):
    """Waits of a replay: tables, what they assume, and what became of promises."""

    tables: list[TableJson]
    notes: list[str]
    promises: str | None


class SteeredJson(TypedDict):
    """The live queue of a steered cluster at the last decision."""

    chosen: str
    is_applied: bool
    fallback: str
    num_running: int
    jobs: list[SteeredJob]
    num_waiting: int
    promises: str | None


class SteeredJob(TypedDict):
    """A waiting job: its place by submission, and its place in the decided order."""

    job: int
    before: int
    after: int
    procs: int
    estimate_s: float


class SpreadRow(TypedDict):
    """A policy on one instance: the median of its results, with an interval."""

    name: str
    count: int
    low: float
    middle: float
    high: float


class SpreadJson(TypedDict):
    """Policies on one instance, by one figure; less is better."""

    title: str
    note: str
    figure: str
    unit: str
    rows: list[SpreadRow]


class Titled(TypedDict):
    """What the title of a figure needs."""

    name: str
    settings: JsonObject


class LiveJson(TypedDict):
    """How far a live run has come: a share, and in words."""

    share: float
    text: str


class RunHeader(Titled):
    """What lists show of a run; the answer is empty while there is none."""

    id: str
    answer: str
    kind: str
    status: str
    started_s: float
    ended_s: float | None
    num_events: int
    summary: JsonObject
    live: NotRequired[LiveJson | None]


class RunView(RunHeader):
    """Everything that a page shows of one run; None is a part that the run does not have."""

    gantt: GanttJson | None
    map: MapJson | None
    belief: BeliefJson | None
    use: UseJson | None
    queue: QueueJson | None
    training: TrainingJson | None
    graph: GraphJson | None
    cost: list[CostLine] | None
    progress: list[tuple[float, float]] | None
    samples: list[tuple[float, float, float | None]] | None
    choices: list[JsonObject]
    failures: list[JsonObject]
    num_failures: int
    failed: list[JsonObject]
    tables: list[TableJson]
    spreads: list[SpreadJson]
    waits: WaitsJson | None
    steered: SteeredJson | None
    can_ask: bool
    is_planned: bool
    can_explain: bool
    has_output: bool
    why: WhyJson | None


def new_view(header: RunHeader) -> RunView:
    """Return a view of a run of which nothing else is known yet."""
    return RunView(
        **header,
        gantt=None,
        map=None,
        belief=None,
        use=None,
        queue=None,
        training=None,
        graph=None,
        cost=None,
        progress=None,
        samples=None,
        choices=[],
        failures=[],
        num_failures=0,
        failed=[],
        tables=[],
        spreads=[],
        waits=None,
        steered=None,
        can_ask=False,
        is_planned=False,
        can_explain=False,
        has_output=False,
        why=None,
    )
