"""Jobs on disk: what a client was promised and did not wait for outlives the server that promised it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stretto.core.host.private_files import make_private_folder, write_private
from stretto.reports.page.view_types import JsonObject
from stretto.runlog.writer import Writer, is_alive, this_process


class KeptJob(NamedTuple):
    """A request, and how often it was begun."""

    id: str
    kind: str
    body: JsonObject
    num_begun: int


class KeptJobs:
    """A folder with a file per job that is not over; files of servers that live belong to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def beside(runs_path: Path) -> KeptJobs:
        """Return the jobs of the servers that write a run log."""
        return KeptJobs(runs_path.with_name(f"{runs_path.name}-jobs"))

    def keep(self, job: KeptJob) -> None:
        """Write a job down, whole or not at all."""
        make_private_folder(self.folder)
        target = self._path(job.id)
        part = target.with_suffix(f".{os.getpid()}")
        write_private(part, json.dumps({**job._asdict(), "owner": this_process()}))
        os.replace(part, target)

    def forget(self, job_id: str) -> None:
        """Let go of a job that is over."""
        self._path(job_id).unlink(missing_ok=True)

    def orphans(self) -> Iterator[KeptJob]:
        """Yield the jobs whose server is gone, those first that were taken on first; a file that is no job goes."""
        for path in sorted(self.folder.glob("*.json"), key=lambda found: found.stat().st_mtime):
            try:
                found = json.loads(path.read_text())
                owner = Writer(*found.pop("owner"))
                job = KeptJob(**found)
            except (ValueError, TypeError, AttributeError):
                path.unlink(missing_ok=True)
                continue
            if not is_alive(owner) and path == self._path(job.id):
                yield job

    def _path(self, job_id: str) -> Path:
        return self.folder / f"{job_id}.json"
