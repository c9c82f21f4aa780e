"""``stretto.steer``: put the waiting jobs of a live Slurm queue in the order of a strategy."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stretto.api.inputs import TraceLike, trace_of
from stretto.api.options import MarsOptions, mars_settings
from stretto.api.options.slurm import SlurmPlace, SteerOptions
from stretto.catalog import ONLINE_ORDERS, STRATEGIES
from stretto.core.trace import Trace
from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.client.errors import SlurmFailure, SlurmRefused
from stretto.engines.slurm.client.rest import RestClient, RestPlace
from stretto.engines.slurm.steer.claims import Claim, claim, lease_s
from stretto.engines.slurm.steer.label_store import MODES, LabelStore, slurm_client, steering_folder
from stretto.engines.slurm.steer.leftovers import forget_file, labelled_jobs, record_file, restore_leftovers
from stretto.engines.slurm.steer.marks import ClusterMarks, Mark, SeenMark
from stretto.engines.slurm.steer.order_state import queue_identity, resume_order
from stretto.engines.slurm.steer.restore_priorities import RestoreOutcome
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings, Step
from stretto.engines.slurm.steer.steering_guard import SteeringGuard
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.live_order import PluginOrder, StrategyOrder, warm_up
from stretto.queues.promises.live import PromisedOrder
from stretto.registry import construct, plugins
from stretto.runlog import Run, RunLog

if TYPE_CHECKING:
    from stretto.queues.mars.replay import MarsSettings
    from stretto.queues.view import QueueOrder

#: Is told, in a sentence, what the user should know.
Tell = Callable[[str], None]


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
    marks, conf, rest = _marks(slurm, tell)
    if rest is not None and not rest.is_private:
        tell(f"the token for {rest.url} can be read on its way: https would hide it")
    store = LabelStore(marks.folder / "labels.json", conf=conf, rest=rest, partition=partition)
    store.mode = "priority" if how.mode == "priority" else "sitefactor"
    _check(marks, how.mode, partition, tell, is_applied=apply)
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
    return _follow(marks, store, order, settings, named, past, on_step or (lambda step: None), tell, once=once)


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


def _marks(place: SlurmPlace, tell: Tell) -> tuple[ClusterMarks, str | None, RestPlace | None]:
    """Return the marks of a cluster, and how it is reached."""
    conf, rest = place.conf_path(), place.rest_place()
    return ClusterMarks(slurm_client(conf, rest), steering_folder(conf, rest), tell), conf, rest


def _check(marks: ClusterMarks, mode: str, partition: str | None, tell: Tell, *, is_applied: bool) -> None:
    client = marks.client
    _check_switch(marks, partition)
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


def _check_switch(marks: ClusterMarks, partition: str | None) -> None:
    if off := marks.seen("off", partition):
        raise InvalidInput(f"steering is off ({off[0].mark.text()}); allow it with  stretto steer slurm --on")


def _check_partition(name: str, names: list[str]) -> None:
    import difflib

    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InvalidInput(
        f"{name!r} is not in this Slurm, which has: {', '.join(sorted(names))}{hint}", field="--partition"
    )


def _follow(
    marks: ClusterMarks,
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
    held = _take_over(marks, store, settings, tell) if settings.is_applied else None
    guard = SteeringGuard(held.mark, marks.folder, store.conf, store.rest) if held is not None and not once else None
    try:
        with RunLog.open() as log:
            if resume_order(log, order, queue_identity(store, settings.partition), time.time()):
                tell("resuming where the last steerer of this queue stopped")
            run = log.start("steer", f"slurm by {named['strategy']}", named)
            client = marks.client
            if guard is not None and isinstance(client, SlurmClient):
                client = replace(client, held_fds=(guard.pipe,))  # the guard waits for the last of its programs
            switch = partial(_is_off, marks, settings.partition)
            steerer = Steerer(client, order, store, switch, settings, run=run, claim=held)
            if past is not None:
                steerer.memory.take_history(past)
            if not once:
                return _follow_on(steerer, run, on_step, tell)
            on_step(steerer.step())
            run.finish("done", {"reason": "once"})
            return "once"
    finally:
        if held is not None:
            _end(held, guard, store, tell)


def _is_off(marks: ClusterMarks, partition: str | None) -> bool:
    return bool(marks.seen("off", partition))


def _take_over(marks: ClusterMarks, store: LabelStore, settings: SteerSettings, tell: Tell) -> Claim:
    """Become the steerer of a partition, or of all, and remove the labels that earlier ones left on these jobs."""
    held = claim(marks, Mark.here("steering", store.partition, "steerer", lease_s(settings.interval_s)))
    try:
        _check_switch(marks, store.partition)  # it may have come meanwhile
        outcome = restore_leftovers(marks, marks.client, store.partition, held.keep)
        if outcome is not None:
            tell(f"removed the labels that an earlier steerer left: {outcome.text()}")
        store.path = marks.folder / f"{held.mark.token}.json"
        store.is_tagged = isinstance(marks.client, SlurmClient)
        store.on_file = partial(_use_file, marks, store, tell)
        if not store.is_tagged:
            record_file(marks, store)
    except BaseException:
        held.release()
        raise
    return held


def _use_file(marks: ClusterMarks, store: LabelStore, tell: Tell, reason: str) -> None:
    record_file(marks, store)
    tell(
        f"values before steering are recorded in {store.path}, not in the AdminComment of jobs ({reason}): if this "
        "machine goes down, only a process that can read this file can restore them"
    )


def _follow_on(steerer: Steerer, run: Run, on_step: Callable[[Step], None], tell: Tell) -> str:
    """Steer until somebody stops it."""
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
        if steerer.outcome is not None:
            tell(steerer.outcome.text())
        run.finish("done", {"reason": reason})
    return reason


def _end(held: Claim, guard: SteeringGuard | None, store: LabelStore, tell: Tell) -> None:
    """Release the claim; where jobs still have labels, that is left to the guard, as after a second Ctrl-C."""
    try:
        if not store.jobs:
            forget_file(held.marks, store)
        if guard is None or not store.jobs:
            held.release()
    finally:
        said = guard.dismiss(timeout_s=15.0) if guard is not None else ""
        if said is None:
            tell("Slurm does not answer: a guard process tries for an hour to give it its own order back")
        elif said:
            tell(said)


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def steer_on(partition: str | None = None, *, place: SlurmPlace | None = None, on_notice: Tell | None = None) -> None:
    """Allow steering of a cluster again: of one partition, or all.

    Examples
    --------
    >>> import stretto
    >>> stretto.steer_on(place=stretto.SlurmPlace(conf="slurm.conf"))  # doctest: +SKIP
    """
    tell = on_notice or (lambda text: None)
    marks, _, _ = _marks(place or SlurmPlace(), tell)
    off = [seen.mark for seen in marks.seen("off", partition)]
    for mark in off:
        if partition is None or mark.partition:
            marks.remove(mark)
    if partition is not None and not all(mark.partition for mark in off):
        raise InvalidInput("all steering is off; allow it with  stretto steer slurm --on", field="--partition")
    tell("steering is allowed again" if partition is None else f"steering partition {partition} is allowed again")


def steer_off(partition: str | None = None, *, place: SlurmPlace | None = None, on_notice: Tell | None = None) -> None:
    """Stop all steering of a cluster, or of a partition, and give Slurm its own order back; raise where that failed.

    Steerers of every user and machine stop within one of their intervals.

    Examples
    --------
    >>> import stretto
    >>> stretto.steer_off(place=stretto.SlurmPlace(conf="slurm.conf"))  # doctest: +SKIP
    """
    tell = on_notice or (lambda text: None)
    marks, _, _ = _marks(place or SlurmPlace(), tell)
    try:
        said = _switch_off(marks, partition, tell)
    except SlurmFailure as error:
        raise type(error)(f"jobs may still have labels; say --off again later: {error}") from None
    what = f"steering of partition {partition}" if partition else "steering"
    again = f"--on --partition {partition}" if partition else "--on"
    tell(f"{what} is off; {said} (allow it again with {again})")


def _switch_off(marks: ClusterMarks, partition: str | None, tell: Tell) -> str:
    """Switch steering off, wait for those who steer, and restore what they left; return what came of it, in words."""
    holders = marks.seen("steering", partition)
    for seen in holders:
        if partition is not None and not seen.mark.partition:
            raise InvalidInput(f"{seen.mark.text()}: stop it with --off alone", field="--partition")
    labelled = labelled_jobs(marks, partition)
    _mark_off(marks, partition, holders)
    for seen in holders:
        tell(f"waiting for the end of the {seen.mark.text()}")
    held = claim(marks, Mark.here("steering", partition, "--off"), patience_s=math.inf)
    try:
        outcome = restore_leftovers(marks, marks.client, partition, held.keep, only_in=True)
    finally:
        held.release()
    if outcome is None and not labelled:
        return "no job had a label"
    return (outcome or RestoreOutcome(restored=labelled)).text()  # or whoever steered has restored them


def _mark_off(marks: ClusterMarks, partition: str | None, holders: list[SeenMark]) -> None:
    """Make the mark that ends steering, where everybody who steers sees it."""
    if any(seen.mark.partition == (partition or "") for seen in marks.seen("off", partition)):
        return
    mark = Mark.here("off", partition, "--off")
    if not marks.add(mark) and (blind := [seen.mark for seen in holders if not seen.is_file]):
        marks.remove(mark)
        raise SlurmRefused(f"only an operator of Slurm can stop the {blind[0].text()}")
