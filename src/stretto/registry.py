"""Lazy look-up of components: a name becomes ``module:attr`` and is imported on first use."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from stretto.errors import InvalidInput, UnknownName


def resolve(target: str) -> Any:
    """Import the object that a ``module:attr`` string names."""
    module, _, attr = target.partition(":")
    return getattr(importlib.import_module(module), attr)


def lookup(what: str, name: str, table: Mapping[str, str]) -> Any:
    """Import the component called ``name``, or raise with the nearest known names."""
    if name not in table:
        raise UnknownName(what, name, table)
    return resolve(table[name])


def construct(what: str, name: str, table: Mapping[str, str], params: Mapping[str, Any]) -> Any:
    """Build the component called ``name`` with its dataclass parameters checked by name."""
    component = lookup(what, name, table)
    known = {field.name for field in dataclasses.fields(component) if field.init}
    for key in params:
        if key not in known:
            raise UnknownName(f"parameter of {what} {name!r}:", key, known)
    try:
        return component(**params)
    except (TypeError, ValueError) as error:
        raise InvalidInput(str(error), field=f"{what} {name}") from error
