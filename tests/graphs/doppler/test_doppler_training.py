"""Training learns, resumes to the last bit, and keeps its promises about stages and elites."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from instances import random_problem
from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.graphs.doppler.settings import DopplerSettings
from stretto.graphs.doppler.stages import ImitatePlanner, ImitateRule, Reinforce, ReinforceOnEngine
from stretto.graphs.simulator import simulate
from stretto.graphs.workloads.random_dag import random_dag

pytest.importorskip("jax")
from stretto.graphs.doppler.trainer import DopplerTrainer, Learning

NET = DopplerSettings(hidden=8, head=8, rounds=2)
LEARNING = Learning(batch=12, elites=4, episodes=600, learning_rate=1e-2, last_learning_rate=1e-3)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.of(random_dag(num_tasks=40, seed=3, ccr=4.0), Cluster.parse("gpu:3@1GB/s"))


def trainer(problem: Problem, **changes: object) -> DopplerTrainer:
    return DopplerTrainer(problem, NET, replace(LEARNING, **changes), seed=5)  # type: ignore[arg-type]


def test_reinforcement_beats_the_untrained_policy(problem: Problem) -> None:
    learner = trainer(problem)
    before = learner.sample(200).makespan_s.mean()
    while learner.episode < 600:
        learner.reinforce()
    after = learner.sample(200).makespan_s.mean()
    assert after < 0.8 * before
    best = learner.best
    assert best is not None
    assert simulate(problem, Plan(best.assignment, best.order)).makespan_s == best.makespan_s


@pytest.mark.parametrize("teacher", ["critical-path", "lookahead"])
def test_imitation_comes_near_its_teacher(problem: Problem, teacher: str) -> None:
    rule = "earliest" if teacher == "critical-path" else "lookahead"
    master = DopplerTrainer(problem, replace(NET, sel="b-level", plc=rule), LEARNING, seed=5)  # type: ignore[arg-type]
    goal = float(np.median(master.sample(50).makespan_s))
    learner = trainer(problem)
    far = learner.greedy().makespan_s
    for _ in range(40):
        learner.imitate(teacher)  # type: ignore[arg-type]
    near = learner.greedy().makespan_s
    assert abs(near - goal) < 0.35 * abs(far - goal)


def test_a_good_plan_of_another_planner_can_be_imitated(problem: Problem) -> None:
    learner = trainer(problem)
    stage = ImitatePlanner(("lookahead", "heft"), time_limit_s=1.0)
    stage.begin(learner)
    goal = learner.elites[0]
    for _ in range(60):
        learner.imitate_plans([goal])
    assert learner.greedy().makespan_s <= 1.1 * goal.makespan_s


@pytest.mark.parametrize("max_steps", [1024, 16])
def test_a_saved_training_goes_on_to_the_last_bit(problem: Problem, tmp_path: Path, max_steps: int) -> None:
    whole = trainer(problem, max_steps=max_steps)
    whole.imitate("lookahead")
    for _ in range(3):
        whole.reinforce()
    checkpoint.save(tmp_path / "half.npz", *whole.state())
    for _ in range(3):
        whole.reinforce()
    half = trainer(problem, max_steps=max_steps)
    half.restore(*checkpoint.load(tmp_path / "half.npz"))
    for _ in range(3):
        half.reinforce()
    arrays, meta = whole.state()
    arrays_again, meta_again = half.state()
    assert meta_again == meta
    assert arrays.keys() == arrays_again.keys()
    assert all(np.array_equal(arrays[name], arrays_again[name]) for name in arrays)


def test_a_checkpoint_of_another_shape_is_refused(problem: Problem) -> None:
    arrays, meta = trainer(problem).state()
    other = random_problem(np.random.default_rng(1), 12, 2)
    with pytest.raises(InvalidInput, match="num_tasks"):
        DopplerTrainer(other, NET, LEARNING, seed=5).restore(arrays, meta)


def test_elites_are_distinct_sorted_and_few(problem: Problem) -> None:
    learner = trainer(problem)
    for _ in range(5):
        learner.reinforce()
    values = [elite.makespan_s for elite in learner.elites]
    assert values == sorted(values)
    assert len(learner.elites) == LEARNING.elites
    assert len({(e.makespan_s, e.assignment.tobytes()) for e in learner.elites}) == len(learner.elites)


def test_self_imitation_raises_the_likelihood_of_the_best(problem: Problem) -> None:
    learner = trainer(problem, entropy=0.0)
    learner.sample(100)
    goal = learner.best
    assert goal is not None
    learner.imitate_plans([goal])
    before = learner.figures["log_prob"]  # per step
    for _ in range(40):
        learner.imitate_plans([goal])
    assert before < -1.5
    assert learner.figures["log_prob"] > before + 0.5


def test_a_subset_of_steps_is_learned_from_without_bias(problem: Problem) -> None:
    """The mean gradient over many subsets is that of all steps."""
    learner = trainer(problem, max_steps=20)
    seen = np.zeros(problem.num_tasks)
    for number in range(300):
        learner.num_updates = number
        steps = learner._steps()
        assert len(set(steps)) == 20
        assert np.all(np.diff(steps) > 0)
        seen[steps] += 1
    assert abs(seen / 300 - 20 / problem.num_tasks).max() < 0.15


def test_the_papers_way_of_learning_runs(problem: Problem) -> None:
    learner = DopplerTrainer(problem, replace(NET, tables=False, symmetric=False), Learning.paper(), seed=1)
    learner.imitate("critical-path")
    for _ in range(3):
        learner.reinforce()
    assert learner.episode == 4
    assert len(learner.elites) == 1


def test_the_papers_encoder_runs(problem: Problem) -> None:
    small = replace(DopplerSettings.paper(), hidden=8, head=8, rounds=2)
    learner = DopplerTrainer(problem, small, LEARNING, seed=1)
    learner.reinforce()
    changed = [name for name, value in learner.params.items() if np.abs(np.asarray(value)).sum() > 0]
    assert {"edge_out", "gru_state", "sel_skip"} <= set(changed)


@pytest.mark.parametrize("baseline", ["running", "batch", "greedy"])
def test_every_baseline_learns(problem: Problem, baseline: str) -> None:
    learner = trainer(problem, baseline=baseline)
    before = learner.sample(100).makespan_s.mean()
    for _ in range(15):
        learner.reinforce()
    assert learner.sample(100).makespan_s.mean() < 0.95 * before


@pytest.mark.parametrize("changes", [{"sel": "b-level"}, {"plc": "earliest"}])
def test_ablations_leave_the_other_head_alone(problem: Problem, changes: dict[str, str]) -> None:
    learner = DopplerTrainer(problem, replace(NET, **changes), LEARNING, seed=1)  # type: ignore[arg-type]
    learner.reinforce()
    fixed, learned = ("sel_skip", "plc_skip") if "sel" in changes else ("plc_skip", "sel_skip")
    assert not np.any(np.asarray(learner.params[fixed]))
    assert np.any(np.asarray(learner.params[learned]))


def test_the_engine_decides_in_the_third_stage(problem: Problem) -> None:
    class Backwards:
        """An engine on which only the load of device 0 counts."""

        def execute(self, plan: Plan) -> float:
            return 1.0 + float((plan.assignment == 0).sum())

    learner = trainer(problem)
    ImitateRule(16).step(learner)
    stage = ReinforceOnEngine(Backwards(), episodes=300)
    stage.begin(learner)
    before = learner.best
    assert before is not None
    assert before.makespan_s == 1.0 + (before.assignment == 0).sum()
    for _ in range(20):
        stage.step(learner)
    after = learner.best
    assert after is not None
    assert after.makespan_s < 0.5 * before.makespan_s


def test_work_conserving_training_judges_by_such_a_run(problem: Problem) -> None:
    learner = DopplerTrainer(problem, NET, LEARNING, seed=1, discipline="work-conserving")
    Reinforce(12).step(learner)
    best = learner.best
    assert best is not None
    assert simulate(problem, Plan(best.assignment, best.order, "work-conserving")).makespan_s == best.makespan_s


def test_one_shot_placement_sees_nothing_of_the_episode(problem: Problem) -> None:
    learner = DopplerTrainer(
        problem, replace(NET, sel="b-level", plc="one-shot", tables=False), replace(LEARNING, episodes=3000), seed=1
    )
    learner.reinforce()
    net = learner.net
    assert not net.plc_out.any()
    assert not net.plc_skip.any()
    assert net.plc_bias.std() > 0
    before = learner.sample(100).makespan_s.mean()
    for _ in range(50):
        learner.reinforce()
    assert learner.sample(100).makespan_s.mean() < 0.9 * before


def test_a_checkpoint_with_fields_of_an_earlier_version_is_taken_up(problem: Problem) -> None:
    learner, later = (DopplerTrainer(problem, NET, LEARNING, seed=5) for _ in range(2))
    learner.reinforce()
    arrays, meta = learner.state()
    old = {name: value for name, value in meta["settings"].items() if name != "symmetric"}
    later.restore(arrays, {**meta, "settings": {**old, "policy": "dual", "encode_every": 0}})
    assert np.array_equal(later.sample(3).assignment, learner.sample(3).assignment)
    with pytest.raises(InvalidInput, match="joint"):
        later.restore(arrays, {**meta, "settings": {**old, "policy": "joint"}})
