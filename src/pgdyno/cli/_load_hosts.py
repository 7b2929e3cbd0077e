"""Add a cell's load hosts to the conditions of measuring commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pgdyno.base.errors import UsageError
from pgdyno.cli.output import warn

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.measure.conditions import Conditions, LoadSource
    from pgdyno.model.cells.cell import CellHosts


def refuse_with_cell(given: Mapping[str, object]) -> None:
    """Raise UsageError for any given option that conflicts with load hosts; ``given`` is keyed by option."""
    if refused := [name for name, value in given.items() if value]:
        raise UsageError(
            f"--cell cannot be combined with {' and '.join(refused)}",
            hint="load from other hosts takes no CPUs here, and goes to scratch servers",
        )


def warn_of_load(command: str, cell: CellHosts) -> None:
    """Warn that a command does not use the load hosts of a cell."""
    hosts = ", ".join(host.name for host in cell.loads)
    warn(f"{cell.server.name} generates the load itself: {command} does not use load hosts yet ({hosts})")


def with_load_from(conditions: Conditions, source: LoadSource | None) -> Conditions:
    """Return conditions with the load hosts of a cell; unchanged if ``source`` is None.

    Raises: UsageError for workloads that load hosts cannot issue. Workloads of an experiment file are read
    later and are not checked here.
    """
    if source is None:
        return conditions
    if conditions.workloads:
        source.require_issuable(conditions.workloads.values(), conditions.design)
    return replace(conditions, load_from=source)
