"""Bytes on devices during an episode: parameters of tasks placed there, and objects that a task still has to read."""

from __future__ import annotations

from stretto.core.kernels.compile import njit


@njit(cache=True, nogil=True, _nrt=False)
def bytes_on(p, fixed, work, assign, v, d):
    """Return the bytes that device d holds while task v runs there, if it is placed there next."""
    total = work.used[d] + work.live[d] + fixed.resident[v] + fixed.need[v]
    for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
        total += fixed.object_bytes[o]
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        if not _is_on(p, assign, p.in_object[e], d):
            total += fixed.object_bytes[p.in_object[e]]
    return total


@njit(cache=True, nogil=True, _nrt=False)
def hold_objects(p, fixed, work, assign, v, d):
    """Count what task v brings to device d, and free what it was the last to read; ``assign`` does not have v yet."""
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        o = p.in_object[e]
        if fixed.object_bytes[o] > 0.0 and not _is_on(p, assign, o, d):
            work.live[d] += fixed.object_bytes[o]
    assign[v] = d
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        o = p.in_object[e]
        if fixed.object_bytes[o] > 0.0 and _all_read(p, assign, o):
            _free(p, fixed, work, assign, o)
    for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
        if p.object_ptr[o + 1] > p.object_ptr[o]:
            work.live[d] += fixed.object_bytes[o]


@njit(cache=True, nogil=True, _nrt=False)
def _is_on(p, assign, o, d):
    """Say whether an object is on a device: its producer or a placed reader is there."""
    if assign[p.object_task[o]] == d:
        return True
    for r in range(p.object_ptr[o], p.object_ptr[o + 1]):
        if assign[p.object_reader[r]] == d:
            return True
    return False


@njit(cache=True, nogil=True, _nrt=False)
def _all_read(p, assign, o):
    for r in range(p.object_ptr[o], p.object_ptr[o + 1]):
        if assign[p.object_reader[r]] < 0:
            return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def _free(p, fixed, work, assign, o):
    """Free an object on every device that holds it."""
    for d in range(work.live.shape[0]):
        if _is_on(p, assign, o, d):
            work.live[d] -= fixed.object_bytes[o]
