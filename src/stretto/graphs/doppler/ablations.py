"""Doppler's ablations by name: the paper's, and those that its reviewers asked for.

``stretto train joint-doppler GRAPH`` (``stepwise-doppler``, ``placeto-style``, ``gdp-style``),
and ``benchmarks/doppler.py ablations``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stretto.core.problem import Problem
from stretto.graphs.doppler.run import DopplerRun
from stretto.graphs.doppler.settings import NetSettings
from stretto.graphs.doppler.trainer import Learning
from stretto.learning.trainer import TrainingSpec

#: What each variant changes in the usual settings.
ABLATIONS: dict[str, dict[str, Any]] = {
    "both": {},
    "select": {"plc": "earliest"},
    "place": {"sel": "b-level"},
    "joint": {"policy": "joint", "window": 16},
    "per-step": {"encode_every": 4},
    "improver": {"policy": "improve", "encode_every": 4},
    "one-shot": {"sel": "b-level", "plc": "one-shot", "symmetric": False},
    "no-tables": {"tables": False},
    "paper-encoder": {"encoder": "paper", "hidden": 128, "rounds": 6, "head": 64},
    "paper-encoder-no-tables": {"encoder": "paper", "hidden": 128, "rounds": 6, "head": 64, "tables": False},
}


def settings_of(variant: str, **changes: Any) -> NetSettings:
    """Return the settings of a variant, with further changes."""
    return NetSettings(**{**ABLATIONS[variant], **changes})


def _run(variant: str, problem: Problem, spec: TrainingSpec) -> DopplerRun:
    # The generalist was trained as two policies that encode once: it would favour those.
    spec = replace(spec, start=spec.start or "scratch")
    learning = None if spec.episodes is None else Learning(episodes=spec.episodes)
    return DopplerRun(problem, spec, settings=settings_of(variant), learning=learning)


def joint(problem: Problem, spec: TrainingSpec) -> DopplerRun:
    """Train one policy over (ready task, device) pairs."""
    return _run("joint", problem, spec)


def per_step(problem: Problem, spec: TrainingSpec) -> DopplerRun:
    """Train both policies with message passing at every fourth step."""
    return _run("per-step", problem, spec)


def improver(problem: Problem, spec: TrainingSpec) -> DopplerRun:
    """Train a Placeto-style improver of random placements."""
    return _run("improver", problem, spec)


def one_shot(problem: Problem, spec: TrainingSpec) -> DopplerRun:
    """Train a GDP-style policy: all devices independently from one encoding."""
    return _run("one-shot", problem, spec)
