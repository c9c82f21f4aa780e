"""Networks as files, and what MARS chooses from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mars_cases import random_net

from stretto.errors import InvalidInput, UnknownName
from stretto.files import checkpoint
from stretto.queues.mars.candidates import (
    CLASSIC_CANDIDATES,
    POLICY,
    candidates_of,
    classic_candidate,
    smith_net,
    untrained_nets,
)
from stretto.queues.mars.kernels import score
from stretto.queues.mars.network import MarsNet, linear_net, load_nets, net_of, save_nets, shipped_nets


def test_a_file_holds_what_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "nets.npz"
    nets = [random_net(1), random_net(2), smith_net()]
    save_nets(path, nets, {"trace": "x", "seed": 4})
    again, meta = load_nets(path)
    assert (meta["trace"], meta["seed"], [net.name for net in again]) == ("x", 4, [net.name for net in nets])
    for one, other in zip(nets, again, strict=True):
        for part, array in one.to_arrays().items():
            np.testing.assert_array_equal(array, other.to_arrays()[part])


def test_what_is_no_file_of_networks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nets.npz"
    checkpoint.save(path, {}, {"kind": "mars-training"})
    with pytest.raises(InvalidInput, match="does not hold networks of MARS"):
        load_nets(path)
    for names in ([], "net", [1], None):
        checkpoint.save(path, {}, {"kind": "mars", "nets": names})
        with pytest.raises(InvalidInput, match="list of names"):
            load_nets(path)
    former = {f"old.{part}": np.zeros(7) for part in ("skip", "hidden", "bias", "out", "patience")}
    checkpoint.save(path, former, {"kind": "mars", "nets": ["old"]})
    with pytest.raises(InvalidInput, match=r"nets\.npz.*trained anew"):
        load_nets(path)


@pytest.mark.parametrize("part", ["weight", "reserve"])
def test_weights_that_are_no_weights_are_refused(part: str) -> None:
    arrays = random_net(3).to_arrays()
    for wrong in (arrays[part][:-1], arrays[part][None], np.full_like(arrays[part], np.nan)):
        with pytest.raises(InvalidInput):
            net_of("wrong", {**arrays, part: wrong})
    for wrong in (arrays[part].astype(np.complex64), np.float64(1.0)):
        with pytest.raises(InvalidInput, match=part):
            net_of("wrong", {**arrays, part: wrong})
    with pytest.raises(InvalidInput, match=f"has no {part}"):
        net_of("wrong", {name: array for name, array in arrays.items() if name != part})
    with pytest.raises(InvalidInput, match=f"{part} holds a value"):
        net_of("wrong", {**arrays, part: np.full_like(arrays[part], np.inf)})


def test_a_linear_network_counts_logarithms_as_they_are() -> None:
    net = linear_net("x", {score.WIDTH: 2.0, score.SHARE: 2.0, score.URGENCY: 3.0}, reserve=0.1)
    assert net.net.weight[[score.WIDTH, score.SHARE, score.URGENCY]].tolist() == [6.0, 2.0, 3.0]
    assert net.net.reserve[0] == 0.1
    free = net.order_only()
    assert free.net.reserve[0] == 0.0
    assert np.array_equal(free.net.weight, net.net.weight)


def test_the_shipped_networks_are_whole() -> None:
    nets = shipped_nets()
    assert nets
    assert len({net.name for net in nets}) == len(nets)


def test_candidates_begin_with_the_policy_of_the_operator() -> None:
    usual = candidates_of()
    names = [one.name for one in usual]
    assert names[0] == POLICY
    assert len(set(names)) == len(names)
    assert set(CLASSIC_CANDIDATES) < set(names)
    assert {net.name for net in shipped_nets()} < set(names)
    assert not {net.name for net in untrained_nets()} & set(names)
    assert {one.name for one in usual if one.is_trained} == {net.name for net in shipped_nets()}
    assert candidates_of(default="saf")[0].name == "saf"
    mine = candidates_of(nets=[random_net(1)], default="random-1", shipped=False)
    assert (mine[0].name, mine[0].is_network, mine[0].is_trained) == ("random-1", True, True)
    assert POLICY not in {one.name for one in mine}
    assert len(candidates_of(default="sjf")) == len(usual)


def test_who_does_not_start_jobs_cannot_hold_them_back() -> None:
    assert any(one.net.reserve[0] > 0 for one in candidates_of())
    for one in candidates_of(nets=[random_net(1)], starts_jobs=False):
        assert one.net.reserve[0] == 0.0


def test_what_cannot_be_a_candidate_is_refused() -> None:
    with pytest.raises(InvalidInput, match="two candidates are called 'net-1'"):
        candidates_of(nets=[MarsNet("net-1", random_net(1).net)])
    with pytest.raises(UnknownName, match="did you mean saf"):
        candidates_of(default="saff")
    with pytest.raises(InvalidInput, match="cannot be a candidate"):
        classic_candidate("multifactor")
