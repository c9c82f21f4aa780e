"""Kubernetes: the JSON of ``kubectl get jobs,pods -o json``, also where Kueue admits the jobs.

A Job is one job: as many tasks as it runs pods at once, which start together. Pods without a Job are jobs of one task.
Processors are rounded up to whole ones. Objects that are neither, and pods of a Job that is listed, are counted.
"""

from __future__ import annotations

import math
from collections import Counter

from stretto.core.request import ResourceRequest
from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.sniff import graph_name, json_object
from stretto.files.traces.job_rows import COMPLETED, FAILED, JobRow, JobRows
from stretto.files.traces.kubernetes_values import JsonObject, at, features, gpu_type, items, moment, pod_needs
from stretto.files.traces.reader import Faults, ReadOptions

_QUEUE = "kueue.x-k8s.io/queue-name"
_PRIORITY = "kueue.x-k8s.io/priority-class"
_MOST_PODS = 2**31 - 1


class Kubernetes:
    """Reads lists of Jobs and Pods."""

    summary = "Kubernetes: kubectl get jobs,pods -o json, also with Kueue"
    endings = ("json",)

    def matches(self, document: Document) -> bool:
        """Say whether this is a list of Kubernetes objects with a Job or a Pod among them."""
        if b'"items"' not in document.data or b'"creationTimestamp"' not in document.data:
            return False
        root = json_object(document)
        return root is not None and any(item.get("kind") in ("Job", "Pod") for item in items(root.get("items")))

    def read(self, document: Document, options: ReadOptions) -> Trace:
        """Read one job per Job, and one per Pod without a Job; faults are counted by object, from one."""
        root: object = document.json
        objects = root.get("items") if isinstance(root, dict) else None
        if not isinstance(objects, list):
            document.fail("there is no list of objects", field="items")
        jobs_found = (at(item, "metadata", "uid") for item in items(objects) if item.get("kind") == "Job")
        listed: set[object] = {uid for uid in jobs_found if isinstance(uid, str)}
        pods = _pods_by_owner(objects)
        faults, jobs, counts = Faults(document, strict=False), JobRows(), Counter[str]()
        for number, item in enumerate(objects, start=1):
            reason = _take(jobs, item, listed, pods, counts)
            if reason is not None:
                faults.add(number, reason)
        if faults.first is not None and options.strict:
            document.fail(faults.first[1], field=f"items[{faults.first[0] - 1}]")
        if not jobs.rows:
            why = f"; the first: {faults.listed[0][1]}" if faults.listed else ""
            document.fail(f"no usable job among {len(objects):,} objects{why}", field="items")
        meta: dict[str, object] = {"format": "kubernetes", **faults.meta(), **counts}
        return jobs.trace(graph_name(document), unix_time=True, meta=meta)


def _take(
    jobs: JobRows, item: object, listed: set[object], pods: dict[object, list[JsonObject]], counts: Counter[str]
) -> str | None:
    """Take an object as a job, or return why it is at fault; what is no job is counted."""
    if not isinstance(item, dict):
        return "not an object"
    kind = item.get("kind")
    owner = _owner(item)
    if kind == "Pod" and owner in listed:
        counts["num_pods_of_jobs"] += 1
        return None
    if kind not in ("Job", "Pod"):
        counts["num_other_objects"] += 1
        return None
    try:
        uid = at(item, "metadata", "uid")
        row = _of_job(item, pods.get(uid, []) if isinstance(uid, str) else []) if kind == "Job" else _of_pod(item)
    except InvalidInput as error:
        return error.message
    except ValueError as error:
        return str(error)
    if math.isnan(row.run_s):
        counts["num_unfinished"] += 1
        row = JobRow(**{**vars(row), "run_s": 0.0})
    return jobs.add(row)


def _owner(item: JsonObject) -> object:
    owners = items(at(item, "metadata", "ownerReferences"))
    return next((uid for one in owners if one.get("kind") == "Job" and isinstance(uid := one.get("uid"), str)), None)


