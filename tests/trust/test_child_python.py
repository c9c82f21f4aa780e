"""Children of ours never run code from the current folder, nor from a PYTHONPATH that we did not set."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import stretto
from stretto.core.host.child_python import isolated_starts, module_folders, outer_environment, python_environment

SOURCE = Path(stretto.__file__).parent
#: What a folder of somebody else's could hold, so that it is found instead of ours.
_PLANTED = (
    "stretto/__init__.py",
    "stretto/web/__init__.py",
    "stretto/web/worker.py",
    "stretto/engines/__init__.py",
    "stretto/engines/local/__init__.py",
    "stretto/engines/local/process_guard.py",
    "stretto/engines/slurm/__init__.py",
    "stretto/engines/slurm/steer/steering_guard.py",
    "numpy.py",
    "onnx.py",
    "distributed/__init__.py",
    "distributed/cli/__init__.py",
    "distributed/cli/dask_scheduler.py",
    "distributed/cli/dask_worker.py",
    "multiprocessing/__init__.py",
    "multiprocessing/spawn.py",
    "multiprocessing/resource_tracker.py",
    "sitecustomize.py",
)
_WORK = """
import numpy as np
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.engines.engine import RunOptions
from stretto.engines.work import Command, Work
commands = tuple(Command(("sh", "-c", "echo $PYTHONPATH")) for _ in range(2))
work = Work(TaskGraph.from_edges([1.0, 1.0], [], []), commands)
plan = Plan(np.array([0, 1], dtype=np.int32), np.array([0, 1], dtype=np.int32))
cluster, options = Cluster.parse("cpu:2"), RunOptions(keep="all")
"""
_STARTS = {
    "server": """
        import asyncio
        from stretto.web.pool import ServerWorker

        async def start():
            worker = await ServerWorker.start("", 1 << 33)
            worker.process.stdin.close()
            await asyncio.wait_for(worker.process.wait(), 60)

        asyncio.run(start())
        """,
    "steering guard": """
        from stretto.engines.slurm.steer.marks import Mark
        from stretto.engines.slurm.steer.steering_guard import SteeringGuard
        os.environ["PATH"] = str(folder)  # without Slurm's programs the guard ends at once
        assert SteeringGuard(Mark.here("steering", None, "steerer"), folder, None, None).dismiss() == ""
        """,
    "pilot": """
        import subprocess
        from stretto.engines.dask.engine import wait_for_workers
        from stretto.engines.slurm.engine.pilot import SlurmDaskEngine, _worker_script
        with SlurmDaskEngine()._scheduler(folder) as address:
            script = folder / "worker.sh"
            script.write_text(_worker_script(folder / "scheduler.json", []))
            worker = subprocess.Popen(["sh", str(script), "one"], stderr=subprocess.DEVNULL)
            try:
                wait_for_workers(address, ["one"], timeout_s=60, check=lambda: None)
            finally:
                worker.kill()
                worker.wait()
        """,
    "shapes of ONNX": """
        import onnx
        from stretto.files.graphs.onnx_shapes import infer_shapes
        value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
        assert infer_shapes(onnx.helper.make_model(onnx.helper.make_graph([], "g", [value], [value])))[1]
        """,
    "threads": _WORK
    + """
from stretto.engines.local.engine import LocalEngine
result = LocalEngine(workers="thread").run(work, plan, cluster, options).check()
assert result.outputs[0].decode().strip() == os.environ["PYTHONPATH"], "tasks keep the user's environment"
""",
    "worker processes": _WORK
    + """
from stretto.engines.local.engine import LocalEngine
result = LocalEngine(workers="process").run(work, plan, cluster, options).check()
assert result.outputs[0].decode().strip() == os.environ["PYTHONPATH"], "tasks keep the user's environment"
""",
    "Dask": _WORK
    + """
from stretto.engines.dask.engine import DaskEngine
if __name__ == "__main__":
    result = DaskEngine().run(work, plan, cluster, options).check()
    assert result.outputs[0].decode().strip() == os.environ["PYTHONPATH"], "tasks keep the user's environment"
