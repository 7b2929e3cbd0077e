"""``pgdyno advise``: show the plan without changing anything."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.base.errors import UsageError
from pgdyno.base.facts import Unknown
from pgdyno.cli._server_options import (
    StatedFigures,
    figures_options,
    inspect_named_server,
    layers_option,
    lever_option,
    parse_layers,
    require_known_levers,
    require_machine_layers,
    require_one_server,
    server_options,
    unmeasured_option,
)
from pgdyno.cli.output import echo, json_option, print_file
from pgdyno.host.kernel_file import display_name
from pgdyno.plan import formats

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.plan.inspection.inspect import InspectedServer, Inspection


@click.command(
    name="advise",
    epilog="\b\nExamples:\n"
    "  pgdyno advise --dsn service=production\n"
    "  pgdyno advise --dsn service=production --ram 64GB --cpus 16 --storage nvme --format sql\n"
    "  pgdyno advise --embedded --format conf > pgdyno.conf\n"
    "  pgdyno advise --dsn service=production --layers all --format ansible > pgdyno.yml\n"
    "  pgdyno advise --dsn service=production --lever cache_allocation",
)
@server_options
@figures_options
@layers_option
@lever_option
@unmeasured_option
@click.option(
    "--format",
    "format_name",
    default="text",
    show_default=True,
    metavar="FORMAT",
    help=f"text, or {', '.join(formats.names())}; docs/guides/formats.md explains each.",
)
@json_option
def command(
    *,
    dsn: str | None,
    pgdata: Path | None,
    embedded: bool,
    layers: str,
    levers: tuple[str, ...],
    with_unmeasured: bool,
    format_name: str,
    is_json: bool,
    **figures: Any,
) -> None:
    """Show possible changes to a server, with reasons. Changes nothing.

    Each line shows the present value, the proposed value, the reason with this host's numbers, the source of
    the rule, the requirements, and how to undo the change.
    """
    from pgdyno.plan.advise import AdviseRequest, advise
    from pgdyno.plan.engine.planner import PlanRequest
    from pgdyno.plan.inspection.server_programs import probe_of

    require_one_server(dsn, pgdata, is_embedded=embedded)
    require_known_levers(levers)
    if with_unmeasured:
        require_machine_layers(parse_layers(layers), levers)
    stated = StatedFigures(**figures).parsed()
    found = inspect_named_server(dsn, pgdata, is_embedded=embedded, figures=stated)
    inspected = _require_server(found)
    host = None if isinstance(found.host, Unknown) else found.host
    plan = PlanRequest(
        stated,
        parse_layers(layers),
        levers,
        probe=probe_of(inspected),
        with_unmeasured=with_unmeasured,
    )
    width = shutil.get_terminal_size((100, 40)).columns
    request = AdviseRequest(plan, "json" if is_json else format_name, width)
    advice = advise(host, inspected.server, request)
    print_file(advice.text)
    if format_name != "text" and (left := advice.plan.unmeasured):
        names = ", ".join(display_name(line.change.key) for line in left)
        echo(f"left out because never measured (--unmeasured includes them): {names}", err=True)
    if advice.refused is not None:
        raise advice.refused


def _require_server(found: Inspection) -> InspectedServer:
    if isinstance(found.inspected, Unknown):
        raise UsageError(
            "no running server to advise on",
            detail=found.inspected.reason,
            hint="name one with --dsn, start the one in --pgdata, or use --embedded",
        )
    return found.inspected
