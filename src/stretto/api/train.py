"""``stretto.train``: learn within a budget, be judged on what was not trained on, and keep what was learned."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from stretto import catalog, registry
from stretto.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from stretto.api.inputs import ClusterLike, GraphLike, TraceLike
    from stretto.api.train_inputs import Subject
    from stretto.api.train_result import TrainingResult
    from stretto.core.problem import Problem
    from stretto.learning.loop import LoopResult
    from stretto.learning.trainer import Farm, StepRow, Trainer
    from stretto.runlog import Run

T = TypeVar("T")
#: The budget of a training that is given neither time nor episodes.
DEFAULT_BUDGET_S = 60.0
#: The name of a training's checkpoint in its run of the log.
STATE = "checkpoint.npz"
#: Which parameters mean something for each kind of source.
_MEANT = {"graph": ("cluster", "start", "engine"), "queue": ("procs",), "rack": ("dask",)}
#: Packages of the extra that training needs.
_LEARN = ("jax", "jaxlib", "optax")


class TrainWatch:
    """Hooks of a caller that shows a training while it goes on; each does nothing by default."""

    def phase(self, doing: str) -> None:
        """Note what begins: reading, compiling, training or judging."""

    def row(self, row: StepRow) -> None:
        """Note the row of a step."""

    def remark(self, text: str) -> None:
        """Note something that does not stop the training."""

    def is_stopped(self) -> bool:
        """Say whether to end the training after the present step."""
        return False

    def run_long(self, work: Callable[[], T]) -> T:
        """Run something that may compile for long."""
        return work()


@dataclass(frozen=True)
class TrainOptions:
    """Parameters that few trainings need.

    Attributes
    ----------
    procs
        Processors of a queue's machine; None takes what the log records.
    dims
        Sizes of dimensions that a model (ONNX) leaves open, such as ``{"batch": 8}``.
    num_threads
        Threads that play episodes.
    dask
        The address of a Dask scheduler whose workers play the streams of a rack; the result is the same.
    log
        Keep the training in the run log, from where :func:`continue_training` resumes it.
    watch
        Hooks for a progress display; without one, Ctrl-C ends the training after its step.
    """

    procs: int | None = None
    dims: Mapping[str, int] | None = None
    num_threads: int = 2
    dask: str | None = None
    log: bool = False
    watch: TrainWatch | None = None


def train(
    algorithm: str,
    source: GraphLike | Problem | TraceLike,
    cluster: ClusterLike | None = None,
    *,
    budget_s: float | None = None,
    episodes: int | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    start: str | None = None,
    engine: str | None = None,
    options: TrainOptions | None = None,
    on_row: Callable[[StepRow], None] | None = None,
) -> TrainingResult:
    """Learn for a while; the same seed gives the same result, interrupted and resumed or not.

    Parameters
    ----------
    algorithm
        ``doppler`` learns to plan a graph, ``mars`` to order a queue, ``symphony`` to schedule a rack.
    source, cluster
        A graph and its cluster, the log of a queue, or a rack by name or file; as objects, files or generators.
    budget_s, episodes
        When to stop; compiling counts as time. A minute, if neither is given.
    checkpoint, resume
        A file for the state of the training, and whether to continue the training that it holds.
    start
        First weights: ``generalist`` (the default where it comes with Stretto), ``scratch``, or a checkpoint's file.
    engine
        Measure the plans of the last quarter on this engine; the source is then ``kernels:NAME?key=value``.
    on_row
        Called after every step.

    Examples
    --------
    >>> import stretto
    >>> result = stretto.train("doppler", "workload:cholesky?num_tiles=3", "cpu:2,gpu:1", episodes=64, seed=1)
    >>> result.judged.trained <= result.judged.untrained
    True
    >>> list(result.to_pandas().columns[:3])
    ['episode', 'seconds', 'best_s']
    """
    options = options or TrainOptions()
    if options.dims:
        from stretto.api.inputs import with_dims

        source = with_dims(str(source), [f"{name}={size}" for name, size in options.dims.items()])
    request = _Request(algorithm, source, cluster, budget_s, episodes, seed, start, engine)
    files = _Checkpoint(None if checkpoint is None else Path(checkpoint), resume)
    return _train(request, files, options, on_row)


def continue_training(
    run_id: str,
    *,
    budget_s: float | None = None,
    episodes: int | None = None,
    force: bool = False,
    dask: str | None = None,
    watch: TrainWatch | None = None,
    on_row: Callable[[StepRow], None] | None = None,
) -> TrainingResult:
    """Resume a training of the run log, exactly where it stopped.

    Parameters
    ----------
    run_id
        A run, or ``latest``.
    force
        Resume even if another process may still write the run.
    """
    from stretto.runlog import RunLog

    with RunLog.open() as log:
        info = log.run(run_id)
        if info.kind != "train":
            raise InvalidInput(f"is a {info.kind!r}, not a training", field=f"run {info.id}")
        log.check_free(info.id, force=force)
        state = log.artifact(info.id, STATE)
        known = info.settings
    names = ("algorithm", "graph", "cluster_source", "seed", "start", "engine")
    algorithm, source, cluster, seed, start, engine = (known.get(name) for name in names)
    if not (isinstance(algorithm, str) and isinstance(source, str) and isinstance(seed, int)):
        raise InvalidInput("does not say what was trained on what", field=f"run {info.id}")
    if state is None:
        raise InvalidInput("has no saved state of a training", field=f"run {info.id}")
    if force:
        with RunLog.open() as log:
            log.resume(info.id, force=True)
    request = _Request(algorithm, source, cluster, budget_s, episodes, seed, start, engine)
    return _train(
        request,
        _Checkpoint(None, True, info.id, state),
        TrainOptions(procs=known.get("procs"), dask=dask, log=True, watch=watch),
        on_row,
    )


class _Request(NamedTuple):
    """One training as it was asked for."""

    algorithm: str
    source: GraphLike | Problem | TraceLike
    cluster: ClusterLike | None
    budget_s: float | None
    episodes: int | None
    seed: int
    start: str | None
    engine: str | None

    @property
    def limit_s(self) -> float | None:
        """How long to train; None where only the episodes say."""
        return self.budget_s if self.budget_s is not None or self.episodes is not None else DEFAULT_BUDGET_S


class _Checkpoint(NamedTuple):
    """Where the state of a training is kept, and whether it is resumed from there."""

    path: Path | None
    is_resumed: bool
    run_id: str | None = None
    state: bytes | None = None

    def check(self, start: str | None) -> None:
        """Refuse before the training what would fail after it."""
        if self.run_id is not None:
            return
        there = self.path is not None and self.path.is_file()
        if self.is_resumed and self.path is None:
            raise InvalidInput("name the --checkpoint to resume from", field="--resume")
        if self.is_resumed and not there:
            raise InvalidInput("there is no checkpoint to resume from", source=str(self.path), field="--resume")
        if not self.is_resumed and there:
            raise InvalidInput("already contains a training: use --resume to continue it", source=str(self.path))
        if self.is_resumed and start is not None:
            raise InvalidInput("a resumed training already has its weights", field="--start")

    @contextmanager
    def file(self, *, is_logged: bool) -> Iterator[Path | None]:
        """Return the file of the state; one that only the run log needs goes when the training is over."""
        if self.path is not None or not is_logged:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="stretto-train-") as folder:
            path = Path(folder) / STATE
            if self.state is not None:
                path.write_bytes(self.state)
            yield path


def _train(
    request: _Request, files: _Checkpoint, options: TrainOptions, on_row: Callable[[StepRow], None] | None
) -> TrainingResult:
    """Read, build the trainer, run the loop, judge, and record: the whole verb."""
    from stretto.learning.loop import TrainBudget, TrainingRun, ctrl_c_stops
    from stretto.learning.trainer import TrainingSpec

    files.check(request.start)
    watch = options.watch or TrainWatch()
    budget = TrainBudget(request.limit_s)
    make = _trainer_named(request.algorithm)
    subject = _subject(request, options, getattr(make, "learns_on", "graph"), watch)
    with ExitStack() as stack:
        farm = None if options.dask is None else stack.enter_context(_farm_at(options.dask))
        spec = TrainingSpec(
            request.seed, request.episodes, request.limit_s, request.start, options.num_threads, subject.executor, farm
        )
        trainer = _completed(make(subject.value, spec), subject, spec)
        path = stack.enter_context(files.file(is_logged=options.log))
        run = TrainingRun(trainer, algorithm=request.algorithm, path=path)
        if files.is_resumed:
            run.resume()
        record = stack.enter_context(_recorded(options.log, request, subject, files, watch))
        is_stopped = watch.is_stopped if options.watch else stack.enter_context(ctrl_c_stops())
        budget.mark("reading")
        watch.phase(f"training {request.algorithm} on {subject.size}")
        watch.phase("compiling")
        watch.run_long(run.compile)
        budget.reserved_s = trainer.judging_s
        budget.mark("compiling")
        with _rows(record) as add:

            def note(row: StepRow) -> None:
                watch.row(row)
                add(row)
                if on_row is not None:
                    on_row(row)

            if record is not None:
                run.on_saved = lambda saved: record.attach(STATE, saved.read_bytes())
            looped = run.train(
                time_limit_s=budget.left_s, on_row=note, is_stopped=is_stopped, first_step=watch.run_long
            )
        budget.mark("training")
        watch.phase("judging")
        result = _judged(request, subject, trainer, looped)
        budget.mark("judging")
        result = replace(result, overrun=budget.overrun(), run_id=None if record is None else record.id)
        if record is not None:
            _finish(record, result, looped)
    return result


def _farm_at(address: str) -> AbstractContextManager[Farm]:
    from stretto.engines.dask.farm import farm_at

    return farm_at(address)


def learns_on(algorithm: str) -> str:
    """Return what an algorithm learns on: ``graph``, ``queue`` or ``rack``."""
    return str(getattr(_trainer_named(algorithm), "learns_on", "graph"))


def _trainer_named(algorithm: str) -> Callable[..., Trainer[StepRow]]:
    """Return the class of trainers that the catalog or a plugin calls ``algorithm``."""
    try:
        make: Callable[..., Trainer[StepRow]] = registry.lookup("algorithm", algorithm, catalog.TRAINERS)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _LEARN:
            raise
        raise MissingExtra(str(error.name), "learn", f"training {algorithm}") from None
    return make


def _completed(trainer: Trainer[StepRow], subject: Subject, spec: object) -> Trainer[StepRow]:
    if hasattr(trainer, "judge"):
        return trainer
    from stretto.graphs.training import completed

    return completed(trainer, subject.value, spec)  # type: ignore[arg-type, return-value]


def _subject(request: _Request, options: TrainOptions, kind: str, watch: TrainWatch) -> Subject:
    """Read what is learned on."""
    from stretto.api.train_inputs import Subject, graph_subject, queue_subject, rack_named

    source, name = request.source, getattr(request.source, "name", str(request.source))
    given: dict[str, object] = {"cluster": request.cluster, "start": request.start, "engine": request.engine}
    given |= {"procs": options.procs, "dask": options.dask}
    for option, value in given.items():
        if value is not None and option not in _MEANT[kind]:
            hint = "; give the size of the machine with --procs" if (kind, option) == ("queue", "cluster") else ""
            raise InvalidInput(f"does not apply to a training on a {kind}{hint}", field=f"--{option}")
    if kind == "rack":
        case = rack_named(source)  # type: ignore[arg-type]
        return Subject(case, case.name, case.name, {})
    watch.phase(f"reading {name}")
    if kind == "graph":
        return graph_subject(source, request.cluster, request.engine)  # type: ignore[arg-type]
    subject = queue_subject(source, options.procs)  # type: ignore[arg-type]
    for text in subject.notes:
        watch.remark(f"note: {text}")
    return subject


def _judged(
    request: _Request, subject: Subject, trainer: Trainer[StepRow], looped: LoopResult[StepRow]
) -> TrainingResult:
    """Judge what was learned."""
    from stretto.api.train_result import TrainingResult

    result = TrainingResult(
        request.algorithm,
        subject.name,
        request.seed,
        looped.rows,
        trainer.judge(),
        trainer,
        looped.is_interrupted,
        looped.compile_seconds,
        notes=subject.notes,
        machine=subject.machine,
    )
    if not hasattr(trainer, "best_plan"):
        return result
    from stretto.api.plan import plan_document

    outcome = trainer.result(request.algorithm, looped.seconds)  # type: ignore[attr-defined]
    graph, cluster = _text(request.source), _text(request.cluster)
    document = {} if graph is None else plan_document(outcome, graph, cluster, is_measured=subject.executor is not None)
    return replace(result, outcome=outcome, notes=outcome.notes, sources=document)


@contextmanager
def _recorded(
    wanted: bool, request: _Request, subject: Subject, files: _Checkpoint, watch: TrainWatch
) -> Iterator[Run | None]:
    """Begin a run of the log, or resume one; a log that cannot be written is no reason not to train."""
    from stretto.reports.record import command_line, recording
    from stretto.runlog import RunLog

    log = None
    if wanted:
        log = RunLog.open_or_remark(watch.remark) if files.run_id is None else RunLog.open()
    if log is None:
        yield None
        return
    settings: dict[str, object] = {name: getattr(request, name) for name in ("algorithm", "seed", "start", "engine")}
    settings |= {"graph": _text(request.source), "cluster_source": _text(request.cluster), **subject.settings}
    settings |= {"budget_s": request.limit_s, "episodes": request.episodes}
    settings |= {"resume": files.is_resumed and files.run_id is None, "command": command_line()}
    with log, recording(log, "train", subject.name, settings, resume=files.run_id) as run:
        yield run


def _text(source: object) -> str | None:
    return str(source) if isinstance(source, (str, Path)) else None


@contextmanager
def _rows(record: Run | None) -> Iterator[Callable[[StepRow], None]]:
    """Return what writes rows into a run, where there is one."""
    if record is None:
        yield lambda row: None
        return
    from stretto.reports.record import Rows

    with Rows(record, "row") as rows:
        yield lambda row: rows.add(**row.to_json())


def _finish(record: Run, result: TrainingResult, looped: LoopResult[StepRow]) -> None:
    """Close the run with what came out of the training."""
    if result.outcome is None:
        record.finish("interrupted" if result.is_interrupted else "done", result.summary())
        return
    from stretto.reports.record import record_training

    record_training(record, result.outcome, looped, result.judged.others, result.answer)
