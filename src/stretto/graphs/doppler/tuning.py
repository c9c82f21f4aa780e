"""Doppler's tuned constants in one place, each with where it came from.

"Measured" means runs of ``benchmarks/doppler.py`` on the paper's graphs, of which the card has the tables;
"by judgement" means that no comparison was kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stretto.graphs.search.annealing import Annealing


class SearchPhase(NamedTuple):
    """How to search: the first temperature, the kind of chain, and the last temperature."""

    hot: float
    kind: str
    cold: float = Annealing.cold


#: The operator whose policies learn on the problem.
EPISODES = "episodes"
_SEEK, _WANDER, _LEAP = SearchPhase(0.25, "ruin"), SearchPhase(0.5, "anneal", 5e-5), SearchPhase(0.5, "paths")
_SETTLE = SearchPhase(0.005, "anneal", 5e-7)
_OPERATORS = {
    "paths": SearchPhase(0.05, "paths", 5e-5),
    "windows": SearchPhase(0.05, "ruin", 5e-6),
    "tabu": SearchPhase(0.05, "tabu"),
    "steps": _SETTLE,
    "fine-windows": SearchPhase(0.005, "ruin", 5e-7),
}


@dataclass(frozen=True)
class DopplerTuning:
    """Constants of the planners ``doppler`` and ``doppler-zero`` and of the usual training.

    Attributes
    ----------
    seek, wander, leap
        Search for a good region: on some graphs windows find the best one, on others single steps, on others moves of
        single tasks (measured), so all are tried for a while, and the best one then has the time.
    operators
        Improve one plan: little heat, as much heat leads back to where the plan came from, and exact moves. Where tasks
        differ by orders of magnitude, cooling to the scale of the small ones brought 165.865 in place of 165.875 on
        LLAMA-BLOCK-8 (three seeds, 3 million evaluations).
    """

    #: Plans tried, below which the policies propose none: an episode costs more than some hundred moves; by judgement.
    least_proposing: int = 1_000
    #: First step of a policy's weights, as a share of their size, and policies per generation.
    policy_step: float = 0.3
    population: int = 16
    #: Share of the limit in which policies alone learn, before any search.
    learn_first: float = 0.25
    #: Generations without a better plan, after which an evolution is over; by judgement.
    idle_generations: int = 12
    #: Share of the limit that a turn takes: many coolings beat fewer, longer ones (measured).
    turn: float = 0.05
    #: Turns without an improvement, after which the search starts from other plans; by judgement.
    patience: int = 4
    #: Chance that the operator with the fewest turns is taken, and weight of earlier turns in its rate; by judgement.
    explore: float = 0.15
    memory: float = 0.5
    #: Decodings per task from which the first part of the limit goes to warm searches; annealing's own bound is 1,000.
    roomy: float = 150.0
    #: That part, and the share of it in which each way is tried before the best one has the rest; by judgement.
    seek_share: float = 0.6
    probe: float = 0.08
    seek: SearchPhase = _SEEK
    wander: SearchPhase = _WANDER
    leap: SearchPhase = _LEAP
    operators: Mapping[str, SearchPhase] = field(default_factory=lambda: dict(_OPERATORS))

    #: Tasks times devices up to which all list planners are asked, from its limit of 3 s for 20,000 tasks.
    most_pairs: int = 200_000
    #: The same for tasks and reads times moves of each half of the polish, and so many moves at most.
    polish_work: int = 3_500_000
    most_moves: int = 10_000
    #: Last temperatures of single steps and of windows, by judgement: they pass small rises and keep a good plan.
    cold_steps: float = 7e-4
    cold_windows: float = 2e-4

    #: Training: updates between greedy episodes; by judgement.
    greedy_every: int = 10
    #: Weights trained elsewhere need less exploration: 0.3 in place of 1 brought 115.78 for 115.85 on LLAMA-LAYER.
    last_temperature: float = 0.3

    @property
    def regions(self) -> tuple[SearchPhase, ...]:
        """The ways to look for a region."""
        return self.seek, self.wander, self.leap


TUNED = DopplerTuning()
