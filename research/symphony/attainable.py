"""How much of the oracle's room a policy could take that does not know the future.

    python -m research.symphony.attainable play --rack m1 --hide jobs,sizes,loads,left --futures 8 --by-rule
    python -m research.symphony.attainable prices --rack small-rack --futures 16

``play`` makes every decision of validation streams by playing its best candidates to the end under sampled futures.
What is hidden is drawn anew for each future: jobs that have not arrived, sizes of tasks that have not started, foreign
loads from now on, and what running tasks have left. What is not hidden is that of the stream; loads of the moment are
always known. ``prices`` prices single decisions under many futures: how far one future's price is that of them all.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import seeded, uniform
from stretto.racks.kernels.counters import normal
from stretto.racks.kernels.moves import act
from stretto.racks.kernels.oracle import _to_true_decision, fill_true_pressure, roll_out, total_flow
from stretto.racks.kernels.policy_inputs import NUM_INPUTS, fill_candidates, fill_inputs
from stretto.racks.kernels.policy_score import NetWeights, fill_scores
from stretto.racks.kernels.policy_teacher import play_out
from stretto.racks.kernels.rules import SRPT, free_at
from stretto.racks.kernels.state import ARRIVED, BLOCKED, READY, Streams, begin, copy_row
from stretto.racks.rules import oracle
from stretto.racks.simulator import new_state
from stretto.racks.symphony.cases import World, generated_world, rack_case
from stretto.racks.symphony.network import load_weights
from stretto.racks.symphony.player import StreamPlayer
from stretto.racks.workloads.generated import generated
from stretto.racks.workloads.streams import StreamSpec

_VALIDATION_SEED, _TRAIN_SEED, _DONOR_SEED = 1_900, 88_000, 7_000_000
HIDDEN = ("jobs", "sizes", "loads", "left")


class Chances(NamedTuple):
    """How what is hidden is distributed."""

    share: float
    period_s: float
    scale_sd: float
    low: Floats  # [F]
    high: Floats  # [F]


class Futures(NamedTuple):
    """Where futures are drawn from, and where they are put."""

    donors: Streams
    out: Streams
    chances: Chances
    is_hidden: np.ndarray  # [4] as ``HIDDEN``


@njit(cache=True, nogil=True)
def fill_future(w, s, f, futures, state):
    """Fill a future of rack 0: its present, and what is hidden drawn anew."""
    i, out, chances = s.instance[0], futures.out, futures.chances
    out.kernel[f], out.scale[f], out.job[f] = w.kernel[i], w.scale[i], w.job[i]
    out.num_before[f], out.after_ptr[f], out.after[f] = w.num_before[i], w.after_ptr[i], w.after[i]
    out.rank_s[f], out.arrival_s[f], out.job_size[f] = w.rank_s[i], w.arrival_s[i], w.job_size[i]
    out.flow_s[f], out.flow_level[f] = w.flow_s[i], w.flow_level[i]
    if futures.is_hidden[0]:
        _fill_jobs(w, s, out, f, futures.donors, int(uniform(state) * futures.donors.kernel.shape[0]))
    if futures.is_hidden[1]:
        for task in range(out.kernel.shape[1]):
            if s.status[0, task] == BLOCKED or s.status[0, task] == READY:
                out.scale[f, task] = math.exp(chances.scale_sd * normal(state))
    if futures.is_hidden[2]:
        _fill_loads(s, out, f, chances, state)


@njit(cache=True, nogil=True)
def _fill_jobs(w, s, out, f, donors, d):
    """Put the jobs of a donor in place of those to come; time between jobs has no memory."""
    i, num = s.instance[0], s.num[0, ARRIVED]
    mine, theirs = w.job_size[i, :num].sum(), donors.job_size[d, :num].sum()
    count = donors.job_size[d, num:].sum()
    edge, their_edge = w.after_ptr[i, mine], donors.after_ptr[d, theirs]
    num_edges = donors.after_ptr[d, theirs + count] - their_edge
    out.kernel[f, mine:], out.job[f, mine:], out.num_before[f, mine:] = 0, w.arrival_s.shape[1], 0
    out.job_size[f, num:] = donors.job_size[d, num:]
    out.arrival_s[f, num:] = s.now_s[0] + donors.arrival_s[d, num:] - donors.arrival_s[d, num - 1]
    here, there = slice(mine, mine + count), slice(theirs, theirs + count)
    out.kernel[f, here], out.job[f, here] = donors.kernel[d, there], donors.job[d, there]
    out.scale[f, here], out.rank_s[f, here] = donors.scale[d, there], donors.rank_s[d, there]
    out.num_before[f, here] = donors.num_before[d, there]
    out.after_ptr[f, mine:] = edge + num_edges
    out.after_ptr[f, here] = donors.after_ptr[d, there] - their_edge + edge
    out.after[f, edge : edge + num_edges] = donors.after[d, their_edge : their_edge + num_edges] - theirs + mine


@njit(cache=True, nogil=True)
def _fill_loads(s, out, f, chances, state):
    """Draw on- and off-phases from now on."""
    for source in range(out.flow_s.shape[1]):
        place, time_s = s.flow_place[0, source], s.now_s[0]
        is_on = out.flow_level[f, source, place] > 0
        for phase in range(place + 1, out.flow_s.shape[2]):
            share = chances.share if is_on else 1.0 - chances.share
            time_s += -math.log(1.0 - uniform(state)) * chances.period_s * max(share, 1e-3)
            is_on = not is_on
            out.flow_s[f, source, phase] = time_s
            low, high = chances.low[source], chances.high[source]
            out.flow_level[f, source, phase] = low + (high - low) * uniform(state) if is_on else 0.0


@njit(cache=True, nogil=True)
def _enter(a, w, s, f, futures, pressure):
    """Make rack 1 what rack 0 is, in a future."""
    copy_row(s, 0, 1)
    s.instance[1] = f
    num = s.num[0, ARRIVED]
    mine = w.job_size[s.instance[0], :num].sum()
    s.missing[1, mine:] = futures.out.num_before[f, mine:]
    s.job_left[1, num:] = futures.out.job_size[f, num:]
    for p in range(s.task.shape[1]):
        if futures.is_hidden[3] and s.task[1, p] >= 0:
            k, worst = w.kernel[s.instance[0], s.task[1, p]], 1.0
            for r in range(a.demand.shape[2]):
                if a.demand[k, p, r] > 0:
                    worst = max(worst, pressure[r])
            s.left_s[1, p] = free_at(a, w, s, 0, p, a.duration_s, pressure) / worst


@njit(cache=True, nogil=True)
def _by_score(a, w, s, weights, pressure, mask):
    """Return the candidates of rack 0, the network's choice first."""
    actions = np.empty(mask.shape[0], np.int64)
    num = fill_candidates(a, s, 0, mask, actions)
    nothing = np.zeros(pressure.shape[0])
    x, scores = np.empty((num, NUM_INPUTS)), np.empty(num)
    fill_inputs(a, w, s, 0, pressure, nothing, actions, num, x)
    fill_scores(weights, x, num, scores)
    return actions[:num][np.argsort(-scores, kind="mergesort")]


