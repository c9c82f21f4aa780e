"""Plans that policies propose without training on the problem."""

from __future__ import annotations

from stretto.core.csr import Floats
from stretto.core.plan import Discipline
from stretto.core.problem import Problem
from stretto.graphs.doppler.evolution import played_policy
from stretto.graphs.doppler.generalist import NetworkWeights
from stretto.graphs.doppler.inference import heads_without_jax
from stretto.graphs.doppler.linear import LINEAR
from stretto.graphs.doppler.rollout import Player, Sampling
from stretto.graphs.search.anytime import Solution


def played(problem: Problem, policies: Floats, discipline: Discipline = "sequence") -> Solution:
    """Play the greedy episode of each linear policy [K, weights]; return the best."""
    player = Player(problem, LINEAR, discipline=discipline, num_threads=1)
    return min((played_policy(problem, player, one) for one in policies), key=lambda solution: solution.makespan_s)


def played_by_network(problem: Problem, weights: NetworkWeights, discipline: Discipline = "sequence") -> Solution:
    """Play the greedy episode of networks."""
    player = Player(problem, weights.settings, discipline=discipline, num_threads=1)
    net = heads_without_jax(weights.params, player.tensors, weights.settings, problem.num_devices)
    found = player.play(net, [(0, 0)], Sampling("greedy"))
    return Solution(float(found.makespan_s[0]), found.assignment[0].copy(), found.order[0].copy())
