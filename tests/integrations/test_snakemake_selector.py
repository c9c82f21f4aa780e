"""Decisions of the scheduler plugin: longest path first, as much as fits, and a fallback that says why."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.snakemake_jobs import PlainDag, PlainGroup, PlainJob
from stretto.files.graphs.snakemake.records import OWN_LOG, JobRecord, append_own_log, read_own_log
from stretto.integrations.snakemake.job_network import topological_order, upward_ranks
from stretto.integrations.snakemake.ready_table import ReadyTable, reservation
from stretto.integrations.snakemake.selector import SnakemakeSelector

LOGGER = logging.getLogger("test")
FREE = {"_cores": 2, "_job_count": 2**60}


def learned(folder: Path, seconds: dict[str, float]) -> None:
    append_own_log(folder / OWN_LOG, [JobRecord(rule, value, f"{rule}_old") for rule, value in seconds.items()])


def chain_and_short(num_short: int = 6) -> tuple[PlainDag, list[PlainJob], list[PlainJob]]:
    chain = [PlainJob("long", {"k": str(k)}) for k in range(3)]
    short = [PlainJob("short", {"i": str(i)}) for i in range(num_short)]
    parents = {job: chain[k - 1 : k] if k else [] for k, job in enumerate(chain)} | {job: [] for job in short}
    return PlainDag({job: parents[job] for job in [*short, *chain]}), chain, short


def test_the_longest_path_starts_first(tmp_path: Path) -> None:
    learned(tmp_path, {"long": 5.0, "short": 1.0})
    dag, chain, short = chain_and_short()
    selector = SnakemakeSelector(dag, LOGGER, tmp_path, is_learning=False)
    chosen = selector.select(dag.ready(), FREE, {})
    assert chosen is not None
    assert chosen[0] is chain[0]
    assert chosen[1] in short


def test_learned_durations_decide_between_equal_paths(tmp_path: Path) -> None:
    jobs = [PlainJob("quick"), PlainJob("slow")]
    dag = PlainDag({job: [] for job in jobs})
    one = FREE | {"_cores": 1}
    learned(tmp_path, {"quick": 1.0, "slow": 60.0})
    assert SnakemakeSelector(dag, LOGGER, tmp_path, is_learning=False).select(set(jobs), one, {}) == [jobs[1]]
    (tmp_path / OWN_LOG).unlink()
    learned(tmp_path, {"quick": 60.0, "slow": 1.0})
    assert SnakemakeSelector(dag, LOGGER, tmp_path, is_learning=False).select(set(jobs), one, {}) == [jobs[0]]


def test_priorities_of_the_user_come_before_ranks(tmp_path: Path) -> None:
    learned(tmp_path, {"slow": 60.0, "urgent": 1.0})
    jobs = [PlainJob("slow"), PlainJob("urgent", priority=5)]
    selector = SnakemakeSelector(PlainDag({job: [] for job in jobs}), LOGGER, tmp_path, is_learning=False)
    assert selector.select(set(jobs), FREE | {"_cores": 1}, {}) == [jobs[1]]


def test_cores_memory_and_declared_resources_are_packed(tmp_path: Path) -> None:
    learned(tmp_path, {"a": 9.0, "b": 8.0, "c": 7.0, "d": 6.0, "e": 5.0})
    needs = [{"mem_mb": 700}, {"mem_mb": 700}, {"_cores": 3}, {"disk": 9}, {"_cores": 2, "mem_mb": 300, "disk": 2}]
    jobs = [PlainJob(rule, needs=need) for rule, need in zip("abcde", needs)]
    selector = SnakemakeSelector(PlainDag({job: [] for job in jobs}), LOGGER, tmp_path, is_learning=False)
    chosen = selector.select(set(jobs), {"_cores": 3, "mem_mb": 1000, "disk": 5, "_job_count": 100}, {})
    assert chosen == [jobs[0], jobs[4]]  # b lacks memory, c cores beside a, d disk


def test_only_the_jobs_in_question_are_asked_for_their_needs(tmp_path: Path) -> None:
    jobs = [PlainJob("a", {"i": str(i)}) for i in range(5000)]
    selector = SnakemakeSelector(PlainDag({job: [] for job in jobs}), LOGGER, tmp_path, is_learning=False)
    chosen = selector.select(set(jobs), FREE, {})
    assert chosen is not None
    assert len(chosen) == 2
    assert sum(job.num_asked for job in jobs) <= 6


def test_groups_and_new_jobs_are_known_when_they_appear(tmp_path: Path) -> None:
    dag, chain, short = chain_and_short(2)
    selector = SnakemakeSelector(dag, LOGGER, tmp_path, is_learning=False)
    group = PlainGroup(chain)
    assert selector.select({group, *short}, FREE | {"_cores": 1}, {}) == [group]
    late = PlainJob("late")
    dag.parents[late] = []
    chosen = selector.select({late}, FREE, {})
    assert chosen == [late]


def test_a_failure_falls_back_to_greedy_and_says_why(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = PlainJob("a", needs={"_cores": 1})
    dag = PlainDag({job: []})
    selector = SnakemakeSelector(dag, LOGGER, tmp_path, is_learning=False)
    job._needs = {"_cores": "many"}  # type: ignore[dict-item]
    with caplog.at_level(logging.WARNING):
        assert selector.select({job}, FREE, {}) is None
        assert selector.select({job}, FREE, {}) is None
    assert len(caplog.records) == 1
    assert "greedy" in caplog.text
    assert "many" in caplog.text


def test_finished_jobs_are_learned_and_kept(tmp_path: Path) -> None:
    jobs = [PlainJob("a", {"i": str(i)}, output=str(tmp_path / f"a{i}")) for i in range(3)]
    dag = PlainDag({job: [] for job in jobs})
    selector = SnakemakeSelector(dag, LOGGER, tmp_path)
    chosen = selector.select(dag.ready(), FREE, {})
    assert chosen is not None
    for job in chosen:
        Path(job.output[0]).touch()
    dag.done.update(chosen)
    dag.started.update(chosen)
    selector.select(dag.ready(), FREE, {})
    records = read_own_log(tmp_path / OWN_LOG)
    assert {record.output for record in records} == {job.output[0] for job in chosen}
    assert all(record.rule == "a" and record.wildcards and record.cores == 1 for record in records)
    assert selector.forecaster.knows("a")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_selection_fits_and_leaves_nothing_that_fits(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 30))
    number = st.integers(0, 5)
    jobs = [
        PlainJob("a", {"i": str(i)}, needs={"_cores": data.draw(st.integers(1, 4)), "mem_mb": data.draw(number)})
        for i in range(count)
    ]
    rank = np.array([float(data.draw(number)) for _ in jobs])
    free = {"_cores": data.draw(st.integers(1, 8)), "mem_mb": data.draw(st.integers(0, 12)), "_job_count": 99}
    table = ReadyTable(tuple(free), jobs, {job: i for i, job in enumerate(jobs)}, [0.0] * count)
    table.enter(table.fresh(set(jobs)))
    duration = np.array([float(data.draw(st.integers(0, 9))) for _ in jobs])
    running = [
        (float(data.draw(st.integers(-2, 9))), np.array([float(data.draw(st.integers(1, 4))), 2.0, 1.0]))
        for _ in range(data.draw(st.integers(0, 4)))
    ]
    chosen = table.select(rank, free, duration, running)
    assert chosen == slow_selection(jobs, rank, free, duration, running)
    if not running:
        assert chosen == slow_selection(jobs, rank, free, duration, [])


def slow_selection(
    jobs: list[PlainJob],
    rank: np.ndarray,
    free: dict[str, int],
    duration: np.ndarray,
    running: list[tuple[float, np.ndarray]],
) -> list[int]:
    """Walk through all jobs by rank: take what fits, and hold room for the first that does not."""
    left, chosen, held = np.array([float(value) for value in free.values()]), list[int](), False
    window, room = np.inf, left
    for row in sorted(range(len(jobs)), key=lambda row: (-rank[row], row)):
        need = np.array([float(jobs[row]._needs.get(name, 0)) for name in free])
        if np.any(need > left):
            if not held and running:
                ends = running + [
                    (duration[i], np.array([float(jobs[i]._needs.get(n, 0)) for n in free])) for i in chosen
                ]
                window, room = reservation(need, left, ends)
            held = True
        elif duration[row] <= window or np.all(need <= room):
            room = room if duration[row] <= window else room - need
            left = left - need
            chosen.append(row)
    return chosen


def test_a_wide_job_gets_a_reservation(tmp_path: Path) -> None:
    learned(tmp_path, {"wide": 50.0, "first": 10.0, "long": 30.0, "short": 2.0})
    first, wide = PlainJob("first"), PlainJob("wide", needs={"_cores": 2})
    long, short = PlainJob("long"), PlainJob("short")
    dag = PlainDag({first: [], wide: [], long: [], short: []})
    selector = SnakemakeSelector(dag, LOGGER, tmp_path, is_learning=False)
    assert selector.select({first}, FREE, {}) == [first]
    dag.started.add(first)
    one = FREE | {"_cores": 1}
    assert selector.select({wide, long, short}, one, {}) == [short]  # the long one would delay the wide one
    dag.done.update({first, short})
    assert selector.select({wide, long}, FREE, {}) == [wide]


def test_a_job_that_failed_for_good_holds_nothing_back(tmp_path: Path) -> None:
    failed, wide, long = PlainJob("failed"), PlainJob("wide", needs={"_cores": 2}), PlainJob("long")
    dag = PlainDag({failed: [], wide: [], long: []})
    selector = SnakemakeSelector(dag, LOGGER, tmp_path, is_learning=False)
    assert selector.select({failed}, FREE, {}) == [failed]
    chosen = selector.select({long}, FREE, {})  # what the failed one held is free again
    assert chosen == [long]
    assert selector.select({wide}, FREE | {"_cores": 1}, {}) == []
    dag.done.add(long)
    assert selector.select({wide}, FREE, {}) == [wide]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_ranks_are_the_longest_paths(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    parents = [sorted(data.draw(st.sets(st.integers(0, i - 1), max_size=3))) if i else [] for i in range(count)]
    duration = np.array([float(data.draw(st.integers(0, 9))) for _ in range(count)])

    def longest(row: int) -> float:
        return float(duration[row]) + max((longest(i) for i in range(count) if row in parents[i]), default=0.0)

    found = upward_ranks(parents, topological_order(parents), duration)
    assert found.tolist() == [longest(row) for row in range(count)]
