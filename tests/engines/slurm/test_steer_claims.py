"""Who may steer what: one steerer of a cluster, or one for each partition, whatever their homes and clocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.client.errors import SlurmRefused
from stretto.engines.slurm.client.jobs import Factors, clamped, parse_factors
from stretto.engines.slurm.steer.claims import Claim, SteeringTaken, claim
from stretto.engines.slurm.steer.label_store import Label, LabelStore
from stretto.engines.slurm.steer.leftovers import LabelsElsewhere, record_file, restore_leftovers
from stretto.engines.slurm.steer.marks import ClusterMarks, Kind, Mark
from stretto.engines.slurm.steer.tags import Tag, retagged, tag_of
from stretto.engines.slurm.testbed.testbed import Testbed

#: Seconds without a sign of life after which a process of these tests is dead.
LEASE_S = 4.0


class Forbidden(SlurmClient):
    """A Slurm that makes no reservations for this user."""

    def reserve(self, name: str) -> None:
        raise SlurmRefused("scontrol: Error creating the reservation: Access/permission denied")


@dataclass
class Cluster:
    """Marks of one cluster as processes of different homes see them; a home in common where files are all there is."""

    client: SlurmClient
    folder: Path
    said: list[str]

    def marks(self, home: str) -> ClusterMarks:
        folder = self.folder / ("home" if isinstance(self.client, Forbidden) else home)
        return ClusterMarks(self.client, folder, self.said.append)

    def steerer(self, home: str, partition: str | None = None, **changes: object) -> Claim:
        mark = Mark.here("steering", partition, "steerer", LEASE_S)
        return claim(self.marks(home), replace(mark, **changes))  # type: ignore[arg-type]

    def taken(self, home: str, partition: str | None = None) -> str:
        with pytest.raises(SteeringTaken) as found:
            self.steerer(home, partition)
        return str(found.value)


@pytest.fixture(params=["reservations", "files"])
def cluster(request: pytest.FixtureRequest, bed: Testbed, tmp_path: Path) -> Iterator[Cluster]:
    client = SlurmClient(bed.commands) if request.param == "reservations" else Forbidden(bed.commands)
    yield Cluster(client, tmp_path, [])
    for name in client.reservations():
        client.unreserve(name)


def test_partitions_are_claimed_one_by_one_or_all_together(cluster: Cluster) -> None:
    first, second = cluster.steerer("a", "left"), cluster.steerer("b", "right")
    said = cluster.taken("b", "left")
    assert "steerer of partition left, pid " in said
    assert f"on {first.mark.host}, user {first.mark.user}, since 20" in said
    assert "stretto steer slurm --off" in said
    assert "partition right" not in said
    assert "partition left" in cluster.taken("c")
    assert "partition right" in cluster.taken("c")
    first.release()
    assert "partition right" in cluster.taken("c")
    second.release()
    alone = cluster.steerer("c")
    assert "steerer of all partitions" in cluster.taken("a", "left")
    alone.release()
    assert cluster.marks("a").seen("steering") == []
    if isinstance(cluster.client, Forbidden):
        assert all("a file in" in text and "permission denied" in text for text in cluster.said)
    else:
        assert cluster.said == []


def test_of_many_who_come_at_once_one_steers(cluster: Cluster) -> None:
    held: list[Claim] = []
    refused: list[str] = []
    begin = threading.Barrier(4)

    def come(home: str) -> None:
        begin.wait()
        try:
            held.append(cluster.steerer(home))
        except SteeringTaken as error:
            refused.append(str(error))

    threads = [threading.Thread(target=come, args=(home,)) for home in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)
    assert len(held) <= 1  # where they kept meeting, none does; nobody steers beside another
    assert len(held) + len(refused) == 4
    assert [seen.mark for seen in cluster.marks("e").seen("steering")] == [holder.mark for holder in held]


@pytest.mark.parametrize("skew_s", [0.0, 1e5, -1e5], ids=["same clock", "ahead", "behind"])
def test_who_is_dead_is_followed_and_who_lives_is_not(
    cluster: Cluster, skew_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = cluster.steerer("a")
    ours = time.time
    monkeypatch.setattr(time, "time", lambda: ours() + skew_s)  # the clock of whoever comes
    is_alive = threading.Event()
    is_alive.set()

    def live() -> None:
        while is_alive.is_set():
            cluster.marks("a").renew(holder.mark)
            time.sleep(1.1)

    beats = threading.Thread(target=live)
    beats.start()
    assert "steerer of all partitions" in cluster.taken("b")
    is_alive.clear()
    beats.join()
    time.sleep(LEASE_S)
    next_one = cluster.steerer("b")
    assert any("no sign of life" in text for text in cluster.said)
    assert [seen.mark for seen in cluster.marks("c").seen("steering")] == [next_one.mark]
    with pytest.raises(SteeringTaken):  # it was only stopped for a while, and looks before it tells Slurm anything
        holder.keep()
    next_one.keep()
    assert [seen.mark for seen in cluster.marks("c").seen("steering")] == [next_one.mark]


def test_a_mark_that_the_controller_lost_is_made_again(cluster: Cluster) -> None:
    holder = cluster.steerer("a", lease_s=0.4)
    cluster.marks("a").remove(holder.mark)
    time.sleep(0.2)
    holder.keep()
    assert [seen.mark for seen in cluster.marks("b" if cluster.said == [] else "a").seen("steering")] == [holder.mark]


def test_a_controller_that_forgets_marks_of_label_files_forgets_no_labels(bed: Testbed, tmp_path: Path) -> None:
    client = SlurmClient(bed.commands)
    marks = ClusterMarks(client, tmp_path)
    store = LabelStore(tmp_path / "a.json", jobs={999_999: Label(1000, 0, [1000])})
    record_file(marks, store)
    (seen,) = marks.seen("labels")
    marks.remove(seen.mark)  # it restarted, and does not know it any more
    restore_leftovers(marks, client, None)
    assert not store.path.exists()
    marks.add(seen.mark)  # it restarted, and knows it again
    restore_leftovers(marks, client, None)
    assert marks.seen("labels") == []
    marks.add(replace(seen.mark, detail=str(tmp_path / "lost.json")))
    with pytest.raises(LabelsElsewhere, match=r"lost\.json"):
        restore_leftovers(marks, client, None)
    for left in marks.seen("labels"):
        marks.remove(left.mark)


def test_a_reservation_made_by_hand_switches_off(bed: Testbed, tmp_path: Path) -> None:
    client = SlurmClient(bed.commands)
    marks = ClusterMarks(client, tmp_path)
    client.reserve("stretto-off")
    (seen,) = marks.seen("off", "left")
    assert seen.mark.text() == "reservation stretto-off"
    marks.remove(seen.mark)
    assert marks.seen("off") == []


_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


@given(_TEXT, _TEXT, _TEXT, st.sampled_from(["steering", "off", "labels"]))
def test_marks_can_be_read_whatever_names_are(partition: str, user: str, detail: str, kind: Kind) -> None:
    mark = replace(Mark.here(kind, partition, "steerer", 68.0, detail), user=user)
    assert Mark.parse(mark.name) == mark
    assert mark.name.isascii()
    assert mark.name.isprintable()
    assert not set(mark.name) & set(" ,;'\"\\$`|&<>()")


@given(_TEXT, st.integers(-(2**31), 2**31), st.none() | st.integers(-(2**31), 2**31), _TEXT, st.booleans())
def test_tags_leave_comments_as_they_are(
    comment: str, told: int, before: int | None, partition: str, is_holding: bool
) -> None:
    tag = Tag("priority", told, before, partition or None, is_holding)
    tagged = retagged(comment, tag)
    assert tag_of(tagged) == tag
    again = replace(tag, told=told - 1)
    assert tag_of(retagged(tagged, again)) == again
    assert retagged(tagged, None) == comment
    assert retagged(retagged(tagged, again), None) == comment


def test_what_sprio_prints() -> None:
    text = (
        "JOBID|SITE|PRIORITY\n"
        "2|555|1555|1000|0|0|0|0|0|0|\n"
        "4|0|5000|0|0|0|0|0|0|0|\n"
        "7|0|1|0|0|0|0|0|0|0|cpu=0\n"
        "9|0|12|0|0|0|0|0|0|0|cpu=12\n"
    )
    found = parse_factors(text)
    assert [found[job].priority for job in (2, 4, 7, 9)] == [1555, 5000, 1, 12]
    assert found == {2: Factors(555), 4: Factors(None, is_set=True), 7: Factors(0), 9: Factors(0)}


def test_site_factors_stay_within_what_slurm_takes() -> None:
    assert [clamped(value) for value in (-(2**40), -5, 2**31, 2**30)] == [-2147483645, -5, 2147483645, 2**30]
