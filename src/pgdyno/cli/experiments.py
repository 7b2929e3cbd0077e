"""``pgdyno experiments``: list and delete stored experiments."""

from __future__ import annotations

import click

from pgdyno.cli.output import echo, json_option, print_json


@click.group(name="experiments")
def command() -> None:
    """List and delete stored experiments."""


@command.command(name="list")
@json_option
def list_(*, is_json: bool) -> None:
    """List the experiments, the newest first."""
    print_experiments(is_json=is_json)


@command.command(name="delete")
@click.argument("experiments", nargs=-1, required=True, metavar="EXPERIMENT...")
@json_option
def delete(experiments: tuple[str, ...], *, is_json: bool) -> None:
    """Delete experiments with their series and reports.

    Reports and bundles written elsewhere are kept. Nothing is deleted while any pgdyno is measuring on this
    machine.
    """
    from pgdyno.results.stored import delete_stored

    ids = tuple(dict.fromkeys(experiments))
    delete_stored(ids)
    if is_json:
        print_json({"deleted": ids})
    for one in ids if not is_json else ():
        echo(f"Deleted {one}")


def print_experiments(*, is_json: bool) -> None:
    """Print one line per experiment, including unreadable ones."""
    from pgdyno.base.facts import to_document
    from pgdyno.results.stored import list_stored

    listed = list_stored()
    if is_json:
        print_json({"experiments": to_document(listed)})
        return
    for one in listed:
        mark = "" if one.imported is None else " (imported)"
        about = f"unreadable: pgdyno report {one.id} shows the reason" if one.problem else one.question
        echo(f"{one.id:45} {' '.join(about.split())}{mark}")
    if not listed:
        echo("No experiments yet: pgdyno compare, run and accelerate store their results here.")
