"""A picture of a calibration: predicted against measured makespans."""

from __future__ import annotations

from pathlib import Path

from stretto.core.units import format_percent
from stretto.engines.calibrate import Judgement


def draw_calibration(judgement: Judgement, path: str | Path, *, title: str) -> None:
    """Draw each plan as a point; on the diagonal the simulator was right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0, 5.0), layout="constrained")
    axes = figure.subplots()
    measured_ms, predicted_ms = 1e3 * judgement.measured_s, 1e3 * judgement.predicted_s
    low = 0.95 * min(measured_ms.min(), predicted_ms.min())
    high = 1.05 * max(measured_ms.max(), predicted_ms.max())
    axes.plot([low, high], [low, high], color="0.6", linewidth=1, zorder=1)
    axes.scatter(measured_ms, predicted_ms, s=24, color="#1f6f8b", zorder=2)
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    axes.set_xlabel("measured makespan [ms]")
    axes.set_ylabel("simulated makespan [ms]")
    correlation, error = judgement.rank_correlation, judgement.median_error
    axes.set_title(f"{title}\nrank correlation {correlation:.3f}, median error {format_percent(error)}", fontsize=10)
    figure.savefig(path, dpi=150)
