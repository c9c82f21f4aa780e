"""``stretto help``: a command's help, or a page about something that all commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

#: What a program may rely on; the site's reference is made from this, too.
EXIT_CODES = {
    0: "success",
    1: "internal error; STRETTO_DEBUG=1 shows the traceback",
    2: "invalid input or usage; one line on stderr says what is wrong, where, and what to do",
    3: "an engine failed: a task failed permanently, or a service did not answer",
    4: "a plan on pools was made, but it misses its deadline or its budget",
    130: "interrupted with Ctrl-C; results found until then were printed and saved",
    141: "the reader of a pipe was closed",
}
ENVIRONMENT = {
    "NO_COLOR": "set to any value: no colors, even on a terminal",
    "STRETTO_CONFIG": "the user's file of settings, in place of ~/.config/stretto/config.toml",
    "STRETTO_DATA": "the folder of real traces and graphs, for tests and benchmarks",
    "STRETTO_DEBUG": "set to any value: internal errors show their traceback",
    "STRETTO_HOME": "the folder of the run log, in place of ~/.local/state/stretto",
    "STRETTO_<OPTION>": "the default of an option, such as STRETTO_CLUSTER; see stretto config show",
    "STRETTO_<COMMAND>_<OPTION>": "the same for one command, such as STRETTO_PLAN_POLICY",
    "NUMBA_CACHE_DIR": "the folder of compiled kernels, in place of ~/.cache/stretto/kernels",
}
SOURCES = {
    "FILE": "any known format, recognized by its content; gzip is unpacked",
    "FILE#MEMBER": "one graph of an archive or a workload, by name or number",
    "workload:NAME?key=value&...": "a built-in graph; see stretto list workloads",
    "trace:NAME?key=value&...": "a generated queue of jobs: trace:lublin, trace:fitted",
    "cpu:8x1.0,gpu:2x5.0@10GB/s": "a cluster: count x speed of each kind, and the bandwidth of the links",
    "own:128*16,cloud:0-64*8@0.40": "pools: nodes * processors, least-most where elastic, dollars per hour",
}
TOPICS: dict[str, tuple[str, dict[Any, str]]] = {
    "exit-codes": ("Exit codes", EXIT_CODES),
    "environment": ("Environment variables", ENVIRONMENT),
    "sources": ("How graphs, traces and machines are named", SOURCES),
}


def help_page(
    context: typer.Context,
    topic: Annotated[
        str | None, typer.Argument(metavar="COMMAND|TOPIC", help=f"A command, or {', '.join(TOPICS)}.")
    ] = None,
) -> None:
    """Explain a command, or what all commands share."""
    from stretto.cli.console import facts, stdout
    from stretto.errors import UnknownName

    root = context.find_root()
    commands: dict[str, Any] = getattr(root.command, "commands", {})
    if topic is None:
        print(root.get_help())
    elif topic in commands:
        command = commands[topic]
        with type(context)(command, info_name=topic, parent=root) as inner:
            print(command.get_help(inner))
    elif topic in TOPICS:
        title, rows = TOPICS[topic]
        stdout().print(facts(title, {str(name): text for name, text in rows.items()}))
    else:
        raise UnknownName("topic", topic, [*commands, *TOPICS])
