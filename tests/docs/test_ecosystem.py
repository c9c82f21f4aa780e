"""What others build on: the wheel, the notebook, the names of environments."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that ``pip install .`` would install, built from a copy of what is in the source tree."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for path in (ROOT / "src").rglob("*"):
        # Neither what building has left behind nor what Python has compiled.
        if path.is_file() and "__pycache__" not in path.parts and "egg-info" not in str(path):
            target = source / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    words = ["wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(source / "dist"), str(source)]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = (source / "dist").glob("stretto-*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_everything_that_the_package_reads(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert "stretto/py.typed" in names
    for path in (ROOT / "src" / "stretto").rglob("*"):
        wanted = path.suffix in (".py", ".npz", ".js", ".css", ".html", ".svg", ".json", ".toml", ".typed")
        if path.is_file() and wanted and "__pycache__" not in path.parts:
            assert str(path.relative_to(ROOT / "src")) in names, f"{path.name} is not in the wheel"
    assert any(name.endswith("generalist.npz") for name in names)


def test_the_wheel_names_the_command_and_the_extras(wheel: zipfile.ZipFile) -> None:
    (points,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "stretto = stretto.cli.main:main" in wheel.read(points).decode()
    (metadata,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    text = wheel.read(metadata).decode()
    for extra in ("learn", "dask", "onnx", "parquet", "docs"):
        assert f"Provides-Extra: {extra}" in text


def test_the_installed_wheel_plans(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    code = (
        "import sys, stretto; assert stretto.__file__.startswith(sys.argv[1]), stretto.__file__\n"
        "from stretto.graphs.doppler.zero import DopplerZero\n"
        "graph = stretto.workloads.generate('fft', num_points=8)\n"
        "print(stretto.plan(graph, 'gpu:2@1GB/s', policy='doppler-zero').makespan_s > 0)\n"
    )
    # The folder stands before the one of the editable installation.
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1])\n{code}", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout == "True\n", done.stderr


def _notebook_script() -> object:
    spec = importlib.util.spec_from_file_location("make_notebook", ROOT / "examples" / "make_notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_is_up_to_date() -> None:
    script = _notebook_script()
    assert script.TARGET.read_text() == script.text()  # type: ignore[attr-defined]


def test_the_notebook_runs(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    script = _notebook_script()
    notebook = nbformat.reads(script.text(), as_version=4)  # type: ignore[attr-defined]
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    printed = ["".join(out.get("text", "") for out in cell.outputs) for cell in code]
    assert "56 tasks" in printed[0]
    assert "image/svg+xml" in code[1].outputs[0]["data"]
    assert "annealing" in printed[2]
    assert "saf: mean bounded slowdown" in printed[4]


def test_gymnasium_knows_the_environments_and_checks_them() -> None:
    import gymnasium
    from gymnasium.utils.env_checker import check_env

    import stretto.envs

    for name in stretto.envs.ENVIRONMENTS:
        assert name in gymnasium.registry
        check_env(gymnasium.make(name, num_jobs=16).unwrapped, skip_render_check=True)
