"""How policies are compared on a trace for a page; light to import, as ``options.py`` is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.files.prices.carbon import CarbonSeries
    from stretto.queues.energy import NodePower


@dataclass(frozen=True)
class PolicyReportOptions:
    """How policies are compared on a trace for a page.

    Attributes
    ----------
    backfill
        A name of ``stretto list backfills``, for all policies.
    rank_by
        The figure that decides which candidate is best: ``mean_wait_s``, ``p95_wait_s``, ``p99_wait_s``,
        ``max_wait_s``, ``mean_bounded_slowdown``, ``energy_kwh`` or ``carbon_kg``.
    power, idle_power
        Watts of a busy and of an idle node (on a plain machine: of a processor), where the machine does not say.
    carbon
        A CSV file of grams of CO2 per kWh by the hour.
    carbon_start
        The time in that file at which the trace begins, by default the trace's own.
    command
        What to type to make the page again, for the page.
    """

    backfill: str = "easy"
    rank_by: str = "mean_wait_s"
    power: float | None = None
    idle_power: float | None = None
    carbon: str | None = None
    carbon_start: str | None = None
    seed: int = 0
    command: str | None = None

    def __post_init__(self) -> None:
        if self.idle_power is not None and self.power is None:
            raise InvalidInput("needs --power, the watts of a busy node", field="--idle-power")
        if self.carbon_start is not None and self.carbon is None:
            raise InvalidInput("needs --carbon FILE.csv", field="--carbon-start")

    def meters(self) -> tuple[NodePower | None, CarbonSeries | None, float | None]:
        """Return the power of a node, the series of intensities, and the Unix time at which the trace begins in it."""
        from stretto.files.prices.carbon import parse_moment, read_carbon
        from stretto.queues.energy import NodePower

        power = None if self.power is None else NodePower(self.power, self.idle_power or 0.0)
        series = None if self.carbon is None else read_carbon(self.carbon)
        start = None if self.carbon_start is None else parse_moment(self.carbon_start, field="--carbon-start")
        return power, series, start
