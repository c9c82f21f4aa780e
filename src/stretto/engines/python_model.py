"""A model that a function of a Python file builds: ``FILE.py:FUNCTION``, executed only where the user says so."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from stretto.errors import InvalidInput, UnknownName


def python_function(source: str) -> tuple[Path, str] | None:
    """Split ``FILE.py:FUNCTION``; None for everything else."""
    path, colon, name = source.rpartition(":")
    if colon and path.endswith(".py") and name.isidentifier():
        return Path(path), name
    if source.endswith(".py"):
        raise InvalidInput(
            f"say which function builds the model, as in {source}:build; it returns the model and example arguments",
            field="model",
        )
    return None


def call_builder(path: Path, name: str, *, allow_code: bool) -> tuple[Any, tuple[Any, ...]]:
    """Execute a Python file and call one of its functions, which returns a model and its example arguments."""
    where = f"{path}:{name}"
    if not path.is_file():
        raise InvalidInput("there is no such file", source=str(path))
    if not allow_code:
        raise InvalidInput(
            "placing it executes this Python file: say --allow-code (allow_code=True) if you trust it", source=where
        )
    module = _module(path)
    build = getattr(module, name, None)
    if not callable(build):
        known = [one for one, value in vars(module).items() if callable(value) and not one.startswith("_")]
        raise UnknownName(f"function of {path}", name, known)
    try:
        made = build()
    except Exception as error:  # somebody else's program
        raise InvalidInput(f"{name}() failed: {type(error).__name__}: {error}", source=where) from error
    if isinstance(made, tuple) and len(made) == 2:
        model, args = made
        return model, args if isinstance(args, tuple) else (args,)
    found = f"a tuple of {len(made)}" if isinstance(made, tuple) else type(made).__name__
    raise InvalidInput(
        f"{name} returned {found}, expected two values: the model and its example arguments, as in "
        "return apply, (weights, batch)",
        source=where,
    )


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))  # its neighbors, as for a script
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # somebody else's program
        raise InvalidInput(f"cannot be executed: {type(error).__name__}: {error}", source=str(path)) from error
    finally:
        sys.path.pop(0)
    return module
