"""Commands that begin only when they are told to.

Between the start of a process and the moment when its keeper knows of it, whoever started it may be killed. Behind a
gate nothing has begun by then, and nothing ever will: the gate's input ends with its owner.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence

#: Waits for a line, then becomes the command; dash and bash agree that an input that ends is no line.
_GATE = ("/bin/sh", "-c", 'read -r word && exec "$@" </dev/null', "gate")
#: Variables with other names than these a shell does not hand on, such as the functions that bash exports.
_HANDED_ON = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def start_gated(argv: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, for :func:`open_gate` to let it begin; raise OSError if it cannot."""
    _need_program(argv[0], cwd, env)
    odd = [f"{name}={value}" for name, value in env.items() if not _HANDED_ON.fullmatch(name)]
    return subprocess.Popen(
        (*_GATE, *(("env", *odd) if odd else ()), *argv),
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that what it starts can be ended with it
    )


def open_gate(child: subprocess.Popen[bytes]) -> None:
    """Let a command begin that was started behind a gate."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError), child.stdin as gate:  # ended at the gate: its exit code will say so
        gate.write(b"begin\n")
    child.stdin = None  # or communicate() would flush what is closed


def _need_program(name: str, cwd: str | None, env: Mapping[str, str]) -> None:
    if os.path.dirname(name):
        found = shutil.which(os.path.join(os.path.abspath(cwd or "."), name))
        if found is None:
            raise FileNotFoundError("there is no such file, or it is not executable")
    elif shutil.which(name, path=env.get("PATH", os.defpath)) is None:
        raise FileNotFoundError("there is no such program on the PATH")
