"""``stretto.steer``: put the waiting jobs of a live Slurm queue in the order of a strategy."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.api.inputs import TraceLike, trace_of
from stretto.api.options import MarsOptions, mars_settings
from stretto.api.options.slurm import SlurmPlace, SteerOptions
from stretto.catalog import ONLINE_ORDERS, STRATEGIES
from stretto.core.host.private_files import make_private_folder, write_private
from stretto.core.trace import Trace
from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.client.errors import SlurmFailure
from stretto.engines.slurm.client.rest import RestClient
from stretto.engines.slurm.steer.claims import Claim, Holder, SteeringTaken, claim, holder_of
from stretto.engines.slurm.steer.label_store import (
    MODES,
    LabelStore,
    all_partitions_path,
    label_files,
    label_path,
    steering_folder,
    switch_path,
    switches_of,
)
from stretto.engines.slurm.steer.order_state import queue_identity, resume_order
from stretto.engines.slurm.steer.restore_priorities import restore_priorities
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings, Step
from stretto.engines.slurm.steer.steering_guard import SteeringGuard
from stretto.errors import InvalidInput, StrettoError, UnknownName
from stretto.queues.live_order import PluginOrder, StrategyOrder, warm_up
from stretto.queues.promises.live import PromisedOrder
from stretto.registry import construct, plugins
from stretto.runlog import Run, RunLog

if TYPE_CHECKING:
    from stretto.engines.slurm.client.client import QueueClient
    from stretto.queues.mars.replay import MarsSettings
    from stretto.queues.view import QueueOrder

#: Is told, in a sentence, what the user should know.
Tell = Callable[[str], None]
#: Time for a steerer to see the switch, end its decision and remove its labels.
_PATIENCE_S = 30.0


class Terminated(KeyboardInterrupt):
    """A service manager asked the steering to end, by SIGTERM."""


def steer(
    strategy: str | QueueOrder = "saf",
    *,
    apply: bool = False,
    once: bool = False,
    partition: str | None = None,
    history: TraceLike | None = None,
    options: SteerOptions | None = None,
    mars: MarsOptions | None = None,
    place: SlurmPlace | None = None,
    on_step: Callable[[Step], None] | None = None,
    on_notice: Tell | None = None,
) -> str:
    """Steer the queue of Slurm until somebody stops it; return why it ended.

    Parameters
    ----------
    strategy
        A name of ``stretto list strategies``, ``portfolio`` or ``mars``, or an object whose ``decide(view)`` returns
        the order of the waiting jobs (see :class:`stretto.queues.view.QueueOrder`).
    apply
        Tell Slurm; by default the decisions are only reported.
    once
        Look once; with ``apply`` the order stays until :func:`steer_off`.
    history
        Past jobs, for strategies that learn from them.
    place
        How Slurm is reached.
    on_step
        Told of each look at the queue and what came of it.

    Examples
    --------
    >>> import stretto
    >>> stretto.steer("saf", options=stretto.SteerOptions(mode="dictate"))
    Traceback (most recent call last):
    ...
    stretto.errors.UnknownName: unknown mode 'dictate'; known: priority, sitefactor
    """
    how, slurm, tell = options or SteerOptions(), place or SlurmPlace(), on_notice or (lambda text: None)
    if how.mode not in MODES:
        raise UnknownName("mode", how.mode, MODES)
    said = mars_settings(strategy, mars, starts_jobs=False)
    settings = SteerSettings(apply, how.interval_s, how.budget_s, how.depth, partition)
    conf, rest = slurm.conf_path(), slurm.rest_place()
    if rest is not None and not rest.is_private:
        tell(f"the token for {rest.url} can be read on its way: https would hide it")
    store = LabelStore(label_path(conf, rest, partition), conf=conf, rest=rest, partition=partition)
    store.mode = "priority" if how.mode == "priority" else "sitefactor"
    _check(store.client(), how.mode, partition, tell, is_applied=apply)
    order = make_order(strategy, settings.budget_s, said) if isinstance(strategy, str) else strategy
    name = strategy if isinstance(strategy, str) else type(strategy).__name__
    warm_up(order)  # compiling is no part of a decision
    order = how.promised(order)
    warm_up_promises(order)
    named = {"strategy": name, "mode": how.mode, "apply": apply, "interval": how.interval, "budget": how.budget}
    named |= {"partition": partition} if partition is not None else {}
    named |= {"backfill": how.backfill, "slack": str(order.slack)} if isinstance(order, PromisedOrder) else {}
    named |= said.spec() if said is not None else {}
    past = None if history is None else trace_of(history)
    return _follow(store, order, settings, named, past, on_step or (lambda step: None), tell, once=once)


def warm_up_promises(order: QueueOrder) -> None:
    """Compile what an order inside promises needs, without giving any promise."""
    if isinstance(order, PromisedOrder):
        warm_up(PromisedOrder(StrategyOrder("fcfs")))


def make_order(name: str, budget_s: float, said: MarsSettings | None = None) -> QueueOrder:
    """Return the order of a live queue that has this name; ``said`` is what mars is told."""
    if name not in ONLINE_ORDERS:
        return PluginOrder(name) if name not in STRATEGIES and name in plugins("strategy") else StrategyOrder(name)
    params: dict[str, Any] = {"budget_s": 0.8 * budget_s} if name == "portfolio" else {}
    if said is not None:
        params |= {"candidates": said.candidates(starts_jobs=False), "cost": said.cost}
    order: QueueOrder = construct("order", name, ONLINE_ORDERS, params)
    return order


def _check(client: QueueClient, mode: str, partition: str | None, tell: Tell, *, is_applied: bool) -> None:
    for switch in switches_of(partition):
        if switch.exists():
            raise InvalidInput(f"steering is off ({switch}); allow it with  stretto steer slurm --on")
    if partition is not None:
        _check_partition(partition, client.partitions())
    if not is_applied or mode != "sitefactor":
        return
    if isinstance(client, RestClient):
        if not client.has_site_factors:
            raise InvalidInput("this slurmrestd cannot set site factors (v0.0.39 can): use priority", field="--mode")
        tell("slurmrestd does not show site factors: those that others have set are replaced, and come back as 0")
    plugin = client.setting("PriorityType") if isinstance(client, SlurmClient) else "multifactor"
    if "multifactor" not in plugin:
        raise InvalidInput(f"site factors need priority/multifactor, and this Slurm has {plugin}", field="--mode")


def _check_partition(name: str, names: list[str]) -> None:
    import difflib

    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InvalidInput(f"{name!r} is none of this Slurm's: {', '.join(sorted(names))}{hint}", field="--partition")


def _follow(
    store: LabelStore,
    order: QueueOrder,
    settings: SteerSettings,
    named: dict[str, Any],
    past: Trace | None,
    on_step: Callable[[Step], None],
    tell: Tell,
    *,
    once: bool,
) -> str:
    """Steer; where Slurm is told, as the only one who does."""
    held = _take_over(store, tell) if settings.is_applied else None
    try:
        with RunLog.open() as log:
            if resume_order(log, order, queue_identity(store, settings.partition), time.time()):
                tell("resuming where the last steerer of this queue stopped")
            run = log.start("steer", f"slurm by {named['strategy']}", named)
            steerer = Steerer(_client(store, held), order, store, switches_of(settings.partition), settings, run=run)
            if past is not None:
                steerer.memory.take_history(past)
            if not once:
                return _follow_on(steerer, run, held, on_step, tell)
            on_step(steerer.step())
            run.finish("done", {"reason": "once"})
            return "once"
    finally:
        if held is not None:
            held.release()


def _client(store: LabelStore, held: Claim | None) -> QueueClient:
    """Return a client whose programs keep our claim: a guard must not look before the last of them has ended."""
    client = store.client()
    return replace(client, held_fds=held.files) if held is not None and isinstance(client, SlurmClient) else client


def _take_over(store: LabelStore, tell: Tell) -> Claim:
    """Become the steerer of a store, and remove the labels that earlier ones left on the same jobs."""
    held = claim(store.path, "steerer", store.partition)
    try:
        paths = {store.path}
        if store.partition is None:
            paths |= set(store.path.parent.glob("*.json"))
        elif held.is_alone:
            paths.add(all_partitions_path(store.path))
        for path in sorted(paths):
            left = LabelStore.read(path)
            if left.jobs:
                outcome = restore_priorities(left, left.client())
                tell(f"removed the labels that an earlier steerer left: {outcome.text()}")
        held.share()
        store.owner = held.holder.text()
    except BaseException:
        held.release()
        raise
    return held


def _follow_on(steerer: Steerer, run: Run, held: Claim | None, on_step: Callable[[Step], None], tell: Tell) -> str:
    """Steer until somebody stops it, with a guard process beside it where Slurm is told anything."""
    guard = SteeringGuard(steerer.store) if held is not None else None
    reason = "interrupted"
    try:
        signal.signal(signal.SIGTERM, _terminate)  # a service manager asks like this
        reason = steerer.follow(on_step)
    except KeyboardInterrupt as error:
        tell("stopped")
        if isinstance(error, Terminated):
            return "terminated"
        raise
    finally:
        if held is not None and guard is not None:
            held.release()  # the guard needs it for what is left, as after a second Ctrl-C
            is_done = guard.dismiss(timeout_s=15.0)
            _tell_outcome(steerer, tell, is_done=is_done)
        run.finish("done", {"reason": reason})
    return reason


def _tell_outcome(steerer: Steerer, tell: Tell, *, is_done: bool) -> None:
    if not is_done:
        tell("Slurm does not answer: a guard process tries for an hour to give it its own order back")
    elif steerer.outcome is not None:
        tell(steerer.outcome.text())
    elif said := LabelStore.read(steerer.store.path).outcome:
        tell(said)


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def steer_on(partition: str | None = None, *, on_notice: Tell | None = None) -> None:
    """Allow steering again: of one partition, or all.

    Examples
    --------
    >>> import stretto
    >>> stretto.steer_on("nobody-steers-this-one")
    """
    tell = on_notice or (lambda text: None)
    paths = [switch_path(), *sorted(steering_folder().glob("*.off"))] if partition is None else [switch_path(partition)]
    for path in paths:
        path.unlink(missing_ok=True)
    if partition is not None and switch_path().exists():
        raise InvalidInput("all steering is off; allow it with  stretto steer slurm --on", field="--partition")
    tell("steering is allowed again" if partition is None else f"steering partition {partition} is allowed again")


def steer_off(partition: str | None = None, *, on_notice: Tell | None = None) -> None:
    """Stop all steering, or that of a partition, and give Slurm its own order back; raise where that failed.

    Examples
    --------
    >>> import stretto
    >>> stretto.steer_off("nobody-steers-this-one", on_notice=print)  # doctest: +ELLIPSIS
    steering of partition nobody-steers-this-one is off; no job had a label ...
    >>> stretto.steer_on("nobody-steers-this-one")
    """
    tell = on_notice or (lambda text: None)
    paths = label_files(partition)
    if partition is not None:
        _refuse_a_part(paths)
    switch = switch_path(partition)
    make_private_folder(switch.parent)
    write_private(switch, time.strftime("%Y-%m-%d %H:%M:%S\n"))
    what = "steering" if partition is None else f"steering of partition {partition}"
    said: list[str] = []
    failures: list[Exception] = []
    for path in paths:
        try:
            said += _close(path, partition, tell)
        except (StrettoError, OSError) as error:
            failures.append(error)
    again = "--on" if partition is None else f"--on --partition {partition}"
    tell(f"{what} is off; {'; '.join(said) or 'no job had a label'} (allow it again with {again})")
    for other in failures[1:]:
        tell(str(other))
    if failures:
        raise failures[0]


def _refuse_a_part(paths: list[Path]) -> None:
    for path in paths:
        holder = holder_of(path) if path == all_partitions_path(path) else None
        if holder is not None:
            raise InvalidInput(f"{holder.text()}: stop it with --off alone", field="--partition")


def _close(path: Path, partition: str | None, tell: Tell) -> list[str]:
    """Remove the labels of one store; return what came of it, in words."""
    steerer = holder_of(path)
    try:
        held = claim(path, "--off", LabelStore.read(path).partition, patience_s=_PATIENCE_S)
    except SteeringTaken:
        tell(f"{steerer.text() if steerer is not None else 'a steerer'}: has not ended within {_PATIENCE_S:g} s")
        held = None
    try:
        return _remove_labels(path, partition, steerer)
    finally:
        if held is not None:
            held.release()


def _remove_labels(path: Path, partition: str | None, steerer: Holder | None) -> list[str]:
    store = LabelStore.read(path)
    said = []
    if steerer is not None and store.owner == steerer.text() and store.outcome:
        said.append(store.outcome)  # it has ended meanwhile, and did this itself
    if store.jobs:
        client = store.client()
        chosen = None
        if store.partition != partition and partition is not None:
            chosen = {job.job_id for job in client.queue(partition)} & set(store.jobs)
        try:
            said.append(restore_priorities(store, client, jobs=chosen).text())
        except SlurmFailure as error:
            left = "1 job still has a label" if len(store.jobs) == 1 else f"{len(store.jobs):,} jobs still have labels"
            raise type(error)(f"{left}; say --off again later: {error}") from None
    if not store.jobs:
        path.unlink(missing_ok=True)
    return said
