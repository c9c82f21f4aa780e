"""Which logs the networks of each fold have not seen: whole logs are left out, so that figures hold for other sites."""

from __future__ import annotations

#: Beginnings of the names of logs, by fold.
FOLDS = {
    "a": ("CEA", "HPC2N", "OSC", "SDSC-SP2", "lublin"),
    "b": ("CTC", "LANL", "RICC", "SDSC-Par", "NASA"),
    "c": ("LPC", "SDSC-BLUE", "Theta", "CERIT", "LCG"),
}


def fold_of(log: str) -> str:
    """Return the fold whose networks have not seen a log."""
    for name, logs in FOLDS.items():
        if log.startswith(logs):
            return name
    raise ValueError(f"{log} is in no fold: no network has seen it, use any")
