"""``stretto train mars``: learn to order a queue from the first part of a log, and be judged on the rest."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Any

from stretto.cli.logged import kept, news
from stretto.cli.terminal.console import Output, facts, print_json, stdout
from stretto.cli.terminal.interrupt import Patience
from stretto.cli.training.bar import TrainingBar
from stretto.cli.training.budget import TrainBudget
from stretto.cli.training.state import TrainState
from stretto.core.units import better_or_worse, format_count

if TYPE_CHECKING:
    from pathlib import Path

    from stretto.cli.terminal.progress import ProgressLine
    from stretto.cli.training.request import TrainRequest
    from stretto.core.csr import Floats
    from stretto.core.trace import Trace
    from stretto.queues.mars.log_training import LogTraining
    from stretto.queues.mars.trainer import MarsRow
    from stretto.runlog import Run

#: What the result is set against.
_OPPONENTS = ("fcfs", "sjf", "saf", "f1", "f2", "f3", "f4", "wfp3", "expansion", "unicep")


def train_mars(request: TrainRequest) -> bool:
    """Train, judge and report; return whether the user stopped it."""
    from stretto.cli.queue_sources import load_queue, machine_of, tell_notes
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.queues.mars.network import save_nets
    from stretto.queues.mars.replay import pretrained
    from stretto.queues.notes import notes_of

    request.refuse(
        "a queue", cluster=request.cluster, episodes=request.rounds, start=request.start, engine=request.engine
    )
    budget = TrainBudget(request.seconds)
    whole = load_queue(request.source)
    num_procs = machine_of(whole, request.procs, None)
    assert isinstance(num_procs, int)
    notes = notes_of(whole, num_procs, whole.fits(num_procs))
    tell_notes(notes)
    trace, _ = whole.fitting(num_procs)
    settings = {**request.settings(), "procs": num_procs}
    wanted = request.is_logged or request.run_id is not None
    with TrainState(request) as state:
        if state.is_going_on:
            _check_state(trace, num_procs, state)
        with kept(wanted, "train", trace.name, settings, usual=True, resume=request.run_id) as record:
            state.run = record
            budget.mark("reading")
            found, rows, is_stopped = _train(trace, num_procs, request, state, record)
            budget.mark("training")
            nets = [*pretrained(), found.net]
            with ProgressLine("judging on the rest of the log") as line:
                judged = _judge(trace, num_procs, nets, line)
            budget.mark("judging")
            if record is not None:
                record.finish("interrupted" if is_stopped else "done", _summary(found, rows, judged))
    if request.save is not None:
        save_nets(request.save, nets, {"trace": trace.name, "seed": request.seed})
    if request.curves is not None:
        from stretto.reports.lesson import draw_lesson

        draw_lesson(rows, request.curves, name=trace.name, algorithm="mars")
    written = [path for path in (request.checkpoint, request.save, request.curves) if path is not None]
    _report(trace, _machine(whole, num_procs, request), notes, found, rows, judged, request, written, record, budget)
    return is_stopped


def _train(
    trace: Trace, num_procs: int, request: TrainRequest, state: TrainState, record: Run | None
) -> tuple[LogTraining, list[dict[str, Any]], bool]:
    """Train until the time is up, with news for the terminal and the log."""
    from stretto.queues.mars.log_training import train_on_log
    from stretto.queues.mars.network import untrained_nets

    seconds = request.seconds
    assert seconds is not None
    bar = TrainingBar(
        f"training mars on {format_count(int(0.6 * trace.num_jobs), 'job')}", time_limit_s=seconds, episodes=None
    )
    rows: list[dict[str, Any]] = []
    with Patience() as patience, bar, news(record, "row") as told:
        begin_s = _earlier_s(record)

        def on_row(row: MarsRow) -> None:
            patience.has_result = True
            now_s = time.monotonic() - start_s + begin_s
            before_s = rows[-1]["seconds"] if rows else begin_s
            rows.append(_row(row, now_s, row.num_jobs / max(now_s - before_s, 1e-9)))
            bar.tell(row.generation, [f"best {row.best_validation:.4g}", format_count(row.generation, "generation")])
            if told is not None:
                told.add(**rows[-1])
            state.keep()

        start_s = time.monotonic()
        found = train_on_log(
            trace,
            num_procs,
            seed=request.seed,
            time_limit_s=seconds,
            starts=untrained_nets(),
            path=state.path,
            resume=state.is_going_on,
            on_row=on_row,
            is_stopped=lambda: patience.is_over,
        )
        state.keep()
    return found, rows, patience.is_over


def _check_state(trace: Trace, num_procs: int, state: TrainState) -> None:
    """Refuse a state of another log before the run is touched: a run that ended well stays as it is."""
    from stretto.files import checkpoint
    from stretto.files.checkpoint import InvalidCheckpoint

    assert state.path is not None
    _, meta = checkpoint.load(state.path)
    here = {"trace": trace.name, "jobs": trace.num_jobs, "procs": num_procs, "seed": state.request.seed}
    for field, value in here.items():
        if meta.get(field) != value:
            where = f"run {state.request.run_id}" if state.request.run_id else str(state.path)
            raise InvalidCheckpoint(f"is {meta.get(field)!r} there, and {value!r} here", source=where, field=field)


def _row(row: MarsRow, seconds: float, jobs_per_s: float) -> dict[str, Any]:
    values = {"train": row.train, "validation": row.validation, "best_validation": row.best_validation}
    finite = {name: value if abs(value) < float("inf") else None for name, value in values.items()}
    return {"generation": row.generation, "seconds": seconds, **finite, "jobs_per_s": jobs_per_s}


def _earlier_s(record: Run | None) -> float:
    """Return how long this run had been trained before."""
    if record is None:
        return 0.0
    rows = record.log.events(record.id, kinds=["row"])
    return float(rows[-1].fields.get("seconds", 0.0)) if rows else 0.0


def _summary(found: LogTraining, rows: list[dict[str, Any]], judged: dict[str, float]) -> dict[str, Any]:
    return {
        "generations": rows[-1]["generation"],
        "train_seconds": rows[-1]["seconds"],
        "jobs_per_second": found.num_jobs / found.seconds,
        "mean_bounded_slowdown": judged["mars"],
        "judged": judged,
        "judged_as": "mean bounded slowdown on the rest of the log",
    }


def _machine(whole: Trace, num_procs: int, request: TrainRequest) -> str:
    """Say what the machine is taken to be, and who says so."""
    recorded = whole.meta.get("max_procs_from", "the trace")
    return f"{num_procs:,} processors, as {'--procs' if request.procs is not None else recorded} says"


def _report(
    trace: Trace,
    machine: str,
    notes: tuple[str, ...],
    found: LogTraining,
    rows: list[dict[str, Any]],
    judged: dict[str, float],
    request: TrainRequest,
    written: list[Path],
    record: Run | None,
    budget: TrainBudget,
) -> None:
    from stretto.queues.mars.network import TRAINED

    name = min(_OPPONENTS, key=lambda one: judged[one])
    rate = found.num_jobs / found.seconds
    if request.output is Output.JSON:
        document = {"trace": trace.name, "seed": request.seed, "train_seconds": found.seconds, "jobs_per_second": rate}
        document |= {"run_id": record.id if record is not None else None, "history": rows}
        document |= {"machine": machine, "notes": list(notes)}
        print_json(document | {"mean_bounded_slowdown": judged, "best_fixed": name})
    elif request.output is Output.QUIET:
        print(repr(judged["mars"]))
    else:
        generations = format_count(len(found.rows), "generation")
        rest = format_count(trace.num_jobs - int(0.6 * trace.num_jobs), "job")
        compared = better_or_worse(judged["mars"], judged[name])
        lines = {
            "machine": machine,
            "trained": f"{generations}, {found.num_jobs:,} scheduled jobs, {rate:,.0f}/s",
            "judged on": f"the last {rest}: mean bounded slowdown",
            f"the network {TRAINED!r}": f"{judged['network']:,.2f} alone",
            "mars": f"{judged['mars']:,.2f}",
            "best fixed strategy": f"{judged[name]:,.2f} ({name}), so mars is {compared}",
            "fcfs": f"{judged['fcfs']:,.2f}",
        }
        overrun = budget.overrun()
        if overrun is not None:
            lines["budget"] = overrun
        if record is not None:
            lines["run"] = record.id
        stdout().print(facts(f"mars on {trace.name}", lines))
        if request.save is not None:
            words = ("stretto", "replay", request.source, "--strategy", "mars", "--nets", str(request.save))
            stdout().print(f"  follow it: {shlex.join([*words, '--default', TRAINED])}", soft_wrap=True)
        for path in written:
            stdout().print(f"  wrote {path}", soft_wrap=True)


def _judge(trace: Trace, num_procs: int, nets: list[Any], line: ProgressLine) -> dict[str, float]:
    """Replay the whole log and return the slowdowns of what was not trained on."""
    import numpy as np

    from stretto.queues.mars.log_training import SHARE
    from stretto.queues.mars.replay import candidates_of, mars_replay
    from stretto.queues.metrics import bounded
    from stretto.queues.replay import replay

    first = int(SHARE * trace.num_jobs)

    def mean(start_s: Floats) -> float:
        return float(np.mean(bounded((start_s - trace.submit_s)[first:], trace.run_s[first:])))

    def watch(num_arrived: int, num_jobs: int) -> bool:
        line.note = f"mars: {num_arrived / num_jobs:.0%} of {num_jobs:,} jobs"
        return True

    values = {name: mean(replay(trace, num_procs, strategy=name).start_s) for name in _OPPONENTS}
    values["network"] = mean(mars_replay(trace, num_procs, candidates=[nets[-1]]).start_s)
    values["mars"] = mean(mars_replay(trace, num_procs, candidates=candidates_of(nets=nets), watch=watch).start_s)
    return values
