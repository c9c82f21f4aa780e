"""Replay a trace with MARS as its operator says, with lessons on the way where he wants them."""

from __future__ import annotations

from stretto.core.trace import Trace
from stretto.queues.mars.follower import Watch
from stretto.queues.mars.online_learning import OnlineLearner
from stretto.queues.mars.replay import MarsReplay, mars_replay
from stretto.queues.mars.selector import Selection
from stretto.queues.mars.settings import MarsSettings
from stretto.runlog import Run


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
