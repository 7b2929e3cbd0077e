"""``pgdyno inspect``: show a server and its host."""

from __future__ import annotations

from dataclasses import fields
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

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.host.probes import Probes
    from pgdyno.plan.inspection.inspect import InspectedServer, Inspection


@click.command(
    name="inspect",
    epilog="\b\nExamples:\n"
    "  pgdyno inspect\n"
    "  pgdyno inspect --dsn service=production --ram 64GB --cpus 16 --storage nvme --json\n"
    "  pgdyno inspect --pgdata /var/lib/postgresql/17/main\n"
    "  pgdyno inspect --probe",
)
@server_options
@figures_options
@click.option(
    "--probe",
    "is_probed",
    is_flag=True,
    help="Also measure the cost of single operations on this machine (takes less than a second).",
)
@json_option
def command(
    *,
    dsn: str | None,
    pgdata: Path | None,
    embedded: bool,
    is_probed: bool,
    is_json: bool,
    **figures: Any,
) -> None:
    """Show a server, and the host that it is proven to run on. Changes nothing.

    Without an option, the server is the one that psql would connect to: PGHOST, PGSERVICE and so on.

    --probe measures the machine that pgdyno runs on: the time to wake a process on another CPU (idle, and
    kept busy), to make a system call, to handle a page fault, and to write and fsync 8 kB in pgdyno's
    directory.
    """
    require_one_server(dsn, pgdata, is_embedded=embedded)
    stated = StatedFigures(**figures).parsed()
    found = inspect_named_server(dsn, pgdata, is_embedded=embedded, figures=stated)
    _warn(found)
    probes = _probed() if is_probed else None
    if is_json:
        print_json(_document(found, probes))
    else:
        echo(_text(found, probes), nl=False)


def _probed() -> Probes:
    from pgdyno.host.probing.run_probes import run_probes
    from pgdyno.postgres.process.local_machine import workspace

    with workspace().scratch() as directory:
        return run_probes(directory)


def _warn(found: Inspection) -> None:
    """Print missing facts on stderr, with the options that supply them."""
    if isinstance(found.inspected, Unknown) and found.data_directory is None:
        warn("no server was reached; name one with --dsn, --pgdata or --embedded")
    if isinstance(found.host, Unknown):
        warn(f"{found.host.reason}; state its host's resources with --ram, --cpus and --storage")


def _document(found: Inspection, probes: Probes | None) -> dict[str, object]:
    from pgdyno.base.facts import to_document

    probed = {} if probes is None else {"probes": to_document(probes)}
    return {
        "server": _server_document(found.inspected),
        "host": _unknown(found.host) or to_document(found.host),
        "data_directory": to_document(found.data_directory),
        **probed,
    }


def _server_document(inspected: InspectedServer | Unknown) -> dict[str, object]:
    from pgdyno.base.facts import to_document

    if isinstance(inspected, Unknown):
        return {"unknown": inspected.reason}
    server = inspected.server
    return {
        "target": inspected.target,
        "non_default_settings": [guc.name for guc in server.non_default_settings],
        "resources": to_document(inspected.resources),
        **{field.name: to_document(getattr(server, field.name)) for field in fields(server)},
    }


def _unknown(thing: object) -> dict[str, object] | None:
    return {"unknown": thing.reason} if isinstance(thing, Unknown) else None


def _text(found: Inspection, probes: Probes | None) -> str:
    from pgdyno.plan.view.host_text import host_text, probes_text
    from pgdyno.plan.view.server_text import data_directory_text

    parts = [_server_text(found.inspected)]
    if found.data_directory is not None and isinstance(found.inspected, Unknown):
        parts.append(data_directory_text(found.data_directory))
    host = found.host
    parts.append(_unknown_text("Host", host) if isinstance(host, Unknown) else host_text(host))
    if probes is not None:
        parts.append(probes_text(probes))
    return "\n".join(parts)


def _server_text(inspected: InspectedServer | Unknown) -> str:
    from pgdyno.plan.view.server_text import Means, server_text

    if isinstance(inspected, Unknown):
        return _unknown_text("Server", inspected)
    resources = inspected.resources
    means = Means(resources.memory_bytes, resources.cpu_count, resources.storage)
    return server_text(inspected.server, target=inspected.target, means=means)


def _unknown_text(title: str, thing: Unknown) -> str:
    return f"{title}\n  unknown: {thing.reason}\n"
