"""Wheel and source distribution: the same bytes twice, complete, and at work in a clean environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Of files that a program reads at run time.
KINDS = (".py", ".npz", ".js", ".css", ".html", ".svg", ".json", ".toml", ".typed")


def build(folder: Path, **environment: str) -> dict[str, bytes]:
    """Return the files that a build makes."""
    words = [sys.executable, str(ROOT / ".ci" / "build_dist.py"), str(folder)]
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build(folder, SOURCE_DATE_EPOCH="1700000000")
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("*.whl")
    return path


def packed_files() -> set[str]:
    """Return the files of the package that any distribution must hold."""
    found = {path for path in (ROOT / "src" / "stretto").rglob("*") if path.is_file() and path.suffix in KINDS}
    return {str(path.relative_to(ROOT / "src")) for path in found if "__pycache__" not in path.parts}


def test_the_same_files_give_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    """In another folder, time zone and language, with another umask."""
    before = os.umask(0o077)
    try:
        again = build(tmp_path / "again", SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo", LC_ALL="C")
    finally:
        os.umask(before)
    assert again == {path.name: path.read_bytes() for path in dist.iterdir()}
    later = build(tmp_path / "later", SOURCE_DATE_EPOCH="1700000002")
    assert later.keys() == again.keys()
    assert all(later[name] != again[name] for name in later)  # or the date would be in neither


def test_both_distributions_hold_everything_that_the_package_reads(dist: Path, wheel: Path) -> None:
    assert "stretto/py.typed" in packed_files()
    assert any(name.endswith("generalist.npz") for name in packed_files())
    assert any(name.startswith("stretto/web/static/") for name in packed_files())
    assert packed_files() <= set(zipfile.ZipFile(wheel).namelist())
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in packed_files()} | {"pyproject.toml", "README.md", "PKG-INFO"} <= names


def test_the_wheel_names_the_command_the_extras_and_the_versions_of_python(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    assert "stretto = stretto.cli.main:main" in archive.read(points).decode()
    (metadata,) = (name for name in archive.namelist() if name.endswith("METADATA"))
    text = archive.read(metadata).decode()
    for extra in ("learn", "dask", "onnx", "parquet", "docs", "web", "torch", "snakemake"):
        assert f"Provides-Extra: {extra}" in text
    assert "Requires-Python: >=3.11" in text
    for minor in (11, 12, 13):
        assert f"Programming Language :: Python :: 3.{minor}" in text


class Environment:
    """A virtual environment with the wheel in it, used from an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.python, self.here = folder / "env" / "bin" / "python", folder / "empty"
        self.here.mkdir(exist_ok=True)
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        # No PATH of ours either: what is needed must come with the wheel.
        self.variables = {**kept, "PATH": "/usr/bin:/bin", "HOME": str(self.here), "COLUMNS": "80"}

    def run(self, *words: str) -> str:
        """Run a program of the environment, and return what it printed."""
        program, *others = words
        done = subprocess.run(
            [str(self.python.with_name(program)), *others],
            cwd=self.here, env=self.variables, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel and the example plugin in an environment that sees our dependencies, but not this source tree."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "env", with_pip=False)
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    # A path that a .pth file adds is searched last, and its own .pth files (our editable installation) do not count.
    paths = [path for path in sys.path if Path(path).name == "site-packages"]
    (site / "dependencies.pth").write_text("\n".join(paths) + "\n")
    shutil.copytree(ROOT / "examples" / "plugin", folder / "plugin")
    words = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    python = ["--python", str(folder / "env" / "bin" / "python")]
    for more in (
        words[:3] + python + words[3:] + [str(wheel)],
        [*words, "--target", str(site), str(folder / "plugin")],
    ):
        done = subprocess.run(more, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return Environment(folder)


def check_first_steps(environment: Environment) -> None:
    """Plan and draw in an empty folder, with nothing but the wheel and its dependencies."""
    assert environment.run("stretto", "version", "--output", "quiet").strip()
    words = ("plan", "workload:fft?num_points=8", "-c", "gpu:2@1GB/s", "--save", "plan.json", "--gantt", "plan.html")
    assert "optimal" in environment.run("stretto", *words)
    assert {path.name for path in environment.here.iterdir()} >= {"plan.json", "plan.html"}
    page = (environment.here / "plan.html").read_text()
    assert "<script" in page
    assert "://" not in page.replace("http://www.w3.org", "")  # nothing loads from anywhere else


def check_demo(environment: Environment) -> None:
    """Run the demo and a learned policy, which compile most of what there is: a minute and a half of processor time."""
    shown = environment.run("stretto", "demo", "--out", "made", "--time-limit", "0.2", "--train-seconds", "0")
    assert "Gap to the lower bound" in shown
    assert {path.name for path in (environment.here / "made").iterdir()} >= {"plan.json", "report.html"}
    words = ("plan", "workload:fft?num_points=8", "-c", "gpu:2@1GB/s", "--policy", "doppler-zero", "--output", "quiet")
    assert float(environment.run("stretto", *words)) > 0


def test_the_installed_wheel_works_in_an_empty_folder(installed: Environment) -> None:
    where = installed.run("python", "-c", "import stretto; print(stretto.__file__)")
    assert where.startswith(str(installed.python.parents[1]))
    check_first_steps(installed)


def test_all_shipped_weights_and_pages_are_read_from_the_wheel(installed: Environment) -> None:
    code = """
import stretto
from pathlib import Path
from stretto.files import checkpoint
root = Path(stretto.__file__).parent
found = sorted(root.rglob("*.npz"))
for path in found:
    arrays, meta = checkpoint.load(path)
    assert arrays, path
from stretto.web.app import create_app
from stretto.web.settings import ServeSettings
assert create_app(ServeSettings(runs_path=Path("runs.db")))
print(len(found), len([*(root / "web" / "static").iterdir()]))
"""
    weights, pages = map(int, installed.run("python", "-c", code).split())
    assert weights == sum(name.endswith(".npz") for name in packed_files())
    assert pages == sum(name.startswith("stretto/web/static/") for name in packed_files())


def test_a_plugin_is_found_beside_the_installed_wheel(installed: Environment) -> None:
    assert "least-loaded" in installed.run("stretto", "list", "policies", "--output", "quiet").split()
    words = ("plan", "workload:zigzag?num_tasks=30", "-c", "cpu:3", "--policy", "least-loaded", "--output", "quiet")
    assert float(installed.run("stretto", *words)) > 0


def interpreters() -> list[str]:
    """Return the programs of those versions of Python that we promise and that are here."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for minor in (11, 12, 13):
        usual = shutil.which(f"python3.{minor}")
        others = [str(path) for path in sorted(versions.glob(f"3.{minor}.*/bin/python"))]
        found += others[-1:] or ([usual] if usual else [])
    return found


@pytest.mark.long
@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).parent.parent.name)
def test_the_wheel_installs_with_its_dependencies_on_every_python(python: str, wheel: Path, tmp_path: Path) -> None:
    """From the package index, without any extra; skipped where there is none."""
    subprocess.run([python, "-m", "venv", str(tmp_path / "env")], check=True)
    words = [
        str(tmp_path / "env" / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "-c",
        "constraints.txt",
        str(wheel),
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0 and "No matching distribution" in done.stderr + done.stdout:
        pytest.skip(f"no package index, or no wheels for this Python: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr[-3000:]
    check_first_steps(Environment(tmp_path))
    check_demo(Environment(tmp_path))
