"""A finding, and the command of its fleet, as texts in a store."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from pgdyno.model.errors import StorageError
from pgdyno.model.fleets.finding import FleetFinding
from pgdyno.model.fleets.fleet_order import FleetOrder
from pgdyno.store.documents import problems

_FINDING = TypeAdapter(FleetFinding)
_COMMAND = TypeAdapter(tuple[str, ...])


def finding_text(finding: FleetFinding) -> str:
    """Return a finding as it is stored. Raises: StorageError where a figure is infinite or NaN."""
    document = _FINDING.dump_json(finding).decode()
    try:
        _FINDING.validate_json(document)  # has null for such figures
    except ValidationError as error:
        raise StorageError("the finding cannot be stored", detail=problems(error)) from error
    return document


def read_finding(document: str, store: str) -> FleetFinding:
    """Return a stored finding. Raises: StorageError naming the ``store`` it is in."""
    try:
        return _FINDING.validate_json(document)
    except ValidationError as error:
        raise StorageError(
            f"a result in {store} cannot be read",
            detail=problems(error),
            hint="upgrade pgdyno if a newer one has stored it",
        ) from error


def command_text(order: FleetOrder) -> str:
    """Return an order's command as it is stored."""
    return _COMMAND.dump_json(order.command).decode()


def require_command(order: FleetOrder, begun: str) -> None:
    """Raise StorageError if a fleet was ``begun`` with another command."""
    if begun != command_text(order):
        raise StorageError(
            f'the fleet "{order.name}" was begun with another command',
            detail=f"pgdyno {' '.join(_COMMAND.validate_json(begun))}",
            hint="give the file another name: that makes another fleet",
        )
