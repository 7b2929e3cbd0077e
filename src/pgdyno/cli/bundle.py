"""``pgdyno bundle``: an experiment as portable data, with checksums and without secrets."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pgdyno.cli.output import json_option, print_json


@click.group(name="bundle")
def command() -> None:
    """Export an experiment as one portable file, or verify one."""


@command.command(name="export")
@click.argument("experiment", required=False)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to write it.")
@json_option
def export(experiment: str | None, *, output: Path | None, is_json: bool) -> None:
    """Write an EXPERIMENT (default: the newest) with facts, settings, series, verdicts and report."""
    from contextlib import closing
    from functools import partial

    from pgdyno.app.bundle import export_bundle
    from pgdyno.app.stored import load_stored
    from pgdyno.app.wiring import open_store

    found = load_stored(experiment)
    with closing(open_store()) as store:
        path = export_bundle(found, output, slices_of=partial(store.slices, found.id))
    if is_json:
        print_json({"bundle": str(path)})
    else:
        click.echo(path)


@command.command(name="verify")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def verify(file: Path, *, is_json: bool) -> None:
    """Check a bundle's checksums and schema; exits with 1 if anything is wrong."""
    from pgdyno.app.bundle import verify_bundle
    from pgdyno.model.document import to_document

    found = verify_bundle(file)
    if is_json:
        print_json({"verification": to_document(found)})
    elif found.problems:
        click.echo("\n".join(f"{file}: {problem}" for problem in found.problems))
    else:
        click.echo(f"{file}: every checksum and the schema are right")
    if found.problems:
        sys.exit(1)
