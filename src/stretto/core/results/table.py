"""A table of results: rows for pandas, CSV, Parquet and LaTeX, and differences against a baseline."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from stretto.core.results.latex import latex_table
from stretto.core.results.paired import Bootstrap, PairedDifference, paired_difference
from stretto.errors import InvalidInput, MissingExtra, UnknownName

if TYPE_CHECKING:
    import pandas as pd

Record = dict[str, object]


class ResultTable(ABC):
    """What every comparison can do with its rows.

    A row belongs to a method (a policy, a strategy with its backfilling), a case (a graph, a window of a trace) and a
    repeat (a seed). Two methods are compared on the cases and repeats that both have.
    """

    #: Columns that name the method, the case and the repeat of a row.
    METHOD: ClassVar[tuple[str, ...]]
    CASE: ClassVar[tuple[str, ...]]
    REPEAT: ClassVar[tuple[str, ...]] = ()
    #: The figure that methods are compared by.
    FIGURE: ClassVar[str]

    @abstractmethod
    def records(self) -> list[Record]:
        """Return one mapping per row, all with the same keys."""

    @abstractmethod
    def summary_records(self) -> list[Record]:
        """Return one mapping per method, best first."""

    def to_pandas(self, *, summary: bool = False) -> pd.DataFrame:
        """Return the rows (or the summary) as a data frame."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise MissingExtra("pandas", "pandas", "a data frame") from None
        return pd.DataFrame(self._chosen(summary))

    def to_csv(self, path: str | Path | None = None, *, summary: bool = False) -> str:
        """Return the rows as CSV, and write them to a file where one is named."""
        rows = self._chosen(summary)
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return _written(text.getvalue(), path)

    def to_parquet(self, path: str | Path, *, summary: bool = False) -> None:
        """Write the rows to a Parquet file."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ModuleNotFoundError:
            raise MissingExtra("pyarrow", "parquet", "a Parquet file") from None
        pq.write_table(pa.Table.from_pylist(self._chosen(summary)), path)

    def to_latex(
        self,
        path: str | Path | None = None,
        *,
        columns: Sequence[str] | None = None,
        caption: str | None = None,
        label: str | None = None,
        digits: int = 4,
    ) -> str:
        """Return the summary as a LaTeX table (package ``booktabs``), the best of each column in bold."""
        rows = self.summary_records()
        known = list(rows[0]) if rows else []
        for name in columns or ():
            if name not in known:
                raise UnknownName("column", name, known)
        text = latex_table(rows, columns or known, caption=caption, label=label, digits=digits)
        return _written(text, path)

    def save(self, path: str | Path) -> Path:
        """Write the table in the format that the file's name says: .csv, .parquet or .tex."""
        file = Path(path)
        if file.suffix == ".csv":
            self.to_csv(file)
        elif file.suffix == ".parquet":
            self.to_parquet(file)
        elif file.suffix == ".tex":
            self.to_latex(file)
        else:
            raise InvalidInput(f"{file.name!r} must end in .csv, .parquet or .tex", field="save")
        return file

    def methods(self) -> list[str]:
        """Return the names of what was compared, in the order of the rows."""
        return list(dict.fromkeys(self._name(record, self.METHOD) for record in self.records()))

    def paired(
        self,
        baseline: str | None = None,
        *,
        figure: str | None = None,
        ratio: bool = True,
        bootstrap: Bootstrap | None = None,
    ) -> list[PairedDifference]:
        """Compare every other method with a baseline, case by case, with bootstrap intervals.

        Parameters
        ----------
        baseline
            A method's name; by default the first one of the rows. ``easy`` and the like may be left out where a
            strategy was replayed with one backfilling only.
        figure
            A column of :meth:`records`; by default the one that the comparison ranks by.
        ratio
            Compare by ratios (cases may differ in scale), otherwise by differences.

        Examples
        --------
        >>> import stretto
        >>> graphs = [stretto.workloads.random_dag(num_tasks=30, seed=seed) for seed in range(8)]
        >>> table = stretto.compare(graphs, "cpu:2x1,gpu:2x4", ["heft", "round-robin"])
        >>> worse = table.paired("heft")[0]
        >>> worse.method, worse.effect > 1, worse.is_clear
        ('round-robin', True, True)
        """
        column = figure or self.FIGURE
        values = self._values(column)
        chosen = next(iter(values)) if baseline is None else self._method(baseline, list(values))
        reference = (chosen, values[chosen])
        return [
            paired_difference((name, found), reference, column, ratio=ratio, bootstrap=bootstrap)
            for name, found in values.items()
            if name != chosen
        ]

    def _values(self, figure: str) -> dict[str, dict[object, dict[object, float]]]:
        records = self.records()
        if not records:
            raise InvalidInput("there are no rows to compare", field="rows")
        if figure not in records[0]:
            raise UnknownName("figure", figure, records[0])
        found: dict[str, dict[object, dict[object, float]]] = {}
        for record in records:
            value = record[figure]
            if isinstance(value, (int, float)):
                cases = found.setdefault(self._name(record, self.METHOD), {})
                cases.setdefault(self._name(record, self.CASE), {})[self._name(record, self.REPEAT)] = float(value)
        if not found:
            raise InvalidInput(f"{figure} holds no numbers", field="figure")
        return found

    @staticmethod
    def _name(record: Record, columns: Sequence[str]) -> str:
        return " + ".join(str(record[column]) for column in columns)

    @staticmethod
    def _method(name: str, known: list[str]) -> str:
        if name in known:
            return name
        longer = [method for method in known if method.startswith(f"{name} + ")]
        if len(longer) != 1:
            raise UnknownName("baseline", name, known)
        return longer[0]

    def _chosen(self, summary: bool) -> list[Record]:
        return self.summary_records() if summary else self.records()


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
