"""``stretto steer``: a live queue in the order of a strategy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.mars_options import (
    DefaultOption,
    MeasureOption,
    MoneyOption,
    NetsOption,
    PriceOption,
)
from stretto.cli.options import OutputOption
from stretto.cli.terminal.console import Output, print_json, remark, stdout

if TYPE_CHECKING:
    from stretto.engines.slurm.client.rest import RestPlace
    from stretto.engines.slurm.steer.book import Book
    from stretto.engines.slurm.steer.claims import Claim
    from stretto.engines.slurm.steer.queue_client import QueueClient
    from stretto.engines.slurm.steer.steer import Steerer, Step
    from stretto.queues.mars.settings import MarsSettings
    from stretto.queues.view import QueueOrder
    from stretto.runlog import Run

_SETTINGS = {"help_option_names": ["-h", "--help"]}
steer = typer.Typer(
    help="Put the waiting jobs of a live queue in order; dry by default.",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings=_SETTINGS,
)


@steer.command("slurm")
def steer_slurm(
    strategy: Annotated[
        str, typer.Option("--strategy", metavar="NAME", help="See stretto list strategies; also portfolio and mars.")
    ] = "saf",
    apply: Annotated[bool, typer.Option("--apply", help="Tell Slurm; without this, only say what would be.")] = False,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="sitefactor|priority",
            help="sitefactor is added to Slurm's own priority; priority takes its place.",
        ),
    ] = "sitefactor",
    interval: Annotated[str, typer.Option("--interval", metavar="TIME", help="Between looks at the queue.")] = "2s",
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="For a decision; a later one is dropped.")
    ] = "1s",
    depth: Annotated[int, typer.Option("--depth", metavar="N", help="Jobs from the head on that are ordered.")] = 200,
    partition: Annotated[str | None, typer.Option("--partition", metavar="NAME", help="Only this one.")] = None,
    history: Annotated[
        str | None, typer.Option("--history", metavar="TRACE", help="Past jobs: sacct's output, jobcomp's, SWF, ...")
    ] = None,
    nets: NetsOption = None,
    default: DefaultOption = None,
    measure: MeasureOption = None,
    money: MoneyOption = None,
    price: PriceOption = None,
    conf: Annotated[
        Path | None, typer.Option("--conf", metavar="FILE", help="slurm.conf.", show_default="$SLURM_CONF")
    ] = None,
    rest: Annotated[
        str | None, typer.Option("--rest", metavar="URL", help="Reach Slurm by its slurmrestd, not by its programs.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="Token for --rest.", show_default="$SLURM_JWT")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once; with --apply the order stays until --off.")] = False,
    off: Annotated[
        bool,
        typer.Option("--off", help="Stop all steering, or that of --partition, and give Slurm its own order back."),
    ] = False,
    on: Annotated[bool, typer.Option("--on", help="Allow steering again.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Steer the queue of Slurm."""
    from stretto.cli.mars_options import mars_settings
    from stretto.cli.steer_off import allow, stop
    from stretto.core.units import parse_seconds
    from stretto.engines.slurm.steer.book import Book
    from stretto.engines.slurm.steer.shelf import book_path
    from stretto.engines.slurm.steer.steer import SteerSettings
    from stretto.queues.live_order import warm_up

    if off or on:
        (stop if off else allow)(partition)
        return
    said = mars_settings(
        strategy, nets=nets, default=default, measure=measure, money=money, price=price, starts_jobs=False
    )
    settings = SteerSettings(apply, parse_seconds(interval), parse_seconds(budget), depth, partition)
    place = _rest_place(rest, token_file, conf)
    slurm_conf = _conf(conf) if place is None else None
    book = Book(book_path(slurm_conf, place, partition), conf=slurm_conf, rest=place, partition=partition)
    book.mode = "priority" if mode == "priority" else "sitefactor"
    _check(book.client(), mode, partition, is_applied=apply)
    order = make_order(strategy, settings.budget_s, said)
    warm_up(order)  # compiling is no part of a decision
    named = {"strategy": strategy, "mode": mode, "apply": apply, "interval": interval, "budget": budget}
    named |= said.spec() if said is not None else {}
    past = _history(history)
    _follow(book, order, settings, named, past, once, output)


