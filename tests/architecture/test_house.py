"""The limits that keep the package small and easy to enter."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from research.house import MAX_ANY, House, above_limits, measure  # noqa: E402

#: Issue by issue new capabilities may raise this, in a commit that says by how much and for what: 77,000 after the move
#: into rooms; 96,000 with sites of nodes and partitions, recorded pasts and answers per job; 107,000 with promises on
#: nodes, answers to "when", limits of QOS, nodes that pack, rented nodes, Snakemake and Nextflow. Memory in planning,
#: promises in pools, programs of JAX, PyTorch and ONNX models, pipelines, and dispatch on a real host: 120,000.
#: Answers, pages that compare runs, metrics, locks inside Slurm and a belief that is fitted: 122,500.
MOST_LINES = 122_500


def test_folders_files_functions_and_names_keep_their_limits() -> None:
    assert above_limits(measure()) == []


def test_few_values_are_untyped() -> None:
    assert measure().uses_of_any.total() <= MAX_ANY


def test_the_package_does_not_grow() -> None:
    assert sum(measure().file_lines.values()) <= MOST_LINES


def test_what_is_above_a_limit_is_named() -> None:
    place = Path("core/big.py")
    house = House({place: 451}, Counter({Path("core"): 31}), [], {"A": [place, place]}, Counter())
    assert len(above_limits(house)) == 3
