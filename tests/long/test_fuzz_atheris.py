"""Coverage-guided fuzzing of every reader in the catalog (``make test-long``)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from real_data import find_data
from stretto import catalog, registry
from stretto.errors import StrettoError
from stretto.files.document import Document, read_document

SECONDS = os.environ.get("STRETTO_FUZZ_SECONDS", "60")
#: ONNX reads through compiled protobuf code in a child process: no coverage to guide by.
READERS = sorted(set(catalog.FORMATS) - {"onnx"})


def write_corpus(name: str, folder: Path) -> int:
    """Seed the fuzzer with small real files of the format, where the data is at hand."""
    reader = registry.lookup("format", name, catalog.FORMATS)
    data = find_data()
    paths = sorted(data.rglob("*")) if data else []
    found = 0
    for path in paths:
        if not path.is_file() or path.stat().st_size > 20_000 or found >= 5:
            continue
        try:
            document: Document = read_document(path)
        except StrettoError:
            continue
        if len(document.data) <= 50_000 and reader.matches(document):
            (folder / f"seed{found}").write_bytes(document.data[:4096])
            found += 1
    (folder / "empty").write_bytes(b"{}")
    return found


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.parametrize("name", READERS)
def test_no_input_crashes_a_reader(name: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    write_corpus(name, corpus)
    script = Path(__file__).with_name("fuzz_reader.py")
    done = subprocess.run(
        [sys.executable, str(script), name, SECONDS, str(corpus)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=int(SECONDS) * 3 + 300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done" in done.stderr or "DONE" in done.stderr
