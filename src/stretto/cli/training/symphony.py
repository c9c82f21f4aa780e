"""``stretto train symphony CASE``: learn to schedule a rack, and be judged on streams that were not trained on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stretto.cli.logged import kept, news
from stretto.cli.terminal.background import in_background
from stretto.cli.terminal.console import Output, facts, print_json, stdout
from stretto.cli.terminal.interrupt import Patience
from stretto.cli.training.bar import TrainingBar
from stretto.cli.training.budget import TrainBudget
from stretto.cli.training.state import TrainState
from stretto.core.units import better_or_worse, format_count, format_seconds

if TYPE_CHECKING:
    from pathlib import Path

    from stretto.cli.training.request import TrainRequest
    from stretto.racks.symphony.lesson import RackLesson, RackRow
    from stretto.runlog import Run

#: Rules that the result is set against; they take no training.
_OPPONENTS = ("sparrow", "graphene", "paragon", "mct", "heft", "mct-counters", "srpt-counters", "srpt-belief")
_NUM_HELD_OUT = 16
#: Wall time between checkpoints.
_SAVE_EVERY_S = 30.0


def train_symphony(request: TrainRequest) -> bool:
    """Train, judge and report; return whether the user stopped it."""
    from stretto.racks.symphony.cases import case
    from stretto.racks.symphony.lesson import RackLesson
    from stretto.racks.symphony.scheduler import save_policy

    request.refuse("a rack", cluster=request.cluster, start=request.start, engine=request.engine)
    budget = TrainBudget(request.seconds)
    which = case(request.source)
    lesson = RackLesson(which, seed=request.seed)
    with TrainState(request) as state:
        if state.is_going_on:
            _resume(lesson, state)
        wanted = request.is_logged or request.run_id is not None
        with kept(wanted, "train", which.name, request.settings(), usual=True, resume=request.run_id) as record:
            state.run = record
            rules = _judge_rules(lesson)
            budget.reserved_s = budget.mark("judging")  # the network is judged on as many streams, at the end
            rows, is_stopped = _train(lesson, request, state, record, budget)
            judged = _judge(lesson) | rules
            budget.mark("judging")
            summary = {
                "iterations": lesson.iteration,
                "train_seconds": lesson.trainer.seconds,
                "mean_completion_s": judged["symphony"],
                "judged": judged,
                "judged_as": "mean completion time on held-out streams, s",
            }
            if record is not None:
                record.finish("interrupted" if is_stopped else "done", summary)
    if request.save is not None:
        meta: dict[str, Any] = {"case": which.name, "seed": request.seed, "iterations": lesson.iteration}
        save_policy(request.save, lesson.best, lesson.net, lesson.trainer.shape, meta | {"judged": judged})
    if request.curves is not None:
        from stretto.reports.lesson import draw_lesson

        draw_lesson([row._asdict() for row in rows], request.curves, name=which.name, algorithm="symphony")
    written = [path for path in (request.checkpoint, request.save, request.curves) if path is not None]
    _report(lesson, judged, rows, request, written, record, budget)
    return is_stopped


def _resume(lesson: RackLesson, state: TrainState) -> None:
    from stretto.errors import InvalidInput
    from stretto.files import checkpoint
    from stretto.files.checkpoint import InvalidCheckpoint

    assert state.path is not None
    try:
        lesson.restore(*checkpoint.load(state.path))
    except InvalidInput as error:
        where = f"run {state.request.run_id}" if state.request.run_id else str(state.path)
        raise InvalidCheckpoint(error.message, source=where, field=error.field) from None


def _train(
    lesson: RackLesson, request: TrainRequest, state: TrainState, record: Run | None, budget: TrainBudget
) -> tuple[list[RackRow], bool]:
    """Step until the time or the iterations are over; what was learned is in the file and in the log at the end."""
    from stretto.files import checkpoint

    found: list[RackRow] = []
    bar = TrainingBar(f"training symphony on {lesson.case.name}", time_limit_s=request.seconds, episodes=request.rounds)
    with Patience() as patience, bar, news(record, "row") as news_rows:
        saved_s = time.monotonic()
        while not found or not (patience.is_over or budget.left_s == 0.0 or _has_all_rounds(lesson, request)):
            row = in_background(lesson.step) if not found else lesson.step()  # the first one compiles
            if not found:
                budget.mark("compiling and the first step")
            found.append(row)
            patience.has_result = True
            best = [f"best {format_seconds(row.best_s)}", f"mean {format_seconds(row.mean_s)}"]
            bar.tell(row.iteration, [*best, format_count(row.iteration, "iteration")])
            if news_rows is not None:
                news_rows.add(**row._asdict())
            if state.path is not None and time.monotonic() - saved_s >= _SAVE_EVERY_S:
                saved_s = time.monotonic()
                checkpoint.save(state.path, *lesson.state())
                state.keep()
        if state.path is not None:
            checkpoint.save(state.path, *lesson.state())
            state.keep()
    budget.mark("training")
    return found, patience.is_over


def _has_all_rounds(lesson: RackLesson, request: TrainRequest) -> bool:
    return request.rounds is not None and lesson.iteration >= request.rounds


def _judge(lesson: RackLesson) -> dict[str, float]:
    """Return the mean completion time of the best weights on held-out streams."""
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.racks.symphony.trainer import Judge

    held_out = lesson.case.world(seed=None, num_instances=_NUM_HELD_OUT)
    with ProgressLine("judging on held-out streams"):
        flow_s = Judge(held_out, lesson.trainer.shape, lesson.net).flow_s(lesson.best)
    return {"symphony": float(flow_s.mean())}


def _judge_rules(lesson: RackLesson) -> dict[str, float]:
    """Return the mean completion times of the rules on the same streams."""
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.racks.rules import play

    held_out = lesson.case.world(seed=None, num_instances=_NUM_HELD_OUT)
    values = {}
    with ProgressLine("judging rules on held-out streams"):
        for rule in _OPPONENTS:
            flow = play(
                rule, held_out.model, held_out.streams, seed=0, counters=held_out.counters, params=held_out.belief
            )
            values[rule] = float(flow.mean())
    return values


def _report(
    lesson: RackLesson,
    judged: dict[str, float],
    rows: list[RackRow],
    request: TrainRequest,
    written: list[Path],
    record: Run | None,
    budget: TrainBudget,
) -> None:
    best = min(_OPPONENTS, key=lambda rule: judged[rule])
    if request.output is Output.JSON:
        document = {"case": lesson.case.name, "iterations": lesson.iteration, "train_seconds": lesson.trainer.seconds}
        document |= {"run_id": record.id if record is not None else None, "history": [row._asdict() for row in rows]}
        print_json(document | {"mean_completion_s": judged, "best_rule": best})
    elif request.output is Output.QUIET:
        print(repr(judged["symphony"]))
    else:
        compared = better_or_worse(judged["symphony"], judged[best])
        lines = {
            "trained": f"{format_count(lesson.iteration, 'iteration')} in {format_seconds(lesson.trainer.seconds)}",
            "judged on": f"{_NUM_HELD_OUT} held-out streams: mean job completion time",
            "symphony": f"{judged['symphony']:,.3f} s",
            "best rule": f"{judged[best]:,.3f} s ({best}), so symphony is {compared}",
            "blind": f"{judged['mct']:,.3f} s (mct)",
        }
        overrun = budget.overrun()
        if overrun is not None:
            lines["budget"] = overrun
        if record is not None:
            lines["run"] = record.id
        stdout().print(facts(f"symphony on {lesson.case.name}", lines))
        for path in written:
            stdout().print(f"  wrote {path}", soft_wrap=True)
