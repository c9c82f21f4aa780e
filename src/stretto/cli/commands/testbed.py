"""``stretto testbed``: private engines to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stretto.cli.console import Output, facts, print_json, remark, stdout
from stretto.cli.options import OutputOption

_SETTINGS = {"help_option_names": ["-h", "--help"]}
testbed = typer.Typer(
    help="Start and stop private engines for trying things out.",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings=_SETTINGS,
)
slurm = typer.Typer(
    help="A private Slurm on this machine: real daemons, invented nodes, no root needed.",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings=_SETTINGS,
)
testbed.add_typer(slurm, name="slurm")

DirOption = Annotated[
    Path | None,
    typer.Option(
        "--dir", metavar="DIR", help="Folder of the testbed.", show_default="slurm-testbed beside the run log"
    ),
]


@slurm.command("up")
def slurm_up(
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", help="Number of nodes.")] = 4,
    cpus: Annotated[
        int, typer.Option("--cpus", metavar="N", help="Processors of each node, as reported to Slurm.")
    ] = 8,
    gpus: Annotated[
        int, typer.Option("--gpus", metavar="N", help="GPUs of each node in the second half of the nodes.")
    ] = 0,
    auth: Annotated[
        str,
        typer.Option(
            "--auth",
            metavar="munge|none",
            help="Authentication. With none, every user of this machine can act as any other user.",
        ),
    ] = "munge",
    rest: Annotated[bool, typer.Option("--rest", help="Also start slurmrestd, and write a token for it.")] = False,
    dir: DirOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start a private Slurm and print what to export."""
    from stretto.api.testbed import start_testbed
    from stretto.cli.progress import ProgressLine

    with ProgressLine("starting Slurm"):
        bed = start_testbed(dir, nodes=nodes, cpus=cpus, gpus=gpus, auth=auth, rest=rest)
    if output is Output.JSON:
        more = {"rest": vars(bed.rest)} if rest else {}
        shape = {"nodes": nodes, "cpus_per_node": cpus, "gpu_nodes": list(bed.spec.gpu_nodes)}
        print_json({"conf": str(bed.conf), **shape, **more})
    else:
        print(f"export SLURM_CONF={bed.conf}")
    if output is Output.TABLE and rest:
        remark(f"slurmrestd: --rest {bed.rest.url} --token-file {bed.rest.token_file}")
    if output is Output.TABLE:
        remark(f"{nodes} nodes are idle; stop them with  stretto testbed slurm down{_dir_words(dir)}")


@slurm.command("down")
def slurm_down(
    dir: DirOption = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder with its logs.")] = False,
) -> None:
    """Stop the private Slurm, with all jobs, and remove its folder."""
    from stretto.api.testbed import find_testbed
    from stretto.errors import EngineFailure

    bed = find_testbed(dir)
    left = bed.down(is_kept=keep)
    if left:
        raise EngineFailure(f"processes {', '.join(map(str, left))} would not end; see {bed.folder}")
    remark("Slurm is down")


@slurm.command("status")
def slurm_status(dir: DirOption = None, output: OutputOption = Output.TABLE) -> None:
    """Show which parts of the private Slurm are running. The exit code is 3 if it is not up."""
    from stretto.api.testbed import find_testbed

    found = find_testbed(dir).status()
    if output is Output.JSON:
        pids = {"controller_pid": found.controller_pid, "node_pids": found.node_pids}
        print_json({"is_up": found.is_up, "conf": str(found.conf), **pids, "nodes": found.nodes})
    elif output is Output.QUIET:
        print("up" if found.is_up else "down")
    else:
        lines = {"SLURM_CONF": str(found.conf), "controller": _alive(found.controller_pid)}
        lines |= {name: f"{found.nodes.get(name, '?')}, {_alive(pid)}" for name, pid in found.node_pids.items()}
        stdout().print(facts(f"Slurm is {'up' if found.is_up else 'down'}", lines))
    if not found.is_up:
        raise typer.Exit(3)


def _alive(pid: int | None) -> str:
    return "dead" if pid is None else f"process {pid}"


def _dir_words(folder: Path | None) -> str:
    return f" --dir {folder}" if folder is not None else ""
