"""Every tuned number of MARS, with where it came from.

"Looked at" values were chosen on windows of the public logs themselves. "Former" come from the former MARS, a "guess"
was never varied, "safety" bounds what a mistake can cost, "speed" trades nothing but time. Compiled code reads these
values when it is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.argument_checks import at_least, not_negative


@dataclass(frozen=True)
class MarsParameters:
    """How candidates are compared and networks score.

    Attributes
    ----------
    epoch_jobs
        Arrivals between two choices.
    memory_epochs
        Epochs after which an epoch counts a third of what the latest counts.
    block_epochs
        Neighboring epochs that are drawn together when the certainty of a comparison is estimated, because they
        resemble each other.
    num_draws
        Draws by which that certainty is estimated.
    certainty
        Probability of being cheaper that a candidate needs to be followed in place of the present one.
    prior_epochs, prior_ratio
        Before anything has been seen, a shipped network is taken to cost this share of the operator's policy, as if so
        many epochs had shown it.
    guard
        Share by which the real queue may have cost more than the operator's policy would have, before the policy
        decides again.
    guard_epochs
        So many epochs of the policy's mean cost are added to that allowance.
    lag_jobs
        The latest arrivals, which counterfactual replays leave out because few of them have ended.
    known_part, known_stretch
        Replays go as far as this part of the jobs has ended, of so many in a row.
    hopeless_ratio, hopeless_epochs
        A candidate that has cost so many times the cheapest, over so many epochs, is no longer replayed.
    max_tests
        Plans of promised starts that are tested per pass.
    forecast_pause
        A waiting job is forecast anew after it has waited for this part longer.
    long_s
        Jobs with a longer forecast leave room for shorter ones.
    width_rate
        Rate of the running mean of the processors of short jobs.
    roomy
        With this share of the machine free no job is held back.
    learn_jobs
        Online updates: known jobs before the first one, and between two at least.
    learn_memory_jobs, learn_window_jobs
        They use so many of the latest known jobs, in windows of this size.
    """

    epoch_jobs: int = 250  # former
    memory_epochs: float = 400.0  # guess
    block_epochs: int = 4  # statistics: epochs of one busy week are no independent evidence
    num_draws: int = 200  # speed
    certainty: float = 0.95  # looked at: 0.8, 0.95 and 0.99 on eight logs
    prior_epochs: float = 8.0  # guess
    prior_ratio: float = 0.8  # guess; networks reached less on logs that they had not seen
    guard: float = 0.1  # safety
    guard_epochs: float = 8.0  # safety: counterfactual replays of few jobs say little
    lag_jobs: int = 100  # speed
    known_part: float = 0.75  # former
    known_stretch: int = 200  # former
    hopeless_ratio: float = 4.0  # speed
    hopeless_epochs: int = 40  # speed
    max_tests: int = 16  # speed: a refused start waits for the next event
    forecast_pause: float = 0.05  # speed
    long_s: float = 3600.0  # former
    width_rate: float = 0.02  # unchanged: some fifty short jobs
    roomy: float = 1.0 / 3.0  # former
    learn_jobs: int = 3000  # speed
    learn_memory_jobs: int = 20_000  # speed
    learn_window_jobs: int = 1500  # speed

    def __post_init__(self) -> None:
        for name in ("epoch_jobs", "block_epochs", "num_draws", "known_stretch", "max_tests"):
            at_least(1, **{name: getattr(self, name)})
        at_least(0, lag_jobs=self.lag_jobs, hopeless_epochs=self.hopeless_epochs)
        for name in ("memory_epochs", "certainty", "prior_epochs", "prior_ratio", "guard", "guard_epochs"):
            not_negative(**{name: getattr(self, name)})


MARS_PARAMETERS = MarsParameters()
