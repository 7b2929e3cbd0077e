"""The option that has the load issued by the load hosts of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.model.errors import UsageError

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.app.measuring.conditions import Conditions
    from pgdyno.model.cells.cell import CellHosts

cell_option = click.option(
    "--cell",
    "cell_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Issue the load from other hosts, named in FILE, by ssh; run this on the server's host "
    "(docs/guides/two-machines.md).",
)


def refuse_beside_cell(given: Mapping[str, object]) -> None:
    """Raise UsageError if an option is given that does not go with load hosts, by its name."""
    if refused := [name for name, value in given.items() if value]:
        raise UsageError(
            f"--cell does not go with {' and '.join(refused)}",
            hint="load from other hosts takes no CPUs here, goes to scratch servers, and is measured from "
            "the beginning",
        )


def read_cell(file: Path | None) -> CellHosts | None:
    """Return the cell that a file describes, if one is given. Raises: HostsFileError."""
    from pgdyno.store.hosts.cell_file import read_cell_file

    return None if file is None else read_cell_file(file)


def on_cell(conditions: Conditions, cell: CellHosts | None) -> Conditions:
    """Return conditions with the load hosts of a cell, if there is one.

    Raises: UsageError for workloads that they cannot issue.
    """
    from pgdyno.app.measuring.load_from_cell import require_issuable

    if cell is None:
        return conditions
    require_issuable(cell, conditions.workloads.values(), conditions.design)
    return replace(conditions, cell=cell, is_resumable=False)
