"""Keeps an eye on the nodes that a run is bound to."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.client.command import SlurmRefused

_LOG = logging.getLogger(__name__)
#: Why Slurm drains a node when a controller that came back has started a job once more.
_STARTED_TWICE = "Duplicate jobid"
_PAUSE_S = 5.0


class NodeWatch:
    """Warns, once each, of nodes that can take no jobs; resumes those that a crash of the controller drained.

    That is safe for jobs of Stretto, whose scripts run a task once however often they are started.
    """

    def __init__(self, client: SlurmClient, names: Collection[str], *, is_resuming: bool) -> None:
        self._client, self._names, self._is_resuming = client, names, is_resuming
        self._warned: set[str] = set()
        self._due = time.monotonic() + _PAUSE_S

    def look(self) -> None:
        """Ask Slurm how the nodes are, every few seconds."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _PAUSE_S
        for node in self._client.nodes():
            if node.name not in self._names:
                continue
            if node.is_usable:
                self._warned.discard(node.name)
            elif self._is_resuming and _STARTED_TWICE in node.reason:
                self._resume(node.name)
            elif node.name not in self._warned:
                self._warned.add(node.name)
                _LOG.warning("node %s can take no jobs (%s: %s); the run waits", node.name, node.state, node.reason)

    def _resume(self, name: str) -> None:
        try:
            self._client.resume_node(name)
            _LOG.info("node %s was drained because a job was started twice; it is resumed", name)
        except SlurmRefused as error:
            self._is_resuming = False
            _LOG.warning("node %s stays drained: %s", name, error)
