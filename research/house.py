"""Measure the limits that keep the house small: ``python research/house.py [FOLDER]``.

Prints what is above a limit: lines of the package, files per folder, lines per file and function, parameters per
function, public class names used twice, and uses of ``Any``. FOLDER limits the list to one part of the package.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "stretto"
MAX_LINES, MAX_FILES_PER_FOLDER, MAX_FILE_LINES, MAX_FUNCTION_LINES = 60_000, 30, 450, 80
MAX_PARAMETERS, MAX_KERNEL_PARAMETERS, MAX_ANY = 12, 16, 758


class Function(NamedTuple):
    """A function with its size."""

    path: Path
    name: str
    num_lines: int
    num_parameters: int

    @property
    def max_parameters(self) -> int:
        """Kernels may have more: they cannot take objects."""
        return MAX_KERNEL_PARAMETERS if "kernels" in self.path.parts else MAX_PARAMETERS


class House(NamedTuple):
    """What was measured below a folder."""

    file_lines: dict[Path, int]
    folder_files: Counter[Path]
    functions: list[Function]
    classes: dict[str, list[Path]]
    uses_of_any: Counter[Path]


def measure(folder: Path = PACKAGE) -> House:
    """Read every Python file below a folder."""
    house = House({}, Counter(), [], defaultdict(list), Counter())
    for path in sorted(folder.rglob("*.py")):
        text, place = path.read_text(), path.relative_to(PACKAGE)
        house.file_lines[place] = text.count("\n")
        house.folder_files[place.parent] += 1
        house.uses_of_any[place] = len(re.findall(r"\bAny\b", text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                house.classes[node.name].append(place)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                count = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
                lines = (node.end_lineno or 0) - node.lineno + 1
                house.functions.append(Function(place, node.name, lines, count))
    return house


def above_limits(house: House) -> list[str]:
    """Return a line for each part that is above its limit."""
    found = [f"{path}: {n} files in the folder" for path, n in house.folder_files.items() if n > MAX_FILES_PER_FOLDER]
    found += [f"{path}: {n} lines" for path, n in house.file_lines.items() if n > MAX_FILE_LINES]
    for part in house.functions:
        if part.num_lines > MAX_FUNCTION_LINES:
            found.append(f"{part.path}: {part.name} has {part.num_lines} lines")
        if part.num_parameters > part.max_parameters:
            found.append(f"{part.path}: {part.name} has {part.num_parameters} parameters")
    for name, places in house.classes.items():
        if len(places) > 1:
            found.append(f"class {name} stands in {', '.join(map(str, places))}")
    return found


def main() -> None:
    """Print what is above a limit, and the totals."""
    folder = PACKAGE / sys.argv[1] if len(sys.argv) > 1 else PACKAGE
    house = measure(folder)
    print("\n".join(above_limits(house)))
    print(f"{sum(house.file_lines.values())} lines in {len(house.file_lines)} files ({MAX_LINES} allowed in all)")
    print(f"{house.uses_of_any.total()} uses of Any ({MAX_ANY} allowed in all)")
    for path, count in house.uses_of_any.most_common(5):
        print(f"    {count:4} {path}")


if __name__ == "__main__":
    main()
