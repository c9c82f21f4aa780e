"""Whatever a command can do, its function in ``stretto.api`` can do: every option is a parameter, or a field of one."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stretto import api
from stretto.api.place import emit_placement, place_model
from stretto.api.prices import find_offers, pool_of_offer
from stretto.api.simulate import simulate_file
from stretto.api.train import continue_training

#: How a result is shown, or where it is kept: a Python program has the result itself.
PRESENTATION = {
    "output": "table, JSON or one value",
    "save": "api.plan_file.save_plan writes a plan file; comparisons have save()",
    "baseline": "comparisons have paired()",
    "gantt": "stretto.gantt draws a result",
    "curves": "stretto.reports draws the rows of a training",
    "plot": "stretto.reports draws a result",
    "jobs": "stretto.job_table returns the rows",
    "log": "stretto.runlog keeps a run",
    "limit": "how many rows are printed",
    "help": "of the command line itself",
    "config": "stretto.nextflow returns the text, and save_config writes it",
    "graph": "stretto.nextflow returns the graph, and stretto.save writes it",
}
#: Commands that only print, or that start something, with the reason why Python has no such verb.
WITHOUT_VERB = {
    "list": "prints tables of stretto.catalog",
    "engines": "prints a table of stretto.catalog",
    "demo": "calls compare and train, and prints",
    "doctor": "prints what is installed",
    "help": "prints",
    "version": "prints stretto.__version__",
    "config show": "prints settings of the command line",
    "config path": "prints settings of the command line",
    "serve": "starts the dashboard, which lies above the api",
    "testbed slurm up": "starts a private Slurm: stretto.engines.slurm.testbed",
    "testbed slurm down": "stops a private Slurm",
    "testbed slurm status": "prints the state of a private Slurm",
}
#: Commands whose function has another name.
VERBS: dict[str, Callable[..., Any]] = {
    "place": place_model,
    "simulate": simulate_file,
    "prices list": find_offers,
    "prices pool": pool_of_offer,
}
#: Commands that two functions serve.
FURTHER: dict[str, Callable[..., Any]] = {"place": emit_placement, "train": continue_training, "when": api.when_slurm}
#: Options whose counterpart has another name, for all commands: text on the command line, a value in Python.
RENAMED = {"time_limit": "time_limit_s", "dim": "dims", "param": "params", "engine_param": "engine_params"}
#: The same for one command.
RENAMED_IN: dict[str, dict[str, str]] = {
    "compare": {"graphs": "sources", "procs": "cluster", "pools": "cluster", "site": "cluster"},
    "explain": {"procs": "machine", "pools": "machine", "site": "machine"},
    "replay": {
        "procs": "machine",
        "pools": "machine",
        "site": "machine",
        **dict.fromkeys(("power", "idle_power", "carbon", "carbon_start"), "energy"),
    },
    "report": {"procs": "machine", "pools": "machine", "site": "machine"},
    "run": {"workflow": "work", "attempts": "max_attempts", "commands": "work"},
    "bound": {"dim": "dims"},
    "train": {"budget": "budget_s", "continue_run": "run_id"},
    "when": {"procs": "machine", "site": "machine", "all_waiting": "when_all", "slurm": "when_slurm"},
    "steer slurm": {"off": "steer_off", "on": "steer_on"},
}


def _commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        path = f"{prefix}{name}"
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} ")
        else:
            yield path, command


def _all_commands() -> dict[str, Any]:
    import typer

    from stretto.cli.app import app

    return dict(_commands(typer.main.get_command(app)))


def _verb(path: str) -> Callable[..., Any]:
    return VERBS[path] if path in VERBS else getattr(api, path.split()[0])


def _names(verb: Callable[..., Any]) -> set[str]:
    """Return the parameters of a function, and the fields of those that are parameter classes."""
    names = set(inspect.signature(verb).parameters)
    for hint in _hints(verb):
        for kind in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(kind) and getattr(kind, "__module__", "").startswith("stretto."):
                names |= {field.name for field in dataclasses.fields(kind)}
            elif typing.is_typeddict(kind):
                names |= set(kind.__annotations__)
    return names


def _hints(verb: Callable[..., Any]) -> list[Any]:
    module = inspect.getmodule(verb)
    found = []
    for parameter in inspect.signature(verb).parameters.values():
        try:
            found.append(eval(str(parameter.annotation), vars(module)))
        except NameError:  # only known to the type checker, and no parameter class
            continue
    return found


@pytest.mark.parametrize("path", sorted(_all_commands()))
def test_every_option_of_a_command_has_a_counterpart(path: str) -> None:
    if path in WITHOUT_VERB:
        return
    names = _names(_verb(path)) | (_names(FURTHER[path]) if path in FURTHER else set())
    renamed = RENAMED | RENAMED_IN.get(path, {})
    options = [one.name for one in _all_commands()[path].params if one.name not in PRESENTATION]
    missing = [name for name in options if renamed.get(name, name) not in names | set(api.NAMES)]
    assert not missing, f"stretto {path} has options that stretto.api lacks: {missing}"


def test_tables_name_only_what_exists() -> None:
    commands = _all_commands()
    assert set(WITHOUT_VERB) <= set(commands)
    assert set(VERBS) | set(RENAMED_IN) <= set(commands)
    options = {one.name for command in commands.values() for one in command.params}
    assert set(PRESENTATION) - {"help"} <= options
    assert set(RENAMED) <= options
