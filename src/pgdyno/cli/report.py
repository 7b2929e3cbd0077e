"""``pgdyno report``: one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.cli.output import json_option, print_json


@click.command(name="report")
@click.argument("experiment", required=False)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to write it.")
@click.option("--list", "is_list", is_flag=True, help="List the experiments, the newest first.")
@json_option
def command(experiment: str | None, *, output: Path | None, is_list: bool, is_json: bool) -> None:
    """Write the report of an EXPERIMENT (default: the newest) and print its path."""
    from pgdyno.app.report import write_report
    from pgdyno.app.stored import list_stored, load_stored

    if is_list:
        listed = list_stored()
        if is_json:
            print_json({"experiments": [{"id": id_, "question": question} for id_, question in listed]})
        else:
            click.echo("".join(f"{id_:45} {question}\n" for id_, question in listed), nl=False)
        return
    path = write_report(load_stored(experiment), output)
    if is_json:
        print_json({"report": str(path)})
    else:
        click.echo(path)