@njit(cache=True, nogil=True)
def fill_prices(a, w, s, weights, futures, tried, by_rule, state, pressure, mask, total, known):
    """Fill what candidates cost under each future, [F, C]: all jobs, and those that have arrived."""
    for f in range(total.shape[0]):
        fill_future(w, s, f, futures, state)
        for c in range(tried.shape[0]):
            _enter(a, w, s, f, futures, pressure)
            if by_rule:
                act(a, futures.out, s, 1, tried[c])
                must_pass = tried[c] == mask.shape[0] - 1
                rest = np.zeros(pressure.shape[0])
                total[f, c] = roll_out(a, futures.out, s, 1, SRPT, mask.copy(), rest, must_pass, state)
            else:
                total[f, c] = play_out(a, futures.out, s, 1, weights, tried[c])
            known[f, c] = 0.0
            for job in range(s.num[0, ARRIVED]):
                known[f, c] += s.job_end_s[1, job] - futures.out.arrival_s[f, job]


@njit(cache=True, nogil=True)
def play_by_futures(a, w, s, instance, weights, futures, num, width, margin, by_rule, state):
    """Play an instance in rack 0, each decision by futures in rack 1; return the sum of completion times.

    Another candidate than the network's is taken when it is cheaper by so many standard errors.
    """
    mask = np.zeros(a.duration_s.shape[0] * (a.duration_s.shape[1] + a.fpgas.shape[0]) + 1, np.bool_)
    pressure = np.zeros(s.load.shape[1])
    begin(a, w, s, 0, instance)
    must_pass = False
    while not _to_true_decision(a, w, s, 0, mask, must_pass):
        fill_true_pressure(a, w, s, 0, pressure)
        tried = _by_score(a, w, s, weights, pressure, mask)[:width]
        best, best_gain = 0, 0.0
        if tried.shape[0] > 1:
            total, known = np.empty((num, tried.shape[0])), np.empty((num, tried.shape[0]))
            fill_prices(a, w, s, weights, futures, tried, by_rule, state, pressure, mask, total, known)
            for c in range(1, tried.shape[0]):
                gain = total[:, 0] - total[:, c]
                sure = gain.mean() - margin * gain.std() / math.sqrt(max(num - 1, 1))
                if sure > best_gain:
                    best, best_gain = c, sure
        act(a, w, s, 0, tried[best])
        must_pass = tried[best] == mask.shape[0] - 1
    return total_flow(w, s, 0)


