"""The file in which Dask's scheduler says where it is: it is there before its content is."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("distributed")
from stretto.engines.slurm.engine.pilot import address_in


def test_a_file_that_is_not_whole_yet_has_no_address(tmp_path: Path) -> None:
    contact = tmp_path / "scheduler.json"
    assert address_in(contact) is None
    for part in ("", '{"type": "Scheduler", "addr'):
        contact.write_text(part)
        assert address_in(contact) is None
    contact.write_text('{"type": "Scheduler", "address": "tcp://127.0.0.1:8786"}')
    assert address_in(contact) == "tcp://127.0.0.1:8786"
