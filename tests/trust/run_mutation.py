"""Mutation testing: ``python tests/trust/run_mutation.py [GROUP...] [--sample N] [--seed S]``.

A copy of the tree is changed in one place, drawn with the seed, and the tests that reach this place should notice.
Kernels run as plain Python, so that a change in one is a change everywhere. Hypothesis draws few examples.
What was found is kept in ``out/mutation``; the same command continues there. ``--again`` judges survivors once more.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import json
import math
import os
import random
import re
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from mutants import Mutant, mutants_of
from mutation_runs import MOST_PER_TEST_S, in_child

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / "out" / "mutation"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
#: What is changed, and which tests ought to notice.
GROUPS: dict[str, tuple[list[str], list[str]]] = {
    "core": (
        ["src/stretto/core"],
        [
            "tests/core",
            "tests/files/clusters/test_sites.py",
            "tests/files/test_bad_input.py",
            "tests/files/test_cluster_toml.py",
            "tests/files/test_node_files.py",
            "tests/files/test_plan_json.py",
            "tests/files/test_pool_toml.py",
            "tests/files/traces/test_parse_numbers.py",
            "tests/files/traces/test_trace_csv.py",
            "tests/files/traces/test_trace_slurm.py",
            "tests/files/traces/test_trace_swf.py",
            "tests/graphs/memory/test_weights.py",
            "tests/graphs/test_evaluate.py",
            "tests/graphs/test_kernel_parts.py",
            "tests/graphs/test_magnitudes.py",
            "tests/graphs/workloads/test_argument_checks.py",
            "tests/queues/test_easy_mistakes.py",
            "tests/queues/test_queue_compare.py",
            "tests/queues/test_queue_metrics.py",
            "tests/queues/test_trace_fitting.py",
            "tests/reports/queues/test_policies.py",
            "tests/trust/test_child_python.py",
            "tests/trust/test_private_files.py",
        ],
    ),
    "driver": (
        ["src/stretto/engines/driver"],
        [
            "tests/engines/test_dispatch_view.py",
            "tests/engines/test_dispatchers.py",
            "tests/engines/test_driver.py",
            "tests/engines/test_driver_accounts.py",
            "tests/engines/test_driver_corners.py",
            "tests/engines/test_driver_losses.py",
            "tests/engines/test_driver_nodes.py",
            "tests/engines/test_driver_simulated.py",
            "tests/engines/test_elastic.py",
            "tests/engines/test_memory_limits.py",
            "tests/histories/test_histories.py",
            "tests/trust/test_revived_parents.py",
        ],
    ),
    "promises": (
        ["src/stretto/queues/promises"],
        [
            "tests/queues/pools/test_pool_promises.py",
            "tests/queues/promises/test_live_promises.py",
            "tests/queues/promises/test_plan_steps.py",
            "tests/queues/promises/test_promise_facade.py",
            "tests/queues/promises/test_promise_queue.py",
            "tests/queues/promises/test_promise_small.py",
            "tests/queues/promises/test_promise_twin.py",
            "tests/queues/promises/test_slack.py",
            "tests/queues/promises/test_steered_promises.py",
        ],
    ),
    "validators": (
        [
            "src/stretto/core/validate.py",
            "src/stretto/core/nodes/validate.py",
            "src/stretto/queues/validate.py",
            "src/stretto/queues/nodes/validate.py",
            "src/stretto/queues/pools/validate.py",
            "src/stretto/queues/promises/validate.py",
        ],
        [
            "tests/core/test_validate.py",
            "tests/core/test_validate_nodes.py",
            "tests/engines/test_driver_nodes.py",
            "tests/queues/nodes/test_site_validator.py",
            "tests/queues/pools/test_pool_validator.py",
            "tests/queues/test_queue_validate.py",
            "tests/queues/test_queue_validator_edges.py",
            "tests/trust/test_validator_edges.py",
            "tests/trust/test_validator_links.py",
        ],
    ),
    "bounds": (["src/stretto/graphs/bounds"], ["tests/graphs/bounds"]),
}
#: CPU seconds of all tests that try one mutant.
MOST_PER_MUTANT_S = 10.0


def sources_of(group: str) -> list[str]:
    """Return the modules of a group; a validator is one of no other group."""
    found = []
    for name in GROUPS[group][0]:
        path = ROOT / name
        found += [path] if path.is_file() else sorted(path.rglob("*.py"))
    names = [str(path.relative_to(ROOT)) for path in found]
    return [name for name in names if group == "validators" or name not in GROUPS["validators"][0]]


def copy_tree(folder: Path) -> None:
    skip = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("src", "tests", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=lambda _, names: [n for n in names if not n.endswith(".md")])
    shutil.copy(ROOT / "pyproject.toml", folder)


def digest(names: list[str]) -> str:
    return hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in names)).hexdigest()[:16]


def reach(folder: Path, group: str) -> dict[str, Any]:
    """Return, by file of tests, the time that each test takes and which tests reach each line of the group."""
    sources, tests = sources_of(group), []
    for name in GROUPS[group][1]:
        path = ROOT / name
        tests += [path] if path.is_file() else sorted(path.rglob("test_*.py"))
    names = [str(path.relative_to(ROOT)) for path in tests]
    stamps = {name: digest([*sources, name]) for name in names}
    kept = KEPT / f"{group}-reach.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    new = [name for name in names if known.get(name, {}).get("stamp") != stamps[name]]
    told = in_child(folder, new, traced=sources) if new else {}
    if new and told.get("exit") not in (0, 1):  # 1: a test failed, and is left out
        raise SystemExit(f"{group}: the tests did not come to their end:\n{(folder / 'log.txt').read_text()[-2000:]}")
    for name in new:
        known[name] = {"stamp": stamps[name], **_of_file(told, name)}
        print(f"{group:10} {name}: {sum(known[name]['cpu_s'].values()):.1f} s", flush=True)
    kept.write_text(json.dumps(known))
    return {name: known[name] for name in names}


def _of_file(told: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what was told of the tests of one file, and which lines run when modules are imported."""
    start = f"{name}::"
    reached = {
        path: {line: [test for test in tests if not test or test.startswith(start)] for line, tests in lines.items()}
        for path, lines in told.get("reached", {}).items()
    }
    cpu_s = {test: took for test, took in told.get("cpu_s", {}).items() if test.startswith(start)}
    failed = [test for test in told.get("failed", []) if test.startswith(start)]
    return {"cpu_s": cpu_s, "failed": failed, "reached": reached}


