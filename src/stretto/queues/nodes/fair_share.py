"""What a multifactor priority needs of a site and a trace: weights, parts that never change, and the account tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.request import components_of
from stretto.core.site import Site
from stretto.core.site_policy import Account, PriorityFactors
from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput
from stretto.queues.strategies import PriorityWeights

#: Who runs a job of which the trace says neither user nor account.
_NOBODY = "unknown"
#: The name by which Slurm calls what is above all accounts.
_ROOT = "root"


@dataclass(frozen=True, eq=False)
class FairShareTree:
    """The tree of accounts and users: each job is charged to a member, and so are all accounts above it."""

    member: Ints  # [n]
    above: Ints  # [M] -1 = at the top
    share: Floats  # [M] normalized
    among: Floats  # [M] shares over those of all siblings


def factors_of(site: Site, weights: PriorityWeights | None) -> PriorityFactors:
    """Return the weights of a priority: those that are given, or the site's own, or the defaults of ``multifactor``."""
    if weights is None and site.policy.priority is not None:
        return site.policy.priority
    chosen = weights or PriorityWeights()
    return PriorityFactors(
        age=chosen.age,
        fair_share=chosen.fair_share,
        job_size=chosen.size,
        max_age_s=chosen.max_age_s,
        half_life_s=chosen.half_life_s,
    )


def fixed_parts(site: Site, trace: Trace, factors: PriorityFactors) -> Floats:
    """Return the weighted factors that do not change while a job waits: size, partition and QOS.

    The size factor is the share of the site's processors (or what is left of it where small jobs are favored), the
    partition factor and the QOS factor are priorities over the highest one, as in Slurm.
    """
    size = trace.num_procs / site.num_cpus
    fixed: Floats = factors.job_size * (1.0 - size if factors.favors_small else size)
    if factors.partition > 0 and trace.request is not None:
        most = max(1, *(part.priority_job_factor for part in site.partitions))
        by_name = {part.name: part.priority_job_factor / most for part in site.partitions}
        default = site.default_partition.name
        by_request = [
            max(by_name.get(name, 0.0) for name in (components_of(request)[0].partitions or (default,)))
            for request in trace.requests
        ]
        fixed = fixed + factors.partition * np.array(by_request)[trace.request]
    if factors.qos > 0 and trace.qos is not None and site.policy.qos:
        most = max(1, *(qos.priority for qos in site.policy.qos))
        by_qos = {qos.name: qos.priority / most for qos in site.policy.qos}
        names = _names(trace.qos, trace.meta, "qos_names")
        fixed = fixed + factors.qos * np.array([by_qos.get(name, 0.0) for name in names])
    return fixed


def _names(column: Ints | None, meta: Mapping[str, object], key: str) -> list[str]:
    """Return a name per job; a number without a name stands for itself."""
    if column is None:
        return []
    known = meta.get(key, ())
    names: Sequence[object] = known if isinstance(known, (list, tuple)) else ()
    table = {
        number: str(names[number]) if 0 <= number < len(names) else (_NOBODY if number == UNKNOWN else str(number))
        for number in np.unique(column).tolist()
    }
    return [table[number] for number in column.tolist()]


def fair_share_tree(site: Site, trace: Trace) -> FairShareTree:
    """Return the tree of a site's accounts, with the users of the trace below them.

    Users and accounts that the site does not list get one share each; without accounts in the trace, users stand at the
    top.
    """
    n = trace.num_jobs
    users = _pairs(trace.user, trace.meta, "user_names", n)
    accounts = _pairs(trace.account, trace.meta, "account_names", n)
    shares: dict[tuple[str, str | None], int] = {}
    parent: dict[tuple[str, str | None], tuple[str, str | None] | None] = {}
    for row in site.policy.accounts:
        _add(row, shares, parent)
    pair, member = np.unique(np.stack([accounts[0], users[0]], axis=1), axis=0, return_inverse=True)
    leaves: list[tuple[str, str | None]] = []
    for account, user in pair.tolist():
        name = accounts[1][account]
        leaf = (name or "", users[1][user] or _NOBODY)
        if name is None:
            parent.setdefault(leaf, None)
        else:
            parent.setdefault((name, None), None)
            shares.setdefault((name, None), 1)
            parent.setdefault(leaf, (name, None))
        shares.setdefault(leaf, 1)
        leaves.append(leaf)
    return _numbered(parent, shares, leaves, member.astype(np.int32))


def _pairs(column: Ints | None, meta: Mapping[str, object], key: str, n: int) -> tuple[Ints, list[str | None]]:
    """Return a number per job from zero on, and the name of each number; None = not known."""
    if column is None:
        return np.zeros(n, np.int32), [None]
    numbers, index = np.unique(column, return_inverse=True)
    named = _names(numbers.astype(np.int32), meta, key)
    return index.astype(np.int32), [
        None if number == UNKNOWN else name for number, name in zip(numbers, named, strict=True)
    ]


def _add(
    row: Account,
    shares: dict[tuple[str, str | None], int],
    parent: dict[tuple[str, str | None], tuple[str, str | None] | None],
) -> None:
    """Add a row of the site's tree; accounts below ``root`` stand at the top."""
    key = (row.name, row.user)
    if key == (_ROOT, None):
        return
    shares[key] = row.shares
    if row.user is not None:
        parent[key] = (row.name, None)
        shares.setdefault((row.name, None), 1)
        parent.setdefault((row.name, None), None)
    elif row.parent is None or row.parent == _ROOT:
        parent[key] = None
    else:
        parent[key] = (row.parent, None)
        shares.setdefault((row.parent, None), 1)
        parent.setdefault((row.parent, None), None)


def _numbered(
    parent: dict[tuple[str, str | None], tuple[str, str | None] | None],
    shares: dict[tuple[str, str | None], int],
    leaves: list[tuple[str, str | None]],
    member: Ints,
) -> FairShareTree:
    keys = list(parent)
    index = {key: i for i, key in enumerate(keys)}
    above = np.array([-1 if (up := parent[key]) is None else index[up] for key in keys], np.int32)
    own = np.array([shares.get(key, 1) for key in keys], np.float64)
    sums = np.bincount(above + 1, weights=own, minlength=len(keys) + 1)
    among = own / np.maximum(sums[above + 1], 1e-300)
    share = among.copy()
    for i, key in enumerate(keys):
        upper = int(above[i])
        for _ in keys:  # a tree is not deeper than it has members
            if upper < 0:
                break
            share[i] *= among[upper]
            upper = int(above[upper])
        if upper >= 0:
            raise InvalidInput("is its own parent, directly or through others", field=f"account {key[0]}")
    return FairShareTree(np.array([index[leaf] for leaf in leaves], np.int32)[member.reshape(-1)], above, share, among)
