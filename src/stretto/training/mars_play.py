"""Replay a trace with MARS as its operator says, with lessons on the way where he wants them."""

from __future__ import annotations

from stretto.domain.trace import Trace
from stretto.learned.mars.follower import Watch
from stretto.learned.mars.replay import MarsReplay, mars_replay
from stretto.learned.mars.selector import Selection
from stretto.learned.mars.settings import MarsSettings
from stretto.runlog import Run
from stretto.training.mars_online import OnlineLearner


def play_mars(
    trace: Trace,
    num_procs: int,
    *,
    settings: MarsSettings | None = None,
    run: Run | None = None,
    watch: Watch | None = None,
    seed: int = 0,
) -> MarsReplay:
    """Replay a trace.

    Parameters
    ----------
    run
        Where choices and rewards are recorded while the queue is played.
    watch
        Told on the way how many jobs of how many have arrived; False ends the replay there.
    seed
        For lessons; nothing else draws random numbers.
    """
    said = settings if settings is not None else MarsSettings()
    learner = OnlineLearner(num_procs, seed=seed, measure=said.cost.measure) if said.learns else None
    return mars_replay(
        trace,
        num_procs,
        candidates=said.candidates(),
        selection=Selection(by=said.by),
        cost=said.cost,
        learner=learner,
        run=run,
        watch=watch,
        seed=seed,
    )
