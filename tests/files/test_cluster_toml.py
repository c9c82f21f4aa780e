"""Cluster files, read and written."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest
from format_samples import CLUSTER, TOPOLOGY
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.cluster import Cluster, Device, KindRule
from stretto.errors import InvalidInput
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.clusters.cluster_writer import write_cluster
from stretto.files.document import Document


def _read(text: str | bytes) -> Cluster:
    return read_cluster(Document("c.toml", text.encode() if isinstance(text, str) else text))


def assert_same(a: Cluster, b: Cluster) -> None:
    assert a.devices == b.devices
    assert a.name == b.name
    assert dict(a.rules) == dict(b.rules)
    off = ~np.eye(a.num_devices, dtype=bool)
    np.testing.assert_array_equal(a.bandwidth[off], b.bandwidth[off])
    np.testing.assert_array_equal(a.latency_s[off], b.latency_s[off])
    assert (a.links is None) == (b.links is None)
    if a.links is not None and b.links is not None:
        assert a.links.names == b.links.names
        for key in ("bandwidth", "route_ptr", "route"):
            np.testing.assert_array_equal(getattr(a.links, key), getattr(b.links, key))
            assert getattr(a.links, key).dtype == getattr(b.links, key).dtype


def test_machines_devices_network_and_kinds() -> None:
    cluster = _read(CLUSTER)
    names = ["node0/gpu0", "node0/gpu1", "node1/gpu0", "node1/gpu1", "cpu0", "cpu1"]
    assert [device.name for device in cluster.devices] == names
    assert [device.machine for device in cluster.devices] == ["node0", "node0", "node1", "node1", "m0", "m0"]
    assert cluster.devices[0].memory_bytes == 16e9
    assert cluster.devices[5].price_usd_per_hour == 0.5
    assert cluster.bandwidth[0, 1] == 16e9
    assert cluster.bandwidth[0, 2] == cluster.bandwidth[4, 5] == 1.25e9
    assert (cluster.latency_s[0, 1], cluster.latency_s[0, 2]) == pytest.approx((5e-6, 50e-6), rel=1e-12)
    assert cluster.rules == {"gpu": KindRule(never=("io*",), factor={"mat*": 2.0})}
    assert_same(_read(json.dumps(tomllib.loads(CLUSTER.decode()))), cluster)


def test_devices_may_name_their_machine() -> None:
    cluster = _read(
        '[[machine]]\nname="a"\nbandwidth="1GB/s"\n[[device]]\nmachine="a"\ncount=2\n[[device]]\nname="solo"\n'
        '[network]\nbandwidth="1MB/s"'
    )
    assert [device.name for device in cluster.devices] == ["cpu0", "cpu1", "solo"]
    assert cluster.bandwidth[0, 1] == 1e9
    assert cluster.bandwidth[0, 2] == 1e6


def test_full_matrices() -> None:
    cluster = _read('[[device]]\ncount=2\n[matrix]\nbandwidth=[[0,"2GB/s"],["3GB/s",0]]\nlatency=[[0,"1ms"],[0.5,0]]')
    assert cluster.bandwidth[0, 1] == 2e9
    assert cluster.bandwidth[1, 0] == 3e9
    assert cluster.latency_s.tolist() == [[0.0, 1e-3], [0.5, 0.0]]


def test_topologies() -> None:
    cluster = _read(TOPOLOGY)
    index = {device.name: number for number, device in enumerate(cluster.devices)}
    assert cluster.links is not None

    def between(a: str, b: str) -> tuple[float, float, list[str]]:
        i, j = index[a], index[b]
        assert cluster.links is not None
        at = i * cluster.num_devices + j
        links = cluster.links.route[cluster.links.route_ptr[at] : cluster.links.route_ptr[at + 1]]
        return cluster.bandwidth[i, j], cluster.latency_s[i, j], [cluster.links.names[k] for k in links]

    assert between("node0/gpu0", "node0/gpu1") == (50e9, 0.0, ["node0/gpu0->node0/gpu1"])
    rate, delay, _ = between("node1/gpu0", "node1/gpu1")
    assert (rate, delay) == (16e9, pytest.approx(4e-6))
    rate, delay, links = between("node0/gpu0", "node3/gpu1")
    assert rate == 500e6
    assert delay == pytest.approx(2e-6 + 1e-6 + 2e-6 + 2e-6 + 1e-6 + 2e-6)
    assert links == [
        *("node0/gpu0->node0", "node0->tor0", "tor0->core"),
        *("core->tor1", "node3--tor1", "node3->node3/gpu1"),
    ]
    # The half-duplex wire is one link for both directions.
    assert "node3--tor1" in between("node3/gpu0", "node0/gpu0")[2]


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("", "device", "no devices"),
        ("[[device]]\nknd='gpu'", "device[0].knd", "did you mean kind"),
        ("[[devices]]\nkind='gpu'", "devices", "did you mean device"),
        ("[[device]]\ncount=0", "device[0].count", "0 is not a whole number between"),
        ("[[device]]\ncount=true", "device[0].count", "between"),
        ("[[device]]\ncount=99999999", "device[0].count", "99999999"),
        ("[[device]]\ncount=6000\n[[device]]\ncount=6000", "device[1]", "more than 10,000"),
        ("[[device]]\nspeed=-1", "device cpu0", "speed -1"),
        ("[[device]]\nspeed='fast'", "device[0].speed", "'fast'"),
        ("[[device]]\nmemory='16 elephants'", "device[0].memory", "16 elephants"),
        ("[[device]]\nname='a'\n[[device]]\nname='a'", "devices", "two devices"),
        ("[[device]]\n[network]\nbandwidth='-3'", "network.bandwidth", "-3"),
        ("[[device]]\ncount=2\n[network]\nbandwidth=0", "bandwidth", "must be positive"),
        ("[[device]]\n[network]\nlatency=nan", "network.latency", "nan"),
        ("[[device]]\ncount=2\n[matrix]\nbandwidth=[[1]]", "matrix.bandwidth", "2 rows of 2"),
        ("[[device]]\n[[link]]\nends=['cpu0','cpu9']", "link[0].ends", "did you mean cpu0"),
        ("[[device]]\n[[link]]\nends=['cpu0']", "link[0].ends", "two ends"),
        ("[[device]]\ncount=2\n[[link]]\nends=['cpu0','cpu1']\nduplex='both'", "link[0].duplex", "'both'"),
        ("[[device]]\ncount=3\n[[link]]\nends=['cpu0','cpu1']", "link", "no path from 'cpu0' to 'cpu2'"),
        ("[[device]]\n[matrix]\n[[link]]\n", "link", "not both"),
        ("[[device]]\n[network]\nswitches=['s']", "network.switches", "[[link]]"),
        ("[[device]]\n[kinds.gpu]\nonyl=['x']", "kinds.gpu.onyl", "did you mean only"),
        ("[[device]]\n[kinds.gpu.factor]\n'*'=0", "kinds.gpu.factor.*", "positive"),
        ("device = 3", "device", "not a list"),
        ("[[machine]]\nname='a'\n[[machine]]\nname='a'", "machine[1]", "two machines"),
        ("[[machine]]\n[[machine.device]]\nmachine='b'", "machine[0].device[0].machine", "unknown key"),
    ],
)
def test_faults_are_named(text: str, field: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _read(text)
    assert caught.value.source == "c.toml"
    assert caught.value.field == field
    assert message in caught.value.message


def test_wrong_toml_has_a_line() -> None:
    with pytest.raises(InvalidInput) as caught:
        _read("[[device]]\nkind = \n")
    assert (caught.value.source, caught.value.line) == ("c.toml", 2)


@pytest.mark.parametrize("text", [CLUSTER.decode(), TOPOLOGY, '[[device]]\nname="only"\n[network]\nbandwidth=5.0'])
def test_written_clusters_read_back(text: str) -> None:
    cluster = _read(text)
    assert_same(_read(write_cluster(cluster)), cluster)


@pytest.mark.parametrize("name", ["a\n", "a b", "ü", "a.b", '"', "\\", "\x7f", "\x00"])
def test_odd_names_are_quoted(name: str) -> None:
    cluster = Cluster.uniform([Device(name, name, machine=name)], name=name)
    rules = {name: KindRule(like=name, only=(name,), factor={name: 2.0})}
    ruled = Cluster(cluster.devices, cluster.latency_s, cluster.bandwidth, name, None, rules)
    assert_same(_read(write_cluster(ruled)), ruled)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("route = [[[], [7]], [[0], []]]", "7 is not the number of a link"),
        ("route = [[[], [true]], [[0], []]]", "True is not the number"),
        ("route = [[[], [0]]]", "2 x 2 routes"),
        ("route = 3", "not a list"),
        ("rout = []", "did you mean route"),
    ],
)
def test_faults_in_written_routes(change: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _read(f"[[device]]\ncount = 2\n[routes]\nlinks = ['l']\nbandwidth = [1.0]\n{change}\n")
    assert message in caught.value.message
    assert str(caught.value.field).startswith("routes")


_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
_positive = st.floats(1e-6, 1e9)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_cluster_reads_back(data: st.DataObject) -> None:
    names = data.draw(st.lists(_names, unique=True, min_size=1, max_size=4))
    limits = st.one_of(st.just(float("inf")), st.just(0.0), st.floats(1e-6, 1e9))
    devices = tuple(
        Device(name, *data.draw(st.tuples(_names, _positive, limits, limits, _names, st.floats(1e-6, 1e3))))
        for name in names
    )
    m = len(devices)
    cells = st.lists(_positive, min_size=m * m, max_size=m * m)
    latency = np.array(data.draw(cells)).reshape(m, m)
    np.fill_diagonal(latency, 0.0)
    rules = data.draw(
        st.dictionaries(
            _names,
            st.builds(
                KindRule,
                like=st.one_of(st.none(), _names),
                only=st.lists(_names, max_size=2).map(tuple),
                never=st.lists(_names, max_size=2).map(tuple),
                factor=st.dictionaries(_names, _positive, max_size=2),
            ),
            max_size=2,
        )
    )
    cluster = Cluster(devices, latency, np.array(data.draw(cells)).reshape(m, m), data.draw(_names), None, rules)
    assert_same(_read(write_cluster(cluster)), cluster)
