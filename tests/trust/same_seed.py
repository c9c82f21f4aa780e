"""Everything that must repeat, as digests: ``python same_seed.py FOLDER`` prints them as JSON."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from stretto.catalog import PLANNERS, TRAINERS
from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.engines.driver.events import DeviceLost
from stretto.engines.engine import RunOptions
from stretto.engines.session import run_recorded
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Work
from stretto.files import checkpoint
from stretto.graphs.workloads.random_dag import random_dag
from stretto.learning.trainer import TrainingSpec
from stretto.queues.workloads.lublin import lublin
from stretto.registry import construct, lookup
from stretto.runlog import RunLog

CLUSTER = Cluster.parse("cpu:3x1.0,gpu:2x2.5@1GB/s")
PROBLEM = Problem.of(random_dag(num_tasks=50, seed=9), CLUSTER)
#: Small enough for CP-SAT to prove its plan well before its time is up.
SMALL = Problem.of(random_dag(num_tasks=7, seed=2), Cluster.parse("cpu:2"))


def digest_of(*arrays: Any) -> str:
    state = hashlib.sha256()
    for array in arrays:
        found = np.ascontiguousarray(np.asarray(array))
        state.update(f"{found.dtype.str} {found.shape}".encode() + found.tobytes())
    return state.hexdigest()


def make_plan(name: str) -> tuple[Problem, Plan]:
    """Return what a planner says; those that can count their evaluations end by them."""
    planner = construct("policy", name, PLANNERS, {})
    if "max_evaluations" in {item.name for item in fields(planner)}:
        planner = construct("policy", name, PLANNERS, {"max_evaluations": 3000})
        return PROBLEM, planner.plan(PROBLEM, Budget(seed=5, num_threads=2))
    problem = SMALL if name == "cp-sat" else PROBLEM
    return problem, planner.plan(problem, Budget(seed=5, time_limit_s=60.0, num_threads=1))


def run_fingerprint(folder: Path, name: str, problem: Problem, plan: Plan) -> str:
    """Return what the run log says of a simulated run in which a device is lost and a task fails."""
    engine = SimulatedEngine(faults=(DeviceLost(1, 1.0, "gone"),), failing=((3, 1),))
    with RunLog.open(folder / f"{name}.db") as log:
        cluster, work = problem.cluster, Work.timed(problem.graph)
        session = run_recorded(log, engine, work, plan, cluster, RunOptions(), settings={})
        return log.fingerprint(session.run_id)


def doppler_weights() -> str:
    """Return the whole state of a training after an imitation and two updates."""
    from stretto.graphs.doppler.trainer import DopplerTrainer, Learning

    trainer = DopplerTrainer(SMALL, None, Learning(batch=4, episodes=12, elites=2), seed=3, num_threads=2)
    trainer.imitate("lookahead")
    trainer.reinforce()
    trainer.reinforce()
    arrays, _ = trainer.state()
    return digest_of(*(arrays[name] for name in sorted(arrays)))


def checkpoint_digest(folder: Path, name: str) -> str:
    """Return what a trainer of the catalog would keep after two steps: all arrays and what is said about them."""
    subjects = {"graph": SMALL, "queue": (lublin(240, seed=5, num_procs=32, load=0.9), 32), "rack": "two-nics"}
    kind = lookup("trainer", name, TRAINERS)
    start = "scratch" if kind.learns_on == "graph" else None
    trainer = kind(subjects[kind.learns_on], TrainingSpec(seed=3, episodes=64, start=start, num_threads=2))
    for _ in range(2):
        trainer.step()
    checkpoint.save(folder / f"{name}.npz", *trainer.state())
    arrays, meta = checkpoint.load(folder / f"{name}.npz")
    about = hashlib.sha256(json.dumps(_timeless(meta), sort_keys=True).encode()).hexdigest()
    return digest_of(*(arrays[key] for key in sorted(arrays))) + about


def _timeless(value: Any) -> Any:
    """Return JSON without the seconds that a machine took."""
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if "seconds" not in key}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def symphony_weights() -> str:
    """Return the weights after two iterations."""
    from stretto.racks.symphony.cases import case
    from stretto.racks.symphony.network import fresh_weights
    from stretto.racks.symphony.sources import Threads
    from stretto.racks.symphony.trainer import ExpertIteration

    source = Threads(case("two-nics").world(seed=3, num_instances=4))
    learner = ExpertIteration(source, fresh_weights(0), seed=3)
    learner.step()
    learner.step()
    return digest_of(*learner.weights)


def mars_weights() -> str:
    """Return the network after three generations."""
    from stretto.queues.mars.candidates import smith_net
    from stretto.queues.mars.trainer import MarsTrainer
    from stretto.queues.mars.windows import draw_windows
    from stretto.queues.promises.slack import Slack

    windows = draw_windows(lublin(900, seed=1, num_procs=32), 32, 6, 100, np.random.default_rng(0))
    trainer = MarsTrainer(windows[2:], windows[:2], smith_net(), seed=3, slack=Slack(3600.0), population=8)
    for _ in range(3):
        trainer.step()
    arrays, _ = trainer.state()
    return digest_of(*(arrays[name] for name in sorted(arrays)))


def main(folder: Path) -> None:
    found = {}
    for name in PLANNERS:
        problem, plan = make_plan(name)
        found[f"plan of {name}"] = digest_of(plan.assignment, plan.order) + plan.discipline
        found[f"run of {name}"] = run_fingerprint(folder, name, problem, plan)
    for name in TRAINERS:
        found[f"checkpoint of {name}"] = checkpoint_digest(folder, name)
    found["training of doppler"] = doppler_weights()
    found["training of symphony"] = symphony_weights()
    found["training of mars"] = mars_weights()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
