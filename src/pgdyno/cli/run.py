"""``pgdyno run``: bundled studies and experiment files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pgdyno.cli.measuring import Measuring, measuring_options, workload_option
from pgdyno.cli.output import json_option, print_json
from pgdyno.model.errors import UsageError

_THE_FILES = {
    "factors": "--factor",
    "workloads": "--workload",
    "scripts": "--script",
    "clients": "--clients",
    "blocks": "--blocks",
    "until": "--until",
    "block": "--block",
    "slice_": "--slice",
    "kind": "--design",
    "isolate": "--isolate",
    "seed": "--seed",
}
"""Options by parameter that an experiment file speaks about, or that its design has no place for yet."""


@click.command(
    name="run",
    epilog="\b\nExamples:\n"
    "  pgdyno run --list\n"
    "  pgdyno run noise-floor --embedded --workload pgbench-select --budget 5m\n"
    "  pgdyno run buffers.toml --embedded",
)
@click.argument("study", required=False, metavar="NAME|FILE")
@click.option("--list", "is_list", is_flag=True, help="List the bundled studies.")
@click.option(
    "--factor", "factors", multiple=True, metavar="SETTING=A,B", help="Vary a setting instead; repeatable."
)
@workload_option
@measuring_options
@json_option
def command(
    study: str | None, *, is_list: bool, factors: tuple[str, ...], is_json: bool, **options: Any
) -> None:
    """Run a bundled study by name, or an experiment file."""
    from pgdyno.app.run import listing, run_bundled, run_file
    from pgdyno.cli.results import deliver

    if is_list:
        _print_list(listing(), is_json=is_json)
        return
    if study is None:
        raise UsageError("no study was named", hint="see pgdyno run --list, or name an experiment file")
    asked = Measuring(**options)
    path = Path(study)
    if path.suffix == ".toml" or path.is_file():
        _refuse_what_the_file_decides()
        deliver(
            lambda progress: run_file(path, asked.file_conditions(), asked.scale, progress),
            is_json=is_json,
            is_gate=asked.gate,
        )
        return
    varied = dict(_parse_factor(text) for text in factors)
    deliver(
        lambda progress: run_bundled(study, asked.conditions(), varied, progress),
        is_json=is_json,
        is_gate=asked.gate,
    )


def _refuse_what_the_file_decides() -> None:
    """Raise UsageError for options that would otherwise be ignored: a file holds its own design."""
    context = click.get_current_context()
    given = [
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and name in _THE_FILES
    ]
    if given:
        options = ", ".join(sorted(_THE_FILES[name] for name in given))
        raise UsageError(
            f"an experiment file decides itself about {options}",
            hint="write it into the file: workloads = […], and under [design] blocks_per_round, slice_s, …",
        )


def _print_list(studies: list[tuple[str, str]], *, is_json: bool) -> None:
    if is_json:
        print_json({"studies": [{"name": name, "title": title} for name, title in studies]})
        return
    for name, title in studies:
        click.echo(f"{name:20} {title}")


def _parse_factor(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise UsageError(f'--factor "{text}" is not SETTING=A,B', hint="for example --factor jit=on,off")
    return name, values.split(",")
