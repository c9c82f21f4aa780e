"""The name of what decided in a run (dispatcher, policy, strategy, algorithm), and whether its weights were trained."""

from __future__ import annotations

from collections.abc import Mapping


def decided_by(settings: Mapping[str, object]) -> str:
    """Return the name, such as ``symphony (untrained)``; empty where nothing of the kind decided."""
    kinds = ("dispatch", "policy", "strategy", "algorithm")
    name = next((settings[kind] for kind in kinds if settings.get(kind)), "")
    return f"{name} ({settings['weights']})" if name and settings.get("weights") else str(name)
