"""The name of what decided in a run: its policy, strategy or algorithm, and whether its weights were trained."""

from __future__ import annotations

from collections.abc import Mapping


def decided_by(settings: Mapping[str, object]) -> str:
    """Return the name, such as ``symphony (untrained)``; empty where nothing of the kind decided."""
    name = settings.get("policy") or settings.get("strategy") or settings.get("algorithm") or ""
    return f"{name} ({settings['weights']})" if name and settings.get("weights") else str(name)
