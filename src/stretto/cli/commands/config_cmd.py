"""``stretto config``: what is set outside the command line, and where."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stretto.cli.console import Output, new_table, print_json, stdout
from stretto.cli.options import OutputOption

config = typer.Typer(
    help="Show the current settings and the files that contain them.",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
BUILT_IN = "built in"


@config.command("show")
def show_settings(
    context: typer.Context,
    command: Annotated[
        str | None,
        typer.Argument(metavar="COMMAND", help="Show only the settings of this command.", show_default="all commands"),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print each setting, its value and where the value came from."""
    rows = _rows(context.find_root().command, command)
    if output is Output.JSON:
        print_json(rows)
    elif output is Output.QUIET:
        print("\n".join(f"{row['option']}={row['value']}" for row in rows if row["source"] != BUILT_IN))
    else:
        table = new_table()
        for column in ("setting", "value"):
            table.add_column(column, no_wrap=True)
        table.add_column("from", overflow="fold")
        table.add_column("commands", overflow="fold", style="dim")
        for row in rows:
            style = None if row["source"] == BUILT_IN else "bold"
            table.add_row(row["option"], _text(row["value"]), row["source"], ", ".join(row["commands"]), style=style)
        stdout().print(table)


@config.command("path")
def show_path(output: OutputOption = Output.TABLE) -> None:
    """Print the files that may contain settings. Later files override earlier ones."""
    from stretto.config import config_files, user_file

    files = config_files()
    if output is Output.QUIET:
        print(user_file())
    elif output is Output.JSON:
        print_json([{"path": str(path.absolute()), "exists": path.exists()} for path in files])
    else:
        for path in files:
            print(f"{path.absolute()}{'' if path.exists() else '  (does not exist)'}")


def _rows(root: Any, only: str | None) -> list[dict[str, Any]]:
    """Return one row for each option and value, with the commands for which that value is in force."""
    from stretto.cli.configured import options_of, settings_of
    from stretto.errors import InvalidInput

    settings = settings_of(root.commands)
    options = {name: found for name, found in options_of(root.commands).items() if found}
    if only is not None and only not in options:
        raise InvalidInput(f"command {only!r} has no settings; those that have: {', '.join(sorted(options))}")
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for command, found in options.items():
        if only not in (None, command):
            continue
        for option, default in found.items():
            setting = settings[command].get(option)
            value, source = (setting.value, setting.source) if setting else (default, BUILT_IN)
            row: dict[str, Any] = {"option": option, "value": value, "source": source, "commands": []}
            rows.setdefault((option, str(value), source), row)["commands"].append(command)
    return sorted(rows.values(), key=lambda row: (row["option"], row["source"] != BUILT_IN))


def _text(value: Any) -> str:
    return "-" if value is None else str(value)
