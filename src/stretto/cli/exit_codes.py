"""Exit codes of the command line, besides those that errors carry themselves."""

from __future__ import annotations

EXIT_INTERNAL = 1
EXIT_INPUT = 2
#: A plan was made, and misses the deadline or the budget.
EXIT_LIMITS = 4
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
