"""``stretto pipeline``: stages for throughput."""

from __future__ import annotations

import pytest

from .conftest import Run

WORDS = ("pipeline", "workload:chain-matmul", "-c", "gpu:2@16GB/s", "--microbatches", "4")


def test_the_three_outputs_agree(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(*WORDS, "--output", "json").json
    assert found["lower_bound_s"] <= found["period_s"] <= found["latency_s"] <= found["total_s"]
    assert found["total_s"] >= found["latency_s"] + 3 * found["period_s"] * (1 - 1e-9)
    assert (found["microbatches"], len(found["devices"])) == (4, len(found["memory_bytes"]))
    assert run(*WORDS, "--output", "quiet").out == f"{found['period_s']!r}\n"
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(*WORDS).out
    assert "microbatches per second" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_what_does_not_fit_says_which_device(run: Run) -> None:
    ran = run(*WORDS[:2], "-c", "gpu:2@16GB/s", "--microbatches", "0")
    assert ran.code == 2
    small = run("pipeline", "workload:chain-matmul", "-c", "gpu:2[1kB]@16GB/s")
    assert small.code == 2
