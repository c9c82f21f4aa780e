"""Gymnasium environments of the queue; importing this package makes their names known.

``stretto/Queue-v1`` picks the next job, ``stretto/Strategy-v1`` the order of the queue for a while. Both also
come as vector environments that step in compiled code: ``gymnasium.make_vec``.
"""

from __future__ import annotations

from stretto.errors import MissingExtra

try:
    import gymnasium
except ImportError:
    raise MissingExtra("gymnasium", "learn", "the package stretto.envs") from None

#: Names, and where the single and the vector environments are.
ENVIRONMENTS = {
    "stretto/Queue-v1": ("stretto.queues.env.queue_env:QueueEnv", "stretto.queues.env.queue_env:QueueVectorEnv"),
    "stretto/Strategy-v1": (
        "stretto.queues.env.strategy_env:StrategyEnv",
        "stretto.queues.env.strategy_env:StrategyVectorEnv",
    ),
}

#: The same for racks, which take other parameters.
RACK_ENVIRONMENTS = {
    "stretto/Rack-v1": ("stretto.racks.env:RackEnv", "stretto.racks.env:RackVectorEnv"),
}

for _name, (_single, _vector) in (ENVIRONMENTS | RACK_ENVIRONMENTS).items():
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point=_single, vector_entry_point=_vector)
