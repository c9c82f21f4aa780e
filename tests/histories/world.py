"""A world in which a history is played: one clock, one disk, one Slurm, and the parts of the system under test."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stretto.engines.driver.dispatch import View
from stretto.runlog import RunLog

from .boundaries import Disk, installed
from .clock import Scheduler, Violation, VirtualProcess
from .history import History, Incident
from .markets import MarketJob, draw_market, market_main
from .promised_queue import PromisedQueue, queue_main
from .resource_manager import Command, ResourceManager
from .runs import RunTruth, draw_run, run_main
from .steering import SteeringTruth, check_own_order, draw_steering, off_main, on_main, steer_main

#: After this time nothing goes wrong any more.
CALM_S = 75.0
#: By this time everything must have come to its end.
END_S = 4000.0
_MEMORY = Path("/dev/shm")


class World:
    """Everything there is in one history."""

    def __init__(self, history: History, home: Path) -> None:
        self.history, self.home = history, home
        self.clock = Scheduler(history.seed)
        self.disk = Disk(self.clock)
        self.command = Command
        self.pipes: dict[int, Any] = {}  # to guards, by their process
        self.said: dict[int, str] = {}  # by guards
        self.moods: dict[tuple[str, int], str] = {}
        self.fates: dict[int, str] = {}
        self.troubles: dict[int, str] = {}
        self.crashes: dict[str, list[int]] = {}
        self.slow: dict[int, float] = {}
        self.is_calm = self.is_log_incomplete = False
        self.num_messages = self.num_ends = 0
        self.site: Any = None
        self.run_process: VirtualProcess | None = None
        self.steerer: VirtualProcess | None = None
        seed = history.seed
        self._latency = random.Random(f"latency {seed}")
        self._draw = random.Random(f"users {seed}")
        self.truth = RunTruth(self, draw_run(random.Random(f"run {seed}"))) if "run" in history.parts else None
        self.steering = self.manager = self.queue = self.market = None
        if "steering" in history.parts:
            spec = draw_steering(random.Random(f"steering {seed}"))
            self.steering = SteeringTruth(spec)
            self.manager = ResourceManager(self.clock, seed, num_cpus=spec.num_cpus, mode=spec.mode)
            self.manager.releases_recompute = spec.releases_recompute
            self.manager.rights = spec.rights
            for _ in range(spec.num_jobs):
                self._submit()
        if "queue" in history.parts:
            self.queue = PromisedQueue(self, random.Random(f"queue {seed}"))
        if "market" in history.parts:
            self.market = MarketJob(self, draw_market(random.Random(f"market {seed}")))

    # Play ------------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Play the history to its end; raise Violation where an invariant does not hold."""
        for incident in self.history.incidents:
            self._prepare(incident)
        with installed(self):
            try:
                self._begin()
                self.clock.run(CALM_S)
                self._calm_down()
                self.clock.run(END_S, self._is_over)
                self._check_end()
            finally:
                self.clock.close()

    def _begin(self) -> None:
        if self.truth is not None:
            self._start_run()
        if self.manager is not None:
            self._tick()
            self._start_steerer()
        if self.queue is not None:
            self._start_queue()
        if self.market is not None:
            self._start_market()

    def _calm_down(self) -> None:
        """From here on nothing goes wrong: whatever is left must come to a good end."""
        self.clock.tell("nothing goes wrong from here on")
        self.is_calm = True
        self.fates.clear()
        self.troubles.clear()
        self.moods.clear()
        self.slow.clear()
        self.crashes.clear()
        self.disk.full_until_s = -1.0
        self.disk.torn_at.clear()
        for process in self.clock.processes.values():
            process.crash_at = 0
        if self.manager is not None:
            self.manager.away_until_s = self.manager.blind_until_s = -1.0
            self.manager.stuck_until_s = min(self.manager.stuck_until_s, self.clock.now_s)
            self.manager.lost_answers = self.manager.broken_answers = 0
            self.clock.at(self.clock.now_s + 40.0, self._final_off)

    def _is_over(self) -> bool:
        is_run_over = self.truth is None or self.truth.status == "done"
        is_market_over = self.market is None or self.market.is_done
        is_queue_over = self.queue is None or self.queue.is_done
        is_steering_over = self.steering is None or (self.steering.is_off and not self._is_switching_off)
        return is_run_over and is_market_over and is_queue_over and is_steering_over

    @property
    def _is_switching_off(self) -> bool:
        return any(one.name == "off" and one.is_running for one in self.clock.processes.values())

    def _check_end(self) -> None:
        need = self.clock.need
        if self.truth is not None:
            error = self.run_process.error if self.run_process is not None else None
            need(self.truth.status == "done", f"the run does not come to its end: {self.truth.status}, {error!r}")
        if self.market is not None:
            need(self.market.is_done, "the spot job does not come to its end")
        if self.queue is not None:
            need(self.queue.is_done, f"the queue with promises does not come to its end: {self.queue_process.error!r}")
        if self.steering is not None:
            need(self.steering.is_off, "steering cannot be switched off")
            check_own_order(self)

    # Processes, restarted by whoever supervises them ---------------------------------------------------------

    def next_crash(self, name: str) -> int:
        """Return the operation at which the next process of a name is killed."""
        planned = self.crashes.get(name, [])
        return planned.pop(0) if planned else 0

    def _supervise(self, name: str, main: Callable[[Any], None], pause_s: float, is_done: Callable[[], bool]) -> Any:
        process = self.clock.start(name, lambda: main(self), crash_at=self.next_crash(name))

        def again() -> None:
            if not is_done() and not any(one.name == name and one.is_running for one in self.clock.processes.values()):
                getattr(self, f"_start_{name}")()

        process.on_death.append(lambda: self.clock.at(self.clock.now_s + pause_s, again))
        return process

    def _start_run(self) -> None:
        truth = self.truth
        truth.is_cancelled = False
        self.run_process = self._supervise("run", run_main, 2.0, lambda: truth.status == "done")

    def _start_steerer(self) -> None:
        self.steerer = self._supervise(
            "steerer", steer_main, 5.0, lambda: self.steering.is_off or self._is_switched_off
        )

    def _start_queue(self) -> None:
        self.queue_process = self._supervise("queue", queue_main, 0.0, lambda: self.queue.is_done)

    def _start_market(self) -> None:
        self._supervise("market", market_main, 0.0, lambda: self.market.is_done)

    _is_switched_off = False

    def _switch_off(self, *, is_last: bool) -> None:
        self._is_switched_off = True
        process = self.clock.start("off", lambda: off_main(self))

        def then() -> None:
            if is_last:
                if process.error is None:
                    self.steering.is_off = True
                else:
                    self.clock.at(self.clock.now_s + 30.0, self._final_off)
            else:
                self.clock.at(self.clock.now_s + 8.0, self._switch_on)

        process.on_death.append(then)

    def _switch_on(self) -> None:
        if not self.is_calm:
            self._is_switched_off = False
            self.clock.start("on", lambda: on_main(self))
            self.clock.at(self.clock.now_s + 1.0, self._start_steerer_if_none)

    def _start_steerer_if_none(self) -> None:
        if self.steerer is not None and not self.steerer.is_running and not self._is_switched_off:
            self._start_steerer()

    def _final_off(self) -> None:
        self._switch_off(is_last=True)

    # What parts ask -------------------------------------------------------------------------------------------

    def guard_says(self, text: str, *, flush: bool) -> None:
        """Take what a guard prints."""
        process = self.clock.process
        assert process is not None
        self.said[process.pid] = text
        self.clock.tell(f"guard ({process.pid}): {text}")

    def latency_s(self) -> float:
        """Return how long a command takes to reach Slurm."""
        return 0.02 + 0.2 * self._latency.random() ** 3

    def message_fate(self, what: str) -> str:
        """Return what becomes of the next message: nothing special, lost, late or doubled."""
        self.num_messages += 1
        fate = self.fates.pop(self.num_messages, "")
        if fate:
            self.clock.tell(f"message {self.num_messages} ({what}) is {fate}")
        return fate

    def trouble(self) -> str:
        """Return why the next task that ends has failed, if it has."""
        self.num_ends += 1
        return self.troubles.pop(self.num_ends, "")

    def slowness(self, device: int) -> float:
        return self.slow.get(device, 1.0)

    def check_view(self, view: View) -> None:
        """Check what a dispatcher is shown."""
        site = self.site
        for task in view.ready:
            is_ready = all(parent in site.ended for parent in site.work.parents[task])
            self.clock.need(is_ready, f"a dispatcher is shown task {task} as ready, whose parents have not ended")
            is_new = task not in self.truth.committed or task in site.dropped
            self.clock.need(is_new, f"a dispatcher is shown task {task} as ready, whose end was committed")

    # Incidents --------------------------------------------------------------------------------------------------

    def _prepare(self, incident: Incident) -> None:
        kind, value = incident.kind, incident.value
        if kind == "crash":
            self.crashes.setdefault(str(value[0]), []).append(int(incident.at))
        elif kind == "message":
            self.fates[int(incident.at)] = str(value[0])
        elif kind == "trouble":
            self.troubles[int(incident.at)] = str(value[0])
        elif kind == "torn_write":
            self.disk.torn_at.add(int(incident.at))
        elif kind == "mood":
            self.moods[str(value[0]), int(incident.at)] = str(value[1])
        else:
            self.clock.at(incident.at, lambda: self._happen(incident))

    def _happen(self, incident: Incident) -> None:
        if not self.is_calm:
            self.clock.tell(str(incident)[10:])
            getattr(self, f"_{incident.kind}")(*incident.value)

    def _disk_full(self, seconds: float) -> None:
        self.disk.full_until_s = self.clock.now_s + seconds

    def _clock_jump(self, seconds: float) -> None:
        self.clock.jump_s += seconds

    def _power_cut(self, share: float) -> None:
        """End all processes; what was not synced to disk may be gone from some byte on."""
        kept = {path: path.read_bytes() for path in self.home.iterdir() if path.name in ("runs.db", "runs.db-wal")}
        for process in list(self.clock.processes.values()):
            self.clock.kill(process, "by a power cut")
        for path in self.home.glob("runs.db*"):
            if path.is_file():
                path.unlink()
        for path, data in kept.items():
            path.write_bytes(data if path.name == "runs.db" else data[: int(share * len(data))])
        for path in self.home.glob("runs.db-ends/*"):
            os.truncate(path, int(share * path.stat().st_size))
        if self.truth is not None:
            self.truth.committed.clear()
            self.truth.num_seen = 0
        if self.steering is not None:
            self.steering.latest_start_s.clear()
            self.steering.num_faults = -1

    def _lose_device(self, device: int) -> None:
        if self.site is not None and self.run_process is not None and self.run_process.is_running:
            self.site.lose(device)

    def _join_device(self, device: int) -> None:
        if self.site is not None:
            self.site.join(device)

    def _slow_device(self, device: int, factor: float) -> None:
        self.slow[device] = factor

    def _cancel_run(self) -> None:
        self.truth.is_cancelled = True

    def _rival_run(self) -> None:
        """Have somebody resume the run in a second process while the first one runs."""
        first = self.run_process
        if first is None or not first.is_running or self.site is None:
            return
        site = self.site

        def main() -> None:
            with RunLog.open() as log:
                known = log.runs("run", limit=1)
                if known:
                    log.resume(known[0].id)
                    self.clock.need(not first.is_running or self.site is not site, "two processes write one run")

        self.clock.start("rival", main)

    def _end_a_job(self) -> None:
        self.queue.cancel_one()

    def _tick(self) -> None:
        self.manager.tick()
        self.clock.at(self.clock.now_s + 1.5, self._tick)

    def _submit(self) -> None:
        rng = self._draw
        site, priority = 0, None
        if rng.random() < 0.2:
            site, priority = (rng.choice([-50, 500]), None) if self.manager.mode == "sitefactor" else (0, 7_654_321)
        limit = rng.choice([1, 2, 5, 10])
        partition = rng.choice(["main", "main", "long", "main,long", "long,main"])
        self.manager.submit(rng.randint(1, 8), limit, rng.uniform(5, 60.0 * limit), partition, site, priority)

    def _job(self, place: int) -> Any:
        waiting = [job for job in self.manager.jobs.values() if not job.is_ended]
        return waiting[place % len(waiting)] if waiting else None

    def _submit_job(self, place: int) -> None:
        self._submit()

    def _cancel_job(self, place: int) -> None:
        if (job := self._job(place)) is not None:
            self.manager.cancel(job)

    def _hold_job(self, place: int) -> None:
        if (job := self._job(place)) is not None:
            self.manager.hold(job)

    def _release_job(self, place: int) -> None:
        for job in self.manager.jobs.values():
            if job.own_hold:
                self.manager.release(job)

    def _resubmit_job(self, place: int) -> None:
        self._cancel_job(place)
        self._submit()

    def _change_job(self, place: int, limit_min: int) -> None:
        if (job := self._job(place)) is not None and job.state == "PENDING":
            job.limit_min = limit_min

    def _move_job(self, place: int, partition: str) -> None:
        if (job := self._job(place)) is not None and job.state == "PENDING":
            job.partition, job.changed_s = partition, self.clock.now_s
            self.steering.latest_start_s.pop(job.number, None)

    def _operator_sets(self, place: int, value: int) -> None:
        if (job := self._job(place)) is not None:
            self.manager.set_by_operator(job, abs(value) if self.manager.mode == "priority" else value)

    def _interrupt_steerer(self) -> None:
        if self.steerer is not None and self.steerer.is_running:
            self.clock.interrupt(self.steerer, KeyboardInterrupt())

    def _switch_off_soon(self) -> None:
        self._switch_off(is_last=False)

    def _stuck(self, seconds: float) -> None:
        self.manager.stuck_until_s = max(self.manager.stuck_until_s, self.clock.now_s + seconds)

    def _away(self, seconds: float) -> None:
        self.manager.away_until_s = self.clock.now_s + seconds

    def _lost_answers(self, count: int) -> None:
        self.manager.lost_answers += count

    def _broken_answer(self) -> None:
        self.manager.broken_answers += 1

    def _restart_slurm(self) -> None:
        self.manager.num_faults += 1
        running = {number for number, job in self.manager.jobs.items() if job.state != "PENDING"}
        self.manager.restart()
        for number in running:  # a job that waits again may be promised another start
            self.steering.latest_start_s.pop(number, None)

    def _blind(self, seconds: float) -> None:
        self.manager.num_faults += 1
        self.manager.blind_until_s = self.clock.now_s + seconds


class Outcome:
    """What became of a history: a broken rule, or none, and its story."""

    def __init__(self, history: History, rule: str, story: list[str]) -> None:
        self.history, self.rule, self.story = history, rule, story


def play(history: History) -> Outcome:
    """Play a history in a world of its own."""
    base = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    home = Path(tempfile.mkdtemp(prefix="stretto-history-", dir=base))
    world = None
    try:
        world = World(history, home)
        world.play()
        rule = ""
    except Violation as error:
        rule = str(error)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return Outcome(history, rule, world.clock.story if world is not None else [])
