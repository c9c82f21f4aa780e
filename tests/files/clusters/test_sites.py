"""Sites from site files and from Slurm's own texts; what is wrong is told with file, line and value."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from files.clusters.site_samples import ALL, MACHINES, OPENB_NODES, SCONTROL, SITE_TOML, SLURM_CONF, read
from files.traces.trace_samples import mutated
from real_data import find_data
from stretto.api.inputs import is_site, load_site, machine_of
from stretto.core.pool import Pool
from stretto.core.site import Partition, Reservation, Site, SiteNode
from stretto.core.site_policy import Account, PriorityFactors, Qos, SchedulerTiming, SitePolicy
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, StrettoError
from stretto.files.clusters.host_list import MAX_HOSTS, compress_hosts, expand_hosts
from stretto.files.clusters.load_site import find_site_format, save_site
from stretto.files.clusters.site_writer import site_bytes
from stretto.files.document import Document

GIB = 2.0**30


def part(site: Site, name: str) -> Partition:
    return site.partition(name)


def test_a_site_file() -> None:
    site = read(SITE_TOML)
    assert (site.name, len(site.nodes), site.num_cpus) == ("hades", 19, 16 * 64 + 2 * 128 + 8)
    assert site.nodes[0] == SiteNode("c001", 64, 256e9, {}, frozenset({"ib", "avx"}), power_w=700.0, idle_power_w=120.0)
    assert site.nodes[16] == SiteNode("g1", 128, 1024 * GIB, {"a100": 4, "t4": 1}, weight=100, price_usd_per_hour=3.5)
    assert site.nodes[18].gpus == {"gpu": 1}
    short = part(site, "short")
    assert (short.nodes[-1], short.max_time_s, short.default_time_s) == ("c008", 14400.0, 3600.0)
    assert site.default_partition is short
    assert part(site, "gpu") == Partition("gpu", ("g1", "g2"), max_nodes=2, is_exclusive=True)
    assert len(part(site, "all").nodes) == 19
    assert site.reservations[0] == Reservation("maintenance", 1768032000.0, 1768075200.0, ("c001", "c002"), True)
    assert site.reservations[1].start_s == 129600.0
    assert site.policy.priority == PriorityFactors(1000, 10000, max_age_s=14 * 86400.0, favors_small=True)
    assert site.policy.scheduler == SchedulerTiming(bf_interval_s=60.0, bf_window_s=2 * 86400.0, bf_continue=True)
    assert site.policy.qos == (Qos("high", 100, 86400.0, 20),)
    assert site.policy.accounts[1] == Account("physics", "root", 10)


def test_slurm_conf() -> None:
    site = read(SLURM_CONF)
    assert (site.name, len(site.nodes)) == ("hades", 101 + 4 + 1)
    assert site.nodes[0] == SiteNode("c001", 64, 256000 * 2.0**20, {}, frozenset({"ib", "avx"}))
    assert site.nodes[101] == SiteNode("gpu1-a", 128, 256000 * 2.0**20, {"a100": 4, "t4": 1}, weight=100)
    assert part(site, "short").max_time_s == 4 * 3600
    assert (part(site, "short").default_time_s, part(site, "short").priority_job_factor) == (3600, 5)
    assert (part(site, "gpu").max_time_s, part(site, "gpu").is_exclusive, part(site, "gpu").max_nodes) == (
        86400,
        True,
        4,
    )
    assert len(part(site, "fast").nodes) == 101
    assert part(site, "all").max_time_s == float("inf")
    assert site.policy.priority == PriorityFactors(
        1000, 10000, max_age_s=14 * 86400.0, half_life_s=float("inf"), favors_small=True
    )
    assert site.policy.scheduler == SchedulerTiming(True, 60, 2880 * 60, 300, 1000, True, 200, 30)
    notes = "\n".join(site.notes)
    for said in ("more.conf (line 13)", "FUTURE", "1 nodes were down or drained", "nvme", "defer", "allowaccounts"):
        assert said in notes
    assert "priorityweighttres" in notes
    assert "partition fast was DRAIN" in notes


def test_scontrol() -> None:
    site = read(SCONTROL)
    assert site.nodes == (
        SiteNode("c001", 62, 256000 * 2.0**20, {}, frozenset({"ib"})),
        SiteNode("g1", 128, 1024000 * 2.0**20, {"a100": 4, "t4": 1}, weight=100),
    )
    assert part(site, "short") == Partition("short", ("c001",), 10, 10, 14400.0, 3600.0, is_default=True)
    assert part(site, "gpu") == Partition("gpu", ("c001", "g1"), max_nodes=1, is_exclusive=True)
    assert site.reservations == (Reservation("maint", 1768032000.0, 1768075200.0, ("g1",), True),)
    assert site.policy.qos == (Qos("normal", 0, max_cpus_per_user=512), Qos("high", 100, 86400.0, 20))
    assert site.policy.accounts == (
        Account("root"),
        Account("physics", "root", 10),
        Account("physics", None, 1, "ann"),
        Account("chem", "root", 30),
        Account("organic", "chem", 1),
    )
    assert any("g1" in note and "down" in note for note in site.notes)
    assert any("maint" in note and "users" in note for note in site.notes)


def test_scontrol_with_one_line_per_record() -> None:
    records, tables = SCONTROL.split("Name|Priority")
    joined = "\n".join(" ".join(record.split("\n")) for record in records.strip().split("\n\n"))
    assert read(joined + "\n\nName|Priority" + tables) == read(SCONTROL)


def test_nodes_of_openb() -> None:
    site = read(OPENB_NODES)
    assert site.nodes[1] == SiteNode("n1", 96, 384 * GIB, {"G2": 8}, frozenset({"G2"}))
    assert [p.name for p in site.partitions] == ["all"]


def test_alea_s_machines() -> None:
    site = read(MACHINES)
    assert [node.name for node in site.nodes] == ["zewura1", "zewura2", "zegox1", "zegox2", "zegox3", "zegox4"]
    assert site.nodes[0] == SiteNode("zewura1", 80, 529426432 * 1024.0, features=frozenset({"cl_zewura"}))
    assert "speed 1.5 of zegox" in site.notes[0]


@pytest.mark.parametrize("name", ALL)
def test_each_is_told_by_its_content_and_written_as_toml(name: str, tmp_path: Path) -> None:
    assert find_site_format(Document("x", ALL[name].encode())) == name
    site = read(ALL[name])
    save_site(site, tmp_path / "site.toml")
    assert load_site(tmp_path / "site.toml") == site
    for text in (ALL[name].replace("\n", "\r\n"), "\ufeff" + ALL[name]):
        assert read(text) == site


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "said"),
    [
        (SITE_TOML, "cpus = 64", "cpus = -1", 16, "-1 is not a whole number"),
        (SITE_TOML, "cpus = 64", f"cpus = {10**18}", 16, "1000000000000000000"),
        (SITE_TOML, "cpus = 64", "cpu = 64", 16, "did you mean cpus"),
        (SITE_TOML, "cpus = 64", 'cpus = "64"', 16, "64 is not a whole number"),
        (SITE_TOML, 'memory = "256GB"', 'memory = "256 apples"', 17, "256 apples"),
        (SITE_TOML, 'memory = "256GB"', 'memory = "256"', 17, "did you mean 256GB"),
        (SITE_TOML, "a100 = 4", "a100 = -4", 26, "-4 is not a whole number"),
        (SITE_TOML, "c[001-016]", "c[001-", 15, "not closed"),
        (SITE_TOML, "c[001-016]", "c[1-9999999999]", 15, "more than 250,000 hosts"),
        (SITE_TOML, '"login"', '"c003"', 31, "'c003' is defined twice and differently (cpus 8 and 64)"),
        (SITE_TOML, '"c[001-008]"', '"c[001-018]"', 37, "node of partition short 'c017'"),
        (SITE_TOML, 'default_time = "1h"', 'default_time = "9h"', 35, "default_time_s 32400"),
        (SITE_TOML, 'max_time = "4h"', 'max_time = "soon"', 39, "'soon'"),
        (SITE_TOML, "default = true", "default = 1", 41, "neither true nor false"),
        (SITE_TOML, 'name = "all"', 'name = "gpu"', 49, "'gpu' is defined twice"),
        (SITE_TOML, 'name = "all"', 'name = "all"\ndefault = true', 49, "both the default"),
        (SITE_TOML, 'start = "36h"', 'start = "2026-01-10T19:59:59"', 61, "both dates"),
        (SITE_TOML, "2026-01-10T08:00:00", "2026-13-10T08:00:00", 54, "2026-13-10"),
        (SITE_TOML, "end = 140000", "end = 100", 58, "not after its start"),
        (SITE_TOML, "priority = 100", "priority = -1", 65, "-1"),
        (SITE_TOML, "age = 1000", "age = nan", 3, "nan"),
        (SITE_TOML, "[scheduler]", "[schedular]", 9, "did you mean scheduler"),
        (SLURM_CONF, "RealMemory=256000", "RealMemory=lots", 15, "'lots' is not a whole number"),
        (SLURM_CONF, "RealMemory=256000", "RealMemory=1000000000000000000", 15, "out of range"),
        (SLURM_CONF, "CPUs=128", "CPUs=-128", 16, "-128 must not be negative"),
        (SLURM_CONF, "gpu:a100:4", "gpu:a100:-4", 16, "'gpu:a100:-4' has a negative number"),
        (SLURM_CONF, "Nodes=c[001-010]", "Nodes=c[001-110]", 22, "'c101'"),
        (SLURM_CONF, "Default=YES", "Default=PERHAPS", 22, "'perhaps' is neither YES nor NO"),
        (SLURM_CONF, "bf_interval=60", "bf_interval=often", 4, "'often' is not a number"),
        (SLURM_CONF, "PriorityWeightAge=1000 ", "PriorityWeightAge=x ", 7, "'x' is not a whole number"),
        (SLURM_CONF, "PriorityMaxAge=14-0", "PriorityMaxAge=old", 10, "'old' is not a duration"),
        (SLURM_CONF, "nodename=old", "nodename=c001", 18, "'c001' is defined twice and differently"),
        (SLURM_CONF, "# A cluster", "what is this", 1, "is not Key=Value"),
        (SCONTROL, "CPUEfctv=62", "CPUEfctv=-2", 1, "-2 must not be negative"),
        (SCONTROL, "StartTime=2026-01-10", "StartTime=2027-01-10", 36, "is no time"),
        (SCONTROL, "Nodes=c001,g1", "Nodes=c001,g[1-2]", 30, "'g2'"),
        (SCONTROL, "high|100", "high|-5", 42, "'-5' is not a count"),
        (SCONTROL, "high|100", "normal|100", 42, "listed twice"),
        (SCONTROL, "||10|", "||-10|", 46, "'-10' is not a number of shares"),
        (OPENB_NODES, "n1,96000", "n1,x", 3, "'x' in cpu_milli"),
        (OPENB_NODES, "8,G2", "-8,G2", 3, "-8"),
        (OPENB_NODES, "n1,96000", "n1,0", 3, "cpus 0"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, old: str, new: str, line: int, said: str) -> None:
    assert old in text
    with pytest.raises(InvalidInput) as caught:
        read(text.replace(old, new, 1))
    assert caught.value.source == "site.txt"
    assert caught.value.line == line, caught.value
    assert said in str(caught.value)


def test_overlapping_reservations_are_told_with_both_places() -> None:
    more = "\nReservationName=second StartTime=2026-01-10T19:00:00 EndTime=2026-01-11T20:00:00\n   Nodes=g1\n"
    with pytest.raises(InvalidInput, match=r"'second' overlaps with 'maint' \(line 36\) on node 'g1'") as caught:
        read(SCONTROL + more)
    assert caught.value.line == 51
    again = SITE_TOML + '\n[[reservation]]\nname = "again"\nstart = 100\nend = 130000\nnodes = "login"\n'
    with pytest.raises(InvalidInput, match="'outage' overlaps with 'again'"):
        read(again)


def test_texts_without_nodes_are_no_sites() -> None:
    with pytest.raises(InvalidInput, match="names no nodes"):
        read("ClusterName=x\nPartitionName=p Nodes=ALL\n")
    with pytest.raises(InvalidInput, match="no known format of sites"):
        read("hello")
    with pytest.raises(InvalidInput, match="cpus' is missing"):
        read('[[node]]\nname = "c"\n')


def test_host_lists() -> None:
    assert expand_hosts("c[001-003,205],gpu[1-2]-[a,b], login") == [
        *("c001", "c002", "c003", "c205", "gpu1-a", "gpu1-b", "gpu2-a", "gpu2-b", "login")
    ]
    assert expand_hosts("n[8-11]") == ["n8", "n9", "n10", "n11"]
    assert len(expand_hosts(f"n[1-{MAX_HOSTS}]")) == MAX_HOSTS
    for wrong in (
        "",
        "a[",
        "a]",
        "a[1",
        "a[[1]]",
        "a[3-1]",
        "a[]",
        "a[1-]",
        "a b",
        f"n[0-{MAX_HOSTS}]",
        "x[1-600][1-600]",
    ):
        with pytest.raises(InvalidInput):
            expand_hosts(wrong)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.from_regex(r"[a-c]{0,2}[0-9]{0,3}(-[ab])?", fullmatch=True).filter(bool), min_size=1, max_size=30))
def test_host_lists_come_back_the_same(names: list[str]) -> None:
    assert expand_hosts(compress_hosts(names)) == names


counts = st.integers(0, 10**6)
times = st.floats(1.0, 1e9, allow_nan=False)


@st.composite
def sites(draw: st.DrawFn) -> Site:
    """Any site."""
    names = draw(st.lists(st.from_regex(r"[a-z]{1,3}[0-9]{0,3}", fullmatch=True), min_size=1, max_size=8, unique=True))
    kinds = st.dictionaries(st.sampled_from(["a100", "h100", "gpu"]), st.integers(1, 8), max_size=2)
    shapes = [
        (draw(st.integers(1, 512)), draw(st.floats(1.0, 1e15) | st.just(float("inf"))), draw(kinds)) for _ in range(3)
    ]
    watts = st.none() | st.floats(0, 1e5)
    nodes = tuple(
        SiteNode(
            name, *draw(st.sampled_from(shapes)), draw(st.frozensets(st.sampled_from(["ib", "avx"]))), draw(counts),
            draw(watts), draw(watts), draw(st.just(0.0) | st.floats(0.01, 100)),
        )
        for name in names
    )  # fmt: skip
    subsets = st.lists(st.sampled_from(names), min_size=1, unique=True).map(tuple)
    partitions = tuple(
        Partition(
            f"p{k}", draw(subsets), draw(counts), draw(counts), draw(times), None, draw(st.none() | st.just(3)), k == 0
        )
        for k in range(draw(st.integers(1, 3)))
    )
    reservations = tuple(
        Reservation(f"r{k}", 1e9 + 1000.0 * k, 1e9 + 1000.0 * k + 999.5, draw(subsets), draw(st.booleans()))
        for k in range(2)
    )
    policy = SitePolicy(
        draw(st.none() | st.builds(PriorityFactors, age=times.filter(lambda t: t < 2**32), half_life_s=times)),
        draw(st.none() | st.builds(SchedulerTiming, bf_interval_s=times, bf_continue=st.booleans())),
        (Qos("q", draw(counts), draw(times | st.just(float("inf"))), draw(st.none() | counts)),),
        (Account("root"), Account("a", "root", draw(counts), draw(st.none() | st.just("ann")))),
    )
    return Site("any", nodes, partitions, reservations, policy)


@settings(max_examples=100, deadline=None)
@given(sites())
def test_any_site_comes_back_the_same(site: Site) -> None:
    assert read(site_bytes(site), "any.toml") == site


def test_machines_are_told_by_their_content(tmp_path: Path) -> None:
    trace = Trace.of([0, 5], [10, 10], [1, 1], max_procs=8, origin_unix_s=1768032000.0 - 3600.0)
    for name, text in ALL.items():
        (tmp_path / name).write_text(text)
        assert is_site(tmp_path / name)
    site: object = machine_of(trace, tmp_path / "scontrol")
    assert isinstance(site, Site)
    assert site.reservations == (Reservation("maint", 3600.0, 3600.0 + 43200.0, ("g1",)),)
    (tmp_path / "pools.toml").write_text('[[pool]]\nname = "own"\nnum_nodes = 4\n')
    for words in (str(tmp_path / "pools.toml"), "own:4"):
        pools = machine_of(trace, words)
        assert isinstance(pools, tuple)
        assert vars(pools[0]) == vars(Pool("own", 4))
    assert (machine_of(trace, None), machine_of(trace, 5)) == (8, 5)
    late = Trace.of([0], [10], [1], max_procs=8, origin_unix_s=1.8e9)
    found: object = machine_of(late, read(SCONTROL))
    assert isinstance(found, Site)
    assert found.reservations == ()
    assert "ended before" in found.notes[-1]
    with pytest.raises(InvalidInput, match="'maint' has a date"):
        machine_of(Trace.of([0], [10], [1]), read(SCONTROL))


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_damaged_texts_give_a_site_or_an_error(name: str, seed: int) -> None:
    try:
        site = read(mutated(ALL[name], seed))
    except StrettoError:
        return
    assert site.nodes


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=200), name=st.sampled_from(sorted(ALL)))
def test_bytes_after_a_site(data: bytes, name: str) -> None:
    try:
        read(ALL[name].encode() + data)
    except StrettoError:
        return


@pytest.mark.skipif(find_data() is None, reason="the real traces are not here")
def test_the_real_nodes_of_openb() -> None:
    folder = find_data()
    assert folder is not None
    site = load_site(folder / "cluster" / "alibaba-openb_node_list_all_node.csv.gz")
    assert len(site.nodes) == 1523
    assert sum(sum(node.gpus.values()) for node in site.nodes) == 6212


def test_limits_of_qos_from_sacctmgr() -> None:
    """As ``sacctmgr show qos -P`` prints it: the columns of Slurm 22 to 24."""
    header = (
        "Name|Priority|GraceTime|GrpTRES|GrpTRESMins|GrpJobs|GrpSubmit|MaxTRES|MaxTRESPerNode|MaxWall|"
        "MaxTRESPU|MaxJobsPU|MaxSubmitPU|MaxTRESPA|MaxJobsPA|MaxSubmitPA"
    )
    row = "long|5|00:00:00|cpu=640,gres/gpu=8,node=9|cpu=7|40|90|cpu=128,mem=1T||2-00:00:00|cpu=64|4|10|gres/gpu=2|6|"
    site = read(f"{SCONTROL.rstrip()}\n{header}\n{row}\n" if "Name|" not in SCONTROL else _with_qos(header, row))
    found = next(qos for qos in site.policy.qos if qos.name == "long")
    assert found == Qos(
        "long", 5, 2 * 86400.0, max_jobs_per_user=4, max_cpus_per_user=64, max_jobs_per_account=6,
        max_gpus_per_account=2, max_jobs=40, max_cpus=640, max_gpus=8, max_cpus_per_job=128,
        max_submitted_per_user=10, max_submitted=90,
    )  # fmt: skip
    note = next(note for note in site.notes if "QOS 'long'" in note)
    assert all(word in note for word in ("grptres node", "maxtres mem", "grptresmins"))
    assert read(_toml(site)).policy.qos == site.policy.qos


def _with_qos(header: str, row: str) -> str:
    lines = SCONTROL.splitlines()
    at = next(i for i, line in enumerate(lines) if line.lower().startswith("name|"))
    end = next((i for i in range(at, len(lines)) if "|" not in lines[i]), len(lines))
    return "\n".join([*lines[:at], header, row, *lines[end:]]) + "\n"


def _toml(site: Site) -> str:
    from stretto.files.clusters.site_toml import FORMAT

    return FORMAT.write(site).decode()
