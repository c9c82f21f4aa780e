"""Mutation testing itself: what is changed, what is left alone, and who is killed."""

from __future__ import annotations

import ast
import os
import signal
from pathlib import Path

import pytest
import run_mutation
from mutants import Mutant, mutants_of
from mutation_runs import in_child

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''"""Words."""
from math import inf

Rows = list[int]
LIMIT = 3


def small(value: int, *, least: int = 0) -> bool:
    """Words that stay."""
    assert value < 100, "never"
    if value < least:
        raise ValueError(f"{value} is below {least + 1}")
    told = f"{value - 1}"
    return not told and value in (1, LIMIT)
'''


def changes(source: str) -> list[tuple[int, str, str]]:
    return [(one.line, one.before, one.after) for one in mutants_of("m.py", source.encode())]


def test_code_is_changed_and_words_and_types_are_not() -> None:
    found = changes(SOURCE)
    assert {line for line, _, _ in found} == {5, 8, 11, 12, 13, 14}
    assert (11, "value < least", "(value <= least)") in found
    assert (12, 'raise ValueError(f"{value} is below {least + 1}")', "pass") in found
    assert (14, "not told and value in (1, LIMIT)", "(not told or value in (1, LIMIT))") in found
    assert (14, "not told", "(told)") in found
    assert (5, "3", "4") in found
    assert [after for line, _, after in found if line == 13] == ["told = None"]
    assert len(set(found)) == len(found)


NAMES = [
    "core/validate.py",
    "queues/promises/kernels/plan.py",
    "engines/driver/elastic.py",
    "core/host/child_python.py",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_mutant_is_other_code_in_one_place(name: str) -> None:
    source = (ROOT / "src/stretto" / name).read_bytes()
    found = mutants_of(name, source)
    assert len(found) > 100
    for one in found if len(found) < 200 else found[::7]:
        changed = one.apply(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
        assert changed[: one.start] == source[: one.start]
        assert source[one.start : one.end].decode() == one.before


def test_what_is_none_already_stays() -> None:
    assert {after for _, _, after in changes("x.pop(1, None)")} == {"pass", "(x.pop(None, None))", "2"}


def test_letters_of_several_bytes_do_not_move_a_change() -> None:
    assert changes('x = "µ" + f(1)  # é\ny = 2\n')[-1] == (2, "2", "3")


def test_modules_are_in_one_group_and_known_mutants_exist() -> None:
    names = [name for group in run_mutation.GROUPS for name in run_mutation.sources_of(group)]
    assert len(set(names)) == len(names) > 80
    for row in run_mutation.equivalents():
        found = mutants_of(row["path"], (ROOT / row["path"]).read_bytes())
        assert any(run_mutation.is_row_of(row, one) for one in found), row


@pytest.mark.parametrize(
    ("killed", "total", "low", "high"), [(9, 10, 0.5958, 0.9821), (0, 5, 0.0, 0.4345), (5, 5, 0.5655, 1.0)]
)
def test_the_interval_is_that_of_wilson(killed: int, total: int, low: float, high: float) -> None:
    assert run_mutation.wilson(killed, total) == pytest.approx((low, high), abs=1e-4)


def test_a_mutant_is_killed_by_the_test_that_reaches_it_and_by_no_other(tmp_path: Path) -> None:
    (tmp_path / "src/halves").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    source = b"def half(x):\n    return x / 2\n\n\ndef down(n):\n    while n > 0:\n        n -= 1\n    return n\n"
    module = tmp_path / "src/halves/__init__.py"
    module.write_bytes(source)
    (tmp_path / "tests/test_halves.py").write_text(
        "from halves import down, half\n\n\ndef test_half():\n    assert half(0) == 0\n\n\n"
        "def test_down():\n    assert down(3) == 0\n"
    )
    told = in_child(tmp_path, ["tests/test_halves.py"], traced=["src/halves/__init__.py"])
    assert told["failed"] == []
    reached = {"tests/test_halves.py": told}
    made = {str(one).partition(": ")[2]: one for one in mutants_of("src/halves/__init__.py", source)}
    wanted = {
        "x / 2 → (x * 2)": "survived",  # zero tells nothing of a half
        "n > 0 → (n >= 0)": "killed: tests/test_halves.py::test_down",
        "n -= 1 → n += 1": "killed: tests/test_halves.py::test_down",  # it never ends
    }
    assert {change: run_mutation.try_mutant(tmp_path, made[change], reached) for change in wanted} == wanted
    assert run_mutation.try_mutant(tmp_path, Mutant("other.py", 1, "1", "2", 0, 1), reached) == "unreached"
    assert module.read_bytes() == source


def test_a_table_is_shown_to_the_tests_that_import_it(tmp_path: Path) -> None:
    """Reading a table runs no line of its module, so that no test is seen to reach it."""
    (tmp_path / "src/sheets").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    source = b"BYTES = {'a': 16}\n"
    (tmp_path / "src/sheets/sizes.py").write_bytes(source)
    os.utime(tmp_path / "src/sheets/sizes.py", (1, 1))  # bytecode is told apart by whole seconds
    (tmp_path / "tests/test_sizes.py").write_text(
        "from sheets.sizes import BYTES\n\n\ndef test_size():\n    assert BYTES['a'] == 16\n"
    )
    told = in_child(tmp_path, ["tests/test_sizes.py"], traced=["src/sheets/sizes.py"])
    file = str(tmp_path / "tests/test_sizes.py")
    (mutant,) = [one for one in mutants_of("src/sheets/sizes.py", source) if one.before == "16"]
    assert run_mutation.try_mutant(tmp_path, mutant, {file: told}) == "killed: tests/test_sizes.py::test_size"


@pytest.mark.parametrize(
    ("line", "is_import"),
    [
        ("from stretto.core.units import parse_bytes", True),
        ("from stretto.core import machine, units", True),
        ("from stretto.core import units as words", True),
        ("import stretto.core.units", True),
        ("from stretto.core.units_of import x", False),
        ("from stretto.core import machine", False),
        ("from stretto import core", False),
    ],
)
def test_imports_of_a_module_are_seen_in_every_form(line: str, is_import: bool, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(f'"""Units."""\n\n{line}\n')
    assert run_mutation.imports(tmp_path / "test_x.py", "src/stretto/core/units.py") is is_import


def test_a_mutant_that_keeps_pytest_from_starting_is_killed(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/conftest.py").write_text("raise ValueError\n")
    (tmp_path / "tests/test_x.py").write_text("def test_x():\n    pass\n")
    assert in_child(tmp_path, ["tests/test_x.py"])["failed"] == ["pytest itself (4)"]


def test_a_test_that_takes_too_long_does_not_end_the_others(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    slow = "    while True:\n        try:\n            pass\n        except Exception:\n            pass\n"
    (tmp_path / "tests/test_x.py").write_text(f"def test_slow():\n{slow}\n\ndef test_after():\n    pass\n")
    names = ["tests/test_x.py::test_slow", "tests/test_x.py::test_after"]
    told = in_child(tmp_path, ["tests/test_x.py"], usual_s=dict.fromkeys(names, 0.0))
    assert (told["failed"], list(told["cpu_s"]), told["exit"]) == (names[:1], names, 1)


def test_a_run_that_waits_for_ever_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_x.py").write_text("import threading\n\n\ndef test_x():\n    threading.Event().wait()\n")
    monkeypatch.setattr("mutation_runs.signal.alarm", lambda _: signal.setitimer(signal.ITIMER_REAL, 1.0))
    assert in_child(tmp_path, ["tests/test_x.py"], usual_s={}) == {}
