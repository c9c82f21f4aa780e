"""Task graphs shaped after the paper's programs: variant calling, EEG graphs, security analytics, shuffles."""

from __future__ import annotations

import numpy as np

from stretto.core.graph import TaskGraph, sequence_of
from stretto.errors import InvalidInput


def _graph(name: str, kernels: list[str], edges: list[tuple[int, int]]) -> TaskGraph:
    categories, category = sequence_of(kernels)
    source, target = ([a for a, _ in edges], [b for _, b in edges])
    return TaskGraph.from_edges(
        np.ones(len(kernels)), source, target, name=name, categories=categories, category=category
    )


def variant_calling(width: int = 4) -> TaskGraph:
    """Return reads in ``width`` regions: each aligned, realigned, scored by PairHMM and Smith-Waterman, then called."""
    if width < 1:
        raise InvalidInput(f"{width} must be at least 1", field="width")
    kernels: list[str] = []
    edges: list[tuple[int, int]] = []
    ends = []
    for _ in range(width):
        first = len(kernels)
        kernels += ["alignment", "indel-realignment", "pairhmm", "smith-waterman", "variant-calling"]
        edges += [(first, first + 1), (first + 1, first + 2), (first + 1, first + 3)]
        edges += [(first + 2, first + 4), (first + 3, first + 4)]
        ends.append(first + 4)
    kernels.append("variant-calling")
    edges += [(end, len(kernels) - 1) for end in ends]
    return _graph(f"variant-calling-{width}", kernels, edges)


def eeg_graph(width: int = 6) -> TaskGraph:
    """Return ``width`` channels that are filtered, then correlated into one graph and searched twice."""
    if width < 1:
        raise InvalidInput(f"{width} must be at least 1", field="width")
    kernels = ["eeg-filter"] * width + ["eeg-graph", "eeg-graph", "eeg-graph"]
    edges = [(channel, width) for channel in range(width)] + [(width, width + 1), (width, width + 2)]
    return _graph(f"eeg-graph-{width}", kernels, edges)


def attack_tagger(width: int = 5) -> TaskGraph:
    """Return ``width`` hosts whose logs are tagged, then two rounds over what was found."""
    if width < 1:
        raise InvalidInput(f"{width} must be at least 1", field="width")
    kernels = ["attack-tagger"] * (width + 2)
    edges = [(host, width) for host in range(width)] + [(width, width + 1)]
    return _graph(f"attack-tagger-{width}", kernels, edges)


def shuffle(kind: str = "small") -> TaskGraph:
    """Return one transfer of a shuffle."""
    return _graph(f"shuffle-{kind}", [f"shuffle-{kind}"], [])


#: The mix of the rack's benchmark, in several sizes.
PAPER_MIX = (
    variant_calling(2),
    variant_calling(4),
    eeg_graph(4),
    eeg_graph(8),
    attack_tagger(3),
    attack_tagger(6),
)
SHUFFLE_MIX = (shuffle("small"), shuffle("small"), shuffle("large"))
