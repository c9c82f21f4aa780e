"""Paired differences with bootstrap intervals: is one method really better than another on the same cases?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput

#: Values of one method: by case (a graph, a window of a trace), then by repeat (a seed).
Values = Mapping[object, Mapping[object, float]]


@dataclass(frozen=True)
class PairedDifference:
    """How one method compares with a baseline on the cases that both have.

    Attributes
    ----------
    effect
        The geometric mean of the ratios to the baseline, or the mean difference where ratios were not asked for.
    low, high
        The interval of the effect; NaN where a single value leaves nothing to resample.
    num_better, num_equal, num_worse
        Cases in which the method is below, at, or above the baseline.
    """

    method: str
    baseline: str
    figure: str
    is_ratio: bool
    effect: float
    low: float
    high: float
    confidence: float
    num_cases: int
    num_better: int
    num_equal: int
    num_worse: int

    @property
    def is_clear(self) -> bool:
        """True when the interval leaves out "no difference"."""
        neutral = 1.0 if self.is_ratio else 0.0
        return self.low > neutral or self.high < neutral

    def to_json(self) -> dict[str, object]:
        """Return the difference with plain values; what is not a number is None."""
        values = asdict(self) | {"is_clear": self.is_clear}
        return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in values.items()}


@dataclass(frozen=True)
class Bootstrap:
    """How an interval is found: cases are drawn with replacement, then repeats within each drawn case."""

    confidence: float = 0.95
    num_resamples: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise InvalidInput(f"{self.confidence} must lie between 0 and 1", field="confidence")
        if self.num_resamples < 1:
            raise InvalidInput(f"{self.num_resamples} must be at least 1", field="num_resamples")

    def interval(self, cases: Sequence[Floats]) -> tuple[float, float]:
        """Return the interval of the mean over cases of each case's mean."""
        if len(cases) == 1 and len(cases[0]) == 1:
            return math.nan, math.nan
        rng = np.random.default_rng(self.seed)
        drawn = rng.integers(0, len(cases), size=(self.num_resamples, len(cases)))
        means = np.empty(drawn.shape)
        for number, values in enumerate(cases):
            places = drawn == number
            repeats = rng.integers(0, len(values), size=(int(places.sum()), len(values)))
            means[places] = values[repeats].mean(axis=1)
        tail = 100.0 * (1.0 - self.confidence) / 2.0
        low, high = np.percentile(means.mean(axis=1), (tail, 100.0 - tail))
        return float(low), float(high)


def paired_difference(
    method: tuple[str, Values],
    baseline: tuple[str, Values],
    figure: str,
    *,
    ratio: bool = True,
    bootstrap: Bootstrap | None = None,
) -> PairedDifference:
    """Compare two methods on the cases and repeats that both have; what only one of them has is left out."""
    way = bootstrap or Bootstrap()
    name, values = method
    reference_name, reference = baseline
    difference = _log_ratio if ratio else _minus
    cases = []
    for case, repeats in values.items():
        both = [repeat for repeat in repeats if repeat in reference.get(case, {})]
        if both:
            cases.append(np.array([difference(repeats[repeat], reference[case][repeat]) for repeat in both]))
    if not cases:
        raise InvalidInput(f"{name} and {reference_name} have no case in common", field="baseline")
    means = np.array([case.mean() for case in cases])
    low, high = way.interval(cases)
    back: Callable[[float], float] = math.exp if ratio else float
    return PairedDifference(
        name,
        reference_name,
        figure,
        ratio,
        back(float(means.mean())),
        back(low),
        back(high),
        way.confidence,
        len(cases),
        int((means < -1e-12).sum()),
        int((np.abs(means) <= 1e-12).sum()),
        int((means > 1e-12).sum()),
    )


def _log_ratio(value: float, reference: float) -> float:
    if value == reference:
        return 0.0
    if not (value > 0 and reference > 0):
        raise InvalidInput(f"{value} against {reference} has no ratio: ask for ratio=False", field="ratio")
    return math.log(value / reference)


def _minus(value: float, reference: float) -> float:
    return value - reference
