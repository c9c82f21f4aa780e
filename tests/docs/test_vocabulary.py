"""Users read plain words: none of the metaphors that the project once used is left in strings, pages or documents.

Checked are the string literals of the package (docstrings, help, errors, explanations; names alone are not
prose and are left out), the names in the catalog, the scripts and styles of pages, and the documents. Laboratory notes
are left as they were written, and so is the part of the changelog that lists what was renamed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from stretto import catalog

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "stretto"

#: What must not be said, as a pattern of a whole word, and what to say instead.
INSTEAD = {
    r"sisters?": "variant",
    r"cousins?": "variant",
    r"steady": "default order",
    r"calm": "light load",
    r"bold": "trusts forecasts",
    r"shadows?": "counterfactual replay",
    r"spares?|spared|sparing": "reserve share; keeps free",
    r"leash": "process guard",
    r"books? of ends|end ?book|books?": "completion log, record, journal",
    r"counsel|sight": "strategist, observation",
    r"doorbell": "wakeup",
    r"shelf|shelves": "cache, store",
    r"giv(?:e|es|ing) back|giving_back": "restore, release",
    r"crew": "workers",
    r"lessons?": "training",
    r"go(?:es|ing|ne)? on with": "resume",
    r"how to do it again|do it again": "Reproduce",
    r"who decides|whom": "policy, which candidate",
    r"what is to be least": "what is minimized",
    r"dear(?:er|est)?": "costs more",
    r"believed of": "estimated",
    r"utilis\w*": "utilization",
}
_WORD = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern in INSTEAD), re.IGNORECASE)

#: Technical terms and markup that contain such a word; nothing else is excused.
ALLOWED = re.compile(
    r"steady-state"  # of a genetic search
    r"|shadow\s+times?"  # of EASY backfilling: when the head of the queue will fit
    r"|summary\.utilisation"  # a field of older runs, which pages still show
    r"|in bold|\[/?bold[^\]]*\]|bold (?:red|green|yellow|cyan|magenta|blue)"  # typography, and Rich's markup
    r"|(?:box|text|drop)-shadow|font(?:-weight)?:\s*bold|\"bold\"|attachShadow|shadowRoot"  # CSS, DOM
    r"|\S*bold\S*(?:px|em)\b|bold \d+(?:px|pt)",  # fonts of a canvas
    re.IGNORECASE,
)


class Found(NamedTuple):
    """An old word: where it stands, and in which text."""

    path: str
    line: int
    word: str
    text: str


def old_words(text: str, path: str, first_line: int = 1) -> list[Found]:
    """Return the old words of a text, apart from the technical terms that contain one."""
    plain = ALLOWED.sub(lambda match: " " * len(match.group()), text)
    found = []
    for match in _WORD.finditer(plain):
        line = text.count("\n", 0, match.start())
        found.append(Found(path, first_line + line, match.group(), text.splitlines()[line].strip()))
    return found


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    """Return the string literals of a module that are more than one name, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\s", node.value.strip()):
            yield node.lineno, node.value


def _report(found: list[Found]) -> str:
    return "\n" + "\n".join(f"{one.path}:{one.line}: {one.word!r} in {one.text[:110]!r}" for one in found)


def _folders() -> list[str]:
    return sorted({path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")})


@pytest.mark.parametrize("part", _folders())
def test_strings_of_the_package_use_plain_words(part: str) -> None:
    place = SOURCE / part
    found: list[Found] = []
    for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
        for line, text in _strings(path):
            found += old_words(text, str(path.relative_to(ROOT)), line)
    assert not found, _report(found)


def test_names_in_the_catalog_are_plain() -> None:
    names = [
        name for table in vars(catalog).values() if isinstance(table, dict) for name in table if isinstance(name, str)
    ]
    assert len(names) > 100
    assert not [name for name in names if old_words(name.replace("-", " ").replace("_", " "), "catalog")]


def _pages() -> list[Path]:
    """Return the scripts, styles and pages that a browser shows, apart from libraries of others."""
    pages = [path for path in SOURCE.rglob("*") if path.suffix in (".js", ".css", ".html", ".svg")]
    return sorted(path for path in pages if "vendor" not in path.parts and not path.name.endswith(".min.js"))


def test_pages_in_the_browser_use_plain_words() -> None:
    assert len(_pages()) > 5
    found = [one for path in _pages() for one in old_words(path.read_text(), str(path.relative_to(ROOT)))]
    assert not found, _report(found)


def _documents() -> list[Path]:
    """Return the documents, cards and room READMEs included."""
    patterns = ("*.md", "docs/**/*.md", "src/**/*.md", "benchmarks/*.md", "examples/*.py", "examples/*.toml")
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


def _current(path: Path) -> str:
    """Return the text of a document; of the changelog what is unreleased, without what was renamed."""
    text = path.read_text()
    if path.name != "CHANGELOG.md":
        return text
    unreleased = text.split("\n## [")[1]
    return re.sub(r"^### Renamed$.*?(?=^### |\Z)", "", unreleased, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", _documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_use_plain_words(path: Path) -> None:
    found = old_words(_current(path), str(path.relative_to(ROOT)))
    assert not found, _report(found)


def test_help_of_every_command_uses_plain_words() -> None:
    import click
    import typer

    from stretto.cli.app import app

    def texts(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
        context = click.Context(command, info_name=name)
        yield name, command.get_help(context)
        for word, child in getattr(command, "commands", {}).items():
            yield from texts(child, f"{name} {word}")

    helps = dict(texts(typer.main.get_command(app), "stretto"))
    assert len(helps) > 20
    found = [one for name, text in helps.items() for one in old_words(text, f"{name} --help")]
    assert not found, _report(found)


def test_old_words_are_found() -> None:
    assert [one.word for one in old_words("a sister of the steady one\nUtilisation is low", "x")] == [
        "sister",
        "steady",
        "Utilisation",
    ]
    assert old_words("first\nit goes on with that", "x")[0].line == 2
    assert not old_words("a steady-state search; the best in bold; [bold]x[/bold]; box-shadow: none", "x")
    assert not old_words("a textbook, notebooks and insight", "x")
