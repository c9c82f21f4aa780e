"""Slurm's map of the future: slots of time, and the nodes that no pending job has reserved in each of them."""

from __future__ import annotations

from dataclasses import dataclass

#: Nodes as bits of a number.
NodeMask = int


@dataclass
class TimeSlot:
    """The nodes that are not reserved from ``begin`` until ``end``."""

    begin: int
    end: int
    free: NodeMask


class NodeSpace:
    """Reservations of whole nodes, by slot; all times are rounded down to the resolution."""

    def __init__(self, now: int, window: int, resolution: int, nodes: NodeMask) -> None:
        self.resolution = resolution
        self.slots = [TimeSlot(self.rounded(now), self.rounded(now + window), nodes)]

    def rounded(self, time: int) -> int:
        return time // self.resolution * self.resolution

    def usable(self, nodes: NodeMask, start: int, end: int) -> tuple[NodeMask, int]:
        """Return the nodes that nobody reserved between two times, and when others become usable (0 = never)."""
        found, later = nodes, 0
        for i, slot in enumerate(self.slots):
            if slot.end <= start:
                continue
            if not later and i + 1 < len(self.slots):
                after = nodes & self.slots[i + 1].free
                if after & ~(found & slot.free):
                    later = slot.end
            if slot.begin > end:
                break
            found &= slot.free
        return found, later

    def overlaps(self, nodes: NodeMask, start: int, end: int) -> bool:
        """Say whether one of the nodes is reserved between two times."""
        return any(slot.end > start and slot.begin < end and nodes & ~slot.free for slot in self.slots)

    def reserve(self, nodes: NodeMask, start: int, end: int) -> None:
        """Take nodes out of all slots between two times, and at least out of one."""
        first = max(self.rounded(start), self.slots[0].begin)
        last = max(self.rounded(end), first + self.resolution)
        for moment in (first, last):
            self._split(moment)
        for slot in self.slots:
            if slot.begin >= first and slot.end <= last:
                slot.free &= ~nodes

    def _split(self, moment: int) -> None:
        for i, slot in enumerate(self.slots):
            if slot.begin < moment < slot.end:
                self.slots[i : i + 1] = [TimeSlot(slot.begin, moment, slot.free), TimeSlot(moment, slot.end, slot.free)]
                return
