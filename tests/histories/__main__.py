"""Play the histories of some seeds; the first one that fails is shrunk and printed."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time

from .history import draw
from .planted import PLANTED, planted
from .shrink import report, shrunk
from .world import play


def main() -> int:
    """Play histories and return 1 where one fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("seed", type=int, help="of the first history")
    parser.add_argument("count", type=int, nargs="?", default=1, help="how many histories (default 1)")
    parser.add_argument("--plant", choices=sorted(PLANTED), help="with one of the planted bugs")
    parser.add_argument("--story", action="store_true", help="print what happened, also where nothing is wrong")
    options = parser.parse_args()
    began = time.process_time()
    with planted(options.plant) if options.plant else contextlib.nullcontext():
        for seed in range(options.seed, options.seed + options.count):
            outcome = play(draw(seed))
            if options.story:
                print(outcome.history, *outcome.story, sep="\n")
            if outcome.rule:
                print(report(shrunk(outcome)))
                return 1
    each = 1000.0 * (time.process_time() - began) / options.count
    print(
        f"{options.count:,} histories from {options.seed} on, {each:.0f} ms of processor time each: nothing is broken"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
