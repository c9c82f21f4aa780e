"""How the pictures of the documents look: as wide as GitHub shows them, with letters that can be read at that width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.figure import Figure

from stretto.reports.plots.canvas import saved

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

#: 828 px, at 72 points and 96 px to the inch.
WIDTH_IN = 8.625
TITLE, TEXT, SMALL = 11.5, 9.5, 8.5


@dataclass(frozen=True)
class Theme:
    """Colors on a light or a dark ground; the ground itself is transparent."""

    name: str
    ink: str
    faint: str
    grid: str
    bound: str
    ground: str

    def figure(self, height_in: float) -> Figure:
        """Return an empty sheet."""
        figure = Figure(figsize=(WIDTH_IN, height_in), dpi=96)
        figure.patch.set_alpha(0.0)
        return figure

    def style(self, axes: Axes, *, grid: str = "x") -> None:
        """Give axes a faint grid along one direction, and no frame but the line below."""
        axes.patch.set_alpha(0.0)
        axes.grid(axis=grid, color=self.grid, linewidth=0.8)  # type: ignore[arg-type]
        axes.set_axisbelow(True)
        axes.tick_params(length=0, labelsize=SMALL, labelcolor=self.faint)
        for place in ("top", "right", "left"):
            axes.spines[place].set_visible(False)
        axes.spines["bottom"].set_color(self.faint)

    def title(self, axes: Axes, text: str) -> None:
        """Write what a chart shows above it, at its left."""
        axes.set_title(text, loc="left", fontsize=TITLE, color=self.ink, weight="bold", pad=8)

    def save(self, figure: Figure, folder: Path, name: str) -> None:
        """Write the picture of this theme."""
        with matplotlib.rc_context({"text.parse_math": False}):
            (folder / f"{name}-{self.name}.svg").write_bytes(saved(figure, "svg"))


THEMES = (
    Theme("light", ink="#1f2328", faint="#59636e", grid="#d8dee4", bound="#b00020", ground="#ffffff"),
    Theme("dark", ink="#e6edf3", faint="#9da7b3", grid="#363d47", bound="#ff7b72", ground="#0d1117"),
)
