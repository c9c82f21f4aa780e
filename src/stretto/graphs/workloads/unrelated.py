"""Unrelated device kinds: durations that follow no common speed, by two published methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stretto.core import argument_checks as checks
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput

Method = Literal["range", "cvb"]


def unrelated(
    graph: TaskGraph,
    kinds: Sequence[str],
    *,
    seed: int = 0,
    heterogeneity: float = 0.5,
    forbid: float = 0.0,
    method: Method = "range",
) -> TaskGraph:
    """Give a graph a duration of its own for each device kind.

    Both methods are those of Ali et al. (2000), applied to the tasks' present ``work_s``,
    which stays their mean: *range* draws a uniform factor from [1 - h, 1 + h], *cvb* a gamma factor whose
    coefficient of variation is h.

    Parameters
    ----------
    heterogeneity
        h above; at most 1 for the range method.
    forbid
        The share of (task, kind) pairs that cannot run; each task keeps at least one kind.
    """
    _check(kinds, heterogeneity, forbid, method)
    random = np.random.default_rng(seed)
    shape = (graph.num_tasks, len(kinds))
    table = graph.work_s[:, None] * _factors(shape, heterogeneity, method, random)
    if forbid > 0:
        table = np.where(_forbidden(shape, forbid, random), np.inf, table)
    return dataclasses.replace(graph, kinds=tuple(kinds), kind_duration_s=np.ascontiguousarray(table))


def _check(kinds: Sequence[str], heterogeneity: float, forbid: float, method: str) -> None:
    if not kinds or len(set(kinds)) != len(kinds):
        raise InvalidInput(f"{list(kinds)!r} must be one or more distinct names", field="kinds")
    if method not in ("range", "cvb"):
        raise InvalidInput(f"{method!r} is neither 'range' nor 'cvb'", field="method")
    checks.not_negative(heterogeneity=heterogeneity)
    checks.share(forbid=forbid)
    if method == "range" and heterogeneity > 1:
        raise InvalidInput(f"{heterogeneity} must be at most 1 for the range method", field="heterogeneity")


def _factors(shape: tuple[int, int], heterogeneity: float, method: Method, random: np.random.Generator) -> Floats:
    if heterogeneity < 1e-9:  # also keeps the gamma's shape parameter finite
        return np.ones(shape)
    if method == "range":
        return random.uniform(1 - heterogeneity, 1 + heterogeneity, shape)
    alpha = 1 / heterogeneity**2
    return random.gamma(alpha, 1 / alpha, shape)


def _forbidden(shape: tuple[int, int], forbid: float, random: np.random.Generator) -> NDArray[np.bool_]:
    """Choose the pairs that cannot run; a task that would be left without any kind gets one back."""
    num_tasks, num_kinds = shape
    forbidden = random.random(shape) < forbid
    spared = random.integers(0, num_kinds, num_tasks)
    lost = np.flatnonzero(forbidden.all(axis=1))
    forbidden[lost, spared[lost]] = False
    return forbidden
