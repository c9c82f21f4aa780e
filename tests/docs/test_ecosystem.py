"""What others build on: the notebook, the names of environments. The wheel: ``tests/trust/test_wheel.py``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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
