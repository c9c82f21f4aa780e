"""The page about queues runs, and a missing library says what to install."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "queue.md"


def test_the_python_of_the_page_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1
    for source in blocks:
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
    assert re.match(r"mean bounded slowdown \d", done.stdout)


def test_without_gymnasium_the_message_says_what_to_install() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import stretto.envs"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "pip install 'stretto[learn]'" in done.stderr
