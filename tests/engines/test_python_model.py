"""Models that a function of a Python file builds: what it may return, and what is said where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.engines.python_model import call_builder
from stretto.errors import InvalidInput, UnknownName


def written(folder: Path, body: str) -> Path:
    path = folder / "net.py"
    path.write_text(f"def build():\n    {body}\n")
    return path


@pytest.mark.parametrize(
    ("body", "args"),
    [
        ("return 'model', (1, 2)", (1, 2)),
        ("return 'model', 1", (1,)),
        ("return 'model', [1, 2]", ([1, 2],)),
        ("return 'model', ()", ()),
    ],
)
def test_a_builder_returns_a_model_and_its_arguments(tmp_path: Path, body: str, args: tuple[object, ...]) -> None:
    assert call_builder(written(tmp_path, body), "build", allow_code=True) == ("model", args)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 'model'", "build returned str, expected two values"),
        ("return 'model', 1, 2", "build returned a tuple of 3, expected two values"),
        ("raise RuntimeError('no weights here')", r"build\(\) failed: RuntimeError: no weights here"),
    ],
)
def test_a_wrong_builder_is_an_error_that_names_it(tmp_path: Path, body: str, message: str) -> None:
    path = written(tmp_path, body)
    with pytest.raises(InvalidInput, match=message) as caught:
        call_builder(path, "build", allow_code=True)
    assert caught.value.source == f"{path}:build"


def test_a_misspelt_builder_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="build"):
        call_builder(written(tmp_path, "return 'model', 1"), "biuld", allow_code=True)


def test_nothing_is_executed_unless_allowed(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(f"open({str(tmp_path / 'made')!r}, 'w')\n")
    with pytest.raises(InvalidInput, match="--allow-code"):
        call_builder(path, "build", allow_code=False)
    assert not (tmp_path / "made").exists()
