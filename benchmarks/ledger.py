"""The ledger of results: each line of ``ledger.jsonl`` is one figure, with the conditions under which it was measured.

python benchmarks/ledger.py show [TEXT]        # the latest row of each claim whose name contains TEXT
python benchmarks/ledger.py history CLAIM      # all rows of a claim, with their conditions
python benchmarks/ledger.py add CLAIM VALUE --unit % --command "python benchmarks/league.py" --low 74 --high 96
python benchmarks/ledger.py check              # fields, commands, commits, and the documents that show a figure
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LEDGER = ROOT / "benchmarks" / "ledger.jsonl"
_CHANGES = ("diff", "HEAD", "--name-only", "--", ".", ":!benchmarks/ledger.jsonl")
_OPERATORS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_PATTERNS = {
    "claim": r"[\w.+-]+(/[\w.+-]+)+",
    "commit": r"[0-9a-f]{8}(\+changes)?",
    "date": r"20\d\d-[01]\d-[0-3]\d",
    "bar": r"((<=|>=|<|>) -?\d+(\.\d+)?)?",
    **dict.fromkeys(("unit", "command", "machine"), r"\S.*"),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One result; benchmarks/README.md describes the fields."""

    claim: str
    value: float
    unit: str
    command: str
    commit: str
    date: str
    machine: str
    low: float | None = None
    high: float | None = None
    baseline: str = ""
    instances: str = ""
    seeds: str = ""
    bar: str = ""
    holds: bool | None = None
    shown: dict[str, str] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        for name, number in (("value", self.value), ("low", self.low or 0.0), ("high", self.high or 0.0)):
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise ValueError(f"{name} must be a finite number, got {number!r}")
        for name, pattern in _PATTERNS.items():
            if not re.fullmatch(pattern, getattr(self, name)):
                raise ValueError(f"{name} {getattr(self, name)!r} does not match {pattern}")
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        if not low - 1e-9 <= self.value <= high + 1e-9:
            raise ValueError(f"the value {self.value:g} is outside of its interval [{self.low}, {self.high}]")
        if self.holds != meets(self.value, self.bar):
            raise ValueError(f"holds is {self.holds}, which contradicts {self.value:g} and the bar {self.bar!r}")
        printed = [number for text in self.shown.values() for number in _numbers(text)]
        for one in (self.value, self.low, self.high):
            if one is not None and printed and not any(abs(abs(one) - number) <= half for number, half in printed):
                raise ValueError(f"{one:g} is not among the numbers of what is shown: {self.shown}")

    def __str__(self) -> str:
        ends = "" if self.low is None else f" [{self.low:g}, {'inf' if self.high is None else format(self.high, 'g')}]"
        bar = f"  ({self.bar}: {'met' if self.holds else 'missed'})" if self.bar else ""
        return f"{self.value:,.10g}{ends} {self.unit}{bar}"


def meets(value: float, bar: str) -> bool | None:
    """Return whether a value meets a bar; None where there is no bar."""
    sign, _, limit = bar.partition(" ")
    return bool(_OPERATORS[sign](value, float(limit))) if sign in _OPERATORS else None


def _numbers(text: str) -> list[tuple[float, float]]:
    """Return the numbers of a text without signs, each with half of its last digit; ``3 of 4`` is 75 as well."""
    found = re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text)
    numbers = [(float(one.replace(",", "")), 0.501 * 10.0 ** -len(one.partition(".")[2])) for one in found]
    return numbers + [(100 * int(a) / int(b), 0.05) for a, b in re.findall(r"(\d+) of ([1-9]\d*)(?!,)", text)]


def read() -> list[Row]:
    """Return all rows, the oldest first; the error of an invalid file names every line that is wrong."""
    rows, wrong = [], []
    for number, line in enumerate(LEDGER.read_text().splitlines(), start=1):
        try:
            rows.append(Row(**json.loads(line)))
        except (TypeError, ValueError, AttributeError) as error:
            wrong.append(f"{LEDGER.name}:{number}: {str(error).replace('Row.__init__() ', '')}")
    if wrong:
        raise ValueError("\n".join(wrong))
    return rows


