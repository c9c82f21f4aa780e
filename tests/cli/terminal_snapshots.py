"""What commands print at 80 and 120 columns, kept as text: ``python tests/cli/terminal_snapshots.py`` makes it anew.

Look at each changed file before committing it: a reader sees exactly this.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from stretto.cli import health

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("snapshots")
WIDTHS = (80, 120)
#: By name of the file. Each runs alone, in a folder that holds the examples and ``plan.json``.
COMMANDS = {
    "plan": "plan examples/workflow.json -c examples/lab.toml --policy heft",
    "plan-pools": "plan examples/workflow.json --pools own:1,cloud:0-4@3.6 --deadline 2min",
    "compare": "compare workload:montage workload:lu -c cpu:6x1.0,cpu:2x3.0@125MB/s --policies heft,peft,dls",
    "compare-trace": "compare examples/jobs.swf.gz --strategies fcfs,saf,wfp3",
    "compare-windows": "compare examples/jobs.swf.gz --strategies fcfs,saf,sjf --windows 8 --window-size 200",
    "replay": "replay examples/jobs.swf.gz --strategy saf --backfill promise",
    "simulate": "simulate plan.json --noise 0.2 --seed 1",
    "bound": "bound examples/workflow.json -c examples/lab.toml",
    "explain": "explain examples/jobs.swf.gz --job 1200",
    "show-trace": "show examples/jobs.swf.gz",
    "show-graph": "show examples/workflow.json",
    "show-cluster": "show examples/lab.toml",
    "place": "place examples/graph.json --devices gpu:4 --policy heft",
    "rack": "rack two-nics --no-log",
    "when": "when examples/jobs.swf.gz --job 1200 --learn-jobs 50",
    "when-all": "when examples/jobs.swf.gz --all --at 30h --learn-jobs 50",
    "list": "list strategies",
    "train": "train doppler examples/workflow.json -c cpu:2,gpu:1 --episodes 32 --no-log",
    "doctor": "doctor",
}
#: Wall times differ from run to run, and with them the width of their column.
_TIMED = ((re.compile(r"\s+<?[\d.,]+ (?:ns|µs|ms|s)$"), "  TIME"), (re.compile(r"\s+planned in$"), "  planned in"))
_TIMED_FACT = re.compile(r"^(  (?:(?:planned|replayed|compiled) in|trained +[\d,]+ episodes in) +).*")
_TRAINED_FOR = re.compile(r"^(Trained for )[\d.,]+ (?:ms|s)(?=:)")
_ANSWER = re.compile(r"^Trained for [^\n]*(?:\n[^\n]+)*?\.\n")
#: What ``stretto doctor`` finds on a machine that lacks some things, whatever this one has.
HEALTH: dict[str, Any] = {
    "versions": {"stretto": "0.1.0", "python": "3.11.7", "system": "Linux-6.1-x86_64", "numpy": "2.4.6"},
    "machine": {"usable_cores": 8, "cores": 16, "memory_bytes": 64e9},
    "kernel_cache": {
        "path": "/home/amelie/.cache/stretto/kernels",
        "writable": True,
        "num_modules": 12,
        "size_bytes": 3.2e6,
    },
    "extras": [
        {"name": "dask", "present": True, "versions": {"dask": "2026.8.0", "distributed": "2026.8.0"}},
        {"name": "web", "present": True, "versions": {"fastapi": "0.162.4", "uvicorn": "0.54.0"}},
        {"name": "torch", "present": False, "missing": ["torch"], "install": "pip install 'stretto[torch]'"},
    ],
    "engines": [
        {"name": "local", "available": True, "reason": ""},
        {"name": "ray", "available": False, "reason": "Ray is not installed: pip install 'stretto[ray]'"},
        {
            "name": "slurm",
            "available": False,
            "reason": "no Slurm controller answers; set SLURM_CONF, or start a private Slurm with: "
            "stretto testbed slurm up",
        },
    ],
    "plugins": [],
    "data_folder": {"path": "/data/traces", "exists": False},
    "run_log": {"path": "/home/amelie/.local/state/stretto/runs.db", "exists": True, "fault": None, "num_runs": 14,
                "size_bytes": 4.1e6},
    "settings": {"files": ["/home/amelie/stretto.toml"], "fault": None},
}  # fmt: skip
#: Commands that end with another code than 0, as they should.
_REFUSALS = ("--deadline", "doctor")


def masked(text: str, columns: int) -> str:
    """Return a text without wall times and without the spaces at the ends of its lines."""
    # Where the sentence breaks depends on the time in it.
    text = _ANSWER.sub(lambda found: _wrapped(_TRAINED_FOR.sub(r"\1TIME", found[0]), columns), text)
    lines = []
    has_times = False
    for line in (line.rstrip() for line in text.splitlines()):
        has_times = line.endswith("planned in") or (has_times and bool(line))
        if has_times:
            line = re.sub("─+", "────", line)
            for pattern, mask in _TIMED:
                line = pattern.sub(mask, line)
        lines.append(_TIMED_FACT.sub(r"\1TIME", line).rstrip())
    return "\n".join(lines) + "\n"


def _wrapped(sentence: str, columns: int) -> str:
    return "\n".join(textwrap.wrap(" ".join(sentence.split()), columns, break_on_hyphens=False)) + "\n"


@contextlib.contextmanager
def folder_of_a_clone() -> Iterator[None]:
    """Work in a new folder with the examples and a saved plan, without settings or runs of the reader's own."""
    changes = {"NO_COLOR": "1", "STRETTO_CONFIG": os.devnull}
    before = {name: os.environ.get(name) for name in (*changes, "STRETTO_HOME", "COLUMNS")}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        shutil.copytree(ROOT / "examples", "examples", ignore=shutil.ignore_patterns("out"))
        os.environ.update(changes | {"STRETTO_HOME": str(Path(name) / "home")})
        try:
            printed("plan examples/workflow.json -c examples/lab.toml --save plan.json", 80)
            yield
        finally:
            for key, value in before.items():
                os.environ.pop(key, None)
                if value is not None:
                    os.environ[key] = value


def printed(command: str, columns: int) -> str:
    """Return what a command prints on stdout at a width."""
    from stretto.cli.main import main

    os.environ["COLUMNS"] = str(columns)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.ExitStack() as fixed:
        for name, found in HEALTH.items():
            fixed.enter_context(mock.patch.object(health, name, return_value=found))
        code = main(shlex.split(command))
    assert code == 0 or any(word in command for word in _REFUSALS), f"{command}: {err.getvalue()}"
    return out.getvalue()


def snapshot(name: str, columns: int) -> str:
    """Return the text of a snapshot, its command first."""
    return f"$ stretto {COMMANDS[name]}\n{masked(printed(COMMANDS[name], columns), columns)}"


def path_of(name: str, columns: int) -> Path:
    """Return where a snapshot is kept."""
    return FOLDER / f"{name}-{columns}.txt"


def main() -> None:
    """Write all snapshots, or those that are named."""
    with folder_of_a_clone():
        for name in sys.argv[1:] or COMMANDS:
            for columns in WIDTHS:
                path_of(name, columns).write_text(snapshot(name, columns))


if __name__ == "__main__":
    main()
