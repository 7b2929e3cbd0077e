"""Load hosts of a cell among the conditions of measuring commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pgdyno.base.errors import UsageError
from pgdyno.cli._server_options import warn

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.measure.arenas.load_source import LoadSource
    from pgdyno.measure.conditions import Conditions
    from pgdyno.model.cells.cell import CellHosts


def refuse_beside_cell(given: Mapping[str, object]) -> None:
    """Raise UsageError if an option is given that does not go with load hosts, by its name."""
    if refused := [name for name, value in given.items() if value]:
        raise UsageError(
            f"--cell does not go with {' and '.join(refused)}",
            hint="load from other hosts takes no CPUs here, and goes to scratch servers",
        )


def warn_of_load(command: str, cell: CellHosts) -> None:
    """Warn that a command takes no load from the load hosts of a cell."""
    hosts = ", ".join(host.name for host in cell.loads)
    warn(f"{cell.server.name} issues any load itself: {command} takes none from load hosts yet ({hosts})")


def with_load_from(conditions: Conditions, source: LoadSource | None) -> Conditions:
    """Return conditions with the load hosts of a cell, if there is one.

    Raises: UsageError for workloads that they cannot issue; those of an experiment file are read later.
    """
    if source is None:
        return conditions
    if conditions.workloads:
        source.require_issuable(conditions.workloads.values(), conditions.design)
    return replace(conditions, load_from=source)
