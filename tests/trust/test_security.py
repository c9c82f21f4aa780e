"""Nothing that comes from outside runs code, leaves its place, eats the machine, or shows a secret."""

from __future__ import annotations

import ast
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import stretto
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.files.load import load, load_cluster
from stretto.files.traces.load import load_trace

SOURCE = Path(stretto.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
FORBIDDEN_IMPORTS = {
    "pickle",
    "cPickle",
    "_pickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "yaml",
    "pty",
    "xmlrpc",
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "mktemp", "extract", "extractall"}
#: Calls of ours that share a name with a dangerous one: module, name.
HARMLESS_METHODS = {"compile"}  # re.compile, trainer.compile, lowered.compile: methods, never the builtin
#: Dask's own protocol is pickle. It is asked whether it could send an output; nothing is unpickled here.
ALLOWED_IMPORTS = {("engines/dask/remote.py", "distributed.protocol.pickle")}


def faults_in(path: Path) -> Iterator[str]:
    """Yield what a module must not do."""
    name = path.relative_to(SOURCE).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for module in imported(node):
            if set(module.split(".")) & FORBIDDEN_IMPORTS and (name, module) not in ALLOWED_IMPORTS:
                yield f"{name}:{node.lineno} imports {module}"  # type: ignore[attr-defined]
        if isinstance(node, ast.Call):
            yield from (f"{name}:{node.lineno} {fault}" for fault in call_faults(node))


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


def call_faults(node: ast.Call) -> Iterator[str]:
    is_method = isinstance(node.func, ast.Attribute)
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    is_harmless = (is_method and called in HARMLESS_METHODS) or ast.unparse(node.func) == "platform.system"
    if called in FORBIDDEN_CALLS and not is_harmless:
        yield f"calls {called}"
    for keyword in node.keywords:
        is_false = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if keyword.arg in ("shell", "allow_pickle") and not is_false:
            yield f"passes {keyword.arg}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_no_module_runs_what_it_reads(path: Path) -> None:
    assert list(faults_in(path)) == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from distributed.protocol.pickle import loads",
        "eval(x)",
        "exec(x)",
        "compile(x, y, z)",
        "os.system(x)",
        "run(x, shell=True)",
        "np.load(x, allow_pickle=flag)",
        "archive.extractall(x)",
        "import yaml",
    ],
)
def test_the_search_for_faults_finds_them(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    (tmp_path / "bad.py").write_text(code)
    assert len(list(faults_in(tmp_path / "bad.py"))) == 1


def test_secrets_are_compared_in_constant_time() -> None:
    """Neither ``==`` nor ``in`` touches the token or the cookie that stands for it."""
    tree = ast.parse((SOURCE / "web" / "guard.py").read_text())
    (tokens,) = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == "Tokens"]
    compared = [node for node in ast.walk(tokens) if isinstance(node, ast.Compare)]
    for node in compared:
        words = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        assert not words & {"_token", "session", "value"}, ast.unparse(node)
    assert ast.unparse(tokens).count("hmac.compare_digest") == 2


DEEP = b"[" * 100_000
DEEP_FIELD = b'{"tasks": ' + b'{"a":' * 100_000
READERS: dict[str, Callable[[Path], Any]] = {"graph": load, "trace": load_trace, "cluster": load_cluster}


@pytest.mark.parametrize("data", [DEEP, DEEP_FIELD], ids=["lists", "objects"])
@pytest.mark.parametrize("what", READERS)
def test_deep_json_is_an_error_not_a_crash(what: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_bytes(data)
    with pytest.raises(StrettoError, match=r"deep\.json"):
        READERS[what](path)


def test_deep_json_on_the_command_line_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "workload:fft", "-c", "cpu:1", "--param", "x=" + "[" * 50_000]
    assert main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1


GRAPH = b"digraph g { a [work=2]; b [work=3]; a -> b [size=1e6]; }"
TRAVERSALS = ("../../escaped.dot", "/escaped.dot", "a/../../../escaped.dot", "..\\..\\escaped.dot")


@pytest.mark.parametrize("member", TRAVERSALS)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_members_of_archives_stay_in_memory(kind: str, member: str, tmp_path: Path) -> None:
    inside = tmp_path / "a" / "b" / "c"
    inside.mkdir(parents=True)
    path = inside / f"graphs.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(member, GRAPH)
    else:
        with tarfile.open(path, "w") as archive:
            about = tarfile.TarInfo(member)
            about.size = len(GRAPH)
            archive.addfile(about, io.BytesIO(GRAPH))
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    load(path)
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == before
    assert not Path("/escaped.dot").exists()


def test_links_in_archives_lead_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret.dot"
    secret.write_bytes(GRAPH)
    path = tmp_path / "links.tar"
    with tarfile.open(path, "w") as archive:
        for kind, name in ((tarfile.SYMTYPE, "soft.dot"), (tarfile.LNKTYPE, "hard.dot")):
            about = tarfile.TarInfo(name)
            about.type, about.linkname = kind, str(secret)
            archive.addfile(about)
    with pytest.raises(StrettoError):
        load(path)


_SERVE = """
import json, sys
from stretto.web.server import serve
serve(lambda address: print(address, flush=True), **json.loads(sys.stdin.readline()))
"""
TOKEN = "correct-horse-battery-staple-7391"


def test_the_token_is_nowhere_but_in_the_request(tmp_path: Path) -> None:
    """Not in what the server prints, not in its answers, not in the run log."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    settings = {"port": 0, "runs_path": str(tmp_path / "runs.db"), "token": TOKEN, "num_workers": 1}
    process.stdin.write(json.dumps(settings).encode() + b"\n")
    process.stdin.flush()
    url = process.stdout.readline().decode().strip()
    try:
        answers = ask(url)
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for text in (out, err, kept, *answers):
        assert TOKEN.encode() not in text


def ask(url: str) -> list[bytes]:
    """Ask rightly and wrongly, and return all that comes back."""
    right = {"Authorization": f"Bearer {TOKEN}"}
    answers = []
    with httpx.Client(base_url=url, timeout=120.0) as client:
        for headers in (right, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN}):
            for path in ("/api/runs", "/metrics", "/openapi.json", f"/api/runs/{TOKEN[:5]}", "/"):
                reply = client.get(path, headers=headers)
                answers.append(reply.content + str(reply.headers).encode())
        reply = client.post("/api/plan", json={"graph": GRAPH.decode(), "cluster": "cpu:1"}, headers=right)
        assert reply.status_code == 200, reply.text
        answers += [reply.content, client.post("/api/plan", content=b"{", headers=right).content]
        answers.append(client.post("/login", data={"token": TOKEN}).headers["set-cookie"].encode())
    return answers