def make_order(name: str, budget_s: float, said: MarsSettings | None = None) -> QueueOrder:
    """Return who decides.

    Parameters
    ----------
    said
        What the operator says of mars.
    """
    from stretto.catalog import ONLINE_ORDERS, STRATEGIES
    from stretto.queues.live_order import StrategyOrder
    from stretto.queues.plugin_order import PluginOrder
    from stretto.registry import construct, plugins

    if name not in ONLINE_ORDERS:
        return PluginOrder(name) if name not in STRATEGIES and name in plugins("strategy") else StrategyOrder(name)
    params: dict[str, Any] = {"budget_s": 0.8 * budget_s} if name == "portfolio" else {}
    if said is not None:
        params |= {"candidates": said.candidates(starts_jobs=False), "cost": said.cost}
    order: QueueOrder = construct("order", name, ONLINE_ORDERS, params)
    return order


def _conf(path: Path | None) -> str | None:
    """Return the slurm.conf that is meant, such that a guard and ``--off`` find it from anywhere."""
    import os

    named = str(path) if path is not None else os.environ.get("SLURM_CONF")
    return str(Path(named).resolve()) if named else None


def _rest_place(url: str | None, token_file: Path | None, conf: Path | None) -> RestPlace | None:
    from stretto.engines.slurm.client.rest import RestPlace
    from stretto.errors import InvalidInput

    if url is None:
        if token_file is not None:
            raise InvalidInput("is for --rest URL", field="--token-file")
        return None
    if conf is not None:
        raise InvalidInput("Slurm is reached by its programs (--conf) or by --rest, not by both", field="--conf")
    place = RestPlace(url, str(token_file.resolve()) if token_file is not None else None)
    if not place.is_private:
        remark(f"the token for {url} can be read on its way: https would hide it")
    return place


def _check(client: QueueClient, mode: str, partition: str | None, *, is_applied: bool) -> None:
    from stretto.engines.slurm.client.client import SlurmClient
    from stretto.engines.slurm.client.rest import RestClient
    from stretto.engines.slurm.steer.reading import MODES
    from stretto.engines.slurm.steer.shelf import switches_of
    from stretto.errors import InvalidInput, UnknownName

    if mode not in MODES:
        raise UnknownName("mode", mode, MODES)
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
        remark("slurmrestd does not show site factors: those that others have set are replaced, and come back as 0")
    plugin = client.setting("PriorityType") if isinstance(client, SlurmClient) else "multifactor"
    if "multifactor" not in plugin:
        raise InvalidInput(f"site factors need priority/multifactor, and this Slurm has {plugin}", field="--mode")


def _check_partition(name: str, names: list[str]) -> None:
    import difflib

    from stretto.errors import InvalidInput

    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InvalidInput(f"{name!r} is none of this Slurm's: {', '.join(sorted(names))}{hint}", field="--partition")


def _history(path: str | None) -> Any:
    if path is None:
        return None
    from stretto.files.traces.load import load_trace

    return load_trace(path)


def _follow(
    book: Book, order: QueueOrder, settings: Any, named: dict[str, Any], past: Any, once: bool, output: Output
) -> None:
    """Steer; with ``--apply`` as the only one who does."""
    import time

    from stretto.engines.slurm.steer.kept_order import place_of, take_up
    from stretto.engines.slurm.steer.shelf import switches_of
    from stretto.engines.slurm.steer.steer import Steerer
    from stretto.runlog import RunLog

    held = _take_over(book) if settings.is_applied else None
    try:
        with RunLog.open() as log:
            if take_up(log, order, place_of(book, settings.partition), time.time()):
                remark("going on where the last steerer of this queue stopped")
            run = log.start("steer", f"slurm by {named['strategy']}", named)
            switches = switches_of(settings.partition)
            steerer = Steerer(_client(book, held), order, book, switches, settings, run=run)
            if past is not None:
                steerer.memory.take_history(past)
            if once:
                _print(steerer.step(), output)
                run.finish("done", {"reason": "once"})
            else:
                _follow_on(steerer, run, held, output)
    finally:
        if held is not None:
            held.release()


