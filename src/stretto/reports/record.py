"""Write plans, comparisons and trainings into the run log, in the form that the pages read."""

from __future__ import annotations

import math
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from stretto.core.planner import Progress
from stretto.errors import StrettoError
from stretto.graphs.evaluate import PlanResult
from stretto.reports.problem import PLAN, attach_problem
from stretto.reports.strict_json import packed, plain
from stretto.runlog import Run, RunLog
from stretto.runlog.record import Json

if TYPE_CHECKING:
    from stretto.graphs.rental.result import RentalPlan
    from stretto.learning.loop import LoopResult
    from stretto.learning.trainer import StepRow

COMPARISON = "comparison.json.gz"
#: Rows are written together, at most this often: a page reads them once a second.
FLUSH_EVERY_S = 0.3
_PLAN_FIGURES = (
    "answer",
    "makespan_s",
    "lower_bound_s",
    "bound_method",
    "gap",
    "verdict",
    "notes",
    "durations",
    "cost_usd",
    "utilization",
    "plan_seconds",
    "num_tasks",
    "num_devices",
    "discipline",
    "contention",
)


@contextmanager
def recording(
    log: RunLog, kind: str, name: str, settings: Mapping[str, Json], *, resume: str | None = None
) -> Iterator[Run]:
    """Start or resume a run, and close it as failed or interrupted when the work inside raises."""
    run = log.start(kind, name, plain(settings)) if resume is None else log.resume(resume)
    try:
        yield run
    except KeyboardInterrupt:
        run.finish("interrupted", {})
        raise
    except StrettoError as error:
        run.finish("failed", {"error": str(error)})
        raise
    except BaseException as error:
        run.finish("failed", {"error": f"{type(error).__name__}: {error}"})
        raise


def command_line() -> str:
    """Return the command line of this process, as one would type it."""
    return "stretto " + shlex.join(sys.argv[1:])


def record_plan(run: Run, result: PlanResult | RentalPlan, document: Mapping[str, Json] | None = None) -> None:
    """Keep a plan with its problem, and close the run.

    Parameters
    ----------
    document
        What is kept in place of the result's own JSON, for example with the names of its files.
    """
    body = dict(document) if document is not None else result.to_json()
    with run.batch():
        attach_problem(run, result.problem)
        run.attach(PLAN, packed(body))
        run.finish("done", plan_summary(body))


def plan_summary(document: Mapping[str, Json]) -> dict[str, Json]:
    """Return the figures of a plan that lists and tables show."""
    summary: dict[str, Json] = plain({name: document[name] for name in _PLAN_FIGURES if name in document})
    return summary


def record_training(
    run: Run, outcome: PlanResult, result: LoopResult[StepRow], opponents: Mapping[str, float], answer: str
) -> None:
    """Keep the best plan of a training, and close the run with the results of its opponents."""
    document = outcome.to_json()
    figures: dict[str, Json] = {
        "answer": answer,
        "episodes": result.num_episodes,
        "train_seconds": result.seconds,
        "opponents": dict(opponents),
    }
    with run.batch():
        attach_problem(run, outcome.problem)
        run.attach(PLAN, packed(document))
        run.finish("interrupted" if result.is_interrupted else "done", plan_summary(document) | plain(figures))


def record_comparison(run: Run, document: Mapping[str, Json], best: str | None) -> None:
    """Keep what a comparison found, and close the run."""
    with run.batch():
        run.attach(COMPARISON, packed(document))
        run.finish("done", {"answer": document["answer"], "best": best, "num_rows": len(document["rows"])})


class Rows:
    """Writes rows into a run, several at a time; a context manager that writes the last ones when it ends."""

    def __init__(self, run: Run, kind: str) -> None:
        self.run = run
        self.kind = kind
        self._waiting: list[dict[str, Json]] = []
        self._flushed_s = 0.0

    def __enter__(self) -> Rows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()

    def add(self, **fields: Json) -> None:
        """Add a row; it is in the log a moment later."""
        self._waiting.append(plain(fields))
        if time.monotonic() - self._flushed_s >= FLUSH_EVERY_S:
            self.flush()

    def progress(self, news: Progress) -> None:
        """Add the progress of a search."""
        best = news.best_makespan_s
        self.add(elapsed_s=news.elapsed_s, evaluations=news.evaluations, best_s=best if math.isfinite(best) else None)

    def flush(self) -> None:
        """Write the rows that wait."""
        self._flushed_s = time.monotonic()
        if self._waiting:
            with self.run.batch():
                for fields in self._waiting:
                    self.run.record(self.kind, **fields)
            self._waiting = []
