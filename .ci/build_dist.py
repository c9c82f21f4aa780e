"""Build wheel and source distribution, the same bytes from the same files: ``python .ci/build_dist.py FOLDER``.

Times in the archives are ``SOURCE_DATE_EPOCH``, by default that of the last commit. Nothing is downloaded: setuptools
is taken from the environment. Prints the SHA-256 of both files.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_SKIPPED = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc")
_BUILD = (
    "import sys; from setuptools import build_meta; target = sys.argv[1]; "
    "build_meta.build_sdist(target); build_meta.build_wheel(target)"
)


def source_date() -> int:
    """Return the time that the archives will show."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    words = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def copy_sources(folder: Path, epoch: int) -> None:
    """Copy what is packed, with modes and times that do not depend on this machine."""
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "src", folder / "src", ignore=_SKIPPED)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (epoch, epoch))


def repack(path: Path, epoch: int) -> None:
    """Write a source distribution anew, without the times, users and order of the build."""
    with tarfile.open(path) as archive:
        members = [(member, archive.extractfile(member)) for member in archive.getmembers()]
        found = [(member, content.read() if content else None) for member, content in members]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, data in sorted(found, key=lambda pair: pair[0].name):
            clean = tarfile.TarInfo(member.name)
            clean.type, clean.mtime, clean.size = member.type, epoch, len(data or b"")
            clean.mode = 0o755 if member.isdir() else 0o644
            archive.addfile(clean, io.BytesIO(data or b""))
    with path.open("wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=epoch) as zipped:
        zipped.write(packed.getvalue())


def build(target: Path) -> list[Path]:
    """Build both files into a folder, and return their paths."""
    epoch = source_date()
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        source, made = Path(name) / "source", Path(name) / "made"
        source.mkdir()
        copy_sources(source, epoch)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
        words = [sys.executable, "-c", f"import os; os.umask(0o022); {_BUILD}", str(made)]
        done = subprocess.run(words, cwd=source, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"the build failed:\n{done.stderr[-3000:]}")
        (sdist,) = made.glob("*.tar.gz")
        repack(sdist, epoch)
        return [Path(shutil.copy(path, target)) for path in sorted(made.iterdir())]


if __name__ == "__main__":
    for path in build(Path(sys.argv[1] if sys.argv[1:] else "dist")):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}  {path.stat().st_size:,} bytes")
