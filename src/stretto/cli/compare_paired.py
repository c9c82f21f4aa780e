"""``stretto compare --baseline``: differences case by case, with intervals; and the file of ``--save``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.cli.console import new_table
from stretto.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.table import Table

    from stretto.core.results.paired import PairedDifference

#: Endings that tables of results can be saved with.
TABLE_FILES = (".csv", ".parquet", ".tex")


def check_before(baseline: str | None, methods: Sequence[str], save: Path | None) -> None:
    """Raise before the work where its result could not be compared or saved."""
    if baseline is not None and baseline.split(" + ")[0] not in methods:
        raise UnknownName("baseline", baseline, methods)
    if save is not None and save.suffix not in TABLE_FILES:
        raise InvalidInput(f"{save.name!r} must end in .csv, .parquet or .tex", field="--save")
    if save is not None and not save.absolute().parent.is_dir():
        raise InvalidInput(f"{str(save.parent)!r} is not a folder", field="--save")


def paired_table(found: Sequence[PairedDifference]) -> Table:
    """Return a line per method: its ratio to the baseline, the interval, and in how many cases it was better."""
    first = found[0]
    figure = first.figure.removesuffix("_s").replace("_", " ")
    table = new_table(f"{figure.capitalize()} against {first.baseline}, case by case")
    table.add_column("method", overflow="fold")
    for name in ("ratio", f"{100 * first.confidence:g} % interval", "better", "equal", "worse"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in sorted(found, key=lambda line: line.effect):
        interval = f"{line.low:.3f}..{line.high:.3f}" if line.low == line.low else "one case only"
        counts = (str(line.num_better), str(line.num_equal), str(line.num_worse))
        table.add_row(line.method, f"{line.effect:.3f}", interval, *counts, style="bold" if line.is_clear else None)
    cases = "case" if first.num_cases == 1 else "cases"
    table.caption = f"geometric means over {first.num_cases} {cases}; in bold where the interval excludes 1"
    return table
