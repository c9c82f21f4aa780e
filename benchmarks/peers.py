"""Stretto beside its peers, on the same instances in one run; see README.md.

python benchmarks/peers.py --quick
python benchmarks/peers.py --tasks 5000 --devices 32 --seeds 20 --policies heft,cpop,peft
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
from datetime import UTC, datetime
from typing import Any

from against_estee import against_estee
from against_saga import against_saga
from peer_venv import HERE, PeerMissing


def main() -> None:
    """Run the comparison, print the tables, keep every row."""
    options = _options()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    target = folder / f"peers-{options.tasks}x{options.devices}-{stamp}.jsonl"
    common = {"date": stamp, "commit": _commit(), "machine": platform.machine(), "python": platform.python_version()}
    print(f"{options.tasks} tasks, {options.devices} devices, CCR {options.ccr:g}, seeds 0..{options.seeds - 1}")
    rows: list[dict[str, Any]] = []
    for part in (against_saga, against_estee):
        try:
            found = part(options)
        except PeerMissing as reason:
            print(f"\n{part.__name__.removeprefix('against_')}: left out, {reason}")
            continue
        rows += found
    target.write_text("".join(json.dumps({**row, **common}) + "\n" for row in rows))
    print(f"\n{len(rows)} rows in {target.relative_to(HERE.parent)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=5, help="instances, with seeds from zero")
    parser.add_argument("--policies", default="heft,cpop,peft", help="comma-separated names of the catalog")
    parser.add_argument("--ccr", type=float, default=1.0)
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds that a peer may take per instance")
    parser.add_argument("--quick", action="store_true", help="500 tasks, 8 devices, 2 seeds")
    options = parser.parse_args()
    if options.quick:
        options.tasks, options.devices, options.seeds = 500, 8, 2
    options.policies = options.policies.split(",")
    return options


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+changes" if git("status", "--porcelain") else "")


if __name__ == "__main__":
    main()
