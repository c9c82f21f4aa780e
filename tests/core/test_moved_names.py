"""Old names of modules can still be imported, and say where they went."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.metrics import measure
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.moved import MOVED, old_attribute


@pytest.mark.parametrize(("old", "new"), [(old, new) for old, new in MOVED.items() if new is not None])
def test_an_old_name_leads_to_the_new_one(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        module = importlib.import_module(old)
    found = importlib.import_module(new)
    names = [name for name in vars(found) if not name.startswith("_")]
    assert names
    assert all(getattr(module, name) is getattr(found, name) for name in names)


def test_other_names_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"stretto\.domain\.nothing"):
        importlib.import_module("stretto.domain.nothing")


def test_an_old_attribute_leads_to_the_new_one() -> None:
    class Figures:
        utilization = 0.5
        utilisation = old_attribute("utilisation", "utilization")

    with pytest.warns(DeprecationWarning, match=r"Figures\.utilisation is now utilization"):
        assert Figures().utilisation == 0.5


@pytest.mark.parametrize(("old", "new"), [("utilisation", "utilization"), ("device_utilisation", "device_utilization")])
def test_figures_of_schedules_are_found_by_their_old_spelling(old: str, new: str) -> None:
    problem = Problem.of(TaskGraph.from_edges([1.0], [], []), Cluster.parse("cpu:2"))
    figures = measure(problem, Schedule(np.zeros(1, np.int32), np.zeros(1), np.ones(1), "sequence"))
    with pytest.warns(DeprecationWarning, match=rf"Metrics\.{old} is now {new}"):
        assert getattr(figures, old) is getattr(figures, new)
