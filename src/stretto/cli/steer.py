"""``stretto steer``: a live queue in the order of a strategy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.console import Output, print_json, remark
from stretto.cli.mars_options import (
    DefaultOption,
    MeasureOption,
    MoneyOption,
    NetsOption,
    PriceOption,
)
from stretto.cli.options import OutputOption

if TYPE_CHECKING:
    from stretto.domain.queue_view import QueueOrder
    from stretto.engines.slurm.book import Book
    from stretto.engines.slurm.queue_client import QueueClient
    from stretto.engines.slurm.rest import RestPlace
    from stretto.engines.slurm.steer import Step
    from stretto.learned.mars.settings import MarsSettings

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
    off: Annotated[bool, typer.Option("--off", help="Stop all steering, and give Slurm its own order back.")] = False,
    on: Annotated[bool, typer.Option("--on", help="Allow steering again.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Steer the queue of Slurm."""
    from stretto.cli.mars_options import mars_settings
    from stretto.domain.units import parse_seconds
    from stretto.engines.slurm.book import Book, book_path
    from stretto.engines.slurm.steer import SteerSettings
    from stretto.policies.queueing.online import warm_up

    if off or on:
        _switch(is_off=off)
        return
    said = mars_settings(
        strategy, nets=nets, default=default, measure=measure, money=money, price=price, starts_jobs=False
    )
    settings = SteerSettings(apply, parse_seconds(interval), parse_seconds(budget), depth, partition)
    book = Book(book_path(), mode="priority" if mode == "priority" else "sitefactor")
    book.conf = str(conf.resolve()) if conf is not None else None
    book.rest = _rest_place(rest, token_file, conf)
    _check(book.client(), mode, is_applied=apply)
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
    from stretto.catalog import ONLINE_ORDERS
    from stretto.policies.queueing.online import StrategyOrder
    from stretto.registry import construct

    if name not in ONLINE_ORDERS:
        return StrategyOrder(name)
    params: dict[str, Any] = {"budget_s": 0.8 * budget_s} if name == "portfolio" else {}
    if said is not None:
        params |= {"candidates": said.candidates(starts_jobs=False), "cost": said.cost}
    order: QueueOrder = construct("order", name, ONLINE_ORDERS, params)
    return order


def _switch(*, is_off: bool) -> None:
    import time

    from stretto.engines.slurm.book import Book, book_path, switch_path
    from stretto.private_files import make_private_folder, write_private

    switch = switch_path()
    if not is_off:
        switch.unlink(missing_ok=True)
        remark("steering is allowed again")
        return
    make_private_folder(switch.parent)
    write_private(switch, time.strftime("%Y-%m-%d %H:%M:%S\n"))
    book = Book.read(book_path())
    count = book.reset(book.client()) if book.labels else 0
    remark(f"steering is off; {count} jobs have Slurm's own order back (allow it again with --on)")


def _rest_place(url: str | None, token_file: Path | None, conf: Path | None) -> RestPlace | None:
    from stretto.engines.slurm.rest import RestPlace
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


def _check(client: QueueClient, mode: str, *, is_applied: bool) -> None:
    from stretto.engines.slurm.book import MODES, switch_path
    from stretto.engines.slurm.client import SlurmClient
    from stretto.engines.slurm.rest import RestClient
    from stretto.errors import InvalidInput, UnknownName

    if mode not in MODES:
        raise UnknownName("mode", mode, MODES)
    if switch_path().exists():
        raise InvalidInput(f"steering is off ({switch_path()}); allow it with  stretto steer slurm --on")
    if not is_applied or mode != "sitefactor":
        return
    if isinstance(client, RestClient) and not client.has_site_factors:
        raise InvalidInput("this slurmrestd cannot set site factors (v0.0.39 can): use priority", field="--mode")
    plugin = client.setting("PriorityType") if isinstance(client, SlurmClient) else "multifactor"
    if "multifactor" not in plugin:
        raise InvalidInput(f"site factors need priority/multifactor, and this Slurm has {plugin}", field="--mode")


def _history(path: str | None) -> Any:
    if path is None:
        return None
    from stretto.formats.traces.load import load_trace

    return load_trace(path)


def _follow(
    fresh: Book, order: QueueOrder, settings: Any, named: dict[str, Any], past: Any, once: bool, output: Output
) -> None:
    import signal
    import time

    from stretto.engines.slurm.book import Book, switch_path
    from stretto.engines.slurm.guard import Guard
    from stretto.engines.slurm.kept_order import place_of, take_up
    from stretto.engines.slurm.steer import Steerer
    from stretto.runlog import RunLog

    path = fresh.path
    book = Book.read(path)
    if book.labels and settings.is_applied:
        remark(f"taking back {book.reset(book.client())} labels that an earlier steerer left")
    with RunLog.open() as log:
        if take_up(log, order, place_of(fresh, settings.partition), time.time()):
            remark("going on where the last steerer of this queue stopped")
        run = log.start("steer", f"slurm by {named['strategy']}", named)
        steerer = Steerer(fresh.client(), order, fresh, switch_path(), settings, run=run)
        if past is not None:
            steerer.memory.take_history(past)
        if once:
            _print(steerer.step(), output)
            run.finish("done", {"reason": "once"})
            return
        guard = Guard(path) if settings.is_applied else None
        reason = "interrupted"
        try:
            signal.signal(signal.SIGTERM, _interrupt)  # a service manager asks like this
            reason = steerer.follow(lambda step: _print(step, output))
        except KeyboardInterrupt:
            remark("stopped; Slurm has its own order back")
        finally:
            if guard is not None:
                guard.dismiss()
            run.finish("done", {"reason": reason})


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _print(step: Step, output: Output) -> None:
    if output is Output.JSON:
        print_json({**vars(step), "updates": {str(job): label for job, label in step.updates.items()}})
    elif output is Output.QUIET:
        print(" ".join(map(str, step.order)), flush=True)
    else:
        head = ", ".join(map(str, step.order[:8])) + (", ..." if len(step.order) > 8 else "")
        told = f"{len(step.updates)} labels" if step.updates else "no change"
        why = f"Slurm's order: {step.fallback}" if step.fallback else f"{step.chosen}: {head or 'nothing waits'}"
        print(f"{step.number:5d}  {step.num_running} run, {step.num_waiting} wait  {why}  ({told})", flush=True)
