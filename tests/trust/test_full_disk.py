"""A full disk costs the record that does not fit, and nothing else: not what was there, not the tasks."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

_HEAD = """
import resource, sys
from pathlib import Path

folder = Path(sys.argv[1])

def limit(num_bytes):
    # No file may grow beyond this: what a program sees then is what it sees on a full disk, an error of write().
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, resource.RLIM_INFINITY))
"""


def run_limited(folder: Path, body: str) -> str:
    """Run a script in a process whose files can be kept from growing."""
    words = [sys.executable, "-c", _HEAD + textwrap.dedent(body), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_run_log_refuses_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    out = run_limited(
        tmp_path,
        """
        from stretto.errors import StrettoError
        from stretto.runlog import RunLog

        log = RunLog.open(folder / "runs.db")
        run = log.start("run", "full", {})
        told, refused = [], []
        for phase in range(3):
            limit(600_000 * (phase + 1))
            for number in range(60):
                try:
                    told.append(run.record("step", f"{phase}-{number}", filler="x" * 8000))
                except StrettoError as error:
                    refused.append(str(error))
            limit(resource.RLIM_INFINITY)
            told.append(run.record("step", f"{phase}-after"))
        again = RunLog.open(folder / "runs.db")
        kept = [event.seq for event in again.events(run.id)]
        assert kept == told == list(range(1, len(told) + 1)), (len(kept), len(told))
        assert refused and all("runs.db" in text for text in refused)
        print(len(told), len(refused))
        """,
    )
    num_told, num_refused = map(int, out.split())
    assert num_told > 3
    assert num_refused > 0


def test_a_checkpoint_that_does_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    run_limited(
        tmp_path,
        """
        import numpy as np
        from stretto.files.checkpoint import InvalidCheckpoint, load, save

        rng = np.random.default_rng(0)
        save(folder / "state.npz", {"x": np.arange(5.0)}, {"step": 1})
        limit(20_000)
        try:
            save(folder / "state.npz", {"x": rng.random(50_000)}, {"step": 2})
        except InvalidCheckpoint as error:
            assert "state.npz" in str(error)
        else:
            raise AssertionError("it cannot have been written")
        limit(resource.RLIM_INFINITY)
        arrays, meta = load(folder / "state.npz")
        assert meta == {"step": 1} and arrays["x"].tolist() == [0, 1, 2, 3, 4]
        assert [file.name for file in folder.iterdir()] == ["state.npz"]
        """,
    )


def test_tasks_run_to_their_end_and_the_gap_in_the_record_is_told(tmp_path: Path) -> None:
    out = run_limited(
        tmp_path,
        """
        import numpy as np
        from stretto.core.cluster import Cluster
        from stretto.engines import event_writer
        from stretto.engines.completion_log import completion_log_path, read_completions
        from stretto.engines.engine import RunOptions
        from stretto.engines.local.engine import LocalEngine
        from stretto.engines.session import run_recorded, saved_plan
        from stretto.engines.work import Call, Work
        from stretto.core.problem import Problem
        from stretto.errors import EngineFailure
        from stretto.runlog import RunLog
        from stretto.testing.engine_checks import random_graph, random_plan

        rng = np.random.default_rng(1)
        graph, cluster = random_graph(rng, 30), Cluster.parse("cpu:2")
        plan = random_plan(rng, graph, cluster)
        ran = []
        work = Work(graph, tuple(Call(lambda *_, t=t: ran.append(t) or "y" * 20_000) for t in range(30)))
        log = RunLog.open(folder / "runs.db")
        log.start("run", "before", {}).finish("done")
        event_writer.LAST_PATIENCE_S = 0.5
        limit(150_000)
        try:
            run_recorded(log, LocalEngine(workers="thread"), work, plan, cluster, RunOptions(), settings={})
        except EngineFailure as error:
            print(error)
        assert sorted(ran) == list(range(30)), "a full disk must not stop the work"
        limit(resource.RLIM_INFINITY)
        run_id = log.run("latest").id
        kept = {event.subject for event in log.events(run_id, kinds=["task-finished"])}
        kept |= {end.task for end in read_completions(completion_log_path(log, run_id))}
        again = saved_plan(log, run_id, Problem.of(graph, cluster))
        ran.clear()
        session = run_recorded(
            log, LocalEngine(workers="thread"), work, again, cluster, RunOptions(), settings={}, resume=run_id
        )
        assert session.result.status == "done"
        assert len(kept) + len(ran) == 30 and session.num_done_before == len(kept) < 30
        """,
    )
    assert "run log is incomplete" in out


def test_events_wait_for_a_disk_that_is_full_for_a_while(tmp_path: Path) -> None:
    out = run_limited(
        tmp_path,
        """
        import threading, time
        import numpy as np
        from stretto.core.cluster import Cluster
        from stretto.engines.completion_log import completion_log_path
        from stretto.engines.engine import RunOptions
        from stretto.engines.local.engine import LocalEngine
        from stretto.engines.session import run_recorded
        from stretto.engines.work import Call, Work
        from stretto.runlog import RunLog
        from stretto.testing.engine_checks import random_graph, random_plan

        rng = np.random.default_rng(1)
        graph, cluster = random_graph(rng, 30), Cluster.parse("cpu:2")
        plan = random_plan(rng, graph, cluster)
        work = Work(graph, tuple(Call(lambda *_: time.sleep(0.01) or "y" * 20_000) for _ in range(30)))
        log = RunLog.open(folder / "runs.db")
        log.start("run", "before", {}).finish("done")
        notices = []

        def on_notice(text):
            notices.append(text)
            if "cannot be written" in text:
                threading.Timer(1.0, limit, [resource.RLIM_INFINITY]).start()

        limit(150_000)
        session = run_recorded(
            log, LocalEngine(workers="thread"), work, plan, cluster, RunOptions(), settings={}, on_notice=on_notice
        )
        assert session.result.status == "done"
        kept = log.events(session.run_id)
        assert sum(event.kind == "task-finished" for event in kept) == 30, "the record is complete"
        assert sum(event.kind == "task-started" for event in kept) == 30
        assert [event.kind for event in kept].count("record-delayed") == 1
        assert log.run(session.run_id).status == "done" and not completion_log_path(log, session.run_id).exists()
        print(*notices, sep="\\n")
        """,
    )
    assert "events are kept in memory until the log can be written" in out
    assert "the run log can be written again" in out
