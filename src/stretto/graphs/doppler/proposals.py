"""Plans that the policies propose without training on the problem."""

from __future__ import annotations

from stretto.core.problem import Problem
from stretto.graphs.doppler.generalist import ShippedWeights
from stretto.graphs.doppler.inference import heads_without_jax
from stretto.graphs.doppler.rollout import Player, Sampling
from stretto.graphs.doppler.tuning import TUNED
from stretto.graphs.search.anytime import Solution


def played(problem: Problem, weights: ShippedWeights, episodes: int, seed: int) -> Solution:
    """Play the greedy episode and sampled ones; return the best."""
    player = Player(problem, weights.settings, num_threads=1)
    net = heads_without_jax(weights.params, player.tensors, weights.settings, problem.num_devices)
    rounds = [player.play(net, [(seed, 0)], Sampling("greedy"))]
    if episodes > 1:
        rounds.append(
            player.play(
                net, [(seed, stream) for stream in range(1, episodes)], Sampling(temperature=TUNED.episode_temperature)
            )
        )
    tried = [
        Solution(float(found.makespan_s[b]), found.assignment[b].copy(), found.order[b].copy())
        for found in rounds
        for b in range(len(found.makespan_s))
    ]
    return min(tried, key=lambda solution: solution.makespan_s)
