"""Make the golden record, or compare with it: ``python tests/golden/record.py make|compare [--exact] [--only TEXT]``.

For each case the record has the digest of the whole JSON result, once with all digits and once with ten, and a few
figures in plain sight. All digits are compared on one machine, before and after a change that must not change results;
ten digits everywhere, because the last ones of a logarithm depend on the processor.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("record.json")

#: Wall times, paths and versions: they differ from run to run.
VOLATILE = {
    "plan_seconds",
    "replay_seconds",
    "jobs_per_second",
    "seconds",
    "plan_s",
    "decision_s",
    "run_id",
    "plots",
    "elapsed_s",
}
#: Fields that were renamed since the record was made: new name to old name.
RENAMED: dict[str, str] = {}
#: Fields that are printed under two names for one version, new to old: the record has the old name only.
TWICE: dict[str, str] = {"utilization": "utilisation"}
#: Fields that were added since the record was made.
ADDED = {
    "weights",
    "answer",
    "wait",
    "alternatives",
    "recorded",
    "departure",
    "calibration",
    "jobs_file",
    "num_up_to_date",
    "as_steered",
    "rank_by",
    "rental_terms",
    "peak_memory_bytes",
    "lists_left_out",
}
#: Rows that were added to the tables of ``stretto list`` since the record was made.
ADDED_ROWS = {"promise", "recorded", "kubernetes", "alcf", "nextflow", "kineto", "execution-trace"}
#: Texts that were reworded since the record was made: new text to old text. A text is compared as a whole.
REWORDED: dict[str, str] = {
    "at each epoch, the order or network that has done best in counterfactual replays": "at each epoch, the network or "
    "order that has done best in shadow replays",
}
#: Fields that are no longer printed: case to the fields and values that it had.
REMOVED: dict[str, dict[str, Any]] = {}
#: Figures that stand in the record as they are, so that a difference says how large it is.
SHOWN = ("makespan_s", "lower_bound_s", "mean_bounded_slowdown", "mean_wait_s", "mean_completion_s")


def run_case(words: tuple[str, ...], folder: Path) -> Any:
    """Return the JSON that a command prints; an error is a result, too."""
    from stretto.cli.main import main

    chosen = [str(folder / f"{word[1:]}.json") if word.startswith("@plan") else word for word in words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*chosen, "--output", "json"])
    if code:
        return {"code": code, "error": err.getvalue().replace(str(folder), "")}
    return json.loads(out.getvalue())


def save_plans(folder: Path) -> None:
    """Write the plans that the cases of ``simulate`` read."""
    from cases import INSTANCES

    from stretto.cli.main import main

    for number, (graph, cluster) in enumerate(INSTANCES):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(["plan", graph, "-c", cluster, "--save", str(folder / f"plan{number}.json")])


def settled(value: Any, digits: int | None) -> Any:
    """Return a result without what differs from run to run, under the names of the record."""
    if isinstance(value, dict):
        kept = ((RENAMED.get(key, key), item) for key, item in value.items())
        left_out = VOLATILE | ADDED | {new for new, old in TWICE.items() if old in value}
        return {key: settled(item, digits) for key, item in kept if key not in left_out}
    if isinstance(value, list):
        rows = (item for item in value if not (isinstance(item, dict) and item.get("name") in ADDED_ROWS))
        return [settled(item, digits) for item in rows]
    if isinstance(value, float) and digits is not None:
        return float(f"{value:.{digits}g}")
    return REWORDED.get(value, value) if isinstance(value, str) else value


def digest(value: Any, digits: int | None) -> str:
    """Return a short hash of a settled result."""
    text = json.dumps(settled(value, digits), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def results(only: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Run every case whose name contains ``only``, and yield what the record says of it."""
    from cases import all_cases

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["STRETTO_HOME"] = str(folder)
        save_plans(folder)
        for case in all_cases():
            if only not in case.name:
                continue
            value = run_case(case.words, folder)
            if isinstance(value, dict):
                value |= REMOVED.get(case.name, {})
            entry: dict[str, Any] = {"exact": digest(value, None), "ten": digest(value, 10)}
            if isinstance(value, dict):
                entry |= {key: value[key] for key in SHOWN if key in value}
                entry |= {key: value[key] for key in ("code", "error") if "code" in value and key in value}
            yield case.name, entry


def differences(digits: str, only: str = "") -> list[str]:
    """Return one line for every case that is not what it was, is new, or is gone."""
    old = {name: entry for name, entry in json.loads(RECORD.read_text()).items() if only in name}
    new = dict(results(only))
    lines = [f"gone: {name}" for name in old if name not in new]
    lines += [f"new: {name}" for name in new if name not in old]
    for name in old.keys() & new.keys():
        if old[name][digits] != new[name][digits]:
            lines.append(f"changed: {name}: {_figures(old[name])} is now {_figures(new[name])}")
    return sorted(lines)


def _figures(entry: dict[str, Any]) -> str:
    return json.dumps({key: item for key, item in entry.items() if key not in ("exact", "ten")})


def main() -> int:
    """Make or compare; compare ends with 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("make", "compare"))
    parser.add_argument("--exact", action="store_true", help="compare all digits, not ten")
    only = "only the cases whose name contains it; make leaves all other rows as they are"
    parser.add_argument("--only", default="", metavar="TEXT", help=only)
    chosen = parser.parse_args()
    if chosen.what == "make":
        found = dict(results(chosen.only))
        failed = [f"{name}: {entry['error'].strip()}" for name, entry in found.items() if "code" in entry]
        if failed:
            print("\n".join(["these commands fail, so there is nothing to record:", *failed]))
            return 1
        kept = json.loads(RECORD.read_text()) if chosen.only else {}
        rows = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in (kept | found).items())
        RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n")
        print(f"{len(found)} cases")
        return 0
    lines = differences("exact" if chosen.exact else "ten", chosen.only)
    print("\n".join(lines) or "the same")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