@njit(cache=True, nogil=True)
def price_some(a, w, s, instance, weights, futures, share, state, total, known):
    """Play an instance by the network and price a share of its decisions; [n, F, C]; return how many."""
    mask = np.zeros(a.duration_s.shape[0] * (a.duration_s.shape[1] + a.fpgas.shape[0]) + 1, np.bool_)
    pressure, width = np.zeros(s.load.shape[1]), total.shape[2]
    begin(a, w, s, 0, instance)
    must_pass, num = False, 0
    while not _to_true_decision(a, w, s, 0, mask, must_pass):
        fill_true_pressure(a, w, s, 0, pressure)
        tried = _by_score(a, w, s, weights, pressure, mask)
        if tried.shape[0] >= width and num < total.shape[0] and uniform(state) < share:
            fill_prices(a, w, s, weights, futures, tried[:width], False, state, pressure, mask, total[num], known[num])
            num += 1
        act(a, w, s, 0, tried[0])
        must_pass = tried[0] == mask.shape[0] - 1
    return num


def world_of(name: str, *, seed: int, num: int) -> tuple[World, StreamSpec]:
    """Return a rack by name with streams of a seed, and how these are drawn."""
    if name.startswith("generated-"):
        number = int(name.removeprefix("generated-"))
        return generated_world(number, seed=seed, num_instances=num), generated(number).stream
    which = rack_case(name, 10 if name == "small-rack" else 4)
    return which.world(seed=seed, num_instances=num), which.stream


def futures_of(name: str, world: World, spec: StreamSpec, *, num: int, hide: str) -> Futures:
    """Return room for futures of a world, with other streams as donors."""
    foreign = spec.foreign
    levels = np.array([foreign.level.get(kind, (0.0, 0.0)) for kind in world.model.source_kind]).reshape(-1, 2)
    chances = Chances(foreign.share, foreign.period_s, spec.scale_sd, levels[:, 0].copy(), levels[:, 1].copy())
    out = Streams(*(np.repeat(rows[:1], num, axis=0).copy() for rows in world.streams))
    is_hidden = np.array([what in hide.split(",") for what in HIDDEN])
    return Futures(world_of(name, seed=_DONOR_SEED, num=256)[0].streams, out, chances, is_hidden)


