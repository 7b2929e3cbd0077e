"""``pgdyno levers``: list the levers with their states on this host and server."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.base.facts import Unknown
from pgdyno.cli._server_options import (
    StatedFigures,
    figures_options,
    inspect_named_server,
    require_one_server,
    server_options,
)
from pgdyno.cli.output import echo, json_option, print_json, warn
from pgdyno.model.plans.plan import Layer

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.model.plans.plan import LeverEntry
    from pgdyno.plan.inspection.inspect import Inspection


@click.command(
    name="levers",
    epilog="\b\nMaturity:\n"
    "  preview  supported by sources, not measured individually by pgdyno\n"
    "  stable   measured\n"
    "\n\b\nState:\n"
    "  on       in use\n"
    "  partial  partly in use\n"
    "  off      not in use\n"
    "  absent   does not exist here\n"
    "  unknown  cannot be read, or a fact is missing\n"
    "\n\b\nExamples:\n"
    "  pgdyno levers --embedded\n"
    "  pgdyno levers --dsn service=production --layer system\n"
    "  pgdyno levers plan_cache_mode",
)
@click.argument("name", required=False)
@click.option(
    "--layer", type=click.Choice([layer.value for layer in Layer]), help="Levers of one layer only."
)
@server_options
@figures_options
@json_option
def command(
    *,
    name: str | None,
    layer: str | None,
    dsn: str | None,
    pgdata: Path | None,
    embedded: bool,
    is_json: bool,
    **figures: Any,
) -> None:
    """Show all levers and their states on a server.

    Changes nothing. Shows the reason if a lever does not apply. With NAME, shows that lever's page: its
    effect, rationale and risks, and how it is verified and undone.

    Without an option, the server is the one that psql would connect to; without a server, no states are
    shown.
    """
    from pgdyno.plan.inspection.lever_findings import choose_levers, describe_levers

    require_one_server(dsn, pgdata, is_embedded=embedded)
    stated = StatedFigures(**figures).parsed()
    chosen = choose_levers(name, None if layer is None else Layer(layer))
    found = inspect_named_server(dsn, pgdata, is_embedded=embedded, figures=stated)
    if isinstance(found.inspected, Unknown):
        warn("no server was reached, so no states are shown; name one with --dsn, --pgdata or --embedded")
    entries = describe_levers(chosen, found, stated)
    if is_json:
        print_json({"server": _server(found), "levers": [_document(one) for one in entries]})
    else:
        echo(_text(entries, is_page=name is not None), nl=False)


def _text(entries: tuple[LeverEntry, ...], *, is_page: bool) -> str:
    from pgdyno.plan.view.plan_text import lever_page, levers_text

    width = shutil.get_terminal_size((100, 40)).columns
    return lever_page(entries[0], width=width) if is_page else levers_text(entries, width=width)


def _server(found: Inspection) -> dict[str, str]:
    if isinstance(found.inspected, Unknown):
        return {"unknown": found.inspected.reason}
    return {"target": found.inspected.target, "version": found.inspected.server.version}


def _document(entry: LeverEntry) -> object:
    from pgdyno.base.facts import to_document

    return to_document(entry)