def _client(book: Book, held: Claim | None) -> QueueClient:
    """Return a client whose programs keep our claim: a guard must not look before the last of them has ended."""
    from dataclasses import replace

    from stretto.engines.slurm.client.client import SlurmClient

    client = book.client()
    return replace(client, held_fds=held.files) if held is not None and isinstance(client, SlurmClient) else client


def _take_over(book: Book) -> Claim:
    """Become the steerer of a book, and take back what earlier ones left on the same jobs."""
    from stretto.engines.slurm.steer.book import Book
    from stretto.engines.slurm.steer.claims import claim
    from stretto.engines.slurm.steer.giving_back import give_back
    from stretto.engines.slurm.steer.shelf import book_of_all

    held = claim(book.path, "steerer", book.partition)
    try:
        paths = {book.path}
        if book.partition is None:
            paths |= set(book.path.parent.glob("*.json"))
        elif held.is_alone:
            paths.add(book_of_all(book.path))
        for path in sorted(paths):
            left = Book.read(path)
            if left.jobs:
                remark(f"taking back the labels that an earlier steerer left: {give_back(left, left.client()).text()}")
        held.share()
        book.owner = held.holder.text()
    except BaseException:
        held.release()
        raise
    return held


def _follow_on(steerer: Steerer, run: Run, held: Claim | None, output: Output) -> None:
    """Steer until somebody stops it, with a guard beside it where Slurm is told anything."""
    import signal

    from stretto.engines.slurm.steer.guard import Guard

    guard = Guard(steerer.book) if held is not None else None
    reason, code = "interrupted", 0
    try:
        signal.signal(signal.SIGTERM, _terminate)  # a service manager asks like this
        reason = steerer.follow(lambda step: _print(step, output))
    except KeyboardInterrupt as error:
        remark("stopped")
        code = 0 if isinstance(error, _Terminated) else 130
    finally:
        if held is not None and guard is not None:
            held.release()  # the guard needs it for what is left, as after a second Ctrl-C
            is_done = guard.dismiss(timeout_s=15.0)
            _say_outcome(steerer, is_done=is_done)
        run.finish("done", {"reason": reason})
    if code:
        raise typer.Exit(code)


def _say_outcome(steerer: Steerer, *, is_done: bool) -> None:
    from stretto.engines.slurm.steer.book import Book

    if not is_done:
        remark("Slurm does not answer: a guard process tries for an hour to give it its own order back")
    elif steerer.outcome is not None:
        remark(steerer.outcome.text())
    elif said := Book.read(steerer.book.path).outcome:
        remark(said)


class _Terminated(KeyboardInterrupt):
    """Somebody asked politely, by SIGTERM."""


def _terminate(number: int, frame: Any) -> None:
    raise _Terminated


def _print(step: Step, output: Output) -> None:
    if output is Output.JSON:
        print_json({**vars(step), "updates": {str(job): label for job, label in step.updates.items()}})
    elif output is Output.QUIET:
        stdout().print(" ".join(map(str, step.order)), soft_wrap=True)
    else:
        head = ", ".join(map(str, step.order[:8])) + (", ..." if len(step.order) > 8 else "")
        told = f"{len(step.updates)} labels" if step.updates else "no change"
        told += f", {len(step.left_alone)} left alone" if step.left_alone else ""
        why = f"Slurm's order: {step.fallback}" if step.fallback else f"{step.chosen}: {head or 'nothing waits'}"
        line = f"{step.number:5d}  {step.num_running} run, {step.num_waiting} wait  {why}  ({told})"
        stdout().print(line, soft_wrap=True)
    sys.stdout.flush()
