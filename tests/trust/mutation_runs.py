"""Tests that run in a fork of a process which has imported nothing of ours, for ``run_mutation.py``."""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import coverage
import hypothesis
import pytest

#: CPU seconds of a test beyond which it is left out.
MOST_PER_TEST_S = 2.0
#: CPU seconds of a file of tests after which its other tests are left out.
_MOST_PER_FILE_S = 12.0
_EXAMPLES = 10
#: Seconds after which a run that notes what tests reach is given up.
_LONGEST_S = 3600


class Watcher:
    """A pytest plugin: few examples, a limit of CPU time, what each test reaches, how long it takes, what fails."""

    def __init__(self, usual_s: dict[str, float], seen: coverage.Coverage | None) -> None:
        self.usual_s = usual_s
        self.seen = seen
        self.cpu_s: dict[str, float] = {}
        self.failed: list[str] = []
        self._of_file: dict[str, float] = defaultdict(float)  # CPU seconds
        self._is_limited = False

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
        most = 3.0 + 3.0 * self.usual_s[item.nodeid] if item.nodeid in self.usual_s else 2.0 * MOST_PER_TEST_S
        signal.setitimer(signal.ITIMER_VIRTUAL, most, 0.5)  # again, for what swallows the first one
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
            took = time.process_time() - before
            self.cpu_s[item.nodeid] = took
            self._of_file[item.path.name] += took

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Any:
        self._is_limited = True
        try:
            return (yield)
        finally:
            self._is_limited = False

    def too_long(self, number: int, frame: Any) -> None:
        """End a test by an error; while pytest reports on one, an error would end the whole run."""
        if self._is_limited:
            raise TimeoutError("takes far more time than usual")

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if not self.usual_s and self._of_file[item.path.name] > _MOST_PER_FILE_S:
            pytest.skip("the tests of this file so far are enough")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def in_child(
    folder: Path, arguments: list[str], *, usual_s: dict[str, float] | None = None, traced: list[str] | None = None
) -> dict[str, Any]:
    """Run tests in a fork of this process, which has imported nothing that is mutated; ``{}`` if it ends itself.

    With ``usual_s`` a test that takes three times as long, and three seconds, has failed. With ``traced``, lines of
    these files that tests reach are noted.
    """
    said = folder / "said.json"
    said.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            sys.dont_write_bytecode = usual_s is not None
            most = math.ceil(time.process_time() + 10 + 3 * sum((usual_s or {"": 300.0}).values()))
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
            signal.alarm(_LONGEST_S if usual_s is None else math.ceil(120 + 20 * sum(usual_s.values())))  # a deadlock
            os.chdir(folder)
            with open("log.txt", "w") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            sys.path.insert(0, str(folder / "src"))
            include = [str(folder / name) for name in traced or ()]
            seen = coverage.Coverage(data_file=None, include=include) if traced else None
            watcher = Watcher(usual_s or {}, seen)
            signal.signal(signal.SIGVTALRM, watcher.too_long)
            if seen is not None:
                seen.start()
            code = pytest.main(["-p", "no:cacheprovider", "-m", "not long", *arguments], plugins=[watcher])
            if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not watcher.failed:
                watcher.failed.append(f"pytest itself ({code})")  # as where a conftest.py cannot be imported
            reached: dict[str, dict[int, list[str]]] = {}
            if seen is not None:
                seen.stop()
                data = seen.get_data()
                for name in data.measured_files():
                    reached[str(Path(name).relative_to(folder))] = data.contexts_by_lineno(name)
            found = {"cpu_s": watcher.cpu_s, "failed": watcher.failed, "reached": reached, "exit": int(code)}
            said.write_text(json.dumps(found))
        os._exit(0)
    os.waitpid(child, 0)
    return json.loads(said.read_text()) if said.exists() else {}
