"""How policies are compared on a trace for a page; light to import."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.api.options.energy import EnergyOptions


@dataclass(frozen=True)
class PolicyReportOptions(EnergyOptions):
    """How policies are compared on a trace for a page.

    Attributes
    ----------
    backfill
        A name of ``stretto list backfills``, for all policies.
    rank_by
        The figure that decides which candidate is best: ``mean_wait_s``, ``p95_wait_s``, ``p99_wait_s``,
        ``max_wait_s``, ``mean_bounded_slowdown``, ``energy_kwh`` or ``carbon_kg``.
    command
        What to type to make the page again, for the page.
    """

    backfill: str = "easy"
    rank_by: str = "mean_wait_s"
    seed: int = 0
    command: str | None = None
