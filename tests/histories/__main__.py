"""Play the histories of some seeds; the first one that fails is shrunk and printed.

With ``--record FILE``, failing seeds are told and the others played all the same, and what is in FILE already is not
played again: a hundred thousand take 40 minutes of a core, and may be stopped at any time.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from pathlib import Path

from .history import draw
from .planted import PLANTED, planted
from .record import Record
from .shrink import report, shrunk
from .world import Outcome, play


def main() -> int:
    """Play histories and return 1 where one fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("seed", type=int, help="of the first history")
    parser.add_argument("count", type=int, nargs="?", default=1, help="how many histories (default 1)")
    parser.add_argument("--plant", choices=sorted(PLANTED), help="with one of the planted bugs")
    parser.add_argument("--story", action="store_true", help="print what happened, also where nothing is wrong")
    parser.add_argument("--record", type=Path, help="a file of the seeds that were played and of those that failed")
    options = parser.parse_args()
    if options.record is not None:
        record = Record(options.record)
        record.play(range(options.seed, options.seed + options.count), lambda seed: play(draw(seed)).rule)
        print(record)
        return 1 if record.failed else 0
    began = time.process_time()
    with planted(options.plant) if options.plant else contextlib.nullcontext():
        for seed in range(options.seed, options.seed + options.count):
            if (outcome := _play(seed, is_told=options.story)).rule:
                print(report(shrunk(outcome)))
                return 1
    each = 1000.0 * (time.process_time() - began) / options.count
    print(
        f"{options.count:,} histories from {options.seed} on, {each:.0f} ms of processor time each: nothing is broken"
    )
    return 0


def _play(seed: int, *, is_told: bool) -> Outcome:
    outcome = play(draw(seed))
    if is_told:
        print(outcome.history, *outcome.story, sep="\n")
    return outcome


if __name__ == "__main__":
    sys.exit(main())
