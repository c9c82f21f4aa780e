"""Lines and branches reached, by package: ``python tests/trust/report_coverage.py COVERAGE.JSON``.

Reads what ``coverage json`` writes. Fails when a share of the whole is below ``--lines`` or ``--branches`` (percent).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

_COUNTS = ("covered_lines", "num_statements", "covered_branches", "num_branches")


def package_of(file: str) -> str:
    """Return the package of a module, or its own name at the top."""
    inside = Path(file).parts
    start = len(inside) - 1 - inside[::-1].index("stretto")
    return inside[start + 1] if len(inside) > start + 2 else "stretto"


def by_package(files: dict[str, dict[str, dict[str, int]]]) -> dict[str, Counter[str]]:
    """Add up the counts of modules."""
    found: dict[str, Counter[str]] = {}
    for file, report in sorted(files.items()):
        counts = Counter({name: report["summary"][name] for name in _COUNTS})
        found.setdefault(package_of(file), Counter()).update(counts)
    return found


def shares(counts: Counter[str]) -> tuple[float, float]:
    """Return the shares of lines and of branches, in percent; what has none has all of them."""
    lines, branches = counts["num_statements"], counts["num_branches"]
    return (
        100 * counts["covered_lines"] / lines if lines else 100.0,
        100 * counts["covered_branches"] / branches if branches else 100.0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--lines", type=float, default=0.0, help="least share of lines")
    parser.add_argument("--branches", type=float, default=0.0, help="least share of branches")
    asked = parser.parse_args()
    packages = by_package(json.loads(asked.report.read_text())["files"])
    whole: Counter[str] = sum(packages.values(), Counter())
    for name, counts in [*sorted(packages.items()), ("all", whole)]:
        lines, branches = shares(counts)
        print(
            f"{name:12} lines {lines:5.1f} % of {counts['num_statements']:6}, "
            f"branches {branches:5.1f} % of {counts['num_branches']:6}"
        )
    lines, branches = shares(whole)
    if lines < asked.lines or branches < asked.branches:
        raise SystemExit(f"below {asked.lines:g} % of lines or {asked.branches:g} % of branches")


if __name__ == "__main__":
    main()
