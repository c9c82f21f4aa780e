"""What a job asked for on its command line: the options of ``sbatch``, ``srun`` and ``salloc`` in ``SubmitLine``.

Options inside the script are not in the line, so an option that is missing says nothing.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from functools import lru_cache

#: Options without a value of their own; every other one takes the word after it.
_FLAGS = frozenset(
    [
        "contiguous",
        "exclusive",
        "get-user-env",
        "hold",
        "ignore-pbs",
        "immediate",
        "label",
        "multi-prog",
        "nice",
        "no-kill",
        "no-requeue",
        "overcommit",
        "overlap",
        "oversubscribe",
        "parsable",
        "propagate",
        "pty",
        "quiet",
        "reboot",
        "requeue",
        "share",
        "spread-job",
        "test-only",
        "unbuffered",
        "use-min-nodes",
        "verbose",
        "wait",
    ]
)
_SHORT_FLAGS = frozenset("HsOvQWkhIXluZ")
_SHORT = {
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus-per-task",
    "p": "partition",
    "C": "constraint",
    "J": "job-name",
    "d": "dependency",
    "a": "array",
    "G": "gpus",
    "b": "begin",
    "P": "dependency",
}
_KEPT = frozenset(
    [
        "nodes",
        "ntasks",
        "ntasks-per-node",
        "cpus-per-task",
        "mem",
        "mem-per-cpu",
        "gres",
        "gpus",
        "gpus-per-node",
        "gpus-per-task",
        "constraint",
        "partition",
        "job-name",
        "dependency",
        "array",
        "begin",
        "exclusive",
    ]
)
_AFTER = re.compile(r"(afterok|afterany|afternotok|aftercorr)((?::[0-9]{1,18}(?:_[0-9]{1,9})?(?:\+[0-9]{1,9})?)+)")


@dataclass(frozen=True)
class Dependency:
    """What a job waits for.

    Attributes
    ----------
    jobs
        Jobs whose end it waits for, as the user named them (``123``, ``123_4``).
    arrays
        Arrays of which each task waits for the one of its own number (``aftercorr``).
    is_singleton
        It waits for earlier jobs of its name and user.
    unread
        Parts that have no place in a trace: ``after`` (the start of a job), alternatives.
    """

    jobs: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    is_singleton: bool = False
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class SubmitOptions:
    """The options of one component, by their long names; those without a value are empty."""

    given: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        return self.given.get(name, "")

    def count(self, name: str) -> int | None:
        """Return a whole number; None where there is none that can be read."""
        text = self.text(name)
        return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None

    @property
    def nodes(self) -> tuple[int, int | None] | None:
        """The least and the most nodes; None where they are not given."""
        found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", self.text("nodes"))
        if found is None or int(found[1]) < 1:
            return None
        return int(found[1]), int(found[2]) if found[2] else int(found[1])

    @property
    def is_exclusive(self) -> bool:
        """Whole nodes; ``--exclusive=user`` shares them among jobs of the user."""
        return "exclusive" in self.given and self.given["exclusive"] in ("", "exclusive")

    @property
    def array_limit(self) -> int | None:
        """How many tasks of the array may run at once."""
        found = re.search(r"%([0-9]{1,9})$", self.text("array"))
        return int(found[1]) if found is not None and int(found[1]) > 0 else None

    @property
    def dependency(self) -> Dependency:
        return read_dependency(self.text("dependency"))


@lru_cache(maxsize=4096)
def read_dependency(text: str) -> Dependency:
    """Read ``afterok:1:2,singleton``."""
    if "?" in text:  # any one of them will do
        return Dependency(unread=(text,))
    jobs: list[str] = []
    arrays: list[str] = []
    unread: list[str] = []
    is_singleton = False
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = _AFTER.fullmatch(part)
        if part == "singleton":
            is_singleton = True
        elif found is not None:
            named = [job.partition("+")[0] for job in found[2].strip(":").split(":")]
            (arrays if found[1] == "aftercorr" else jobs).extend(named)
        else:
            unread.append(part)
    return Dependency(tuple(jobs), tuple(arrays), is_singleton, tuple(unread))


@lru_cache(maxsize=4096)
def read_submit_line(text: str) -> tuple[SubmitOptions, ...]:
    """Return the options of each component; a line of a plain job has one."""
    words = _words(text)
    components: list[dict[str, str]] = [{}]
    at = 1
    while at < len(words):
        word = words[at]
        at += 1
        if word == ":":
            components.append({})
            continue
        name, value, takes_next = _option(word)
        if not name:  # the script; what follows are its own arguments, unless another component does
            at = next((k for k in range(at, len(words)) if words[k] == ":"), len(words))
            continue
        if takes_next and at < len(words):
            value = words[at]
            at += 1
        if name in _KEPT:
            components[-1][name] = value
    return tuple(SubmitOptions(given) for given in components)


def _words(text: str) -> list[str]:
    """Split a line as a shell does; the slow way only where quotes ask for it."""
    if not any(sign in text for sign in "'\"\\"):
        return text.split()
    try:
        return shlex.split(text)
    except ValueError:  # a quote without its partner
        return text.split()


def _option(word: str) -> tuple[str, str, bool]:
    """Return the long name of an option, its value, and whether the value is the next word."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        return name, value, not equals and name not in _FLAGS
    if not word.startswith("-") or len(word) < 2:
        return "", "", False
    letter, rest = word[1], word[2:]
    if letter in _SHORT_FLAGS:
        return "flag", "", False
    return _SHORT.get(letter, "other"), rest.removeprefix("="), not rest
