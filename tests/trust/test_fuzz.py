"""Every reader and route under damaged inputs: some thousands here, a million with ``make fuzz``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stretto import catalog

SCRIPT = Path(__file__).with_name("fuzz.py")
NUM_INPUTS = os.environ.get("STRETTO_FUZZ_INPUTS", "1000000")
#: What it reads is no graph without the files beside it, which it never has here.
_NEVER = {"graph nextflow"}


@pytest.mark.parametrize("num_inputs", ["8000", pytest.param(NUM_INPUTS, marks=pytest.mark.long)])
def test_no_input_crashes_a_reader_or_a_route(num_inputs: str, tmp_path: Path) -> None:
    words = [sys.executable, str(SCRIPT), "--inputs", num_inputs, "--state", str(tmp_path / "state")]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False, cwd=tmp_path)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    counts = json.loads((tmp_path / "state" / "seed-0.json").read_text())
    tables = {"graph": catalog.FORMATS, "trace": catalog.TRACES, "site": catalog.SITES}
    assert {f"{what} {name}" for what, table in tables.items() for name in table} <= set(counts)
    assert sum(count["tried"] for count in counts.values()) >= int(num_inputs)
    # Damage begins with inputs that are right: a reader that understands none of them is not tested at all.
    assert {name for name, count in counts.items() if not count["understood"]} <= _NEVER


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    def fuzz(num_inputs: int) -> str:
        words = ["--inputs", str(num_inputs), "--state", str(tmp_path), "money words", "size words"]
        done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=True)
        return done.stdout.partition("money words")[2].splitlines()[0]

    first, again, more = fuzz(200), fuzz(200), fuzz(400)
    assert first == again
    assert [line.split()[0] for line in (first, more)] == ["100", "200"]
