"""CMA-ES (Hansen 2016, arXiv 1604.00772) with antithetic samples, whose state can be saved and restored.

The library ``cmaes`` has neither: its state can only be pickled, which checkpoints never are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.files.checked_arrays import take

#: Directions in which the search has become flatter than this are not followed further.
_LEAST_VARIANCE = 1e-14


class Cma:
    """Minimizes a noisy function of a few dozen numbers by sampling around a mean.

    Parameters
    ----------
    scale
        How far each number is varied at first, times ``sigma``.
    population
        Samples per generation; even, for they come in pairs.
    """

    def __init__(self, mean: Floats, sigma: float, scale: Floats, population: int) -> None:
        n = len(mean)
        parents = population // 2
        weights = math.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
        self._weights = weights / weights.sum()
        mass = 1.0 / float(np.sum(self._weights**2))
        self._mass = mass
        self._c_path = (4 + mass / n) / (n + 4 + 2 * mass / n)
        self._c_sigma = (mass + 2) / (n + mass + 5)
        self._c_one = 2 / ((n + 1.3) ** 2 + mass)
        self._c_mu = min(1 - self._c_one, 2 * (mass - 2 + 1 / mass) / ((n + 2) ** 2 + mass))
        self._damping = 1 + 2 * max(0.0, math.sqrt((mass - 1) / (n + 1)) - 1) + self._c_sigma
        self._norm = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
        self.population = population
        self.mean = mean.copy()
        self.sigma = sigma
        self.generation = 0
        self._covariance = np.diag(scale**2.0)
        self._path = np.zeros(n)
        self._path_sigma = np.zeros(n)
        self._steps: Floats = np.zeros((0, n))
        self._factor()

    def _factor(self) -> None:
        values, vectors = np.linalg.eigh((self._covariance + self._covariance.T) / 2)
        roots = np.sqrt(np.maximum(values, _LEAST_VARIANCE))
        self._root = vectors * roots
        self._inverse_root = (vectors / roots) @ vectors.T

    def ask(self, rng: np.random.Generator) -> Floats:
        """Return a population, one row each; its second half mirrors the first."""
        half = rng.normal(size=(self.population // 2, len(self.mean)))
        self._steps = np.concatenate([half, -half]) @ self._root.T
        samples: Floats = self.mean + self.sigma * self._steps
        return samples

    def tell(self, values: Floats) -> None:
        """Learn from what the population is worth, less being better."""
        n = len(self.mean)
        best = self._steps[np.argsort(values, kind="stable")[: self.population // 2]]
        step = self._weights @ best
        self.generation += 1
        self.mean = self.mean + self.sigma * step
        c = self._c_sigma
        self._path_sigma = (1 - c) * self._path_sigma + math.sqrt(c * (2 - c) * self._mass) * (
            self._inverse_root @ step
        )
        length = float(np.linalg.norm(self._path_sigma)) / self._norm
        is_calm = length / math.sqrt(1 - (1 - c) ** (2 * self.generation)) < 1.4 + 2 / (n + 1)
        grown = math.sqrt(self._c_path * (2 - self._c_path) * self._mass) if is_calm else 0.0
        self._path = (1 - self._c_path) * self._path + grown * step
        self._covariance = (
            (1 - self._c_one - self._c_mu) * self._covariance
            + self._c_one * np.outer(self._path, self._path)
            + self._c_mu * (best.T * self._weights) @ best
        )
        self.sigma *= math.exp((c / self._damping) * (length - 1))
        self._factor()

    def state(self) -> dict[str, Floats]:
        """Return all that the next generation depends on, besides chance."""
        return {
            "mean": self.mean,
            "covariance": self._covariance,
            "path": self._path,
            "path_sigma": self._path_sigma,
            "numbers": np.array([self.sigma, float(self.generation)]),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state` returned."""
        taken = {name: take(state, name, old.shape) for name, old in self.state().items()}
        self.mean = np.array(taken["mean"])
        self._covariance = np.array(taken["covariance"])
        self._path = np.array(taken["path"])
        self._path_sigma = np.array(taken["path_sigma"])
        self.sigma = float(taken["numbers"][0])
        self.generation = int(taken["numbers"][1])
        self._factor()
