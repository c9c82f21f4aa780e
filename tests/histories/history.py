"""A history: what a seed draws, as lines that can be read and dropped one by one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

#: Draws how many incidents of a kind there are.
Several = Callable[[float], range]
PARTS = ("run", "steering", "queue", "market")


@dataclass(frozen=True)
class Incident:
    """One event or fault.

    Attributes
    ----------
    kind
        What happens; ``world.py`` has a method of this name.
    at
        When, in seconds, or at which operation, message, write or decision.
    value
        More about it: a process, a device, a job, a duration.
    """

    kind: str
    at: float
    value: tuple[float | int | str, ...] = ()

    def __str__(self) -> str:
        words = " ".join(str(round(one, 2) if isinstance(one, float) else one) for one in self.value)
        return f"{self.at:8.2f}  {self.kind.replace('_', ' ')} {words}".rstrip()


@dataclass(frozen=True)
class History:
    """Everything that is drawn before a history is played."""

    seed: int
    parts: tuple[str, ...]
    incidents: tuple[Incident, ...]

    def without(self, places: range) -> History:
        """Return the history without some of its incidents."""
        kept = tuple(one for place, one in enumerate(self.incidents) if place not in places)
        return replace(self, incidents=kept)

    def __str__(self) -> str:
        head = f"history {self.seed} of {', '.join(self.parts)}: {len(self.incidents)} events and faults"
        return "\n".join([head, *(f"  {one}" for one in self.incidents)])


def draw(seed: int) -> History:
    """Draw the history of a seed."""
    rng = random.Random(f"history {seed}")
    chances = {"run": 0.65, "steering": 0.5, "queue": 0.35, "market": 0.35}
    parts = tuple(part for part in PARTS if rng.random() < chances[part]) or (PARTS[seed % 4],)
    found: list[Incident] = []
    severity = rng.choice([0.3, 1.0, 2.0])  # some histories are quiet, in others everything goes wrong

    def several(mean: float) -> range:
        return range(min(6, int(rng.expovariate(1.0) * mean * severity + 0.5)))

    if "run" in parts:
        found += _of_run(rng, several)
    if "steering" in parts:
        found += _of_steering(rng, several)
    if "queue" in parts:
        found += [Incident("end_a_job", rng.uniform(2, 60)) for _ in several(2.0)]
    if "market" in parts:
        found += [Incident("crash", rng.randint(1, 12), ("market",)) for _ in several(1.0)]
    found += _of_machine(rng, several)
    return History(seed, parts, tuple(sorted(found, key=lambda one: (one.at, one.kind, str(one.value)))))


def _of_machine(rng: random.Random, several: Several) -> list[Incident]:
    found = [Incident("disk_full", rng.uniform(0, 70), (rng.choice([0.5, 3.0, 20.0]),)) for _ in several(0.4)]
    found += [Incident("torn_write", rng.randint(1, 20)) for _ in several(0.5)]
    found += [
        Incident("clock_jump", rng.uniform(0, 70), (rng.choice([-3600.0, -20.0, 20.0, 3600.0]),)) for _ in several(0.4)
    ]
    found += [Incident("power_cut", rng.uniform(5, 70), (rng.random(),)) for _ in range(rng.random() < 0.05)]
    return found


def _of_run(rng: random.Random, several: Several) -> list[Incident]:
    found = [Incident("crash", rng.randint(1, rng.choice([12, 60, 200])), ("run",)) for _ in several(1.2)]
    for _ in several(2.0):
        found.append(Incident("message", rng.randint(1, 60), (rng.choice(["lost", "late", "doubled"]),)))
    for _ in several(1.0):
        at, device = rng.uniform(0, 40), rng.randint(0, 2)
        found.append(Incident("lose_device", at, (device,)))
        if rng.random() < 0.6:
            found.append(Incident("join_device", at + rng.uniform(0.1, 20), (device,)))
    found += [
        Incident("slow_device", rng.uniform(0, 20), (rng.randint(0, 2), rng.choice([3.0, 12.0]))) for _ in several(0.5)
    ]
    found += [
        Incident("trouble", rng.randint(1, 12), (rng.choice(["task", "worker", "device", "full"]),))
        for _ in several(0.8)
    ]
    moods = ["raises", "hangs", "nonsense", "nothing"]
    found += [Incident("mood", rng.randint(1, 8), ("dispatcher", rng.choice(moods))) for _ in several(1.0)]
    found += [Incident("cancel_run", rng.uniform(1, 30)) for _ in several(0.3)]
    found += [Incident("rival_run", rng.uniform(1, 40)) for _ in several(0.3)]
    return found


def _of_steering(rng: random.Random, several: Several) -> list[Incident]:
    found = [Incident("crash", rng.randint(8, rng.choice([30, 120, 300])), ("steerer",)) for _ in several(1.0)]
    found += [Incident("crash", rng.randint(1, 12), ("guard",)) for _ in several(0.5)]
    found += [Incident("interrupt_steerer", rng.uniform(1, 60)) for _ in several(0.3)]
    found += [Incident("switch_off_soon", rng.uniform(5, 60)) for _ in several(0.3)]
    found += [Incident("stuck", rng.uniform(0, 60), (rng.choice([2.0, 15.0, 45.0]),)) for _ in several(0.5)]
    found += [Incident("away", rng.uniform(0, 60), (rng.choice([2.0, 15.0]),)) for _ in several(0.4)]
    found += [Incident("lost_answers", rng.uniform(0, 60), (rng.randint(1, 4),)) for _ in several(0.6)]
    found += [Incident("broken_answer", rng.uniform(0, 60)) for _ in several(0.2)]
    found += [Incident("restart_slurm", rng.uniform(5, 60)) for _ in several(0.4)]
    found += [Incident("blind", rng.uniform(0, 60), (rng.choice([6.0, 20.0]),)) for _ in several(0.4)]
    moods = ["raises", "hangs", "nonsense", "nothing", "slow"]
    found += [Incident("mood", rng.randint(2, 12), ("order", rng.choice(moods))) for _ in several(1.0)]
    for kind, mean in (("submit", 2.0), ("cancel", 0.8), ("hold", 0.8), ("release", 0.6), ("resubmit", 0.5)):
        found += [Incident(f"{kind}_job", rng.uniform(0, 60), (rng.randint(0, 9),)) for _ in several(mean)]
    found += [
        Incident("change_job", rng.uniform(0, 60), (rng.randint(0, 9), rng.choice([1, 5, 30]))) for _ in several(0.5)
    ]
    for _ in several(0.4):
        found.append(Incident("move_job", rng.uniform(0, 60), (rng.randint(0, 9), rng.choice(["main", "long"]))))
    found += [
        Incident("operator_sets", rng.uniform(0, 60), (rng.randint(0, 9), rng.choice([-77, 333, 12_345_677])))
        for _ in several(0.7)
    ]
    return found