@functools.cache
def imports(file: Path, module: str) -> bool:
    """Say whether a file of tests imports a module by its name."""
    parent, _, name = module.removeprefix("src/").removesuffix(".py").replace("/", ".").rpartition(".")
    words = rf"{re.escape(parent)}\.{name}\b|from {re.escape(parent)} import [^\n]*\b{name}\b"
    return re.search(words, file.read_text()) is not None


def tests_of(mutant: Mutant, reached: dict[str, Any]) -> dict[str, float]:
    """Return the tests that reach a mutant and how long they take, fast ones first."""
    lines = {str(line) for line in range(mutant.line, mutant.line + mutant.before.count("\n") + 1)}
    chosen: dict[str, float] = {}
    for file, test in reached.items():
        by_line = test.get("reached", {}).get(mutant.path, {})
        names = {name for line in lines & by_line.keys() for name in by_line[line]}
        if "" in names:  # runs when the module is imported: whoever uses the module may notice
            names.update(name for some in by_line.values() for name in some)
            if imports(ROOT / file, mutant.path):  # a table or a default is read without running a line
                names.update(test["cpu_s"])
        chosen.update(
            (name, test["cpu_s"][name]) for name in names & test.get("cpu_s", {}).keys() - set(test["failed"])
        )
    picked: dict[str, float] = {}
    for name, cpu_s in sorted(chosen.items(), key=lambda item: item[1]):
        if cpu_s <= MOST_PER_TEST_S and sum(picked.values()) + cpu_s <= MOST_PER_MUTANT_S:
            picked[name] = cpu_s
    return picked


