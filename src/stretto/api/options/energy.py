"""What nodes draw and what electricity emits, where a replay counts it; light to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.queues.energy import EnergyMeter


@dataclass(frozen=True)
class EnergyOptions:
    """The power of nodes that do not state it, and the carbon intensity of electricity.

    Attributes
    ----------
    power, idle_power
        Watts of a busy and of an idle node (on a plain machine: of a processor), where the machine does not say.
    carbon
        A CSV file of grams of CO2 per kWh by the hour.
    carbon_start
        The time in that file at which the trace begins, by default the trace's own.
    """

    power: float | None = None
    idle_power: float | None = None
    carbon: str | None = None
    carbon_start: str | None = None

    def __post_init__(self) -> None:
        if self.idle_power is not None and self.power is None:
            raise InvalidInput("needs --power, the power of a busy node in watts", field="--idle-power")
        if self.carbon_start is not None and self.carbon is None:
            raise InvalidInput("needs --carbon FILE.csv", field="--carbon-start")

    def given(self) -> dict[str, object]:
        """Return what was given, by name."""
        named = {name: getattr(self, name) for name in ("power", "idle_power", "carbon", "carbon_start")}
        return {name: value for name, value in named.items() if value is not None}

    def meter(self) -> EnergyMeter:
        """Return what counts the energy of replays; the file is read here."""
        from stretto.files.prices.carbon import parse_moment, read_carbon
        from stretto.queues.energy import EnergyMeter, NodePower

        power = None if self.power is None else NodePower(self.power, self.idle_power or 0.0)
        series = None if self.carbon is None else read_carbon(self.carbon)
        start = None if self.carbon_start is None else parse_moment(self.carbon_start, field="--carbon-start")
        return EnergyMeter(power, series, start)
