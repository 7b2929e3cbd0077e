"""The option that has the load issued by the load hosts of a cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.model.errors import UsageError

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.app.measuring.conditions import Conditions
    from pgdyno.model.cells.cell import CellHosts

_cell = click.option(
    "--cell",
    "cell_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Issue the load from other hosts, named in FILE, by ssh; run this on the server's host "
    "(docs/guides/two-machines.md).",
)
_allow_fewer = click.option(
    "--allow-fewer",
    is_flag=True,
    help="With --cell: when a load host is lost, go on at once with the others. Otherwise it is waited for.",
)


def cell_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, as ``cell_file`` and ``allow_fewer``."""
    return _cell(_allow_fewer(command))


def refuse_beside_cell(given: Mapping[str, object]) -> None:
    """Raise UsageError if an option is given that does not go with load hosts, by its name."""
    if refused := [name for name, value in given.items() if value]:
        raise UsageError(
            f"--cell does not go with {' and '.join(refused)}",
            hint="load from other hosts takes no CPUs here, and goes to scratch servers",
        )


def read_cell(file: Path | None, *, allows_fewer: bool) -> CellHosts | None:
    """Return the cell that a file describes, if one is given.

    Raises: HostsFileError; UsageError if there are no hosts of which some may be lost.
    """
    from pgdyno.store.hosts.cell_file import read_cell_file

    if file is None and allows_fewer:
        raise UsageError("--allow-fewer is for load hosts, and there are none", hint="name them: --cell FILE")
    return None if file is None else read_cell_file(file)


def on_cell(conditions: Conditions, cell: CellHosts | None, *, allows_fewer: bool) -> Conditions:
    """Return conditions with the load hosts of a cell, if there is one.

    Raises: UsageError for workloads that they cannot issue.
    """
    from pgdyno.app.measuring.load_hosts.load_from_cell import require_issuable

    if cell is None:
        return conditions
    require_issuable(cell, conditions.workloads.values(), conditions.design)
    return replace(conditions, cell=cell, allows_fewer=allows_fewer)
