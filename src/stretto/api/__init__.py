"""One way in: one function per verb, each in the file of its name.

The command line and the dashboard call these functions and nothing below them, so that a verb is assembled once.
``from stretto.api import plan`` and ``stretto.plan`` are the same function; each is imported on first use.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

#: Each name and the module of this package that defines it; a verb's module has its name.
NAMES = {
    "bound": "bound",
    "calibrate": "place",
    "compare": "compare",
    "continue_training": "train",
    "convert": "convert",
    "emit_placement": "place",
    "energy": "replay",
    "explain": "explain",
    "find_offers": "prices",
    "gantt": "gantt",
    "job_table": "replay",
    "load": "inputs",
    "load_cluster": "inputs",
    "load_pools": "inputs",
    "load_site": "inputs",
    "load_trace": "inputs",
    "logs": "logs",
    "nextflow": "nextflow",
    "pipeline": "pipeline",
    "place": "place",
    "place_model": "place",
    "plan": "plan",
    "pool_of_offer": "prices",
    "problem": "inputs",
    "rack": "rack",
    "replay": "replay",
    "report": "report",
    "run": "run",
    "save": "inputs",
    "show": "show",
    "simulate": "simulate",
    "steer": "steer",
    "steer_off": "steer",
    "steer_on": "steer",
    "train": "train",
    "EnergyOptions": "options.energy",
    "when": "when",
    "when_all": "when",
    "when_slurm": "when_slurm",
    "MarsOptions": "options",
    "OfferFilter": "options",
    "PoolOptions": "options",
    "PoolShape": "options",
    "Record": "options",
    "ReplayRules": "options",
    "SlurmPlace": "options.slurm",
    "SpotOptions": "options",
    "SteerOptions": "options.slurm",
    "TraceOptions": "options",
    "TrainOptions": "train",
}

__all__ = [
    "EnergyOptions",
    "MarsOptions",
    "OfferFilter",
    "PoolOptions",
    "PoolShape",
    "Record",
    "ReplayRules",
    "SlurmPlace",
    "SpotOptions",
    "SteerOptions",
    "TraceOptions",
    "TrainOptions",
    "bound",
    "calibrate",
    "compare",
    "continue_training",
    "convert",
    "emit_placement",
    "energy",
    "explain",
    "find_offers",
    "gantt",
    "job_table",
    "load",
    "load_cluster",
    "load_pools",
    "load_site",
    "load_trace",
    "logs",
    "nextflow",
    "pipeline",
    "place",
    "place_model",
    "plan",
    "pool_of_offer",
    "problem",
    "rack",
    "replay",
    "report",
    "run",
    "save",
    "show",
    "simulate",
    "steer",
    "steer_off",
    "steer_on",
    "train",
    "when",
    "when_all",
    "when_slurm",
]

if TYPE_CHECKING:
    from stretto.api.bound import bound
    from stretto.api.compare import compare
    from stretto.api.convert import convert
    from stretto.api.explain import explain
    from stretto.api.gantt import gantt
    from stretto.api.inputs import load, load_cluster, load_pools, load_site, load_trace, problem, save
    from stretto.api.logs import logs
    from stretto.api.nextflow import nextflow
    from stretto.api.options import (
        MarsOptions,
        OfferFilter,
        PoolOptions,
        PoolShape,
        Record,
        ReplayRules,
        SpotOptions,
        TraceOptions,
    )
    from stretto.api.options.energy import EnergyOptions
    from stretto.api.options.slurm import SlurmPlace, SteerOptions
    from stretto.api.pipeline import pipeline
    from stretto.api.place import calibrate, emit_placement, place, place_model
    from stretto.api.plan import plan
    from stretto.api.prices import find_offers, pool_of_offer
    from stretto.api.rack import rack
    from stretto.api.replay import energy, job_table, replay
    from stretto.api.report import report
    from stretto.api.run import run
    from stretto.api.show import show
    from stretto.api.simulate import simulate
    from stretto.api.steer import steer, steer_off, steer_on
    from stretto.api.train import TrainOptions, continue_training, train
    from stretto.api.when import when, when_all
    from stretto.api.when_slurm import when_slurm


class _Facade(ModuleType):
    """Keeps a verb where its module has the same name: importing ``stretto.api.plan`` would otherwise hide it."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and NAMES.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade


def __getattr__(name: str) -> object:
    if name not in NAMES:
        raise AttributeError(f"module 'stretto.api' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"stretto.api.{NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
