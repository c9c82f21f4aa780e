"""Every component by name; strings only, so that listing them imports nothing.

Adding a policy is one file and one line here: the conformance tests, the command line
and the documentation follow from the line.
"""

from __future__ import annotations

_PLACEMENT = "stretto.policies.placement"
_SEARCH = "stretto.policies.search"

#: Planners: ``plan(problem, budget) -> Plan``.
PLANNERS: dict[str, str] = {}

#: Readers and writers of graphs.
FORMATS: dict[str, str] = {}

#: Built-in workload generators.
WORKLOADS: dict[str, str] = {}
