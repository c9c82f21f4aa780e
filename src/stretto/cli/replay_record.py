"""What ``stretto replay`` says of the recorded past: lines in its table, and reasons below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.cli.console import stdout
from stretto.core.host.safe_text import shown
from stretto.core.units import format_count, format_wait

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.queues.evaluate import Evaluation
    from stretto.queues.recorded.calibrate import LogCalibration
    from stretto.queues.recorded.departure import Departure


def record_lines(found: Evaluation) -> dict[str, str]:
    """Return the lines of the table that put the record beside the replay."""
    recorded = found.recorded
    if recorded is None:
        return {}
    lines = {}
    wait = recorded.metrics.wait_s
    parts = ", ".join(f"{part} {format_wait(getattr(wait, part))}" for part in ("mean", "p50", "p95", "p99", "max"))
    if found.departure is not None:
        lines["recorded wait"] = f"{parts} ({format_count(recorded.metrics.num_jobs, 'job')})"
        lines["departure"] = _difference(found.departure, recorded.metrics.num_jobs)
    if recorded.violation_sentence is not None:
        lines["record check"] = recorded.violation_sentence
    return lines


def _difference(departure: Departure, num_recorded: int) -> str:
    waits = departure.waits
    same = "" if waits.num_jobs == num_recorded else f" over the {format_count(waits.num_jobs, 'job')} of both"
    return (
        f"mean wait {_signed(waits.mean_difference_s)}, p95 {_signed(waits.p95_difference_s)}, "
        f"rank correlation of waits {waits.rank_correlation:.2f}{same}"
    )


def _signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{format_wait(abs(seconds))}"


def print_explanation(found: Evaluation) -> None:
    """Print why the replay may differ from the record, and what was fitted."""
    if found.calibration is not None:
        _print_calibration(found.calibration)
    if found.departure is not None and found.departure.reasons:
        still = "still " if found.calibration is not None else ""
        _print(f"Why the replay may {still}differ from the log:")
        _print_list(reason.sentence for reason in found.departure.reasons)


def _print_calibration(calibration: LogCalibration) -> None:
    if calibration.applied:
        _print("Fitted to the log and applied:")
        _print_list(calibration.applied)
    else:
        _print("No correction brings the replay nearer to the log: it is the plain one.")
    _print(
        f"Mean wait: recorded {format_wait(calibration.calibrated.recorded.mean)}, "
        f"plain {format_wait(calibration.plain.replayed.mean)}, "
        f"calibrated {format_wait(calibration.calibrated.replayed.mean)}."
    )
    held = calibration.held_out
    if held is not None:
        _print(
            f"Second half of the log, corrections chosen on the first: "
            f"recorded {format_wait(held.recorded_mean_wait_s)}, plain {format_wait(held.plain_mean_wait_s)}, "
            f"calibrated {format_wait(held.calibrated_mean_wait_s)}."
        )


def _print_list(sentences: Iterable[str]) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for sentence in sentences:
        table.add_row(Text("-"), Text(shown(sentence)))
    stdout().print(Padding(table, (0, 0, 0, 2)))


def _print(text: str) -> None:
    from rich.text import Text

    stdout().print(Text(shown(text)))
