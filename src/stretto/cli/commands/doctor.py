"""``stretto doctor``: what is installed, what is missing, and what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from stretto.cli.console import Output, facts, print_answer, print_json, print_tables
from stretto.cli.options import OutputOption
from stretto.core.units import format_bytes, format_count

if TYPE_CHECKING:
    from rich.console import RenderableType


def doctor(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Check the installation: versions, extras, engines, caches, the run log.

    The exit code is 2 if something needs attention. A missing extra does not count.
    """
    from stretto.cli import health
    from stretto.core.answers.facts import doctor_answer

    found: dict[str, Any] = {
        "versions": health.versions(),
        "machine": health.machine(),
        "kernel_cache": health.kernel_cache(),
        "extras": health.extras(),
        "engines": health.engines(),
        "plugins": health.plugins(),
        "data": health.data_folder(),
        "run_log": health.run_log(),
        "settings": health.settings(getattr(context.find_root().command, "commands", {})),
    }
    found["faults"] = _faults(found)
    answer = doctor_answer(found)
    if output is Output.JSON:
        print_json({"answer": answer, **found})
    elif output is Output.QUIET:
        print("\n".join(found["faults"]) or "ok")
    else:
        print_answer(answer)
        print_tables(*_sections(found))
    if found["faults"]:
        raise typer.Exit(2)


def _faults(found: dict[str, Any]) -> list[str]:
    """Return what needs attention, each as one line that says what to do."""
    faults = [
        f"{library} is missing: reinstall Stretto" for library, version in found["versions"].items() if version is None
    ]
    cache = found["kernel_cache"]
    if not cache["writable"]:
        faults.append(f"{cache['path']} cannot be written, so every start compiles anew: set NUMBA_CACHE_DIR")
    if found["run_log"]["fault"]:
        faults.append(f"the run log cannot be read: {found['run_log']['fault']}; move it away, or set STRETTO_HOME")
    if found["settings"]["fault"]:
        faults.append(f"settings: {found['settings']['fault']}")
    if found["data"]["path"] and not found["data"]["exists"]:
        faults.append(f"STRETTO_DATA names {found['data']['path']!r}, which is no folder")
    return faults


def _sections(found: dict[str, Any]) -> list[RenderableType]:
    versions = {name: version or "missing" for name, version in found["versions"].items()}
    sections = [
        facts("Versions", versions),
        facts("Machine", _machine(found["machine"])),
        facts("Places", _places(found)),
        facts("Extras", {entry["name"]: _extra(entry) for entry in found["extras"]}),
    ]
    if found["engines"]:
        rows = {entry["name"]: "ready" if entry["available"] else entry["reason"] for entry in found["engines"]}
        sections.append(facts("Engines", rows))
    if found["plugins"]:
        rows = {f"{entry['kind']} {entry['name']}": entry["target"] for entry in found["plugins"]}
        sections.append(facts("Plugins", rows))
    faults = {str(number): text for number, text in enumerate(found["faults"], start=1)}
    return [facts("Needs attention", faults), *sections] if faults else sections


def _machine(machine: dict[str, Any]) -> dict[str, str]:
    usable, cores, memory = machine["usable_cores"], machine["cores"], machine["memory_bytes"]
    return {
        "cores": f"{usable}" if usable == cores else f"{usable} of {cores} may be used",
        "memory": format_bytes(memory) if memory else "unknown",
    }


def _places(found: dict[str, Any]) -> dict[str, str]:
    cache, log = found["kernel_cache"], found["run_log"]
    compiled = f"{cache['num_modules']:,} modules compiled, {format_bytes(cache['size_bytes'])}"
    runs = f"{format_count(log['num_runs'], 'run')}, {format_bytes(log['size_bytes'])}" if log["exists"] else "none yet"
    return {
        "kernels": f"{cache['path']} ({compiled if cache['num_modules'] else 'empty: the first run compiles'})",
        "run log": f"{log['path']} ({log['fault'] or runs})",
        "settings": ", ".join(found["settings"]["files"]) or "no file; see stretto config path",
        "real data": found["data"]["path"] or "STRETTO_DATA is not set",
    }


def _extra(entry: dict[str, Any]) -> str:
    if not entry["present"]:
        return f"without {', '.join(entry['missing'])}:  {entry['install']}"
    return ", ".join(f"{library} {version}" for library, version in entry["versions"].items())
