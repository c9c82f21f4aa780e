"""Networks at play: what their kernels choose, which teachers they have, and what they record to learn from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import plain_queues
from research.doppler.ablations import ABLATIONS, settings_of
from research.doppler.trainers import trainer_for

from instances import random_problem
from stretto.graphs.doppler.trainer import DopplerTrainer, Learning
from stretto.queues.mars.candidates import untrained_nets
from stretto.queues.mars.network import shipped_nets
from stretto.queues.mars.windows import draw_windows
from stretto.queues.promises.slack import Slack

TINY = {"hidden": 8, "head": 8, "rounds": 2}


def doppler() -> Iterator[tuple[str, Any]]:
    problem = random_problem(np.random.default_rng(4), 12, 3)
    learning = Learning(batch=3, elites=1, episodes=9)
    for variant in ABLATIONS:
        settings = settings_of(variant, **TINY)
        for discipline in ("sequence", "work-conserving") if variant in ("both", "joint") else ("sequence",):
            trainer = trainer_for(settings)(problem, settings, learning, seed=3, discipline=discipline)
            found = trainer.sample(3, steps=np.arange(problem.num_tasks, dtype=np.int32))
            yield f"doppler {variant} {discipline}", (found.makespan_s, found.assignment, found.order)
            yield f"retraced {variant} {discipline}", trainer.add_plan(found.order[0], found.assignment[0])
    wide = random_problem(np.random.default_rng(7), 24, 3)
    narrow = settings_of("both", **TINY, window=3)  # more tasks are ready than there are candidates
    trainer = DopplerTrainer(wide, narrow, learning, seed=3)
    found = trainer.sample(3, steps=np.arange(wide.num_tasks, dtype=np.int32))
    yield "doppler narrow", (found.makespan_s, found.assignment, found.order)
    yield "retraced narrow", trainer.add_plan(wide.arrays.topo, found.assignment[1])
    for teacher in ("critical-path", "lookahead"):
        trainer = DopplerTrainer(problem, settings_of("both", **TINY), learning, seed=3)
        found = trainer.imitate(teacher)
        yield f"lesson {teacher}", (found.makespan_s, found.assignment, found.order)


def cases() -> Iterator[tuple[str, Any]]:
    yield from doppler()
    windows = draw_windows(plain_queues.make_trace(3, 200), plain_queues.PROCS, 1, 40, np.random.default_rng(0))
    for window in windows:
        for net in (*untrained_nets(), shipped_nets()[0]):
            yield f"mars window {net.name}", window.play(net, Slack(30.0, 1.0))
