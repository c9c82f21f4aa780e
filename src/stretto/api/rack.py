"""``stretto.rack``: play a stream of jobs on a rack whose shared parts cannot be seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.core.answers.learned import rack_answer
from stretto.errors import InvalidInput
from stretto.runlog import Run

if TYPE_CHECKING:
    from stretto.racks.dispatch import DispatchFunction, RackDispatcher
    from stretto.reports.racks.show import RackShow


@dataclass(frozen=True, eq=False)
class RackResult:
    """How an episode on a rack went.

    Attributes
    ----------
    summary
        Its figures, by name: completion times, decisions, and how far the belief was from the truth.
    is_stopped
        Whether it was ended early.
    weights
        Of symphony: ``untrained``, or how long they were trained.
    """

    case: str
    by: str
    stream: int
    summary: dict[str, float | int | None]
    num_machines: int
    num_shared_parts: int
    is_stopped: bool = False
    weights: str | None = None

    @property
    def label(self) -> str:
        """The dispatcher's name, and whether its weights were trained where it has any."""
        return self.by if self.weights is None else f"{self.by} ({self.weights})"

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return rack_answer(self)

    @property
    def logged(self) -> dict[str, float | int | str | None]:
        """What the run log keeps: the answer and the figures."""
        return {"answer": self.answer, **self.summary}

    def to_json(self) -> dict[str, object]:
        """Return the case and all figures."""
        document: dict[str, object] = {"case": self.case, "by": self.by, "stream": self.stream, **self.logged}
        return document if self.weights is None else {**document, "weights": self.weights}


def rack(
    case: str | Path = "small-rack",
    by: str | RackDispatcher | DispatchFunction = "srpt-belief",
    *,
    stream: int = 0,
    pace: float | None = None,
    weights: str | Path | None = None,
    seed: int = 0,
    run: Run | None = None,
    is_over: Callable[[], bool] | None = None,
) -> RackResult:
    """Play jobs on a rack with hidden load.

    Parameters
    ----------
    case
        Rack and jobs: ``two-nics``, ``small-rack`` or ``paper-rack``, or a TOML file of machines.
    by
        A rule such as ``srpt-belief``, ``symphony``, or a function: it takes a
        :class:`stretto.racks.dispatch.RackView` and returns one of its ``choices``.
    stream
        Which of the 16 held-out streams of jobs.
    pace
        Simulated seconds per second, for watching; by default as fast as it goes.
    weights
        Of symphony, as ``stretto train symphony --save`` wrote them.
    run
        A run of the log that records the estimated load of each part.
    is_over
        Asked on the way; the episode ends once it returns True.

    Examples
    --------
    >>> import stretto
    >>> def quickest(view):
    ...     return min(view.choices, key=lambda choice: choice.expected_s)
    >>> stretto.rack("two-nics", by=quickest).summary["num_jobs"] > 0
    True
    """
    from stretto.api.train_inputs import rack_named
    from stretto.reports.racks.show import RackShow, record_rack

    if pace is not None and not 0 < pace < float("inf"):
        raise InvalidInput(f"{pace} must be above 0", field="pace")
    file = None if weights is None else str(weights)
    show = RackShow(rack_named(case), by, stream=stream, seed=seed, weights=file)
    if run is not None:
        record_rack(run, show)
    is_stopped = _play(show, run, pace, is_over or (lambda: False))
    model = show.model
    summary = show.watched.summary() | {"num_processors": len(model.processors)}
    size = len(model.rack.machines), len(model.resources)
    return RackResult(show.case, show.by, show.stream, summary, *size, is_stopped, show.weights)


def weights_state(path: str | Path | None) -> str:
    """Say whether weights of symphony are ``untrained``, or how long they were trained; None is the shipped ones."""
    from stretto.files import checkpoint
    from stretto.racks.symphony.network import SHIPPED
    from stretto.racks.symphony.scheduler import training_state

    return training_state(checkpoint.load(SHIPPED if path is None else path)[1])


def _play(show: RackShow, run: Run | None, pace: float | None, is_over: Callable[[], bool]) -> bool:
    """Play the stream, record what is seen, and wait where somebody watches; return whether it was ended early."""
    from stretto.reports.racks.show import record_moment

    begin_s = time.monotonic()
    for look, ended in show.moments():
        if look is not None and pace is not None:
            _wait(begin_s + look.at_s / pace, is_over)
        if run is not None:
            record_moment(run, look, ended)
        if is_over():
            return True
    return False


def _wait(until_s: float, is_over: Callable[[], bool]) -> None:
    """Sleep in short pieces, so that an end is noticed."""
    while not is_over():
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            return
        time.sleep(min(left_s, 0.1))
