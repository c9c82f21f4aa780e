"""Train Doppler's two policies on one problem: imitation, then reinforcement, with the best kept.

Plans of good episodes are kept as *elites* and retraced in every update, so that their likelihood rises
(self-imitation). Only their order and assignment are stored: what the policy would have
seen on the way is worked out again when needed, which also lets plans of other planners be imitated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from stretto.core.csr import Floats, Ints
from stretto.core.plan import Discipline
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.files.checked_arrays import take, take_indices, take_like
from stretto.graphs.doppler.features import bucket
from stretto.graphs.doppler.loss import LossWeights, Selections, UpdateBatch, flatten, loss
from stretto.graphs.doppler.network import heads
from stretto.graphs.doppler.parameters import Params, init_params
from stretto.graphs.doppler.rollout import Mode, PlayedEpisodes, Player, Sampling, Teacher, as_kernel_net
from stretto.graphs.doppler.settings import DopplerSettings, saved_settings
from stretto.graphs.kernels.construct.ranks import ready_order

Baseline = Literal["running", "batch", "greedy"]
#: Streams of random numbers: episodes use their own number, choices of steps start here.
_STEP_STREAM = 1 << 40
_COUNTERS = ("seed", "episode", "num_updates", "mean_s", "num_judged", "num_rows", "stage")


@dataclass(frozen=True)
class Learning:
    """How an update is made.

    Attributes
    ----------
    batch
        Episodes per update; the paper's 1 is possible but wastes compiled code.
    learning_rate, last_learning_rate
        Falls linearly over ``episodes``, and really does (in the released code the decay has no effect).
    mode, epsilon, last_epsilon
        ``sample`` draws from the softmax; ``epsilon`` is the paper's way, argmax or uniform, here with the true
        probability of what was done.
    gamma
        Discount per step. 1 by default: the reward comes once, at the end, and 0.99 would leave a tenth of it to
        the first decision of a 229-node graph.
    baseline
        ``running``: mean of all episodes so far (the paper's); ``batch``: mean of this batch;
        ``greedy``: the greedy episode under the same weights.
    normalise
        Divide advantages by their deviation in the batch.
    clip, epochs
        PPO's clipping range, and updates per batch.
    elites, elite_weight
        How many best plans are imitated in every update, and how strongly.
    max_steps
        Steps of an episode that an update looks at, drawn anew each time and weighted up: bounds the
        memory on large graphs.
    """

    batch: int = 32
    episodes: int = 8000
    learning_rate: float = 3e-3
    last_learning_rate: float = 3e-4
    mode: Mode = "sample"
    epsilon: float = 0.2
    last_epsilon: float = 0.0
    temperature: float = 1.0
    last_temperature: float = 1.0
    gamma: float = 1.0
    baseline: Baseline = "batch"
    normalise: bool = True
    clip: float = 0.2
    epochs: int = 1
    entropy: float = 1e-3
    elites: int = 8
    elite_weight: float = 1.0
    max_steps: int = 1024
    max_norm: float = 1.0

    def __post_init__(self) -> None:
        if self.batch < 1 or self.epochs < 1 or self.episodes < 1 or self.max_steps < 1:
            raise InvalidInput("batch, epochs, episodes and max_steps must be at least 1", field="learning")
        if not 0 < self.gamma <= 1:
            raise InvalidInput(f"{self.gamma} is not in (0, 1]", field="gamma")
        if self.elites < 0:
            raise InvalidInput(f"{self.elites} must not be negative", field="elites")

    @staticmethod
    def paper() -> Learning:
        """Return the published way: plain REINFORCE, one episode at a time, argmax or uniform."""
        return Learning(
            batch=1,
            learning_rate=1e-4,
            last_learning_rate=1e-7,
            mode="epsilon",
            gamma=0.99,
            baseline="running",
            normalise=False,
            clip=1e9,
            entropy=1e-2,
            elites=0,
        )


#: Measures plans (orders and assignments, a row each) in seconds.
Judge = Callable[[Ints, Ints], Floats]


class Elite(NamedTuple):
    """A plan worth imitating."""

    makespan_s: float
    order: Ints
    assignment: Ints


@functools.lru_cache(maxsize=32)
def _programs(settings: DopplerSettings, num_devices: int, max_norm: float, loss: Any) -> tuple[Any, Any, Any]:
    """Return the compiled update and encoding, and the optimiser, shared by all trainers of one shape."""
    optimiser = optax.chain(optax.clip_by_global_norm(max_norm), optax.scale_by_adam(eps=1e-6))

    def update(params: Params, state: Any, g: Any, batch: UpdateBatch, weights: LossWeights, rate: Any) -> Any:
        (_, figures), gradient = jax.value_and_grad(loss, has_aux=True)(params, g, batch, weights, settings)
        # One long vector: Adam on each small array by itself takes seconds to compile.
        flat, unravel = ravel_pytree(params)
        change, state = optimiser.update(ravel_pytree(gradient)[0], state)
        return unravel(flat - rate * change), state, figures

    encode = jax.jit(lambda params, g: heads(params, g, settings, num_devices))
    return jax.jit(update), encode, optimiser


class DopplerTrainer:
    """The state of one training, and its steps.

    Variants in ``research/doppler`` replace the player, the loss and the batch.
    """

    make_player: type[Player] = Player
    loss: Callable[..., Any] = staticmethod(loss)

    def __init__(
        self,
        problem: Problem,
        settings: DopplerSettings | None = None,
        learning: Learning | None = None,
        *,
        seed: int = 0,
        discipline: Discipline = "sequence",
        num_threads: int = 2,
        params: Params | None = None,
    ) -> None:
        self.problem, self.seed = problem, seed
        self.settings, self.learning = settings or DopplerSettings(), learning or Learning()
        self.player = self.make_player(problem, self.settings, discipline=discipline, num_threads=num_threads)
        self._update, self._encode, self._optimiser = _programs(
            self.settings, problem.num_devices, self.learning.max_norm, self.loss
        )
        n, m = problem.num_tasks, problem.num_devices
        fresh = init_params(self.settings, seed, n, m)
        self.params: Params = {name: jnp.asarray((params or {}).get(name, value)) for name, value in fresh.items()}
        self.optimiser_state = self._optimiser.init(ravel_pytree(self.params)[0])
        self.episode = 0
        self.num_updates = 0
        self.mean_s, self.num_judged = 0.0, 0
        self.elites: list[Elite] = []
        self.figures: dict[str, float] = {}
        self.num_rows = 8
        self.stage = -1
        self._net: Any = None

    # -- acting -----------------------------------------------------------------------------------------------

    @property
    def net(self) -> Any:
        """The heads under the present parameters; the graph is encoded once per update."""
        if self._net is None:
            self._net = as_kernel_net(self._encode(self.params, self.player.tensors))
        return self._net

    @property
    def best(self) -> Elite | None:
        return self.elites[0] if self.elites else None

    def greedy(self) -> Elite:
        """Return the plan of the most likely actions, and keep it among the elites if it is good enough."""
        found = self.greedy_plan()
        self.remember(*found)
        return found

    def greedy_plan(self) -> Elite:
        """Return the plan of the most likely actions."""
        found = self.player.play(self.net, [(self.seed, 0)], Sampling("greedy"))
        return Elite(float(found.makespan_s[0]), found.order[0].copy(), found.assignment[0].copy())

    def sample(
        self,
        num: int,
        sampling: Sampling | None = None,
        steps: Ints | None = None,
        elites: Sequence[Elite] = (),
        judge: Judge | None = None,
    ) -> PlayedEpisodes:
        """Play the next episodes of this training, retrace elites behind them, and remember the best.

        Parameters
        ----------
        judge
            Measures the sampled episodes in seconds; without one their simulated makespan counts.
        """
        seeds = [(self.seed, self.episode + i + 1) for i in range(num)]
        plans = _stacked(elites) if elites else None
        found = self.player.play(self.net, seeds, sampling or self.sampling(), steps, plans)
        self.episode += num
        if judge is not None:
            found.makespan_s[:num] = judge(found.order[:num], found.assignment[:num])
            found.makespan_s[num:] = [elite.makespan_s for elite in elites]
        self.remember_all(found, num)
        return found

    def sampling(self) -> Sampling:
        """Return how actions are taken at this point of the training."""
        how, done = self.learning, self.progress
        return Sampling(
            how.mode,
            how.epsilon + (how.last_epsilon - how.epsilon) * done,
            how.temperature + (how.last_temperature - how.temperature) * done,
        )

    @property
    def progress(self) -> float:
        """The part of the planned episodes that has been played."""
        return min(1.0, self.episode / self.learning.episodes)

    # -- remembering ------------------------------------------------------------------------------------------

    def remember_all(self, found: PlayedEpisodes, num: int | None = None) -> None:
        """Keep the best of these episodes, or of the first ``num`` of them, among the elites."""
        room = max(self.learning.elites, 1)
        worst = self.elites[-1].makespan_s if len(self.elites) >= room else np.inf
        for b in np.argsort(found.makespan_s[:num], kind="stable")[:room]:
            if found.makespan_s[b] < worst or len(self.elites) < room:
                self.remember(float(found.makespan_s[b]), found.order[b], found.assignment[b])

    def remember(self, makespan_s: float, order: Ints, assignment: Ints) -> None:
        """Keep a plan among the elites if it is good enough and not there yet."""
        for elite in self.elites:
            if elite.makespan_s == makespan_s and np.array_equal(elite.assignment, assignment):
                return
        self.elites.append(Elite(makespan_s, order.copy(), assignment.copy()))
        self.elites.sort(key=lambda elite: elite.makespan_s)
        del self.elites[max(self.learning.elites, 1) :]

    def add_plan(self, order: Ints, assignment: Ints) -> float:
        """Retrace a plan of another planner, keep it among the elites, and return its makespan."""
        in_order = ready_order(self.problem.arrays, np.ascontiguousarray(order, dtype=np.int32))
        found = self.player.retrace(self.net, in_order[None], np.ascontiguousarray(assignment, dtype=np.int32)[None])
        self.remember_all(found)
        return float(found.makespan_s[0])

    def rejudge(self, judge: Judge) -> None:
        """Measure the elites by another judge."""
        known, self.elites = self.elites, []
        if known:
            for seconds, elite in zip(judge(*_stacked(known)), known, strict=True):
                self.remember(float(seconds), elite.order, elite.assignment)

    # -- learning ---------------------------------------------------------------------------------------------

    def imitate(self, teacher: Teacher) -> PlayedEpisodes:
        """Stage I: play a batch and learn what the teacher would have done in the states it met (DAgger)."""
        steps = self._steps()
        # As many rows as an update of stage II has, with its elites: one program serves both.
        num = self.learning.batch + self.learning.elites
        found = self.sample(num, replace(self.sampling(), teacher=teacher), steps)
        self._learn(found, np.zeros(len(found.makespan_s)), np.ones(len(found.makespan_s)))
        return found

    def imitate_plans(self, plans: Iterable[Elite]) -> PlayedEpisodes:
        """Learn from given plans by retracing them; they also count as found."""
        known = list(plans)
        num = self.learning.batch + self.learning.elites
        rows = [known[i % len(known)] for i in range(num)]
        found = self.player.retrace(self.net, *_stacked(rows), self._steps())
        self.episode += num
        self.remember_all(found)
        self._learn(found, np.zeros(num), np.ones(num))
        return found

    def reinforce(self, judge: Judge | None = None) -> PlayedEpisodes:
        """Stages II and III: play a batch and learn from how long its plans take, simulated or measured."""
        how = self.learning
        steps = self._steps()
        # Always as many elites, so that one compiled program serves all updates.
        known = self.elites if how.elites else []
        rows = [known[i % len(known)] for i in range(how.elites)] if known else []
        found = self.sample(how.batch, steps=steps, elites=rows, judge=judge)
        advantage = self._advantage(found, how.batch)
        weight = np.zeros(len(found.makespan_s))
        weight[how.batch :] = how.elite_weight if how.elites else 0.0
        worth = np.zeros((len(weight), *advantage.shape[1:]))
        worth[: how.batch] = advantage
        self._learn(found, worth, weight)
        return found

    def _advantage(self, found: PlayedEpisodes, num: int) -> Floats:
        """Return what the first ``num`` episodes are worth."""
        how, cost_s = self.learning, found.makespan_s[:num]
        self.num_judged += len(cost_s)
        self.mean_s += float((cost_s - self.mean_s).sum()) / self.num_judged
        if how.baseline == "running":
            gain = self.mean_s - cost_s
        elif how.baseline == "greedy":
            gain = self.greedy().makespan_s - cost_s
        else:
            gain = cost_s.mean() - cost_s
        if not how.normalise:
            return gain / max(self.mean_s, 1e-30)
        return gain / max(float(cost_s.std()), 1e-9 * float(cost_s.mean()), 1e-30)

    def _steps(self) -> Ints:
        n = self.problem.num_tasks
        if n <= self.learning.max_steps:
            return np.arange(n, dtype=np.int32)
        rng = np.random.default_rng([self.seed, _STEP_STREAM, self.num_updates])
        return np.sort(rng.choice(n, self.learning.max_steps, replace=False)).astype(np.int32)

    def _learn(self, found: PlayedEpisodes, advantage: Floats, imitate: Floats) -> None:
        how = self.learning
        batch = self._batch(found, advantage, imitate)
        weights = LossWeights(1.0 / self.sampling().temperature, how.entropy, how.clip)
        rate = how.learning_rate + (how.last_learning_rate - how.learning_rate) * self.progress
        for _ in range(how.epochs):
            self.params, self.optimiser_state, figures = self._update(
                self.params, self.optimiser_state, self.player.tensors, batch, weights, rate
            )
        self.num_updates += 1
        self._net = None
        self.figures = {name: float(value) for name, value in figures.items()}

    # -- saving -----------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return everything that the next episode depends on, as arrays and as JSON values."""
        arrays: dict[str, Any] = {f"params/{name}": np.asarray(value) for name, value in self.params.items()}
        leaves = jax.tree.leaves(self.optimiser_state)
        arrays |= {f"optimiser/{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        if self.elites:
            order, assignment = _stacked(self.elites)
            arrays |= {"elites/order": order, "elites/assignment": assignment}
            arrays["elites/makespan_s"] = np.array([elite.makespan_s for elite in self.elites])
        counters = {name: getattr(self, name) for name in _COUNTERS}
        meta = {"settings": asdict(self.settings), "learning": asdict(self.learning), "counters": counters}
        return arrays, meta | {"num_tasks": self.problem.num_tasks, "num_devices": self.problem.num_devices}

    def restore(self, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Take over a saved state; the rest of the training is then the same to the last bit."""
        meta = {**meta, "settings": saved_settings(meta.get("settings", {}), type(self.settings))}
        for what, here in (
            ("settings", asdict(self.settings)),
            ("learning", asdict(self.learning)),
            ("num_tasks", self.problem.num_tasks),
            ("num_devices", self.problem.num_devices),
        ):
            if meta.get(what) != here:
                raise InvalidInput(f"the checkpoint has {meta.get(what)}, this training {here}", field=what)
        params = {name: take(arrays, f"params/{name}", old.shape) for name, old in self.params.items()}
        leaves, tree = jax.tree.flatten(self.optimiser_state)
        saved = [take_like(arrays, f"optimiser/{i}", np.asarray(leaf)) for i, leaf in enumerate(leaves)]
        elites = self._elites(arrays)
        counters = {name: meta["counters"][name] for name in _COUNTERS}
        for name, value in counters.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InvalidInput(f"{str(value)[:40]!r} is not a number", field=name)
        # All of it is right: only now does anything change.
        self.params = {name: jnp.asarray(value) for name, value in params.items()}
        self.optimiser_state = jax.tree.unflatten(tree, [jnp.asarray(value) for value in saved])
        self.elites = elites
        for name, value in counters.items():
            setattr(self, name, value)
        self._net = None

    def _elites(self, arrays: Mapping[str, Any]) -> list[Elite]:
        """Return the best plans of a checkpoint; kernels index by them, so they must be plans of this problem."""
        if "elites/order" not in arrays:
            return []
        n, m, num = self.problem.num_tasks, self.problem.num_devices, len(np.atleast_1d(arrays["elites/order"]))
        order = take_indices(arrays, "elites/order", (num, n), n)
        assignment = take_indices(arrays, "elites/assignment", (num, n), m)
        makespan = take(arrays, "elites/makespan_s", (num,))
        if np.any(np.sort(order, axis=1) != np.arange(n)):
            raise InvalidInput("a plan does not hold every task once", field="elites/order")
        return [
            Elite(float(value), one.copy(), where.copy())
            for value, one, where in zip(makespan, order, assignment, strict=True)
        ]

    def _batch(self, found: PlayedEpisodes, advantage: Floats, imitate: Floats) -> Any:
        record = found.record
        selections = flatten(record, self.num_rows)
        if isinstance(selections, int):
            # Some room to spare: each new size is compiled anew.
            self.num_rows = bucket(selections * 3 // 2)
            selections = flatten(record, self.num_rows)
        assert isinstance(selections, Selections)
        return UpdateBatch(
            selections=selections,
            task=record.task,
            y=record.y,
            allowed=record.allowed,
            plc_target=record.plc_target,
            **self._common(found, advantage, imitate),
        )

    def _common(self, found: PlayedEpisodes, advantage: Floats, imitate: Floats) -> dict[str, Any]:
        """Return what is in the batch of any policy."""
        n, steps = self.problem.num_tasks, found.steps
        discount = self.learning.gamma ** (n - 1 - steps.astype(np.float64))
        return {
            "log_prob": found.record.log_prob,
            "order": found.order,
            "device": np.take_along_axis(found.assignment, found.order, axis=1),
            "slot_of_step": np.searchsorted(steps, np.arange(n), side="right").astype(np.int32),
            "step": steps,
            "step_weight": discount.astype(np.float32),
            "advantage": advantage.astype(np.float32),
            "imitate": imitate.astype(np.float32),
        }


def _stacked(plans: Sequence[Elite]) -> tuple[Ints, Ints]:
    return np.stack([plan.order for plan in plans]), np.stack([plan.assignment for plan in plans])
