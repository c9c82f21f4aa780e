"""Commands print what the snapshots have, within the width of the terminal, and the answer first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cli import terminal_snapshots as kept


@pytest.fixture(scope="module", autouse=True)
def clone() -> Iterator[None]:
    with kept.folder_of_a_clone():
        yield


@pytest.mark.parametrize("columns", kept.WIDTHS)
@pytest.mark.parametrize("name", kept.COMMANDS)
def test_a_command_prints_its_snapshot(name: str, columns: int) -> None:
    found = kept.snapshot(name, columns)
    again = "look at the difference, then: python tests/cli/terminal_snapshots.py"
    assert found == kept.path_of(name, columns).read_text(), again
    assert max(map(len, found.splitlines()[1:])) <= columns
    assert "…" not in found


def test_no_snapshot_is_left_over() -> None:
    expected = {kept.path_of(name, columns) for name in kept.COMMANDS for columns in kept.WIDTHS}
    assert set(kept.FOLDER.iterdir()) == expected
