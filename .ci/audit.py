"""Ask for known vulnerabilities of everything in constraints.txt: ``python .ci/audit.py PIP_AUDIT``.

The exit code is 1 where there are any. Versions that could not be asked for are counted and never called safe; where no
advisory database is reachable, that is what is printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    words = [sys.argv[1], "--format", "json", "--progress-spinner", "off", "--no-deps", "--disable-pip"]
    done = subprocess.run([*words, "-r", str(ROOT / "constraints.txt")], capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"not audited: {(done.stderr.strip().splitlines() or ['pip-audit printed nothing'])[-1][:300]}")
        return 0
    asked = [entry for entry in found if "vulns" in entry]
    if not asked:
        print("not audited: no advisory database is reachable from here")
        return 0
    for entry in asked:
        for fault in entry["vulns"]:
            fixed = ", ".join(fault["fix_versions"]) or "no release"
            print(f"{entry['name']} {entry['version']}: {fault['id']}, fixed in {fixed}")
    num_faults = sum(len(entry["vulns"]) for entry in asked)
    num_left = len(found) - len(asked)
    print(f"{num_faults} known vulnerabilities in {len(asked)} distributions; {num_left} were not audited")
    return 1 if num_faults else 0


if __name__ == "__main__":
    sys.exit(main())