def try_mutant(folder: Path, mutant: Mutant, reached: dict[str, Any]) -> str:
    """Return "unreached", "survived", or what killed a mutant."""
    usual_s = tests_of(mutant, reached)
    if not usual_s:
        return "unreached"
    path = folder / mutant.path
    source, times = path.read_bytes(), path.stat()
    path.write_bytes(mutant.apply(source))
    said = in_child(folder, ["-x", *usual_s], usual_s=usual_s)
    path.write_bytes(source)
    os.utime(path, (times.st_atime, times.st_mtime))  # its bytecode is good again
    if not said:
        return "killed: never ends"
    return f"killed: {said['failed'][0]}" if said["failed"] else "survived"


def equivalents() -> list[dict[str, str]]:
    """Return the mutants that change nothing that anybody could see, each with its reason."""
    with EQUIVALENT.open("rb") as file:
        rows: list[dict[str, str]] = tomllib.load(file)["mutant"]
    return rows


def is_row_of(row: dict[str, str], mutant: Mutant) -> bool:
    """Say whether a row of the file is about a mutant; where it names a line, only the mutant of this line is meant."""
    if (row["path"], row["before"], row["after"]) != (mutant.path, " ".join(mutant.before.split()), mutant.after):
        return False
    line = (ROOT / mutant.path).read_text().splitlines()[mutant.line - 1]
    return row.get("line", line.strip()) == line.strip()


def wilson(killed: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    z, n = 1.959964, max(1, total)
    share = killed / n
    middle, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, (middle - half) / (1 + z * z / n)), min(1.0, (middle + half) / (1 + z * z / n))


def judge(group: str, num_sampled: int, seed: int, *, again: bool) -> None:
    """Print which mutants of a group nobody noticed, and how many were."""
    every = [mutant for name in sources_of(group) for mutant in mutants_of(name, (ROOT / name).read_bytes())]
    chosen = random.Random(seed).sample(every, min(num_sampled, len(every)))
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{group}-{seed}.json"
    known: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}
    told = equivalents()
    killed, left = 0, []
    with tempfile.TemporaryDirectory(prefix="stretto-mutation-") as name:
        folder = Path(name)
        copy_tree(folder)
        reached = reach(folder, group)
        in_child(folder, ["--collect-only", *reached])  # leaves bytecode behind
        for mutant in chosen:
            key = f"{mutant.start} {mutant}"
            if key not in known or (again and not known[key].startswith("killed")):
                known[key] = try_mutant(folder, mutant, reached)
                kept.write_text(json.dumps(known, indent=1))
            killed += known[key].startswith("killed")
            if not known[key].startswith("killed"):
                reason = next((row["reason"] for row in told if is_row_of(row, mutant)), None)
                left.append(reason)
                print(f"{known[key] if reason is None else f'equivalent, {reason}'}: {mutant}", flush=True)
    total = killed + left.count(None)
    low, high = wilson(killed, total)
    print(
        f"{group:10} {killed} of {total} killed ({killed / max(1, total):.1%}, 95 % interval {low:.1%} to {high:.1%}), "
        f"{len(left) - left.count(None)} more are equivalent; drawn from {len(every)} with seed {seed}; "
        f"{sum(os.times()[:4]):,.0f} s of CPU so far",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", default=[name for name in GROUPS if name != "bounds"])
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="judge once more what survived")
    asked = parser.parse_args()
    os.environ.update(NUMBA_DISABLE_JIT="1", OMP_NUM_THREADS="1", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    for module in ("numba", "scipy.sparse", "hypothesis.strategies"):  # what every fork would import by itself
        importlib.import_module(module)
    for group in asked.groups:
        judge(group, asked.sample, asked.seed, again=asked.again)


if __name__ == "__main__":
    main()
