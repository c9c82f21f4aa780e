"""Write a bill of materials (CycloneDX 1.5, JSON) of what is installed: ``python .ci/make_sbom.py [FILE]``.

It names Stretto, every distribution that it needs directly or indirectly with any of its extras, as far as they are
installed here, their versions, licenses as they state them, and who needs whom. What is needed and not installed is
printed. Same environment, same bytes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

_ROOT = "stretto"


def plain(name: str) -> str:
    """Return a name as package indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needs(found: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    """Yield what a distribution needs on this machine, with these extras."""
    for text in found.requires or []:
        wanted = Requirement(text)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            yield wanted


def collect() -> tuple[dict[str, Distribution], dict[str, set[str]], set[str]]:
    """Return all distributions, who needs whom, and what is not installed."""
    found: dict[str, Distribution] = {}
    needed: dict[str, set[str]] = {}
    absent: set[str] = set()
    own = frozenset(distribution(_ROOT).metadata.get_all("Provides-Extra") or ())
    waiting: list[tuple[str, frozenset[str]]] = [(_ROOT, own | {""})]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            absent.add(name)
            continue
        for wanted in needs(found[name], extras):
            other = plain(wanted.name)
            if other != name:
                needed.setdefault(name, set()).add(other)
                waiting.append((other, frozenset(wanted.extras) | {""}))
    return found, needed, absent


def component(name: str, found: Distribution) -> dict[str, object]:
    """Return the entry of a distribution."""
    about = found.metadata
    license_text = about.get("License-Expression") or about.get("License") or ""
    classified = [
        line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License")
    ]
    named = license_text.strip().splitlines()[0][:80] if license_text.strip() else "; ".join(classified)
    entry: dict[str, object] = {
        "type": "application" if name == _ROOT else "library",
        "bom-ref": reference(name, found),
        "name": name,
        "version": found.version,
        "purl": reference(name, found),
    }
    return entry | ({"licenses": [{"license": {"name": named}}]} if named else {})


def reference(name: str, found: Distribution) -> str:
    return f"pkg:pypi/{name}@{found.version}"


def bill() -> tuple[dict[str, object], set[str]]:
    """Return the document, and what is not installed."""
    found, needed, absent = collect()
    names = sorted(set(found) - {_ROOT})
    links = [
        {
            "ref": reference(name, found[name]),
            "dependsOn": sorted(reference(other, found[other]) for other in needed.get(name, ()) if other in found),
        }
        for name in [_ROOT, *names]
    ]
    document: dict[str, object] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(_ROOT, found[_ROOT])},
        "components": [component(name, found[name]) for name in names],
        "dependencies": links,
    }
    return document, absent


if __name__ == "__main__":
    document, absent = bill()
    target = Path(sys.argv[1] if sys.argv[1:] else "out/sbom.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{target}: {len(document['components'])} components")  # type: ignore[arg-type]
    if absent:
        print(f"needed by an extra and not installed here: {', '.join(sorted(absent))}")