def play(options: argparse.Namespace, weights: NetWeights) -> Iterator[dict[str, Any]]:
    """Play validation streams by futures, by the oracle and by the network; ratios of means, and standard errors."""
    world, spec = world_of(options.rack, seed=_VALIDATION_SEED, num=options.streams)
    futures = futures_of(options.rack, world, spec, num=options.futures, hide=options.hide)
    racks, player = new_state(world.model, world.streams, 2), StreamPlayer(world)
    how = (options.futures, options.width, options.margin, options.by_rule)
    rows, begun = [], time.process_time()
    for i in range(options.streams):
        stream = (world.model.arrays, world.streams, racks, i, weights, futures)
        total = play_by_futures(*stream, *how, seeded(3, i))
        known = Streams(*(part[i : i + 1] for part in world.streams))
        rows.append((player.mean_s(weights, [i], seed=0), total / known.arrival_s.size, best_mean_s(world, known)))
        if time.process_time() - begun > options.seconds:
            break
    found = np.array(rows)
    drawn = found[np.random.default_rng(0).integers(len(found), size=(2000, len(found)))].mean(axis=1)
    for place, who in enumerate(("futures", "oracle"), 1):
        ratio, error = found[:, place].mean() / found[:, 0].mean(), (drawn[:, place] / drawn[:, 0]).std()
        yield {"streams": len(found), "who": who, "ratio": round(float(ratio), 4), "error": round(float(error), 4)}


def best_mean_s(world: World, streams: Streams) -> float:
    """Return the oracle's mean completion time."""
    return float(oracle(world.model, streams).mean())


def prices(options: argparse.Namespace, weights: NetWeights) -> Iterator[dict[str, Any]]:
    """Price decisions of training streams: how far one future's prices are those of all the others.

    Correlations of a future's prices with the mean of the others', by the weight of the jobs to come, over all
    candidates; then the gain in the other half of the futures of who chooses by one half.
    """
    world, spec = world_of(options.rack, seed=_TRAIN_SEED, num=options.streams)
    futures = futures_of(options.rack, world, spec, num=options.futures, hide=options.hide)
    racks, begun = new_state(world.model, world.streams, 2), time.process_time()
    parts = []
    for i in range(options.streams):
        room = np.zeros((2, 3, options.futures, 3))
        args = (world.model.arrays, world.streams, racks, i, weights, futures, 0.04, seeded(9, i))
        parts.append(room[:, : price_some(*args, room[0], room[1])])
        if time.process_time() - begun > options.seconds:
            break
    total, known = np.concatenate(parts, axis=1)
    known, total = known / total.mean(axis=(1, 2), keepdims=True), total / total.mean(axis=(1, 2), keepdims=True)
    for later in (1.0, 0.6, 0.3, 0.0):
        cost = known + later * (total - known)
        yield {"decisions": len(cost), "later": later, **_told_by(cost, total)}


def _told_by(cost: Floats, total: Floats) -> dict[str, float]:
    num = cost.shape[1]
    gap, true = (one - one.mean(axis=2, keepdims=True) for one in (cost, total))
    alike = ((gap.sum(axis=1) * true.sum(axis=1)) - (gap * true).sum(axis=1)).mean() / (num * (num - 1))
    signal = ((true.sum(axis=1) ** 2) - (true**2).sum(axis=1)).mean() / (num * (num - 1))
    half, rest = cost[:, : num // 2].mean(axis=1), total[:, num // 2 :].mean(axis=1)
    gain = rest[:, 0] - np.take_along_axis(rest, half.argmin(axis=1)[:, None], axis=1)[:, 0]
    return {
        "correlation": round(float(alike / np.sqrt(max(signal, 1e-12) * (gap**2).mean())), 3),
        "gain": round(float(gain.mean()), 5),
        "error": round(float(gain.std() / math.sqrt(len(gain))), 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("play", "prices"))
    parser.add_argument("--rack", default="m1")
    parser.add_argument("--hide", default="jobs,sizes,loads")
    parser.add_argument("--futures", type=int, default=16)
    parser.add_argument("--width", type=int, default=6)
    parser.add_argument("--margin", type=float, default=0.5)
    parser.add_argument("--streams", type=int, default=48)
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time")
    parser.add_argument("--by-rule", action="store_true", help="play on by srpt, not by the network")
    options = parser.parse_args()
    for row in (play if options.what == "play" else prices)(options, load_weights()[0]):
        print(json.dumps(vars(options) | row), flush=True)


if __name__ == "__main__":
    main()
