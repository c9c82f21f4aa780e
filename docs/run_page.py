"""Run the blocks of a page as a reader would, from top to bottom in a folder that holds the examples and nothing else.

- A block with a title, such as ``toml title="lab.toml"``, becomes that file.
- ``python`` blocks share one namespace per page.
- In ``console`` blocks, lines that begin with ``$`` are commands (``stretto`` or ``python FILE``); what follows
  is what they print.

``python docs/run_page.py PAGE...`` runs pages and says what they print; with ``--write`` it puts that into them. The
tests run all pages, and compare what is printed but for its numbers.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import re
import runpy
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
#: What may differ from run to run: the names of runs, numbers with their units, and whether a gap is closed.
_NUMBER = re.compile(
    r"\b\d{8}-\d{6}-[0-9a-f]{6}\b"
    r"|<?[-+]?\d[\d.,:]*(?:e[-+]?\d+)?(?: ?(?:ns|us|µs|ms|s|min|h|d|%|[kMGT]?B))?\b%?"
    r"|\bproven optimal\b"
)
_WIDTH = "88"
_EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file that it stands for, its text and where that begins in the page."""

    language: str
    title: str | None
    body: str
    start: int


@dataclass(frozen=True)
class Said:
    """A command, what the page shows after it, and what it printed."""

    command: str
    shown: str
    printed: str


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page that have a language and nothing but a title after it."""
    return [Block(m.group(1), m.group(2), m.group(3), m.start(3)) for m in _BLOCK.finditer(text)]


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Return the commands of a console block with what is shown after each."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        count = next(at for at, line in enumerate(lines, start=1) if not line.endswith("\\"))
        yield "\n".join(lines[:count]), "\n".join(lines[count:])


class Page:
    """A page that is being run; the current folder must be an empty one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.namespace: dict[str, Any] = {"__name__": "page"}
        self.said: list[Said] = []

    def run(self) -> list[Said]:
        """Run all blocks and return what the commands said."""
        for block in blocks(self.text):
            if block.title is not None:
                Path(block.title).parent.mkdir(parents=True, exist_ok=True)
                Path(block.title).write_text(block.body)
            elif block.language == "python":
                exec(compile(block.body, "page", "exec"), self.namespace)
            elif block.language == "console":
                self.said += [Said(command, shown, _run(command)) for command, shown in commands(block.body)]
        return self.said


def _run(command: str) -> str:
    """Run one command inside this process, and return its output; raise when it fails."""
    program, *patterns = shlex.split(command.replace("\\\n", " "))
    words = [word for pattern in patterns for word in sorted(glob.glob(pattern)) or [pattern]]  # as shells do
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        if program == "stretto":
            from stretto.cli.main import main

            code = main(words)
        elif program == "python":
            runpy.run_path(words[0], run_name="__main__")
            code = 0
        else:
            raise ValueError(f"a console block may run stretto and python, not {program!r}")
    if code != 0:
        raise RuntimeError(f"{command!r} ended with code {code}: {err.getvalue()}")
    return out.getvalue()


def gist(line: str) -> str:
    """Return a line without its numbers and with single spaces, for comparison."""
    return " ".join(_NUMBER.sub("#", line).replace("─", "").split())


def filled(text: str, said: list[Said]) -> str:
    """Return a page whose console blocks show what was printed."""
    answers = iter(said)

    def fill(found: re.Match[str]) -> str:
        if found.group(1) != "console":
            return found.group()
        parts = []
        for command, _ in commands(found.group(3)):
            printed = "\n".join(line.rstrip() for line in next(answers).printed.rstrip().split("\n"))
            parts.append(f"$ {command}\n{printed}".rstrip() + "\n")
        return "```console\n" + "\n".join(parts) + "```"

    return _BLOCK.sub(fill, text)


@contextlib.contextmanager
def empty_folder() -> Iterator[None]:
    """Work in a new folder beside a copy of the examples, with plain output and no settings of the reader's own."""
    changes = {"COLUMNS": _WIDTH, "NO_COLOR": "1", "STRETTO_CONFIG": os.devnull}
    before = {name: os.environ.get(name) for name in (*changes, "STRETTO_HOME")}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ.update(changes | {"STRETTO_HOME": str(Path(folder) / ".home")})
        shutil.copytree(_EXAMPLES, "examples", ignore=shutil.ignore_patterns("out", "__pycache__"))
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def main() -> None:
    """Run the pages that are named; with ``--write``, put what they print into them."""
    for name in sys.argv[1:]:
        if name == "--write":
            continue
        path = Path(name).resolve()
        page = Page(path.read_text())
        with empty_folder():
            said = page.run()
        if "--write" in sys.argv:
            path.write_text(filled(page.text, said))
        for one in said:
            print(f"$ {one.command}\n{one.printed}")


if __name__ == "__main__":
    main()
