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
    #: The untrained start: weights of the delay behind the best place, of the forecast and of the tasks that a job has
    #: left, and the score of waiting. By hand, seen on validation streams.
    start_behind: float = -1.0
    start_forecast: float = -1.0
    start_tasks_left: float = -0.1
    start_wait: float = -0.3


PARAMS = SymphonyParams()


@dataclass(frozen=True)
class TrainingParams:
    """How the network learns.

    Attributes
    ----------
    error
        Relative error of the stand-in for the belief: about that of the belief on the parts of racks.
    share, explore
        Parts of a stream's decisions that are priced, and that are made at random.
    width, most_lessons
        Candidates that are priced of a decision, and decisions of a stream.
    most_cost
        Costs relative to the mean of the candidates are cut here.
    num_streams, num_updates, batch
        Of an iteration: streams that are played, updates of the weights, and decisions that each uses.
    sharpness, rate, inertia
        Factor on the cost, length of an update, and the share of the old in the running mean of the weights.
    """

    error: float = 0.2
    share: float = 0.3
    explore: float = 0.1
    width: int = 6
    most_lessons: int = 64
    most_cost: float = 0.3
    num_streams: int = 8
    num_updates: int = 16
    batch: int = 128
    sharpness: float = 30.0
    rate: float = 1e-3
    inertia: float = 0.99


TRAINING = TrainingParams()
