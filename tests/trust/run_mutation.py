"""Mutation testing with mutmut: ``python tests/trust/run_mutation.py GROUP... [--sample N] [--seed S] [--show]``.

A copy of the tree is changed in one place at a time, and the group's tests should notice. Modules with more mutants
than the sample are judged by that many of them, drawn with the seed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_VALIDATOR = ["tests/trust/test_validator_edges.py", "tests/trust/test_validator_links.py"]
#: What is changed, and which tests ought to notice.
GROUPS: dict[str, tuple[list[str], list[str]]] = {
    "validator": (["src/stretto/core/validate.py"], ["tests/core", *_VALIDATOR]),
    "driver": (
        ["src/stretto/engines/driver/driver.py", "src/stretto/engines/driver/recovery.py"],
        [
            "tests/engines/test_driver.py",
            "tests/engines/test_driver_corners.py",
            "tests/engines/test_driver_losses.py",
            "tests/engines/test_driver_simulated.py",
            "tests/engines/test_elastic.py",
            "tests/engines/test_memory_limits.py",
            "tests/trust/test_revived_parents.py",
        ],
    ),
    "domain": (
        ["src/stretto/core"],
        [
            "tests/core",
            "tests/queues/test_queue_metrics.py",
            "tests/queues/test_trace_fitting.py",
            *_VALIDATOR,
        ],
    ),
    "promises": (
        ["src/stretto/queues/promises/slack.py", "src/stretto/queues/promises/live.py"],
        ["tests/queues/promises"],
    ),
    "queue-validators": (
        ["src/stretto/queues/validate.py", "src/stretto/queues/promises/validate.py"],
        ["tests/queues/test_queue_validate.py", "tests/queues/promises"],
    ),
    "bounds": (["src/stretto/graphs/bounds"], ["tests/graphs/bounds"]),
}
#: mutmut 3.8 asks for an attribute that pytest 9 has renamed.
_SHIM = """

if not hasattr(pytest.Item, "_nodeid"):
    pytest.Item._nodeid = property(lambda self: self.nodeid)
"""
#: What mutmut notes of a mutant.
_KILLED, _SURVIVED, _UNTESTED, _LATE = (1, 3), 0, (5, 33), (24, 36, -24, 152, 255)


def copy_tree(folder: Path, sources: list[str], tests: list[str]) -> None:
    """Copy what is needed, with mutmut's settings in it."""
    skip = shutil.ignore_patterns("__pycache__", ".venv*", ".hypothesis")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    with (folder / "tests/conftest.py").open("a") as conftest:
        conftest.write(_SHIM)
    settings = {
        "paths_to_mutate": sources,
        "pytest_add_cli_args": ["-m", "not long"],
        "pytest_add_cli_args_test_selection": tests,
        # A mutant that never ends is given up after (usual time + 3 s) x 5; the default is three times that.
        "timeout_constant": 3.0,
        "timeout_multiplier": 5.0,
        "also_copy": ["src/stretto", "tests", "pyproject.toml"],
    }
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + f"\n[tool.mutmut]\n{lines}\n")


def mutmut(folder: Path, *words: str) -> str:
    """Run mutmut in the copy; its exit code says nothing that the notes do not."""
    data = os.environ.get("STRETTO_DATA", str(ROOT.parent / "shared" / "data"))
    environment = {**os.environ, "STRETTO_DATA": data, "OMP_NUM_THREADS": "1"}
    program = Path(sys.executable).with_name("mutmut")
    found = subprocess.run([program, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return found.stdout + found.stderr


def notes(folder: Path) -> dict[str, dict[str, int | None]]:
    """Return the mutants of each module and what became of them."""
    found = {}
    for path in sorted((folder / "mutants" / "src").rglob("*.meta")):
        mutants = json.loads(path.read_text())["exit_code_by_key"]
        if mutants:
            found[str(path.relative_to(folder / "mutants" / "src" / "stretto")).removesuffix(".meta")] = mutants
    return found


def judge(group: str, num_sampled: int, seed: int, *, show: bool) -> None:
    """Print how many mutants of each module of a group were noticed."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="stretto-mutation-") as name:
        folder = Path(name)
        copy_tree(folder, *GROUPS[group])
        said = mutmut(folder, "run", "--max-children", "1", "no.such.mutant")
        chosen = {
            module: sorted(mutants) if len(mutants) <= num_sampled else rng.sample(sorted(mutants), num_sampled)
            for module, mutants in notes(folder).items()
        }
        if not chosen:
            raise SystemExit(f"mutmut made no mutants of {group}:\n{said[-3000:]}")
        mutmut(folder, "run", "--max-children", "1", *(mutant for some in chosen.values() for mutant in some))
        total: Counter[str] = Counter()
        for module, mutants in notes(folder).items():
            tally = Counter(verdict(mutants[mutant]) for mutant in chosen[module])
            total += tally
            print(f"{group:10} {module:30} {line(tally)}, of {len(mutants)} mutants", flush=True)
            for mutant in chosen[module] if show else ():
                if verdict(mutants[mutant]) == "survived":
                    print(mutmut(folder, "show", mutant))
        print(f"{group:10} {'all':30} {line(total)}", flush=True)


def verdict(code: int | None) -> str:
    """Return what an exit code of the tests means."""
    if code is None:
        return "not run"
    if code in _KILLED or code in _LATE:
        return "killed"
    return "untested" if code in _UNTESTED else "survived"


def line(tally: Counter[str]) -> str:
    num_run = sum(tally.values()) - tally["not run"]
    share = tally["killed"] / max(1, num_run)
    return f"{tally['killed']:5} of {num_run:5} killed ({share:6.1%}), {tally['untested']:4} never reached by a test"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", default=list(GROUPS))
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    for group in asked.groups:
        judge(group, asked.sample, asked.seed, show=asked.show)


if __name__ == "__main__":
    main()
