"""Tests that run in a fork of a process which has imported nothing of ours, for ``run_mutation.py``."""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import coverage
import hypothesis
import pytest

_EXAMPLES = 10


class Watcher:
    """A pytest plugin: few examples, and what each test reaches, how long it takes, and the first that fails."""

    def __init__(self, seen: coverage.Coverage | None = None) -> None:
        self.seen = seen
        self.cpu_s: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            function = getattr(item, "obj", None)
            old = getattr(function, "_hypothesis_internal_use_settings", None)
            if old is not None:
                phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
                few = {"max_examples": min(_EXAMPLES, old.max_examples), "phases": phases, "derandomize": True}
                item.obj._hypothesis_internal_use_settings = hypothesis.settings(old, database=None, **few)  # type: ignore[attr-defined]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        if self.seen is not None:
            self.seen.switch_context(item.nodeid)
        before = time.process_time()
        try:
            return (yield)
        finally:
            self.cpu_s[item.nodeid] = time.process_time() - before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def in_child(folder: Path, most_cpu_s: float, arguments: list[str], traced: list[str] | None = None) -> dict[str, Any]:
    """Run tests in a fork of this process, which has imported nothing that is mutated; ``{}`` if it ends itself."""
    said = folder / "said.json"
    said.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            resource.setrlimit(
                resource.RLIMIT_CPU, (math.ceil(time.process_time() + most_cpu_s), resource.RLIM_INFINITY)
            )
            os.chdir(folder)
            with open("log.txt", "w") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            sys.path.insert(0, str(folder / "src"))
            seen = (
                coverage.Coverage(data_file=None, include=[str(folder / name) for name in traced]) if traced else None
            )
            watcher = Watcher(seen)
            if seen is not None:
                seen.start()
            pytest.main(["-p", "no:cacheprovider", "-m", "not long", *arguments], plugins=[watcher])
            reached: dict[str, dict[int, list[str]]] = {}
            if seen is not None:
                seen.stop()
                data = seen.get_data()
                reached = {
                    str(Path(name).relative_to(folder)): data.contexts_by_lineno(name) for name in data.measured_files()
                }
            said.write_text(json.dumps({"cpu_s": watcher.cpu_s, "failed": watcher.failed, "reached": reached}))
        os._exit(0)
    os.waitpid(child, 0)
    return json.loads(said.read_text()) if said.exists() else {}