def _pods_by_owner(objects: list[object]) -> dict[object, list[JsonObject]]:
    pods: dict[object, list[JsonObject]] = {}
    for item in items(objects):
        owner = _owner(item) if item.get("kind") == "Pod" else None
        if isinstance(owner, str):
            pods.setdefault(owner, []).append(item)
    return pods


def _of_job(item: JsonObject, pods: list[JsonObject]) -> JobRow:
    spec, status = at(item, "spec"), at(item, "status")
    num_pods = min(_count(spec, "parallelism"), _count(spec, "completions") if at(spec, "completions") else _MOST_PODS)
    starts = [start for start in (_pod_times(pod)[0] for pod in pods) if math.isfinite(start)]
    # A gang has begun when its last pod has; without pods the controller's own time is the best there is.
    start = max(starts) if starts else moment(at(status, "startTime"))
    end = moment(at(status, "completionTime"))
    failed = [one for one in items(at(status, "conditions")) if one.get("type") == "Failed"]
    if math.isnan(end) and failed:
        end = moment(failed[0].get("lastTransitionTime"))
    state = COMPLETED if at(status, "completionTime") else FAILED if failed else UNKNOWN
    return _row(
        item, at(spec, "template", "spec"), max(1, num_pods), (start, end), state, at(spec, "activeDeadlineSeconds")
    )


def _of_pod(item: JsonObject) -> JobRow:
    phase = at(item, "status", "phase")
    state = COMPLETED if phase == "Succeeded" else FAILED if phase == "Failed" else UNKNOWN
    spec = at(item, "spec")
    return _row(item, spec, 1, _pod_times(item), state, at(spec, "activeDeadlineSeconds"))


def _pod_times(pod: JsonObject) -> tuple[float, float]:
    """Return when the containers of a pod began and ended; NaN = not yet."""
    begins, ends = [], []
    for container in items(at(pod, "status", "containerStatuses")):
        state = at(container, "state")
        begins.append(moment(at(state, "terminated", "startedAt") or at(state, "running", "startedAt")))
        ends.append(moment(at(state, "terminated", "finishedAt")))
    begin = min((one for one in begins if math.isfinite(one)), default=moment(at(pod, "status", "startTime")))
    return begin, max(ends) if ends and all(map(math.isfinite, ends)) else math.nan


def _row(
    item: JsonObject, spec: object, num_pods: int, times: tuple[float, float], status: int, deadline: object
) -> JobRow:
    created, (start, end) = moment(at(item, "metadata", "creationTimestamp")), times
    needs, selector = pod_needs(spec), at(spec, "nodeSelector")
    cpus = max(1, math.ceil(needs.cpus))
    labels = at(item, "metadata", "labels")
    namespace, name = at(item, "metadata", "namespace"), at(item, "metadata", "name")
    limit = float(deadline) if isinstance(deadline, (int, float)) and 0 < deadline < _MOST_PODS else math.nan
    return JobRow(
        created,
        end - start if end >= start else math.nan,
        cpus * num_pods,
        estimate_s=limit,
        wait_s=max(0.0, start - created),
        memory_bytes=needs.memory_bytes * num_pods,
        num_gpus=needs.gpus * num_pods,
        status=status,
        name=f"{namespace}/{name}" if namespace else str(name or ""),
        user=_label(at(item, "metadata", "annotations"), "user") or str(namespace or ""),
        group=str(namespace or ""),
        queue=_label(labels, _QUEUE),
        qos=_label(labels, _PRIORITY),
        request=ResourceRequest(
            num_tasks=num_pods,
            cpus_per_task=cpus,
            memory_bytes_per_cpu=needs.memory_bytes / cpus,
            gpus_per_task={gpu_type(selector): needs.gpus} if needs.gpus else {},
            features=features(selector),
        ),
    )


def _label(labels: object, key: str) -> str:
    value = at(labels, key)
    return value if isinstance(value, str) else ""


def _count(spec: object, key: str) -> int:
    value = at(spec, key)
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_PODS:
        raise ValueError(f"{str(value)[:60]!r} is no number of pods")
    return value


FORMAT = Kubernetes()
