"""Documents keep to their size, and name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CARDS = sorted(ROOT.glob("src/stretto/*/*/README.md"))
ROOMS = sorted(ROOT.glob("src/stretto/*/README.md"))


def test_the_readme_is_short_and_answers_four_users_first() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    first = "\n".join(lines[:50])
    for words in ("make run", "make test", "source .venv/bin/activate", "pipx install .", "]("):
        assert words in first
    for user in ("Cluster operator", "Workflow owner", "ML engineer", "Researcher"):
        assert f"**{user}**" in first


def test_every_learned_system_has_a_card() -> None:
    assert [card.parent.name for card in CARDS] == ["doppler", "mars", "symphony"]
    for card in CARDS:
        assert (ROOT / "research" / "notes" / f"{card.parent.name}.md").is_file()


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.parent.name)
def test_a_card_is_one_page(card: Path) -> None:
    text = card.read_text()
    assert len(text.split()) <= 500
    assert len(text.splitlines()) <= 60
    for title in ("What is faithful", "What it reached", "How to use it", "Limits"):
        assert f"\n## {title}\n" in text
    assert "unseen" in text.lower() or "never saw" in text


@pytest.mark.parametrize("page", [*CARDS, *ROOMS], ids=lambda page: f"{page.parent.parent.name}-{page.parent.name}")
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for name in re.findall(r"`([\w./]+(?:\.py|/))`", text):
        places = (page.parent, page.parent.parent, ROOT / "src" / "stretto", ROOT)
        is_there = any((place / name).exists() for place in places) or any(page.parent.rglob(name.rstrip("/")))
        assert is_there, f"{page.parent.name}/README.md names {name}"


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.parent.name)
def test_a_room_has_a_short_page(room: Path) -> None:
    text = room.read_text()
    assert len(text.splitlines()) <= 40
    assert "## Invariants" in text


def test_weights_that_are_untrained_are_called_so() -> None:
    from stretto.files import checkpoint

    _, meta = checkpoint.load(ROOT / "src/stretto/racks/symphony/shipped.npz")
    is_untrained = meta["iterations"] == 0
    for page in ("README.md", "src/stretto/racks/symphony/README.md", "docs/howto/watch-a-rack.md"):
        assert ("untrained" in (ROOT / page).read_text()) == is_untrained, page


#: Files that a page lets its reader write.
INVENTED = {"graphs/planners/least_loaded.py", "files/graphs/arrows.py", "graphs/workloads/chain.py"}


def _documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])


@pytest.mark.parametrize("page", _documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_that_a_document_names_exist(page: Path) -> None:
    """Names with a folder are of this repository or of the package; ``NAME`` stands for what a reader puts in."""
    missing = []
    for name in re.findall(r"(?<![\w/.:-])((?:[a-z_]+/)+[\w-]+\.(?:py|npz|toml))\b", page.read_text()):
        folder = name.partition("/")[0]
        places = (ROOT, ROOT / "src", ROOT / "src" / "stretto")
        is_ours = any((place / folder).is_dir() for place in places)
        if (
            is_ours
            and "NAME" not in name
            and name not in INVENTED
            and not any((place / name).is_file() for place in places)
        ):
            missing.append(name)
    assert not missing
