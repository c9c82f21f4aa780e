"""``stretto`` and ``stretto.api`` offer the same verbs, each with an example that runs."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

import stretto
from stretto import api

VERBS = [name for name in api.NAMES if name.islower()]
#: They write a file or need a run of the log; other tests call them.
WITHOUT_EXAMPLE = ("load_cluster", "save", "continue_training")


def test_every_verb_is_offered_by_the_package() -> None:
    assert set(api.NAMES) <= set(stretto.__all__)
    assert sorted(api.__all__) == sorted(api.NAMES)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_the_same_function_in_both_places(name: str) -> None:
    module = importlib.import_module(f"stretto.api.{api.NAMES[name]}")
    assert getattr(stretto, name) is getattr(api, name) is getattr(module, name)
    assert callable(getattr(stretto, name))


def test_importing_the_module_of_a_verb_does_not_hide_the_verb() -> None:
    importlib.reload(importlib.import_module("stretto.api.bound"))
    assert callable(api.bound)


@pytest.mark.parametrize("name", [name for name in VERBS if name not in WITHOUT_EXAMPLE])
def test_a_verb_has_an_example_that_runs(name: str) -> None:
    verb = getattr(api, name)
    finder = doctest.DocTestFinder(recurse=False)
    module = inspect.getmodule(verb)
    examples = [test for test in finder.find(verb, name, module=module) if test.examples]
    assert examples, f"stretto.{name} has no example"
    for example in examples:
        result = doctest.DocTestRunner(verbose=False).run(example)
        assert result.failed == 0