def record(claim: str, value: float, unit: str, **more: Any) -> Row:
    """Add a row and return it; what is not given is filled in: this command without folders of the machine, and now."""
    cores, load = os.cpu_count() or 1, os.getloadavg()[1]
    words = [word.removeprefix(f"{ROOT}/") for word in sys.orig_argv[1:] if word != "--ledger"]
    filled = {
        "command": shlex.join(["python", *(Path(word).name if word.startswith("/") else word for word in words)]),
        "commit": _git("rev-parse", "--short=8", "HEAD") + ("+changes" if _git(*_CHANGES) else ""),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{cores} cores, {'busy' if load > cores else 'quiet'} (load {load:.1f})",
        "holds": meets(value, more.get("bar", "")),
    }
    row = Row(claim=claim, value=value, unit=unit, **{**filled, **more})
    kept = {k: round(v, 6) if isinstance(v, float) else v for k, v in asdict(row).items() if v not in ("", None, {})}
    with LEDGER.open("a") as file:
        file.write(json.dumps(kept, ensure_ascii=False) + "\n")
    return row


def _git(*words: str) -> str:
    words = ("git", *words) if shutil.which("git") else ("true",)
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def faults(rows: list[Row]) -> Iterator[str]:
    """Yield what is wrong with the files, commits and documents that rows name."""
    commits = {row.commit[:8] for row in rows}
    is_whole = _git("rev-parse", "--is-shallow-repository") == "false"
    unknown = {commit for commit in commits if is_whole and _git("cat-file", "-t", commit) != "commit"}
    for number, row in enumerate(rows, start=1):
        where = f"{LEDGER.name}:{number}: {row.claim}:"
        if not _names_a_file(row.command):
            yield f"{where} no file that exists is named by {row.command!r}"
        if row.commit[:8] in unknown:
            yield f"{where} git does not know the commit {row.commit}"
        for document, text in row.shown.items():
            if not stands(text, ROOT / document):
                yield f"{where} {document} does not show {text!r}"


def _names_a_file(command: str) -> bool:
    if command.startswith("make "):
        return f"\n{command.split()[1]}:" in (ROOT / "Makefile").read_text()
    modules = [f"{name.replace('.', '/')}.py" for name in re.findall(r"python -m ([\w.]+)", command)]
    named = re.findall(r"[\w./-]+\.py\b", command) + modules
    places = [(ROOT / name, ROOT / name.removesuffix(".py") / "__main__.py") for name in named]
    return bool(named) and all(file.is_file() or package.is_file() for file, package in places)


def stands(text: str, document: Path) -> bool:
    """Return whether a document has the parts of a text, which " … " separates, in one paragraph, item or table row."""
    plain = re.sub(r"[*`\\]", "", document.read_text()) if document.is_file() else ""
    blocks = [" ".join(block.split()) for block in re.split(r"\n(?=\||\s*- |\s*\n)", plain)]
    parts = [rf"(?<![\w.,]){re.escape(part)}(?!\w|[.,]\d)" for part in text.split(" … ")]
    return any(all(re.search(part, block) for part in parts) for block in blocks)


def main() -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    show, history, _, add = map(commands.add_parser, ("show", "history", "check", "add"))
    show.add_argument("text", nargs="?", default="")
    history.add_argument("claim")
    add.add_argument("claim")
    add.add_argument("value", type=float)
    for name in ("unit", "command", "low", "high", "baseline", "instances", "seeds", "bar", "machine", "note"):
        is_needed, kind = name in ("unit", "command"), float if name in ("low", "high") else str
        add.add_argument(f"--{name}", type=kind, required=is_needed)
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    what, rows = given.pop("what"), read()
    if what == "add":
        print(record(**given))
    elif what == "show":
        for row in {row.claim: row for row in rows if given["text"] in row.claim}.values():
            print(f"{row.claim:<42.42} {row!s:<46.46} {row.date}")
    elif what == "history":
        found = [row for row in rows if row.claim == given["claim"]]
        for row in found or sys.exit(f"no claim is called {given['claim']!r}"):
            print(f"{row.date} {row.commit}  {row}")
            for name in ("command", "instances", "seeds", "baseline", "machine", "shown", "note"):
                print(f"    {name}: {getattr(row, name) or '-'}")
    else:
        print(f"{len(rows)} rows of {len({row.claim for row in rows})} claims")
        sys.exit("\n".join(faults(rows)) or None)


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(str(error))
