"""Make all pictures of the documents: ``python docs/make_pictures.py [FOLDER]``.

Figures come from results of Stretto (``picture_figures.py``), screenshots from a server of its own in Chromium
(``picture_screens.py``; left out, with a word about it, where there is no Chromium). Each exists for light and for
dark pages. Curves of a training are recorded apart (``picture_training.py``), for they take minutes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from picture_figures import FIGURES

PICTURES = Path(__file__).resolve().parent / "pictures"


def main() -> None:
    """Make everything in the folder of pictures, or in the one that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=PICTURES)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for draw in FIGURES:
        draw(folder)
    if shutil.which("chromium") is None:
        print("chromium is not installed: the screenshots are not made", file=sys.stderr)
    else:
        from picture_screens import screenshots

        screenshots(folder)
    for path in sorted(folder.glob("*.*g")):
        print(f"{path.name} {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
