"""Weights of the scoring network: by name, as one vector for an optimiser, and as a file.

All classic orders but UNICEP, with EASY or without backfilling, are points in the space of these weights
(``classic_net``): training starts from one of them and can only depart from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.kernels import policy as features

#: Hidden units of a network that has a hidden layer.
NUM_HIDDEN = 16
#: What the score of each classic order is made of: feature and weight.
CLASSICS: Mapping[str, Mapping[int, float]] = {
    "fcfs": {features.LOG_WAIT: 1.0},
    "sjf": {features.LOG_ESTIMATE: -1.0},
    "ljf": {features.LOG_ESTIMATE: 1.0},
    "saf": {features.LOG_ESTIMATE: -1.0, features.LOG_PROCS: -1.0},
    "laf": {features.LOG_ESTIMATE: 1.0, features.LOG_PROCS: 1.0},
    "smallest": {features.LOG_PROCS: -1.0},
    "largest": {features.LOG_PROCS: 1.0},
    "expansion": {features.LOG_EXPANSION: 1.0},
    "wfp3": {features.LOG_WAIT: 3.0, features.LOG_ESTIMATE: -3.0, features.LOG_PROCS: 1.0},
    "f1": {features.SUBMITTED: -1.0, features.F1: -1.0},
    "f2": {features.SUBMITTED: -1.0, features.F2: -1.0},
    "f3": {features.SUBMITTED: -1.0, features.F3: -1.0},
    "f4": {features.SUBMITTED: -1.0, features.F4: -1.0},
    "sjf-believed": {features.LOG_BELIEVED: -1.0},
    "saf-believed": {features.LOG_BELIEVED: -1.0, features.LOG_PROCS: -1.0},
    # Smith's rule for the sum of slowdowns: what a second of waiting costs over what a second of running takes.
    "smith": {features.LOG_SHARP: -1.0, features.LOG_BELIEVED: -1.0, features.LOG_PROCS: -1.0},
    "smith-aged": {
        features.LOG_SHARP: -1.0,
        features.LOG_BELIEVED: -1.0,
        features.LOG_PROCS: -1.0,
        features.LOG_WAIT: 1.0,
    },
    "wfp3-believed": {features.LOG_WAIT: 3.0, features.LOG_BELIEVED: -3.0, features.LOG_PROCS: 1.0},
}
#: What the wait counts in an order that ages.
_AGEING = 0.3
#: The same where few may pass; on generated logs less is better there.
_NARROW_AGEING = 0.2
#: Who may pass the head: all (EASY), or jobs that are believed to run no longer than this.
_PASSES_S = {"": math.inf, "-1h": 3600.0}
#: What long jobs leave free in an order that lets few pass: who wants room for short jobs wants it in both ways.
_NARROW_SPARE = 0.1
#: Orders by believed run times that reserve room by them too, their ageing, and whom they let pass.
_BOLD = (
    ("sjf-believed", _AGEING, ""),
    ("saf-believed", 0.0, ""),
    ("saf-believed", 0.0, "-1h"),
    ("saf-believed", _AGEING, ""),
    ("saf-believed", _NARROW_AGEING, "-1h"),
)
#: The untrained network that is good nearly everywhere, and what the width of a job counts in it beside its length.
STEADY, _STEADY_WIDTH = "steady", 0.7
_STEADY_SPARE, _STEADY_AGEING = 0.05, 0.15
#: Who is believed to run for longer does not pass the head of the queue in it.
_STEADY_PASSES_S = 12 * 3600.0
#: What is spared in a steady order without a forecaster, which does not know long jobs as well.
_PLAIN_SPARE = 0.02
#: Its sister lets only short ones pass and spares more, as some bold orders do.
_NARROW = "steady-1h"
#: The same that holds nobody back, for machines that are nearly empty.
OPEN = "steady-open"
#: The same by means of like jobs and not by a forecaster, which needs more ageing.
_PLAIN = "steady-plain"
#: Orders that leave so many percent of the machine to short jobs.
_SPARING = (("saf-believed", 5), ("f4", 10), ("expansion", 10), ("wfp3-believed", 10))
_PARTS = ("skip", "gate", "hidden", "bias", "out", "patience", "trust", "spare", "foresight")


@dataclass(frozen=True, eq=False)
class MarsNet:
    """One network.

    Attributes
    ----------
    net
        Its weights, as kernels see them.
    """

    name: str
    net: features.Net

    def __post_init__(self) -> None:
        num_hidden = len(self.net.bias)
        shapes = ((features.NUM_JOB,), (features.NUM_FEATURES + 1,), (num_hidden, features.NUM_FEATURES))
        for part, shape in zip(_PARTS, (*shapes, (num_hidden,), (num_hidden,), (1,), (1,), (1,), (1,)), strict=True):
            array = getattr(self.net, part)
            if array.shape != shape:
                raise InvalidInput(f"{part} has shape {array.shape}, expected {shape}", field=part)
            if np.any(np.isnan(array)):
                raise InvalidInput(f"{part} holds a value that is not a number", field=part)

    @property
    def num_hidden(self) -> int:
        return len(self.net.bias)

    def to_arrays(self) -> dict[str, Floats]:
        """Return the weights by name."""
        return {part: getattr(self.net, part) for part in _PARTS}

    def with_hidden(self, num_hidden: int, seed: int, scale: float = 0.3) -> MarsNet:
        """Return the same policy with a hidden layer that does not count yet."""
        rng = np.random.default_rng(seed)
        hidden = rng.normal(size=(num_hidden, features.NUM_FEATURES)) * scale
        bias = rng.normal(size=num_hidden) * scale
        return replace(self, net=self.net._replace(hidden=hidden, bias=bias, out=np.zeros(num_hidden)))


def net_of(name: str, arrays: Mapping[str, Any]) -> MarsNet:
    """Return the network of some arrays."""
    # Files from before there were any go by user estimates, leave nothing to spare and ask no forecaster.
    arrays = {"trust": np.zeros(1), "spare": np.zeros(1), "foresight": np.zeros(1), **arrays}
    missing = [part for part in _PARTS if part not in arrays]
    if missing:
        raise InvalidInput(f"the network {name!r} has no {missing[0]}", field=missing[0])
    for part in _PARTS:
        if np.asarray(arrays[part]).dtype.kind != "f":
            raise InvalidInput(f"{part} holds {np.asarray(arrays[part]).dtype}, expected floats", field=part)
        if np.ndim(arrays[part]) == 0:
            raise InvalidInput(f"{part} is a single number, expected an array", field=part)
    return MarsNet(name, features.Net(*(np.ascontiguousarray(arrays[part], np.float64) for part in _PARTS)))


def classic_net(
    name: str,
    *,
    backfill: bool = True,
    patience_s: float = math.inf,
    trust: float = 0.0,
    spare: float = 0.0,
    foresight: float = 0.0,
) -> MarsNet:
    """Return a network that orders as a classic strategy does.

    Parameters
    ----------
    backfill
        EASY, or none at all.
    patience_s
        Jobs that have waited longer come first.
    trust
        Whether room is reserved by user estimates (0), by beliefs (1), or between.
    spare
        Share of the machine that jobs believed to be long leave free for shorter ones.
    foresight
        Whether beliefs are means of what like jobs did (0), what the forecaster says (1), or between.
    """
    if name not in CLASSICS:
        raise UnknownName("order of MARS", name, CLASSICS)
    skip = np.zeros(features.NUM_JOB)
    for feature, weight in CLASSICS[name].items():
        skip[feature] = weight
    gate = np.zeros(features.NUM_FEATURES + 1)
    gate[-1] = 1.0 if backfill else -1.0
    empty = np.zeros(0)
    hidden = np.zeros((0, features.NUM_FEATURES))
    return MarsNet(
        name if backfill else f"{name}-none",
        features.Net(
            skip,
            gate,
            hidden,
            empty,
            empty.copy(),
            *(np.array([value]) for value in (patience_s, trust, spare, foresight)),
        ),
    )


def _let_pass(net: features.Net, limit_s: float) -> None:
    """Let only those pass the head of the queue who are believed to run no longer than this."""
    is_open = math.isinf(limit_s)
    net.gate[features.LOG_BELIEVED] = 0.0 if is_open else -1.0
    net.gate[-1] = 1.0 if is_open else 0.5 * math.log(limit_s) - 4.0


def bold_nets(foresight: float = 1.0) -> list[MarsNet]:
    """Return untrained networks that go by beliefs throughout, with and without ageing, and let few or all pass.

    Beliefs free room where users ask for much too much. To let only short jobs pass keeps processors idle for wide
    ones: what that costs in utilisation it may save in slowdown, where few jobs are both wide and short.
    """
    found = []
    for order, ageing, passes in _BOLD:
        is_narrow = math.isfinite(_PASSES_S[passes])
        net = classic_net(order, trust=1.0, spare=_NARROW_SPARE if is_narrow else 0.0, foresight=foresight).net
        net.skip[features.LOG_WAIT] += ageing
        if is_narrow:
            _let_pass(net, _PASSES_S[passes])
        found.append(MarsNet(f"{order.removesuffix('-believed')}-bold{'-aged' if ageing else ''}{passes}", net))
    return found


def sparing_nets(foresight: float = 1.0) -> list[MarsNet]:
    """Return untrained networks under which long jobs leave some of the machine to shorter ones.

    Most of the slowdown is that of short jobs which wait for long ones to end.
    """
    return [
        MarsNet(
            f"{order.removesuffix('-believed')}-spare-{percent}",
            classic_net(order, spare=percent / 100, foresight=foresight).net,
        )
        for order, percent in _SPARING
    ]


def steady_net() -> MarsNet:
    """Return the order that is good nearly everywhere: a little of all that the others have.

    Jobs that the forecaster believes to be short and narrow come first, the length counting more than the width; by
    Smith's rule a length is both what a second of waiting costs (the harmonic mean) and what must be run. All age a
    little; room is reserved by beliefs; long jobs leave a twentieth of the machine to shorter ones, and those of more
    than twelve hours do not pass the head of the queue.
    """
    net = classic_net("sjf-believed", trust=1.0, spare=_STEADY_SPARE, foresight=1.0).net
    net.skip[features.LOG_BELIEVED] = net.skip[features.LOG_SHARP] = -0.5
    net.skip[features.LOG_PROCS] = -_STEADY_WIDTH
    net.skip[features.LOG_WAIT] = _STEADY_AGEING
    _let_pass(net, _STEADY_PASSES_S)
    return MarsNet(STEADY, net)


def sister_nets() -> list[MarsNet]:
    """Return the steady order that lets short jobs alone pass, for which more of the machine is spared."""
    narrow = steady_net().net._replace(spare=np.array([_NARROW_SPARE]))
    _let_pass(narrow, _PASSES_S["-1h"])
    return [MarsNet(_NARROW, narrow)]


def open_net() -> MarsNet:
    """Return the steady order under which everybody may pass and nothing is spared."""
    net = steady_net().net._replace(spare=np.zeros(1))
    _let_pass(net, math.inf)
    return MarsNet(OPEN, net)


def plain_net() -> MarsNet:
    """Return a steady order that needs no forecaster: who would rely on one should see what it does without."""
    net = classic_net("sjf-believed", trust=1.0, spare=_PLAIN_SPARE).net
    net.skip[features.LOG_PROCS] = -_STEADY_WIDTH
    net.skip[features.LOG_WAIT] = _AGEING
    return MarsNet(_PLAIN, net)


def untrained_nets() -> list[MarsNet]:
    """Return all networks that nobody had to train."""
    return [steady_net(), plain_net(), *bold_nets(), *sparing_nets()]


def plain_nets() -> list[MarsNet]:
    """Return those that need no forecaster: on a window of some jobs there is little past to see."""
    return [plain_net(), *bold_nets(foresight=0.0), *sparing_nets(foresight=0.0)]


#: What ``stretto train mars`` calls the network that it trains, for ``--default`` beside ``--nets``.
TRAINED = "trained"


def save_nets(path: str | Path, nets: list[MarsNet], meta: Mapping[str, Any]) -> None:
    """Write networks to one file."""
    from stretto.files import checkpoint

    arrays = {f"{net.name}.{part}": array for net in nets for part, array in net.to_arrays().items()}
    checkpoint.save(path, arrays, {"kind": "mars", "nets": [net.name for net in nets], **meta})


def load_nets(path: str | Path) -> tuple[list[MarsNet], dict[str, Any]]:
    """Read networks and what is said of them."""
    from stretto.files import checkpoint

    arrays, meta = checkpoint.load(path)
    if meta.get("kind") != "mars":
        raise InvalidInput("the checkpoint does not hold networks of MARS", source=str(path), field="kind")
    names = named_nets(meta, str(path))
    try:
        nets = [
            net_of(name, {part: arrays[f"{name}.{part}"] for part in _PARTS if f"{name}.{part}" in arrays})
            for name in names
        ]
    except InvalidInput as error:
        raise error.at(str(path)) from None
    return nets, meta


def named_nets(meta: Mapping[str, Any], source: str) -> list[str]:
    """Return the names of the networks in a checkpoint."""
    names = meta.get("nets")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not names:
        raise InvalidInput("is not a list of names of networks", source=source, field="nets")
    return names
