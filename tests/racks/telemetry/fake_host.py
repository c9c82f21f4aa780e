"""A folder that looks like the files of a host, with as many CPUs, nodes and devices as a test asks for."""

from __future__ import annotations

from pathlib import Path


class FakeHost:
    """Counters that a test moves; the clock moves with them."""

    def __init__(self, root: Path, num_cpus: int = 2) -> None:
        self.root, self.now_s = root, 0.0
        self.busy_s = dict.fromkeys(range(num_cpus), 0.0)
        self.threads: dict[int, tuple[float, float]] = {}
        self.write("sys/devices/system/cpu/online", f"0-{num_cpus - 1}\n")
        self.pass_time(0.0)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def clock(self) -> float:
        return self.now_s

    def pass_time(self, seconds: float, busy: dict[int, float] | None = None) -> None:
        """Let time pass in which CPUs are busy for a share of it."""
        self.now_s += seconds
        for cpu, share in (busy or {}).items():
            self.busy_s[cpu] += share * seconds
        lines = ["cpu 1 2 3 4 5 6 7 8"]
        for cpu, total in self.busy_s.items():
            lines.append(f"cpu{cpu} {100 * total:.0f} 0 0 {100 * (self.now_s - total):.0f} 0 0 0 0 0 0")
        self.write("proc/stat", "\n".join([*lines, "intr 1 2 3"]) + "\n")

    def run_thread(self, pid: int, run_s: float, wait_s: float = 0.0) -> None:
        """Give a thread CPU time, and time in which it waited for a core."""
        run, wait = self.threads.get(pid, (0.0, 0.0))
        self.threads[pid] = (run + run_s, wait + wait_s)
        run, wait = self.threads[pid]
        self.write(f"proc/{pid}/task/{pid}/schedstat", f"{run * 1e9:.0f} {wait * 1e9:.0f} 3\n")

    def topology(self, siblings: list[str], nodes: list[str]) -> None:
        """Say which threads share a core, and which CPUs a memory node has."""
        for cpu, text in enumerate(siblings):
            self.write(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", text + "\n")
            for index, (level, size) in enumerate([(1, "32K"), (3, "32768K")]):
                folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
                for key, value in (("level", level), ("size", size), ("shared_cpu_list", text)):
                    self.write(f"{folder}/{key}", f"{value}\n")
        for node, text in enumerate(nodes):
            self.write(f"sys/devices/system/node/node{node}/cpulist", text + "\n")
