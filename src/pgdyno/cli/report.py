"""``pgdyno report``: write an experiment's report as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.cli.output import echo, json_option, print_json


@click.command(name="report")
@click.argument("experiment", required=False)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to write it.")
@click.option("--list", "is_list", is_flag=True, help="List the experiments, the newest first.")
@json_option
def command(experiment: str | None, *, output: Path | None, is_list: bool, is_json: bool) -> None:
    """Write an experiment's HTML report, and print its path.

    Without EXPERIMENT, the newest experiment is used.
    """
    from pgdyno.cli.experiments import print_experiments
    from pgdyno.results.report import write_report
    from pgdyno.results.stored import load_stored

    if is_list:
        print_experiments(is_json=is_json)
        return
    path = write_report(load_stored(experiment), output)
    if is_json:
        print_json({"report": str(path)})
    else:
        echo(path)
