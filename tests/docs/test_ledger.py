"""Documents and the ledger of results agree: a figure that one of them changes is changed in the other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import ledger

ROOT = Path(__file__).resolve().parents[2]
CARDS = sorted(str(card.relative_to(ROOT)) for card in ROOT.glob("src/stretto/*/*/README.md"))
#: Documents whose intervals are all in the ledger.
COVERED = [*CARDS, "docs/policies.md", "docs/reliability.md"]
#: ``[0.753, 0.860]``, ``[0.19, inf]``, and a range that ends a parenthesis: ``(64 to 93 %)``, ``(95 %: 0.83-0.87)``.
INTERVAL = re.compile(r"\[[\d.]+, (?:[\d.]+|inf)\]|[\d.]+ to [\d.]+ %(?=\))|[\d.]+-[\d.]+(?=\))")
VALID = {
    "claim": "doppler/league/first",
    "value": 90.0,
    "unit": "%",
    "command": "python benchmarks/league.py",
    "commit": "7519fb68",
    "date": "2026-11-19",
    "machine": "2 cores, quiet",
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger of its own, with one valid row."""
    path = tmp_path / "ledger.jsonl"
    path.write_text(json.dumps(VALID) + "\n")
    monkeypatch.setattr(ledger, "LEDGER", path)
    return path


def test_the_ledger_agrees_with_files_commits_and_documents() -> None:
    rows = ledger.read()
    assert len(rows) > 150
    assert not list(ledger.faults(rows))


def test_rows_that_miss_their_bar_are_kept() -> None:
    assert any(row.holds is False for row in ledger.read())


@pytest.mark.parametrize("document", COVERED)
def test_every_interval_of_a_document_is_a_row(document: str) -> None:
    shown = [text for row in ledger.read() for name, text in row.shown.items() if name == document]
    found = INTERVAL.findall((ROOT / document).read_text())
    assert found
    assert not [one for one in found if not any(one in text for text in shown)]


def test_every_line_of_the_league_is_a_row() -> None:
    text = (ROOT / "docs" / "policies.md").read_text()
    table = text.split("<!-- league -->")[1].split("\n\n")[0].strip().splitlines()
    shown = [text for row in ledger.read() for text in row.shown.values()]
    assert len(table) > 20
    assert not [line for line in table[2:] if line not in shown]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"claims": "x"}, "unexpected keyword argument 'claims'"),
        ({"command": None}, "missing 1 required keyword-only argument: 'command'"),
        ({"command": ""}, "command '' does not match"),
        ({"claim": "league"}, "claim 'league' does not match"),
        ({"date": "19 November"}, "date '19 November' does not match"),
        ({"value": "90"}, "value must be a finite number, got '90'"),
        ({"low": 74.0, "high": 89.0}, r"the value 90 is outside of its interval \[74.0, 89.0\]"),
        ({"bar": "90"}, "bar '90' does not match"),
        ({"bar": "<= 80", "holds": True}, "holds is True, which contradicts 90 and the bar '<= 80'"),
        ({"bar": "<= 80"}, "holds is None"),
        ({"shown": {"README.md": "0.9"}}, "90 is not among the numbers"),
    ],
)
def test_an_invalid_row_is_an_error_with_its_line(file: Path, change: dict[str, Any], words: str) -> None:
    row = {name: value for name, value in (VALID | change).items() if value is not None}
    file.write_text(json.dumps(VALID) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(ValueError, match=words) as caught:
        ledger.read()
    assert str(caught.value).startswith("ledger.jsonl:2: ")


def test_what_is_not_so_is_a_fault(file: Path) -> None:
    wrong = {
        "command": "python benchmarks/no_such.py",
        "commit": "0123abcd",
        "shown": {"docs/policies.md": "90.0123 %"},
    }
    file.write_text(json.dumps(VALID) + "\n" + json.dumps(VALID | wrong | {"value": 90.0123}) + "\n")
    found = list(ledger.faults(ledger.read()))
    is_whole = ledger._git("rev-parse", "--is-shallow-repository") == "false"
    assert len(found) == 2 + is_whole
    assert all(one.startswith("ledger.jsonl:2: doppler/league/first: ") for one in found)


@pytest.mark.parametrize(
    ("command", "is_known"),
    [
        ("python benchmarks/league.py --drawn 7", True),
        ("PYTHONPATH=tests python tests/long/soak.py tasks 100000", True),
        ("python -m benchmarks.real_host", True),
        ("python -m tests.histories 1000000 100000", True),
        ("make coverage", True),
        ("make no-such-target", False),
        ("python -m benchmarks.no_such", False),
        ("stretto demo", False),
    ],
)
def test_a_command_names_a_file_that_exists(command: str, is_known: bool) -> None:
    assert ledger._names_a_file(command) == is_known


def test_a_figure_stands_in_a_document_as_a_whole(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "First **0.795\n[0.753, 0.860]** of `x`.\n\n| m1 | 0.44 |\n| m2 | 1,234 |\n- an item: 7\n- another: 8\n"
    )
    for text in ("0.795 [0.753, 0.860]", "of x … 0.795", "m1 … 0.44", "1,234", "item … 7"):
        assert ledger.stands(text, page), text
    for text in ("0.79", "795", "234", "m1 … 1,234", "item … 8", "0.795 … m1", "m"):
        assert not ledger.stands(text, page), text
    assert not ledger.stands("0.795", tmp_path / "missing.md")


def test_a_recorded_row_knows_its_conditions(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [sys.executable, f"{ROOT}/benchmarks/league.py", "--ledger", "--data", "/somewhere/data"]
    monkeypatch.setattr(sys, "orig_argv", words)
    row = ledger.record("doppler/league/first", 200 / 3, "%", low=50, high=75.0, bar=">= 90", note="a note")
    assert row.command == "python benchmarks/league.py --data data"
    assert row.holds is False
    assert re.fullmatch(r"\d+ cores, (quiet|busy) \(load [\d.]+\)", row.machine)
    kept = ledger.read()
    assert [one.value for one in kept] == [90.0, 66.666667]
    assert kept[1].date >= "2026-11-19"
    assert str(kept[1]) == "66.666667 [50, 75] %  (>= 90: missed)"


def test_commands_print_tables_of_a_hundred_columns() -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        words = (sys.executable, str(ROOT / "benchmarks" / "ledger.py"), *words)
        return subprocess.run(words, capture_output=True, text=True, check=False)

    lines = run("show", "symphony/").stdout.splitlines()
    assert len(lines) > 20
    assert max(map(len, lines)) <= 100
    assert "[0.19, inf]" in "".join(lines)
    history = run("history", "mutation/validators").stdout
    assert history.count("command: python tests/trust/run_mutation.py validators") >= 3
    missing = run("history", "no/such/claim")
    assert (missing.returncode, missing.stderr) == (1, "no claim is called 'no/such/claim'\n")
