"""What the environments of a queue share: observations, seeds, and the forms that Gymnasium asks for."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from stretto.errors import InvalidInput
from stretto.queues.env.batch import EpisodeBatch
from stretto.queues.env.led_batch import LedBatch

Array = NDArray[np.generic]
Observation = dict[str, Any]
Options = dict[str, Any]
Info = dict[str, Any]


def observation_space(batch: EpisodeBatch | LedBatch) -> spaces.Dict:
    """Return what an observation looks like; every number lies between zero and one."""
    parts: dict[str, spaces.Space[Any]] = {
        "jobs": spaces.Box(0.0, 1.0, batch.jobs.shape[1:], np.float32),
        "machine": spaces.Box(0.0, 1.0, batch.machine.shape[1:], np.float32),
        "mask": spaces.MultiBinary(batch.mask.shape[1]),
    }
    return spaces.Dict(parts)


def first_of(options: Options | None, batch: EpisodeBatch | LedBatch) -> int | None:
    """Return the first job that the options of a reset ask for."""
    unknown = set(options or {}) - {"first"}
    if unknown:
        raise InvalidInput(f"{sorted(unknown)[0]!r} is unknown; known: first", field="options")
    first = (options or {}).get("first")
    if first is not None and not 0 <= int(first) < batch.num_firsts:
        raise InvalidInput(f"{first} is not in 0..{batch.num_firsts - 1}", field="options.first")
    return None if first is None else int(first)


class EpisodeEnv(gymnasium.Env[Observation, np.int64]):
    """One episode after the other; ``reset(options={"first": k})`` begins at job k of the trace."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(self, batch: EpisodeBatch | LedBatch) -> None:
        self.batch = batch
        self.render_mode = None
        self.action_space = spaces.Discrete(batch.num_actions)
        self.observation_space = observation_space(batch)

    def reset(self, *, seed: int | None = None, options: Options | None = None) -> tuple[Observation, Info]:
        """Begin an episode at a random job."""
        super().reset(seed=seed)
        first = first_of(options, self.batch)
        if first is None:
            first = int(self.np_random.integers(self.batch.num_firsts))
        self.batch.restart(np.ones(1, dtype=bool))
        self.batch.step([0], [first])
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Decide, and go on to the next decision."""
        if self.batch.is_over[0]:
            raise InvalidInput("the episode is over; call reset", field="step")
        if not self.action_space.contains(action):
            raise InvalidInput(f"{action!r} is not in {self.action_space}", field="action")
        self.batch.step([action], [0])
        return self._observation(), float(self.batch.reward[0]), bool(self.batch.is_over[0]), False, self._info()

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions mean something, in the form that sb3-contrib asks for."""
        return np.array(self.batch.action_masks()[0], np.bool_)

    def _observation(self) -> Observation:
        batch = self.batch
        return {"jobs": batch.jobs[0].copy(), "machine": batch.machine[0].copy(), "mask": batch.mask[0].copy()}

    def _info(self) -> Info:
        info: Info = {"action_mask": self.batch.action_masks()[0], "time_s": float(self.batch.time_s[0])}
        return info | self.batch.figures(0) if self.batch.is_over[0] else info


class EpisodeVectorEnv(VectorEnv[Observation, Array, Array]):
    """Many environments, stepped by one call of compiled code; one that is over begins anew at the next step."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, batch: EpisodeBatch | LedBatch, num_envs: int) -> None:
        self.batch = batch
        self.num_envs = num_envs
        self.render_mode = None
        self.single_action_space = spaces.Discrete(batch.num_actions)
        self.single_observation_space = observation_space(batch)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: Options | None = None
    ) -> tuple[Observation, Info]:
        """Begin all episodes, at random jobs; one seed is for all of them."""
        if isinstance(seed, list):
            raise InvalidInput("one seed is for all environments", field="seed")
        super().reset(seed=seed)
        first = first_of(options, self.batch)
        firsts = self._firsts() if first is None else np.full(self.num_envs, first)
        self.batch.restart(np.ones(self.num_envs, dtype=bool))
        self.batch.step(np.zeros(self.num_envs), firsts)
        return self._observation(), self._info(np.zeros(self.num_envs, dtype=bool))

    def step(self, actions: Array) -> tuple[Observation, Array, Array, Array, Info]:
        """Decide in every environment."""
        if not self.action_space.contains(actions):
            raise InvalidInput(f"{actions!r} is not in {self.action_space}", field="actions")
        # Drawn whether needed or not, so that what one environment does leaves the others alone.
        self.batch.step(actions, self._firsts())
        over = self.batch.is_over
        truncated = np.zeros(self.num_envs, dtype=bool)
        return self._observation(), self.batch.reward.copy(), over, truncated, self._info(over)

    def _firsts(self) -> NDArray[np.int64]:
        return self.np_random.integers(self.batch.num_firsts, size=self.num_envs)

    def _observation(self) -> Observation:
        return {"jobs": self.batch.jobs.copy(), "machine": self.batch.machine.copy(), "mask": self.batch.mask.copy()}

    def _info(self, over: NDArray[np.bool_]) -> Info:
        info: Info = {"action_mask": self.batch.action_masks(), "time_s": self.batch.time_s}
        for place in np.flatnonzero(over):
            for name, value in self.batch.figures(int(place)).items():
                info.setdefault(name, np.zeros(self.num_envs))[place] = value
                info.setdefault(f"_{name}", over.copy())
        return info
