"""``pgdyno bundle``: experiments as portable files, with checksums and without secrets."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli.output import echo, json_option, print_json, print_wide


@click.group(name="bundle")
def command() -> None:
    """Export, import and compare experiments as portable files."""


@command.command(name="export")
@click.argument("experiment", required=False)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to write it.")
@click.option(
    "--sign",
    "key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="KEY",
    help="Sign it with this SSH key (ssh-keygen -Y).",
)
@json_option
def export(experiment: str | None, *, output: Path | None, key: Path | None, is_json: bool) -> None:
    """Write an experiment as a bundle.

    The bundle contains facts, settings, series, verdicts and the report. Without EXPERIMENT, the newest
    experiment is exported.

    Names of hosts, roles and databases, paths and passwords are left out. A query that you gave with --query
    is included verbatim, with its constants.
    """
    from contextlib import closing
    from functools import partial

    from pgdyno.results.bundle import export_bundle, part_ids
    from pgdyno.results.stored import load_stored
    from pgdyno.store.experiments import open_store

    found = load_stored(experiment)
    with closing(open_store()) as store:
        path = export_bundle(found, output, slices_of=partial(store.slices, found.id), key=key)
    if is_json:
        print_json({"bundle": str(path), "parts": part_ids(found)})
        return
    echo(path)
    for one in part_ids(found):
        echo(f"The blocks and series of a part: pgdyno bundle export {one}", err=True)


@command.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def import_(file: Path, *, is_json: bool) -> None:
    """Verify a bundle, and store its experiment here.

    The experiment's id then works for reports and comparisons. An imported experiment cannot be resumed.
    Importing a bundle again changes nothing.
    """
    from pgdyno.base.facts import to_document
    from pgdyno.results.bundle_import import import_bundle

    done = import_bundle(file)
    if is_json:
        print_json({"imported": to_document(done)})
    elif done.is_new:
        echo(f"Imported {done.experiment}: {done.question}")
        echo(f"Its report: pgdyno report {done.experiment}")
    else:
        how = "measured here" if done.was_measured_here else "imported before"
        echo(f"Nothing to do: {done.experiment} was {how} with the same contents")


@command.command(
    name="compare",
    epilog="\b\nExamples:\n"
    "  pgdyno bundle compare arm.zip x86.zip\n"
    "  pgdyno bundle compare 20261122-101500-clients x86.zip --price A=0.35 --price B=0.28",
)
@click.argument("a")
@click.argument("b")
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="A=$/h",
    help="Price of A or B per hour; give both.",
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE.html", help="Also write an HTML page."
)
@json_option
def compare(a: str, b: str, *, prices: tuple[str, ...], output: Path | None, is_json: bool) -> None:
    """Compare machine B with machine A by the same experiment on both.

    A and B are bundle files or ids of stored experiments. Differences other than the machines are listed in
    order of importance. Experiments that did not do the same are refused.
    """
    from pgdyno.base.facts import to_document
    from pgdyno.results.machines.compare_machines import compare_experiments, write_machines
    from pgdyno.results.machines.machine_tables import machine_comparison_text

    found = compare_experiments(a, b, _prices(prices))
    page = None if output is None else write_machines(found, output)
    if is_json:
        print_json({"comparison": to_document(found), "page": to_document(page)})
    else:
        print_wide(machine_comparison_text(found))
        if page is not None:
            echo(f"\nPage: {page}")


def _prices(texts: tuple[str, ...]) -> dict[str, float]:
    """Return the prices per hour by side, empty if none is given. Raises: UsageError, also for one alone."""
    found: dict[str, float] = {}
    for text in texts:
        name, _, amount = text.partition("=")
        if name not in _SIDES:
            raise UsageError(f'--price "{text}" names neither A nor B', hint=_PRICES)
        if not _AMOUNT.fullmatch(amount) or float(amount) == 0:
            raise UsageError(f'--price "{text}": "{amount}" is not a price in dollars', hint=_PRICES)
        found[name] = float(amount)
    if len(found) == 1:
        raise UsageError(f"--price was given only for {next(iter(found))}", hint=_PRICES)
    return found


_SIDES = ("A", "B")
_AMOUNT = re.compile(r"\d{1,9}(\.\d{1,9})?")
_PRICES = "write for example --price A=0.35 --price B=0.28, in dollars per hour"


@command.command(name="verify")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--signers",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Require a signature by one of these: lines of a name and a public key, in ssh-keygen -Y's format.",
)
@json_option
def verify(file: Path, *, signers: Path | None, is_json: bool) -> None:
    """Check a bundle's checksums, signature, schema and consistency.

    Exits with 1 if anything is wrong.
    """
    from pgdyno.base.facts import to_document
    from pgdyno.results.bundle import verify_bundle

    found = verify_bundle(file, signers)
    if is_json:
        print_json({"verification": to_document(found)})
    elif found.problems:
        for problem in found.problems:
            echo(f"{file}: {problem}")
        if found.advice:
            echo(f"HINT:  {found.advice}", err=True)
    else:
        echo(f"{file}: all checksums and the schema are correct")
        if found.signature is not None:
            by = found.signature.signer or "a key with unknown owner (see --signers)"
            echo(f"{file}: signed by {by}, {found.signature.key}")
    if found.problems:
        sys.exit(1)
