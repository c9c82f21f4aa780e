"""What the host permits: private files, locks, limits of memory, and environments of child processes."""

from __future__ import annotations

import fcntl
import os
import resource
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import stretto
from stretto.core.host import child_python, memory_limit, private_files
from stretto.core.host.child_python import (
    isolated_starts,
    module_folders,
    outer_environment,
    python_environment,
    python_words,
    shell_lines,
)

HOME = str(Path(stretto.__file__).resolve().parents[1])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("before", [0o666, 0o640, 0o601, 0o4755])
def test_the_rights_of_others_are_taken_away_and_the_owners_stay(before: int, tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("x")
    folder.mkdir()
    for path, again in ((file, private_files.make_private_file), (folder, private_files.make_private_folder)):
        path.chmod(before)
        again(path)
        assert mode(path) == before & ~0o077
        path.chmod(before)
        private_files.tighten(path)
        assert mode(path) == before & ~0o077
    assert file.read_text() == "x"


def test_new_files_and_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_files.make_private_folder(tmp_path / "a" / "b")
        private_files.make_private_folder(tmp_path / "a" / "b")  # it may be there
        private_files.make_private_file(tmp_path / "empty")
        private_files.write_private(tmp_path / "text", "long text")
        private_files.write_private(tmp_path / "text", "größe")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a" / "b") == 0o700
    assert [mode(tmp_path / name) for name in ("empty", "text")] == [0o600, 0o600]
    assert ((tmp_path / "empty").read_bytes(), (tmp_path / "text").read_text("utf-8")) == (b"", "größe")
    handle = private_files.open_private(tmp_path / "text", os.O_RDONLY)
    assert not os.get_inheritable(handle)
    os.close(handle)


@pytest.mark.parametrize("shared", [stat.S_ISVTX, stat.S_ISGID])
def test_a_folder_that_is_shared_on_purpose_keeps_its_rights_and_a_file_does_not(shared: int, tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.touch()
    for path, left in ((folder, 0o755), (file, 0o700)):
        path.chmod(0o755 | shared)
        private_files.tighten(path)
        assert mode(path) & 0o777 == left
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe").chmod(0o666)
    private_files.tighten(tmp_path / "pipe")  # neither a file nor a folder
    assert mode(tmp_path / "pipe") == 0o666


def test_a_lock_is_taken_once_and_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    now = [100.0]

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(private_files.time, "sleep", sleep)
    monkeypatch.setattr(private_files.time, "monotonic", lambda: now[0])
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    try:
        assert private_files.take_lock(first, fcntl.LOCK_SH) is True
        assert private_files.take_lock(second, fcntl.LOCK_SH) is True  # readers share
        assert private_files.take_lock(second, fcntl.LOCK_EX) is False
        assert pauses == []
        assert private_files.take_lock(second, fcntl.LOCK_EX, patience_s=0.05) is False
        assert pauses == [0.02, 0.02, 0.02]
        assert private_files.take_lock(second, fcntl.LOCK_EX, patience_s=2.0, pause_s=1.0) is False
        assert pauses[3:] == [1.0, 1.0]
        os.close(first)
        assert private_files.take_lock(second, fcntl.LOCK_EX) is True
    finally:
        os.close(second)


# Memory -------------------------------------------------------------------------------------------


def test_memory_is_the_least_of_machine_container_and_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    files = tuple(str(tmp_path / name) for name in ("absent", "max", "limit"))
    monkeypatch.setattr(memory_limit, "_CGROUP_FILES", files)
    Path(files[1]).write_text("max\n")
    assert memory_limit.machine_memory_bytes() == pages
    Path(files[2]).write_text("5000\n")
    assert memory_limit.machine_memory_bytes() == 5000
    Path(files[2]).write_text(f"{2 * pages}\n")
    assert memory_limit.machine_memory_bytes() == pages
    limits = {resource.RLIMIT_AS: resource.RLIM_INFINITY, resource.RLIMIT_DATA: resource.RLIM_INFINITY}
    monkeypatch.setattr(memory_limit.resource, "getrlimit", lambda kind: (limits[kind], resource.RLIM_INFINITY))
    assert memory_limit.process_memory_bytes() == pages
    for kind in limits:
        limits[kind] = 7000
        assert memory_limit.process_memory_bytes() == 7000
        limits[kind] = resource.RLIM_INFINITY


def test_limits_of_containers_are_read_where_linux_keeps_them() -> None:
    assert memory_limit._CGROUP_FILES == (
        "/sys/fs/cgroup/memory.max",  # version 2
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",  # version 1
    )


# Children -----------------------------------------------------------------------------------------


def test_a_child_is_started_by_this_python_without_the_current_folder() -> None:
    assert python_words("-m", "x") == [sys.executable, "-P", "-m", "x"]
    done = subprocess.run(python_words("-c", "import sys; print(sys.flags.safe_path)"), capture_output=True, text=True)
    assert done.stdout == "True\n"


def test_a_child_has_our_folders_first_and_nothing_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/user")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("STRETTO_PYTHONPATH", os.pathsep.join(["/extra", "relative", "/own", "/extra"]))
    monkeypatch.setenv("OTHER", "kept")
    found = python_environment(["/own", "/second"])
    paths = found["PYTHONPATH"].split(os.pathsep)
    assert paths[:3] == ["/own", "/second", "/extra"]
    assert paths[3:] in ([], [HOME])
    assert (found["OTHER"], found["STRETTO_OUTER_PYTHONPATH"], found["STRETTO_OUTER_PYTHONSAFEPATH"]) == (
        "kept", "/user", "1",
    )  # fmt: skip
    assert "PYTHONSAFEPATH" not in found
    again = child_python._isolated(dict(found), ())
    assert again["STRETTO_OUTER_PYTHONPATH"] == "/user"  # of a child's child, too


def test_a_package_that_is_installed_needs_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRETTO_PYTHONPATH", raising=False)
    monkeypatch.setattr(child_python, "_installed_folders", lambda: {HOME})
    assert "PYTHONPATH" not in python_environment()
    assert shell_lines().endswith("unset PYTHONPATH\n")
    monkeypatch.setattr(child_python, "_installed_folders", set)
    assert python_environment()["PYTHONPATH"] == HOME
    assert shell_lines(["/a b"]).endswith(f"export PYTHONPATH={shlex.quote(f'/a b{os.pathsep}{HOME}')}\n")


def test_a_script_keeps_what_the_user_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRETTO_PYTHONPATH", raising=False)
    script = shell_lines(["/a b"]) + 'echo "$STRETTO_OUTER_PYTHONPATH|$PYTHONPATH"'
    for before, kept in (({"PYTHONPATH": "/user"}, "/user"), ({}, "")):
        done = subprocess.run(["sh", "-uc", script], env=before, capture_output=True, text=True, check=True)
        outer, own = done.stdout.strip().split("|")
        assert (outer, own.split(os.pathsep)[0]) == (kept, "/a b")


@pytest.mark.parametrize(
    ("env", "outer"),
    [
        ({}, {}),
        ({"PYTHONPATH": "/plain"}, {"PYTHONPATH": "/plain"}),
        ({"PYTHONPATH": "/ours", "STRETTO_OUTER_PYTHONPATH": "/user"}, {"PYTHONPATH": "/user"}),
        ({"PYTHONPATH": "/ours", "STRETTO_OUTER_PYTHONPATH": ""}, {}),
        ({"PYTHONSAFEPATH": "1", "STRETTO_OUTER_PYTHONSAFEPATH": "x"}, {"PYTHONSAFEPATH": "x"}),
    ],
)
def test_tasks_of_the_user_get_what_the_user_had(
    env: dict[str, str], outer: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_python.os, "environ", {"OTHER": "kept", **env})
    assert outer_environment() == {"OTHER": "kept", **outer}


def test_what_an_isolated_start_changes_comes_back_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONSAFEPATH", "STRETTO_OUTER_PYTHONPATH", "STRETTO_OUTER_PYTHONSAFEPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", "/user")
    before = dict(os.environ)

    def fail() -> None:
        with isolated_starts():
            assert os.environ["STRETTO_OUTER_PYTHONPATH"] == "/user"
            assert os.environ["STRETTO_OUTER_PYTHONSAFEPATH"] == ""
            assert os.environ["PYTHONSAFEPATH"] == "1"
            assert os.environ.get("PYTHONPATH", HOME) == HOME
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert dict(os.environ) == before


def test_folders_of_the_interpreter_are_none_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; print(*(folder for folder in sys.path if folder), sep='\\n')"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run([sys.executable, "-PIc", script], env=clean, capture_output=True, text=True, check=True)
    standard = [folder for folder in found.stdout.splitlines() if folder != HOME]
    assert any(folder.endswith("lib-dynload") for folder in standard)
    scripts = str(Path(sys.executable).parent)
    monkeypatch.setattr(sys, "path", ["/user", "relative", *standard, scripts, "/lib/python311.zip", "/user"])
    assert module_folders() == ["/user", os.path.abspath("relative")]
