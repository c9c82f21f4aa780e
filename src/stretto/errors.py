"""Every error that Stretto raises on purpose descends from :class:`StrettoError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StrettoError(Exception):
    """Something that the user can act on; the message says what, where and what to do."""

    exit_code = 2


class InvalidInput(StrettoError):
    """A file, an argument or a value that cannot be used, with its place and value.

    Parameters
    ----------
    message
        What is wrong, with the offending value.
    source
        The file or object that holds the fault.
    line
        The line in that file, counted from one.
    field
        The field, key or task at fault.
    """

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.message = message
        self.source = source
        self.line = line
        self.field = field
        super().__init__(self._text())

    def _text(self) -> str:
        place = self.source or ""
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
        if self.field is not None:
            place += f" [{self.field}]" if place else self.field
        return f"{place}: {self.message}" if place else self.message

    def at(self, source: str) -> InvalidInput:
        """Return the same error with its source filled in, when it has none yet."""
        if self.source is not None:
            return self
        return type(self)(self.message, source=source, line=self.line, field=self.field)


class UnknownName(StrettoError):
    """A name that no table holds; the message offers the nearest ones."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        if near:
            hint = f"did you mean {' or '.join(near)}?"
        else:
            hint = f"known: {', '.join(names)}" if names else "there is none yet"
        super().__init__(f"unknown {what} {name!r}; {hint}")
        self.name = name


class MissingExtra(StrettoError):
    """An optional library that is needed here and is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}: install it with  pip install 'stretto[{extra}]'")


class Infeasible(StrettoError):
    """No valid answer exists: a task fits nowhere, a plan cannot proceed, memory runs out."""


class InvalidPlan(StrettoError):
    """A plan or a schedule that breaks a rule of the problem it claims to solve."""


class EngineFailure(StrettoError):
    """An engine could not do its work: a task failed for good, devices were lost, a service did not answer."""

    exit_code = 3
