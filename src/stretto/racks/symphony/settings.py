"""The constants of Symphony that were chosen, not learned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SymphonyParams:
    """Each line says where the value came from."""

    #: Share of usable counters below which a rule that ignores contention decides. Assumed, not measured.
    least_sane: float = 0.3
    #: Age from which a reading counts as stale, and its magnitude from which it counts as absurd. Assumed.
    stale_s: float = 60.0
    absurd: float = 20.0
    #: The untrained start: weights of the delay behind the best place and of the tasks that a job has left, and the
    #: score of waiting. By hand, seen on validation streams of small-rack.
    start_behind: float = -1.0
    start_tasks_left: float = -0.1
    start_wait: float = -0.3


PARAMS = SymphonyParams()


@dataclass(frozen=True)
class LookaheadParams:
    """How a decision looks ahead.

    Attributes
    ----------
    width
        Candidates that are priced: the best by score, and waiting.
    per_round, most_rounds
        Futures between two looks at the clock and at who is still in, and the most of such rounds.
    most_decisions
        Decisions of one play-out; what is left then is counted by longest paths.
    out_errors
        A candidate is out when it is this many standard errors behind the best.
    least_errors
        The network's own choice is overruled only by an advantage of this many standard errors.
    scale_sd
        Assumed spread of a task's duration about that of its kernel, on a logarithmic scale.
    """

    width: int = 5
    per_round: int = 4
    most_rounds: int = 16
    most_decisions: int = 200
    out_errors: float = 2.0
    least_errors: float = 2.0
    scale_sd: float = 0.15


LOOKAHEAD = LookaheadParams()
