"""Fuzz every reader and the HTTP API: ``python tests/trust/fuzz.py --inputs 1000000 --seed 0 [READER...]``.

Inputs that are right are damaged, and read. A reader may answer or raise a StrettoError, within ten seconds of
processor time and 3 GiB of memory; all else is a failure, kept with its input. Input number N of a reader is a function
of the seed and N: ``--show "graph dot" 17`` makes it again and shows what happens. Work goes on where it was stopped;
``--fresh`` starts anew. The exit code is 1 where there were failures.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# This file's own folder is there already. The root comes first: a folder of tests is called research, too.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "files"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fuzzing.damage import damaged
from fuzzing.readers import Reader, all_readers

from stretto.errors import StrettoError

ROOT = Path(__file__).resolve().parents[2]
#: Inputs that one process reads before the next takes over.
_CHUNK = 2000
_MOST_CPU_S, _MOST_WALL_S, _MOST_BYTES = 10.0, 120.0, 3 << 30
#: Readers with so many failures are left alone.
_MOST_FAILURES = 10
#: One of so many inputs is a request to the server: each costs as much as hundreds of files.
_PER_REQUEST = 200


class Hang(BaseException):
    """An input has taken too long; not an Exception, so that no reader catches it."""


def input_of(name: str, reader: Reader, seed: int, number: int) -> bytes:
    """Return an input; the first ones are the undamaged beginnings."""
    if number < len(reader.seeds):
        return reader.seeds[number]
    rng = random.Random(f"{seed} {name} {number}")
    return damaged(rng.choice(reader.seeds), rng, reader.seeds)


def attempt(reader: Reader, data: bytes) -> tuple[bool, str | None]:
    """Return whether a reader understood an input, and what was wrong with how it took it."""
    begin = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, _MOST_WALL_S)
    try:
        reader.read(data)
        answer: tuple[bool, str | None] = True, None
    except StrettoError as error:
        answer = False, None if str(error).strip() else "an error without words"
    except (Exception, Hang, SystemExit) as error:
        answer = False, f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    took = time.process_time() - begin
    return answer if took < _MOST_CPU_S or answer[1] else (answer[0], f"took {took:.0f} s of processor time")


def _give_up(number: int, frame: object) -> None:
    raise Hang(f"no answer within {_MOST_WALL_S:g} s")


def limit_this_process() -> None:
    """Limit time for each input, and memory for all of them."""
    signal.signal(signal.SIGALRM, _give_up)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MOST_BYTES,) * 2)


def read_chunk(name: str, reader: Reader, seed: int, numbers: range) -> tuple[dict[str, Any], int]:
    """Read some inputs in a process of its own; return what came of it and the next number."""
    at = mmap.mmap(-1, 8)
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        _be_child(name, reader, seed, numbers, at, sink)
    os.close(sink)
    with os.fdopen(source, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    lines = [json.loads(line) for line in told.splitlines()]
    understood = sum(line["understood"] for line in lines)
    failures = [line for line in lines if line["failure"]]
    next_number = numbers.stop
    if status != 0:  # it was killed by an input, the one that it had begun
        number = struct.unpack("q", at[:8])[0]
        failures.append({"number": number, "failure": f"the process ended with status {status}"})
        next_number = number + 1
    return {"understood": understood, "failures": failures}, next_number


def _be_child(name: str, reader: Reader, seed: int, numbers: range, at: mmap.mmap, sink: int) -> None:
    """Read inputs, tell what came of them, and end this process."""
    status = 3
    try:
        limit_this_process()
        understood = 0
        with os.fdopen(sink, "w") as pipe:
            for number in numbers:
                at[:8] = struct.pack("q", number)
                is_read, failure = attempt(reader, input_of(name, reader, seed, number))
                understood += is_read
                if failure:
                    print(json.dumps({"number": number, "understood": 0, "failure": failure}), file=pipe)
            print(json.dumps({"number": -1, "understood": understood, "failure": None}), file=pipe)
        status = 0
    finally:
        os._exit(status)


class State:
    """What has been tried so far, on disk after every chunk."""

    def __init__(self, folder: Path, seed: int, *, fresh: bool) -> None:
        self.folder, self.path = folder, folder / f"seed-{seed}.json"
        folder.mkdir(parents=True, exist_ok=True)
        known = json.loads(self.path.read_text()) if self.path.exists() and not fresh else {}
        self.readers: dict[str, dict[str, Any]] = known

    def of(self, name: str) -> dict[str, Any]:
        """Return the counts of a reader."""
        empty = {"tried": 0, "understood": 0, "seconds": 0.0, "failures": []}
        return self.readers.setdefault(name, empty)

    def write(self) -> None:
        """Write all counts, whole or not at all."""
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(self.readers, indent=1))
        os.replace(draft, self.path)


def fuzz(name: str, reader: Reader, num_inputs: int, seed: int, state: State) -> None:
    """Try inputs of one reader up to a number."""
    counts = state.of(name)
    while counts["tried"] < num_inputs and len(counts["failures"]) < _MOST_FAILURES:
        begin = time.monotonic()
        numbers = range(counts["tried"], min(counts["tried"] + _CHUNK, num_inputs))
        found, counts["tried"] = read_chunk(name, reader, seed, numbers)
        counts["understood"] += found["understood"]
        counts["seconds"] += time.monotonic() - begin
        for failure in found["failures"]:
            kept = state.folder / f"{name.replace(' ', '-')}-{seed}-{failure['number']}"
            kept.write_bytes(input_of(name, reader, seed, failure["number"]))
            counts["failures"].append({"number": failure["number"], "failure": failure["failure"]})
        state.write()
    report(name, counts)


def report(name: str, counts: dict[str, Any]) -> None:
    """Print a line for a reader, and its failures."""
    print(
        f"{name:20} {counts['tried']:9,} inputs {counts['understood']:9,} understood "
        f"{len(counts['failures']):3} failures {counts['seconds']:6.0f} s",
        flush=True,
    )
    for failure in counts["failures"]:
        print(f"    {name} {failure['number']}: {failure['failure'][:300]}", flush=True)


def fuzz_routes(num_requests: int, seed: int, state: State) -> None:
    """Ask the server's routes, in a process of its own; done in one go, or again from the start."""
    counts = state.of("routes")
    if counts["tried"] < num_requests:
        script = Path(__file__).parent / "fuzzing" / "web_requests.py"
        begin = time.monotonic()
        words = [sys.executable, str(script), str(num_requests), str(seed)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[:4])}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, errors="replace", check=False)
        lines = done.stdout.splitlines()
        told = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        failures = [] if done.returncode == 0 else [{"number": -1, "failure": (done.stdout + done.stderr)[-6000:]}]
        counts |= {"tried": told.get("requests", 0), "understood": told.get("200", 0), "failures": failures}
        counts["seconds"] = time.monotonic() - begin
        state.readers["routes"] = counts
        state.write()
    report("routes", counts)