""",
}
_HEAD = """
import os, sys
from pathlib import Path
folder = Path(sys.argv[1])
os.environ["PYTHONPATH"] = os.getcwd()
"""
_NEEDS = {"pilot": "distributed", "Dask": "distributed", "shapes of ONNX": "onnx", "server": "fastapi"}


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Return a folder full of modules that leave a mark when they are imported."""
    folder = tmp_path / "planted"
    for name in _PLANTED:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"open({str(tmp_path / 'mark')!r}, 'a').write({name!r} + '\\n')\n")
    return folder


@pytest.mark.parametrize("kind", _STARTS)
def test_no_child_runs_code_from_the_current_folder_or_from_the_path(tmp_path: Path, planted: Path, kind: str) -> None:
    if kind in _NEEDS:
        pytest.importorskip(_NEEDS[kind])
    script = tmp_path / "start.py"
    script.write_text(_HEAD + textwrap.dedent(_STARTS[kind]))
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [sys.executable, "-P", str(script), str(tmp_path)]
    done = subprocess.run(words, cwd=planted, env=clean, capture_output=True, text=True, timeout=180, check=False)
    mark = tmp_path / "mark"
    assert not mark.exists(), f"a child imported {mark.read_text().split()}"
    assert done.returncode == 0, done.stderr


def test_the_planted_modules_do_leave_their_mark(tmp_path: Path, planted: Path) -> None:
    """Otherwise the test above could not fail."""
    words = [
        sys.executable,
        "-c",
        "import numpy, stretto.web.worker, distributed.cli.dask_worker, multiprocessing.spawn",
    ]
    subprocess.run(words, cwd=planted, check=False, capture_output=True)
    assert {"numpy.py", "stretto/web/worker.py", "multiprocessing/spawn.py"} <= set(
        (tmp_path / "mark").read_text().split()
    )


def test_the_users_own_variables_come_back_for_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert "/somewhere" not in python_environment().get("PYTHONPATH", "")
    with isolated_starts():
        assert "/somewhere" not in os.environ.get("PYTHONPATH", "")
        assert os.environ["PYTHONSAFEPATH"] == "1"
        outer = outer_environment()
        assert (outer["PYTHONPATH"], "PYTHONSAFEPATH" in outer) == ("/somewhere", False)
        assert not any(name.startswith("STRETTO_OUTER_") for name in outer)
    assert os.environ["PYTHONPATH"] == "/somewhere"
    assert "PYTHONSAFEPATH" not in os.environ


def test_functions_of_the_user_are_found_where_the_parent_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend("/folder/of/the/user")
    assert module_folders()[0] == "/folder/of/the/user"
    assert python_environment(module_folders())["PYTHONPATH"].split(os.pathsep)[0] == "/folder/of/the/user"


def test_folders_that_are_named_on_purpose_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_PYTHONPATH", f"/apps/numpy{os.pathsep}relative")
    folders = python_environment()["PYTHONPATH"].split(os.pathsep)
    assert "/apps/numpy" in folders
    assert "relative" not in folders


_FORKS = ("multiprocessing.get_context('fork')", "multiprocessing.parent_process()")


def _other_starts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable":
            yield f"{path}:{node.lineno} uses sys.executable: use stretto.core.host.child_python.python_words"
        elif isinstance(node, ast.Call):
            text = ast.unparse(node)
            is_start = text.startswith(("multiprocessing.", "ProcessPoolExecutor(", "Process("))
            if is_start and text not in _FORKS:
                yield f"{path}:{node.lineno} starts processes with {text}: fork, or use stretto.core.host.child_python"


def test_only_one_module_knows_how_a_python_is_started(tmp_path: Path) -> None:
    modules = [path for path in SOURCE.rglob("*.py") if path.name != "child_python.py"]
    assert [fault for path in modules for fault in _other_starts(path)] == []
    bad = tmp_path / "bad.py"
    bad.write_text("subprocess.run([sys.executable, '-c', ''])\nmultiprocessing.get_context('spawn')\n")
    assert len(list(_other_starts(bad))) == 2


def test_children_are_told_where_the_package_lies_and_not_its_insides() -> None:
    folders = python_environment()["PYTHONPATH"].split(os.pathsep)
    assert str(Path(stretto.__file__).resolve().parents[1]) in folders
    assert not any((Path(folder) / "trace.py").exists() for folder in folders)  # core/trace.py would hide the library's
