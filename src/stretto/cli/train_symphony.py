"""``stretto train symphony CASE``: learn to schedule a rack, and be judged on streams that were not trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.cli.console import Output, facts, print_json, remark, stdout

if TYPE_CHECKING:
    from stretto.training.symphony import SymphonyTrainer, World

#: Rules that the result is set against; they take no training.
_OPPONENTS = ("sparrow", "graphene", "paragon", "mct", "heft", "mct-counters", "srpt-counters", "mct-belief")
_NUM_TRAIN, _NUM_HELD_OUT = 128, 16


def train_symphony(
    name: str,
    *,
    time_limit_s: float,
    iterations: int | None,
    seed: int,
    save: Path | None,
    output: Output,
) -> bool:
    """Train, judge and report; return whether the user stopped it."""
    from stretto.cli.progress import ProgressLine
    from stretto.cli.train import Patience
    from stretto.learned.symphony.scheduler import save_policy
    from stretto.learned.symphony.settings import NetSettings
    from stretto.training.symphony import SymphonyTrainer
    from stretto.training.symphony_cases import case

    which = case(name)
    world = which.world(seed=seed, num_instances=_NUM_TRAIN)
    held_out = which.world(seed=None, num_instances=_NUM_HELD_OUT)
    trainer = SymphonyTrainer(world, NetSettings("belief"), which.a2c, seed=seed)
    with Patience() as patience, ProgressLine(f"training symphony on {name}"):
        trainer.step()  # compiles; the budget is for learning
        trainer.seconds = 0.0
        while trainer.seconds < time_limit_s and not patience.is_over:
            if iterations is not None and trainer.iteration >= iterations:
                break
            trainer.step()
        judged = _judge(trainer, held_out)
    if save is not None:
        meta: dict[str, Any] = {"case": name, "seed": seed, "iterations": trainer.iteration, "judged": judged}
        save_policy(save, trainer.params, trainer.net, trainer.shape, meta)
    _report(name, trainer, judged, output, save)
    if patience.is_over:
        remark("interrupted: this is what was learned until then")
    return patience.is_over


def _judge(trainer: SymphonyTrainer, held_out: World) -> dict[str, float]:
    """Return the mean completion time on held-out streams, of the policy and of the rules."""
    from stretto.sim.rack_rules import play
    from stretto.training.symphony import Judge

    values = {"symphony": float(Judge(held_out, trainer.shape, trainer.net).flow_s(trainer.params).mean())}
    for rule in _OPPONENTS:
        flow = play(rule, held_out.model, held_out.streams, seed=0, counters=held_out.counters, params=held_out.belief)
        values[rule] = float(flow.mean())
    return values


def _report(name: str, trainer: SymphonyTrainer, judged: dict[str, float], output: Output, save: Path | None) -> None:
    best = min(_OPPONENTS, key=lambda rule: judged[rule])
    if output is Output.JSON:
        document = {"case": name, "iterations": trainer.iteration, "train_seconds": trainer.seconds}
        print_json(document | {"mean_completion_s": judged, "best_rule": best})
    elif output is Output.QUIET:
        print(repr(judged["symphony"]))
    else:
        change = judged["symphony"] / judged[best] - 1
        lines = {
            "trained": f"{trainer.iteration:,} iterations in {trainer.seconds:.1f} s",
            "judged on": f"{_NUM_HELD_OUT} held-out streams: mean job completion time",
            "symphony": f"{judged['symphony']:,.3f} s",
            "best rule": f"{judged[best]:,.3f} s ({best}), so symphony is {change:+.1%}",
            "blind": f"{judged['mct']:,.3f} s (mct)",
        }
        stdout().print(facts(f"symphony on {name}", lines))
        if save is not None:
            stdout().print(f"  wrote {save}", soft_wrap=True)
