"""``stretto/Rack-v1``: which kernel next, and where, on machines whose shared parts cannot be seen.

An observation is partial: what runs, what waits, and performance counters with noise and gaps; true utilization,
foreign load and the exact work of a task stay hidden. With ``belief=True`` the counters are replaced by what a belief
network makes of them. The reward is minus the job-seconds since the last decision, so a return is minus the sum of
completion times.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from stretto.errors import InvalidInput
from stretto.racks.kernels.features import NUM_KERNEL, NUM_PAIR, NUM_PROC, fill_rows
from stretto.racks.machine_work import RackModel
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.cases import case as case_named

Observation = dict[str, Any]


def row_length(model: RackModel, num_counters: int, *, belief: bool) -> int:
    """Return the numbers of an observation: pairs, processors, kernels, then beliefs about parts or raw counters."""
    num_kernels, num_procs = len(model.kernels), len(model.processors)
    hidden = 3 * len(model.resources) if belief else 2 * num_counters
    return num_kernels * num_procs * NUM_PAIR + num_procs * NUM_PROC + num_kernels * NUM_KERNEL + hidden


class _Racks:
    """What the single and the vector environment share."""

    def __init__(self, case: str, num_envs: int, num_streams: int, stream_seed: int, belief: bool) -> None:
        if num_streams < 1 or num_envs < 1:
            raise InvalidInput("num_streams and num_envs are at least 1", field="Rack-v1")
        self.world = case_named(case).world(seed=stream_seed, num_instances=num_streams)
        self.num_envs, self.belief = num_envs, belief
        self.num_numbers = row_length(self.world.model, len(self.world.counters.resource), belief=belief)
        self.num_actions = self.world.model.num_actions
        self.batch = self.make(0)

    def make(self, seed: int) -> RackBatch:
        world = self.world
        return RackBatch(
            world.model,
            world.streams,
            self.num_envs,
            seed=seed,
            counters=world.counters,
            params=world.belief,
            is_believing=self.belief,
        )

    def space(self) -> spaces.Dict:
        return spaces.Dict(
            {
                "numbers": spaces.Box(-np.inf, np.inf, (self.num_numbers,), np.float32),
                "mask": spaces.MultiBinary(self.num_actions),
            }
        )

    def observe(self) -> Observation:
        batch = self.batch
        rows = np.zeros((self.num_envs, self.num_numbers), np.float32)
        fill_rows(batch.model.arrays, batch.streams, batch.state, batch.belief, batch.readings, self.belief, rows)
        return {"numbers": rows, "mask": batch.mask.astype(np.int8)}


class RackEnv(gymnasium.Env[Observation, np.int64]):
    """One rack; an invalid action does nothing and time stands still, the mask says which are valid.

    Parameters
    ----------
    case
        A world of ``racks/symphony/cases.py``: ``two-nics``, ``small-rack`` or ``paper-rack``.
    num_streams, stream_seed
        Streams that episodes are drawn from.
    belief
        Whether observations hold beliefs in place of raw counters.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(
        self, case: str = "small-rack", *, num_streams: int = 64, stream_seed: int = 0, belief: bool = False
    ) -> None:
        self.render_mode = None
        self._racks = _Racks(case, 1, num_streams, stream_seed, belief)
        self.action_space = spaces.Discrete(self._racks.num_actions)
        self.observation_space = self._racks.space()
        self._is_over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; ``options={"stream": k}`` begins a given one."""
        super().reset(seed=seed)
        unknown = set(options or {}) - {"stream"}
        if unknown:
            raise InvalidInput(f"{sorted(unknown)[0]!r} is unknown; known: stream", field="options")
        num = len(self._racks.world.streams.kernel)
        stream = (options or {}).get("stream", int(self.np_random.integers(num)))
        if not 0 <= int(stream) < num:
            raise InvalidInput(f"{stream} is not in 0..{num - 1}", field="options.stream")
        self._racks.batch = self._racks.make(int(self.np_random.integers(2**31)))
        self._racks.batch.start(np.array([int(stream)]))
        self._is_over = False
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Decide, and go on to the next decision."""
        if self._is_over:
            raise InvalidInput("the episode is over; call reset", field="step")
        if not self.action_space.contains(action):
            raise InvalidInput(f"{action!r} is not in {self.action_space}", field="action")
        batch = self._racks.batch
        is_valid = bool(batch.mask[0, action])
        if is_valid:
            batch.step(np.array([action]))
        reward = -float(batch.cost[0, 1]) if is_valid else 0.0
        self._is_over = bool(batch.is_over[0]) and is_valid
        info = self._info() | {"is_valid": is_valid}
        if self._is_over:
            info["job_end_s"] = batch.ends_s[0].copy()
        return self._observation(), reward, self._is_over, False, info

    def action_masks(self) -> Any:
        """Return which actions are valid, in the form that sb3-contrib asks for."""
        return self._racks.batch.mask[0].copy()

    def _observation(self) -> Observation:
        return {name: value[0] for name, value in self._racks.observe().items()}

    def _info(self) -> dict[str, Any]:
        batch = self._racks.batch
        return {"action_mask": batch.mask[0].astype(np.int8), "time_s": float(batch.state.now_s[0])}


class RackVectorEnv(VectorEnv[Observation, Any, Any]):
    """Many racks, stepped by one call of compiled code; one that is over is at its next stream already."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        case: str = "small-rack",
        *,
        num_streams: int = 64,
        stream_seed: int = 0,
        belief: bool = False,
    ) -> None:
        self.num_envs = num_envs
        self.render_mode = None
        self._racks = _Racks(case, num_envs, num_streams, stream_seed, belief)
        self.single_action_space = spaces.Discrete(self._racks.num_actions)
        self.single_observation_space = self._racks.space()
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin all episodes; one seed is for all of them."""
        if isinstance(seed, list):
            raise InvalidInput("one seed is for all environments", field="seed")
        super().reset(seed=seed)
        self._racks.batch = self._racks.make(int(self.np_random.integers(2**31)))
        self._racks.batch.start()
        return self._racks.observe(), {"action_mask": self._racks.batch.mask.astype(np.int8)}

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, dict[str, Any]]:
        """Decide in every environment."""
        if not self.action_space.contains(actions):
            raise InvalidInput(f"{actions!r} is not in {self.action_space}", field="actions")
        batch = self._racks.batch
        batch.step(actions)
        info: dict[str, Any] = {"action_mask": batch.mask.astype(np.int8)}
        over = batch.is_over.copy()
        return self._racks.observe(), -batch.cost[:, 1], over, np.zeros(self.num_envs, np.bool_), info
