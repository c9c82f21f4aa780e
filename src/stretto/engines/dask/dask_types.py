"""Names for Dask's own objects in signatures; ``distributed`` has no types that mypy could check."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

Key: TypeAlias = Hashable
Client: TypeAlias = Any  # distributed.Client
Future: TypeAlias = Any  # distributed.Future
Scheduler: TypeAlias = Any  # distributed.Scheduler
TaskRecord: TypeAlias = Any  # distributed.scheduler.TaskState, the scheduler's record of a task
WorkerRecord: TypeAlias = Any  # distributed.scheduler.WorkerState
DaskProcess: TypeAlias = Any  # distributed.Worker, or anything else that Dask itself hands over
