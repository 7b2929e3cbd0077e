"""``pgdyno fleet``: the same comparison on several machines, as one report."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.cli.output import echo, json_option, print_json


@click.group(name="fleet")
def command() -> None:
    """Combine the results of several machines."""


@command.command(
    name="report",
    epilog="\b\nExamples:\n"
    "  pgdyno fleet report epyc.zip xeon.zip graviton.zip\n"
    "  pgdyno fleet report db1=a.zip db2=b.zip db3=20261122-101500-compare",
)
@click.argument("experiments", nargs=-1, required=True, metavar="[NAME=]FILE|ID ...")
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE.html", help="Where to write the page."
)
@json_option
def report(experiments: tuple[str, ...], *, output: Path | None, is_json: bool) -> None:
    """Combine comparisons that experiments of several machines share.

    Each is a bundle's file or the id of a stored experiment. Experiments on hardware that is alike count as
    one machine, unless the machines are named: NAME=FILE.
    """
    from pgdyno.app.results.fleet_report import combine_experiments, write_fleet
    from pgdyno.model.document import to_document
    from pgdyno.report.plain.fleet_text import fleet_text

    found = combine_experiments(experiments)
    path = write_fleet(found, output)
    if is_json:
        print_json({"fleet": to_document(found), "report": str(path)})
    else:
        echo(fleet_text(found))
        echo(f"Report: {path}")
