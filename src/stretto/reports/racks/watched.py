"""Results of an episode on a rack, and the error of the estimated load."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stretto.reports.racks.belief import WIDTH_95, BeliefSample


@dataclass(frozen=True, eq=False)
class TaskBar:
    """A task that has ended, in simulated seconds."""

    name: str
    processor: str
    start_s: float
    end_s: float


@dataclass
class Watched:
    """Results of an episode; errors are over all samples and all resources whose load was uncertain."""

    flow_s: list[float] = field(default_factory=list)
    num_decisions: int = 0
    num_blind: int = 0
    errors: list[float] = field(default_factory=list)
    raw_errors: list[float] = field(default_factory=list)
    num_inside: int = 0

    def see(self, sample: BeliefSample) -> None:
        """Add the error of a sample."""
        assert sample.truth is not None
        assert sample.raw is not None
        counts = sample.sd > 1e-6
        error = np.abs(sample.mean - sample.truth)[counts]
        self.errors += error.tolist()
        self.num_inside += int(np.sum(error <= WIDTH_95 * sample.sd[counts] + 1e-9))
        raw = np.abs(sample.raw - sample.truth)[counts]
        self.raw_errors += raw[np.isfinite(raw)].tolist()

    def summary(self) -> dict[str, float | int | None]:
        """Return the figures of the episode."""
        flow = np.array(self.flow_s)
        return {
            "mean_completion_s": float(flow.mean()) if len(flow) else None,
            "p99_completion_s": float(np.quantile(flow, 0.99)) if len(flow) else None,
            "num_jobs": len(flow),
            "num_decisions": self.num_decisions,
            "num_blind_decisions": self.num_blind,
            "coverage_95": self.num_inside / len(self.errors) if self.errors else None,
            "belief_error": float(np.mean(self.errors)) if self.errors else None,
            "counter_error": float(np.mean(self.raw_errors)) if self.raw_errors else None,
        }
