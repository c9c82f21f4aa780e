"""TOML that is nested without end, or has numbers of thousands of digits, is an error of one line in every reader.

Found by ``tests/trust/fuzz.py``: racks and workflows ended with a RecursionError.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stretto.config import read_settings
from stretto.engines.workflow_file import load_workflow
from stretto.errors import InvalidInput
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.clusters.machine_toml import read_rack
from stretto.files.clusters.pool_toml import read_pools
from stretto.files.document import read_document

READERS: dict[str, Callable[[Path], object]] = {
    "cluster": lambda path: read_cluster(read_document(path)),
    "pools": lambda path: read_pools(read_document(path)),
    "rack": lambda path: read_rack(read_document(path)),
    "workflow": load_workflow,
    "settings": lambda path: read_settings({"plan": frozenset({"policy"})}),
}
TEXTS = {"brackets": "x = " + "[" * 20_000, "digits": "x = " + "9" * 20_000, "tables": "x = " + "{a = " * 20_000}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("text", TEXTS)
def test_endless_toml_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    path = tmp_path / "endless.toml"
    path.write_text(TEXTS[text])
    monkeypatch.setenv("STRETTO_CONFIG", str(path))
    with pytest.raises(InvalidInput) as caught:
        READERS[name](path)
    assert "endless" in str(caught.value)
