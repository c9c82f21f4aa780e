"""What ``stretto train`` was asked for, as options and as the settings that the run log keeps for going on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stretto.cli.files import check_target
from stretto.cli.terminal.console import Output
from stretto.errors import InvalidInput, UnknownName

_DEFAULT_S = 60.0


@dataclass(frozen=True)
class TrainRequest:
    """One training.

    Attributes
    ----------
    source
        What is learned on: a graph, the log of a queue, or the name of a rack.
    time_limit_s, rounds
        When to stop; a round is an episode, or an iteration. Without both there is a minute.
    run_id
        A run of the log that is resumed.
    procs
        Processors of a queue's machine; None = as the log records.
    """

    algorithm: str
    source: str
    cluster: str | None = None
    time_limit_s: float | None = None
    rounds: int | None = None
    seed: int = 0
    checkpoint: Path | None = None
    is_resumed: bool = False
    start: str | None = None
    engine: str | None = None
    curves: Path | None = None
    save: Path | None = None
    is_logged: bool = True
    output: Output = Output.TABLE
    run_id: str | None = None
    procs: int | None = None

    @property
    def seconds(self) -> float | None:
        """How long to train; None where only the rounds say."""
        return self.time_limit_s if self.time_limit_s is not None else None if self.rounds is not None else _DEFAULT_S

    def settings(self) -> dict[str, Any]:
        """Return what is needed to go on with this training later."""
        names = ("algorithm", "seed", "start", "engine")
        return {name: getattr(self, name) for name in names} | {"graph": self.source, "cluster_source": self.cluster}

    def going_on_with(self, run_id: str, settings: Mapping[str, Any]) -> TrainRequest:
        """Return the request of an earlier training, with the present budget and files."""
        algorithm, source, seed = (settings.get(name) for name in ("algorithm", "graph", "seed"))
        if not (isinstance(algorithm, str) and isinstance(source, str) and isinstance(seed, int)):
            raise InvalidInput("does not say what was trained on what", field=f"run {run_id}")
        return replace(
            self,
            algorithm=algorithm,
            source=source,
            cluster=settings.get("cluster_source"),
            seed=seed,
            start=settings.get("start"),
            engine=settings.get("engine"),
            run_id=run_id,
            procs=settings.get("procs"),
        )

    def refuse(self, what: str, **options: object) -> None:
        """Raise for the first option that is given and has no meaning here."""
        for name, value in options.items():
            if value is not None:
                raise InvalidInput(f"has no meaning for {what}", field=f"--{name}")

    def check_files(self) -> None:
        """Refuse before the training what would fail after it."""
        from stretto.reports.training_curves import ENDINGS

        for path in (self.checkpoint, self.curves, self.save):
            check_target(path)
        if self.curves is not None and self.curves.suffix.lower().removeprefix(".") not in ENDINGS:
            raise InvalidInput(f"{self.curves.suffix!r} is not one of .{', .'.join(ENDINGS)}", source=str(self.curves))
        there = self.checkpoint is not None and self.checkpoint.is_file()
        if self.is_resumed and self.checkpoint is None:
            raise InvalidInput("name the --checkpoint to continue from", field="--resume")
        if self.is_resumed and not there:
            raise InvalidInput("there is no checkpoint to continue from", source=str(self.checkpoint), field="--resume")
        if not self.is_resumed and there:
            raise InvalidInput("holds a training already: --resume continues it", source=str(self.checkpoint))
        if self.is_resumed and self.start is not None:
            raise InvalidInput("a training that is continued has its weights already", field="--start")


def check_algorithm(name: str) -> None:
    """Raise with suggestions where nothing of this name can be trained."""
    from stretto.catalog import QUEUE_TRAINERS, RACK_TRAINERS, TRAINERS
    from stretto.registry import known

    names = known("algorithm", TRAINERS) | QUEUE_TRAINERS | RACK_TRAINERS
    if name not in names:
        raise UnknownName("algorithm", name, names)
