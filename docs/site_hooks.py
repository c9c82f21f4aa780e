"""What mkdocs calls while it builds the site: pages that live elsewhere or are made, and links that leave the site.

Documents outside ``docs/`` (the architecture, the cards of the learned systems) become pages of the site, and the
reference is written from the catalog and the command line. A link to a file that is no page loses its arrow
and keeps its words, since the site must stand alone.
"""

from __future__ import annotations

import os.path
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

from reference_pages import PAGES  # noqa: E402

#: Pages of the site that live elsewhere in the repository.
ELSEWHERE = {
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
_LINK = re.compile(r"(?<!\!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
#: A picture for dark pages and one for light ones, as GitHub wants them.
_PICTURE = re.compile(
    r"<picture>\s*<source [^>]*srcset=\"(?P<dark>[^\"]+)\">\s*"
    r"<img alt=\"(?P<words>[^\"]*)\" src=\"(?P<light>[^\"]+)\"[^>]*>\s*</picture>"
)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def elsewhere() -> dict[str, str]:
    """Return the pages that live elsewhere, with the cards of all learned systems."""
    cards = sorted(ROOT.glob("src/stretto/*/*/README.md"))
    return ELSEWHERE | {f"learned/{card.parent.name}.md": str(card.relative_to(ROOT)) for card in cards}


def on_config(config: Any) -> Any:
    """Fill the sections of the navigation that follow from what is there."""
    sections: dict[str, list[Any]] = {}
    listed = set(_walk(config.nav, sections))
    found = {
        "Learned systems": [page for page in elsewhere() if page.startswith("learned/")],
        "Decisions": [f"decisions/{page.name}" for page in sorted((ROOT / "docs" / "decisions").glob("*.md"))],
    }
    for name, pattern in (("Concepts", "*.md"), ("Concepts", "concepts/*.md"), ("Start", "[sth]*/*.md")):
        pages = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob(pattern))
        found.setdefault(name, []).extend(page for page in pages if page not in listed)
    for name, pages in found.items():
        sections[name] += pages
    return config


def _walk(nav: list[Any], sections: dict[str, list[Any]]) -> Iterator[str]:
    """Return the pages of a navigation, and note its sections by name."""
    for entry in nav:
        if isinstance(entry, str):
            yield entry
            continue
        for name, content in entry.items():
            if isinstance(content, str):
                yield content
            else:
                sections[name] = content
                yield from _walk(content, sections)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not files below ``docs/``."""
    for page, source in elsewhere().items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for page, make in PAGES.items():
        files.append(File.generated(config, page, content=make()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where the page's neighbours are on the site."""
    here = page.file.src_uri
    markdown = _PICTURE.sub(_both_themes, markdown)
    source = elsewhere().get(here, f"docs/{here}")
    homes = {home: target for target, home in elsewhere().items()}
    parts = re.split(f"({_FENCE.pattern})", markdown, flags=_FENCE.flags)
    for number in range(0, len(parts), 2):
        parts[number] = _LINK.sub(lambda link: _led(link, source, here, homes), parts[number])
    # Words after the language of a block are for the tests.
    return re.sub(r"^```(python|toml) [a-z]+$", r"```\1", "".join(parts), flags=re.MULTILINE)


def _both_themes(found: re.Match[str]) -> str:
    """Return both pictures in the words of the theme, whose switch decides which one is shown."""
    words, light, dark = found["words"], found["light"], found["dark"]
    return f"![{words}]({light}#only-light)\n![{words}]({dark}#only-dark)"


def _led(link: re.Match[str], source: str, here: str, homes: dict[str, str]) -> str:
    words, target = link.groups()
    path, hash_sign, anchor = target.partition("#")
    if "://" in target or not path:
        return link.group()
    meant = os.path.normpath(os.path.join(os.path.dirname(source), path))
    if meant in homes:
        meant = f"docs/{homes[meant]}"
    elif not (meant.startswith("docs/") and meant.endswith((".md", ".svg", ".png"))):
        return words
    return f"[{words}]({os.path.relpath(meant, os.path.join('docs', os.path.dirname(here)))}{hash_sign}{anchor})"
