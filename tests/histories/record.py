"""Which histories were played, in a file that survives whoever plays them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

_AT_ONCE = 100


class Record:
    """Lines of JSON: the first seed, how many, their processor time, and the broken rules of those that failed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.played: set[int] = set()
        self.failed: dict[int, str] = {}
        self.cpu_s = 0.0
        if path.exists():
            for line in path.read_text().splitlines():
                self._add(json.loads(line))

    def play(self, seeds: range, broken_rule: Callable[[int], str]) -> None:
        """Play the seeds that are not on record, so many at once."""
        for first in range(seeds.start, seeds.stop, _AT_ONCE):
            some = [seed for seed in range(first, min(first + _AT_ONCE, seeds.stop)) if seed not in self.played]
            if not some:
                continue
            began = time.process_time()
            failed = {str(seed): rule for seed in some if (rule := broken_rule(seed))}
            line = {"seeds": [some[0], some[-1] + 1], "cpu_s": time.process_time() - began, "failed": failed}
            self._add(line)
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def _add(self, line: dict[str, object]) -> None:
        first, end = line["seeds"]
        self.played |= set(range(first, end))
        self.failed |= {int(seed): rule for seed, rule in line["failed"].items()}
        self.cpu_s += line["cpu_s"]

    def __str__(self) -> str:
        each = 1e3 * self.cpu_s / max(1, len(self.played))
        lines = [f"{len(self.played):,} histories, {each:.0f} ms of processor time each: {len(self.failed)} failed"]
        return "\n".join([*lines, *(f"  {seed}: {rule}" for seed, rule in sorted(self.failed.items()))])
