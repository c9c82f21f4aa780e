"""What ``make coverage``, ``make mutation``, ``make sbom`` and ``make audit`` do, in small."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import run_mutation

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("group", run_mutation.GROUPS)
def test_every_group_of_mutation_names_code_and_tests_that_are_there(group: str) -> None:
    sources, tests = run_mutation.GROUPS[group]
    assert [path for path in (*sources, *tests) if not (ROOT / path).exists()] == []


def test_coverage_of_lines_and_branches_is_added_up_and_held_against_the_least(tmp_path: Path) -> None:
    counts = {"covered_lines": 95, "num_statements": 100, "covered_branches": 8, "num_branches": 10}
    report = tmp_path / "coverage.json"
    report.write_text(json.dumps({"files": {"src/stretto/core/graph.py": {"summary": counts}}}))
    words = [
        sys.executable,
        str(ROOT / "tests" / "trust" / "report_coverage.py"),
        str(report),
        "--lines",
        "95",
        "--branches",
    ]
    good, bad = (subprocess.run([*words, least], capture_output=True, text=True, check=False) for least in ("80", "81"))
    assert (good.returncode, bad.returncode) == (0, 1)
    assert re.search(r"all +lines +95\.0 % of +100, branches +80\.0 % of +10", good.stdout)


def bill_of_materials() -> Any:
    spec = importlib.util.spec_from_file_location("make_sbom", ROOT / ".ci" / "make_sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.bill()


def test_the_bill_of_materials_names_every_dependency_once_and_with_its_version() -> None:
    document, absent = bill_of_materials()
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    names = [entry["name"] for entry in document["components"]]
    assert len(names) == len(set(names))
    assert {"numpy", "numba", "scipy", "ortools", "typer", "rich", "matplotlib", "tomli-w", "psutil"} <= set(names)
    known = {entry["bom-ref"] for entry in document["components"]} | {document["metadata"]["component"]["bom-ref"]}
    assert {link["ref"] for link in document["dependencies"]} == known
    assert {other for link in document["dependencies"] for other in link["dependsOn"]} <= known
    assert not absent & set(names)


@pytest.mark.parametrize(
    ("printed", "code", "told"),
    [
        ('{"dependencies": [{"name": "a", "skip_reason": "x"}]}', 0, "not audited"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, "0 known vulnerabilities in 1"),
        (
            '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": []}]}]}',
            1,
            "a 1: X-1, fixed in no release",
        ),
        ("", 0, "not audited: pip-audit printed nothing"),
    ],
)
def test_an_audit_that_could_not_ask_says_so(printed: str, code: int, told: str, tmp_path: Path) -> None:
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}\nEND\n")
    program.chmod(0o755)
    words = [sys.executable, str(ROOT / ".ci" / "audit.py"), str(program)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert told in done.stdout


def test_the_lowest_versions_are_those_of_the_project() -> None:
    """Every lower bound of the packages and extras that are tested so stands in the file."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(line for name in ("learn", "web", "onnx", "parquet") for line in extras[name]),
    ]
    pinned = dict(
        line.split("==") for line in (ROOT / "constraints-lowest.txt").read_text().splitlines() if "==" in line
    )
    for line in wanted:
        name, bound = line.split(">=")
        assert pinned[name].startswith(bound.removesuffix(".0")), f"{line}: {name}=={pinned[name]}"
