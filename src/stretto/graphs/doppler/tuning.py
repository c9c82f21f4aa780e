"""Doppler's tuned constants in one place, each with where it came from.

"Measured" means runs of ``benchmarks/doppler.py`` on the paper's graphs, of which the card has the tables;
"by judgement" means that no comparison was kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stretto.graphs.search.annealing import Annealing


class SearchPhase(NamedTuple):
    """How to search: the first temperature, the kinds of chains that the cores take, and the last temperature."""

    hot: float
    kinds: tuple[str, ...]
    cold: float = Annealing.cold


_SEEK, _WANDER = SearchPhase(0.25, ("ruin",)), SearchPhase(0.5, ("anneal",))
_REFINE = SearchPhase(0.05, ("ruin", "tabu"), 5e-6)
_SETTLE = SearchPhase(0.005, ("ruin", "anneal"), 5e-7)


@dataclass(frozen=True)
class DopplerTuning:
    """Constants of the planners ``doppler`` and ``doppler-zero`` and of the usual training.

    Attributes
    ----------
    seek, wander
        Search for a good region: on some graphs windows find the best one, on others single steps do (measured), so
        both are tried and the better one is repeated.
    refine, settle
        Improve one plan: little heat, as much heat leads back to where the plan came from, and exact moves. Where tasks
        differ by orders of magnitude, cooling to the scale of the small ones brought 165.865 in place of 165.875 on
        LLAMA-BLOCK-8 (three seeds, 3 million evaluations).
    """

    #: With less time only search runs: compiling the update takes some five seconds (measured on two cores).
    least_training_s: float = 20.0
    #: Beyond this an episode takes so long that search uses the time better; by judgement.
    most_tasks: int = 20_000
    #: Episodes in which fresh weights imitate the look-ahead rule; ten batches, by judgement.
    imitated: int = 320
    #: Share of the limit that a turn of the last round takes: many coolings beat fewer, longer ones (measured).
    turn: float = 0.05
    #: Turns without an improvement, after which the search starts from other plans; by judgement.
    patience: int = 4
    #: By how much less is trained in later rounds: by then search has the better plans; by judgement.
    later_training: int = 3
    #: Exact evaluation of all places pays up to here; by judgement.
    most_tabu_tasks: int = 3_000
    seek: SearchPhase = _SEEK
    wander: SearchPhase = _WANDER
    refine: SearchPhase = _REFINE
    settle: SearchPhase = _SETTLE

    #: ``doppler-zero``: tasks and reads times episodes, from its limit of 100 ms for 500 tasks.
    episode_work: int = 8_000
    #: The same for tasks and reads times moves of each half of the polish, and so many moves at most.
    polish_work: int = 3_500_000
    most_moves: int = 10_000
    #: Last temperatures of single steps and of windows, by judgement: they pass small rises and keep a good plan.
    cold_steps: float = 7e-4
    cold_windows: float = 2e-4
    #: Temperature of the sampled episodes; by judgement.
    episode_temperature: float = 0.5

    #: Training: updates between greedy episodes; by judgement.
    greedy_every: int = 10
    #: Weights trained elsewhere need less exploration: 0.3 in place of 1 brought 115.78 for 115.85 on LLAMA-LAYER.
    last_temperature: float = 0.3


TUNED = DopplerTuning()
