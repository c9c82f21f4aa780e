"""The ensemble: its file, its confidence at run time, and that an unsure network is not followed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from research.mars.advised_replay import AdvisedSelector, advised_replay
from research.mars.confidence import INPUTS, Confidence, observe
from research.mars.ensemble import SHIPPED, Ensemble, load_ensemble, save_ensemble, shipped_ensemble

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.queues.mars.network import MarsNet, classic_net
from stretto.queues.mars.parameters import Selection
from stretto.queues.mars.selector import Choice, EpochComparison, Selector

PROCS = 16
#: Logs that nothing that is shipped may have seen.
HELD_OUT = ("CTC-SP2", "OSC-Clust", "SDSC-BLUE", "Theta", "lublin")


def choose(selector: Selector, *seen: Any, **more: Any) -> Choice:
    return selector.choose(EpochComparison(*seen, **more))


def confidence(threshold: float = 0.5) -> Confidence:
    """Return one that goes by the latest gain alone: even at none."""
    weight = np.zeros(len(INPUTS))
    weight[0] = 10.0
    return Confidence(np.zeros(len(INPUTS)), np.ones(len(INPUTS)), weight, threshold=threshold)


def small() -> Ensemble:
    net = classic_net("saf", trust=1.0, foresight=0.5).with_hidden(3, seed=1)
    return Ensemble((replace(net, name="net-saf"), replace(classic_net("f4"), name="net-f4")), confidence(0.7))


def crowded(n: int) -> Trace:
    rng = np.random.default_rng(0)
    run = np.round(np.exp(rng.normal(5, 1.5, n))) + 1
    procs = rng.integers(1, PROCS + 1, n)
    gap = rng.exponential(float((run * procs).mean()) / (PROCS * 1.1), n)
    return Trace.of(np.floor(np.cumsum(gap)), run, procs, run * 2, user=rng.integers(0, 6, n).astype(np.int32))


def queue(n: int = 1000) -> tuple[QueueArrays, Floats]:
    """Return jobs, and slowdowns of them."""
    return crowded(n).arrays(), np.random.default_rng(1).uniform(1, 9, n)


def test_an_ensemble_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "ensemble.npz"
    save_ensemble(path, small(), {"logs": ["a"]})
    found, meta = load_ensemble(path)
    assert meta["logs"] == ["a"]
    for ours, theirs in zip(found.members, small().members, strict=True):
        assert ours.name == theirs.name
        for part, array in theirs.to_arrays().items():
            np.testing.assert_array_equal(ours.to_arrays()[part], array)
    x = np.random.default_rng(0).normal(size=(5, len(INPUTS)))
    np.testing.assert_array_equal(found.confidence.probability(x), small().confidence.probability(x))
    assert found.confidence.threshold == 0.7


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ensemble.npz"
    save_ensemble(path, small(), {})
    arrays, meta = checkpoint.load(path)
    for changed, told, message in (
        (arrays, {**meta, "kind": "mars"}, "does not hold an ensemble"),
        (arrays, {**meta, "inputs": ["weather"]}, "other inputs"),
        ({k: v for k, v in arrays.items() if k != "confidence.slope"}, meta, "has no slope"),
        ({k: v for k, v in arrays.items() if k != "net-saf.gate"}, meta, "has no gate"),
        ({**arrays, "net-saf.gate": np.zeros(3)}, meta, "gate has shape"),
        ({**arrays, "confidence.weight": np.zeros(3)}, meta, r"weight\]: has shape"),
        ({**arrays, "confidence.scale": np.zeros(len(INPUTS))}, meta, "must be positive"),
        ({**arrays, "confidence.shift": np.array(np.nan)}, meta, "not finite"),
        (arrays, {**meta, "nets": []}, "names of networks"),
        (arrays, {**meta, "nets": ["net-f4", "net-f4"]}, "name of its own"),
    ):
        checkpoint.save(path, changed, told)
        with pytest.raises(InvalidInput, match=message):
            load_ensemble(path)
    data = bytearray(SHIPPED.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(InvalidInput):
        load_ensemble(path)


def test_what_is_shipped_has_not_seen_the_logs_that_it_is_judged_on() -> None:
    found, meta = load_ensemble(SHIPPED)
    assert meta["logs"], "the file says what it has seen"
    assert not [name for name in meta["logs"] if name.startswith(HELD_OUT)]
    assert set(meta["calibrated_on"]) < set(meta["logs"])
    assert 1 <= len(found.members) <= 5
    assert all(net.num_hidden <= 16 for net in found.members)
    assert found.confidence.threshold >= 0.5


def test_no_shipped_member_was_worse_than_its_teacher() -> None:
    _, meta = load_ensemble(SHIPPED)
    assert [one["name"] for one in meta["members"]] == [net.name for net in shipped_ensemble().members]
    assert all(one["to_teacher"] <= 1.0 for one in meta["members"])
    assert all(one["agreement"] > 0.8 for one in meta["members"])


def test_who_is_like_the_default_is_even_and_a_cheaper_one_is_likely_to_stay_so() -> None:
    jobs, slowdown = queue()
    epochs = np.random.default_rng(2).uniform(2, 9, (1, 12)) * np.array([[1.0], [1.0], [0.5], [2.0]])
    x = observe(epochs, slowdown, jobs, 1000, PROCS)
    assert np.all(np.isfinite(x))
    np.testing.assert_allclose(x[1, :2], 0.0, atol=1e-12)
    np.testing.assert_allclose(x[2:, 0], np.log([2.0, 0.5]))
    said = confidence().probability(x)
    np.testing.assert_allclose(said[:2], 0.5)
    assert said[2] > 0.99
    assert said[3] < 0.01


def test_the_queue_is_described_as_it_is() -> None:
    jobs, _ = queue()
    x = observe(np.ones((2, 4)), np.ones(1000), jobs, 1000, PROCS)[1]
    said = dict(zip(INPUTS, x.tolist(), strict=True))
    load = float(jobs.run @ jobs.procs) / (PROCS * (jobs.submit[-1] - jobs.submit[0]))
    assert said["load"] == pytest.approx(np.log(load))
    assert said["exactness of estimates"] == pytest.approx(np.log(2.0))
    assert said["spread of widths"] == pytest.approx(np.log(jobs.procs).std())
    assert said["waiting jobs"] == pytest.approx(0.0, abs=0.05)


def test_only_members_that_are_unsure_or_not_watched_are_held_back() -> None:
    jobs, slowdown = queue()
    names = ["default-order", "net-saf", "net-f4", "other", "net-f1"]
    epochs = np.full((5, 10), 4.0)
    epochs[2] = epochs[3] = 2.0
    epochs[4] = np.inf
    some = Ensemble(tuple(MarsNet(name, classic_net("saf").net) for name in names if "net" in name), confidence(0.9))
    assert some.allowed(names, epochs, slowdown, jobs, 1000, PROCS).tolist() == [True, False, True, True, False]
    assert some.allowed(["a", "b", "c", "d", "e"], epochs, slowdown, jobs, 1000, PROCS).all()


def test_who_may_not_be_followed_is_not_and_is_left() -> None:
    rules = Selection(least_gain=0.1, early_gain=0.0, certainty=0.0)
    selector = AdvisedSelector(["default", "net", "other"], [], rules)
    cost, allowed = np.array([10.0, 1.0, 8.5]), np.array([True, False, True])
    for may, wanted in ((allowed, "other"), (None, "net"), (allowed, "other"), (~allowed, "net"), (None, "net")):
        selector.allowed = may
        found = choose(selector, cost, np.repeat(cost[:, None], 8, axis=1), 2000, 0, 0.0)
        assert found.chosen == wanted
    selector.allowed = np.zeros(3, np.bool_)
    found = choose(selector, cost, np.repeat(cost[:, None], 8, axis=1), 2000, 0, 0.0)
    assert (found.chosen, found.is_fallback) == ("default", True)


@pytest.mark.parametrize(("threshold", "is_followed"), [(0.5, True), (1.5, False)])
def test_a_network_is_followed_only_above_the_threshold(threshold: float, is_followed: bool) -> None:
    candidates = [classic_net("fcfs"), MarsNet("net-saf", classic_net("saf").net)]
    ensemble = Ensemble((candidates[1],), confidence(threshold))
    found = advised_replay(crowded(3000), PROCS, candidates=candidates, ensemble=ensemble)
    assert ("net-saf" in {choice.chosen for choice in found.choices}) == is_followed
