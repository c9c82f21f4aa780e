"""Text from elsewhere: what commands a terminal or turns the writing is shown as a number, and nothing else is."""

from __future__ import annotations

import pytest

from stretto.core.host.safe_text import shown, shown_on_one_line

RANGES = [
    (0x00, 0x08),
    (0x0B, 0x1F),
    (0x7F, 0x9F),
    (0x61C, 0x61C),
    (0x200E, 0x200F),
    (0x2028, 0x202E),
    (0x2066, 0x2069),
]
RANGES.append((0xD800, 0xDFFF))


@pytest.mark.parametrize(("first", "last"), RANGES)
def test_unsafe_characters_are_numbers_up_to_the_edges(first: int, last: int) -> None:
    for code in (first, last):
        assert shown(f"a{chr(code)}b") == f"a\\u{code:04x}b"
    for code in (first - 1, last + 1):
        if code > 0 and not any(low <= code <= high for low, high in RANGES):
            assert shown(f"a{chr(code)}b") == f"a{chr(code)}b"


def test_names_stand_on_one_line() -> None:
    assert shown("a\n\tb") == "a\n\tb"
    assert shown_on_one_line("a\n\tb\x1b") == "a\\n\\tb\\u001b"
    assert shown_on_one_line("größe Ω") == "größe Ω"