@contextlib.contextmanager
def apart() -> Any:
    """Give readers an empty current folder, far from anything that belongs to somebody."""
    with tempfile.TemporaryDirectory(prefix="stretto-fuzz-") as name:
        work, here = Path(name) / "files", Path(name, *"abcdefgh")
        work.mkdir()
        here.mkdir(parents=True)
        for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
            os.environ[variable] = str(here)
        os.environ["STRETTO_HOME"] = str(work / "home")
        os.environ["COLUMNS"] = "80"
        os.chdir(here)
        yield work


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", help="only those whose names hold one of these words; default: all")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, default=ROOT / "out" / "fuzz")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--show", nargs=2, metavar=("READER", "NUMBER"))
    asked = parser.parse_args()
    state_folder = asked.state.resolve()
    with apart() as folder:
        readers = all_readers(folder)
        if asked.show:
            name, number = asked.show[0], int(asked.show[1])
            data = input_of(name, readers[name], asked.seed, number)
            print(repr(data[:3000]))
            print(repr(readers[name].read(data)))
            return 0
        state = State(state_folder, asked.seed, fresh=asked.fresh)
        chosen = [name for name in [*readers, "routes"] if not asked.readers or any(w in name for w in asked.readers)]
        num_requests = math.ceil(asked.inputs / _PER_REQUEST) if "routes" in chosen else 0
        shares = {name: readers[name].share for name in chosen if name in readers}
        unit = (asked.inputs - num_requests) / max(sum(shares.values()), 1e-9)
        for name, share in shares.items():
            fuzz(name, readers[name], math.ceil(unit * share), asked.seed, state)
        if num_requests:
            fuzz_routes(num_requests, asked.seed, state)
    counts = [state.of(name) for name in chosen]
    num_failures = sum(len(count["failures"]) for count in counts)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"all: {len(chosen)} readers, {sum(count['tried'] for count in counts):,} inputs, {num_failures} failures, "
        f"{most:,.0f} MiB at most in one process"
    )
    return 1 if num_failures else 0


if __name__ == "__main__":
    sys.exit(main())
