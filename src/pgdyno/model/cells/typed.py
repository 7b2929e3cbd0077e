"""Where the user of a carried command sits, so that commands can be named as they are typed there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

IS_CARRIED = "PGDYNO_CARRIED"
"""The variable by which a command knows that it was sent here, and is not to be sent on."""

_CELL, _BY_HAND = "PGDYNO_TYPED_CELL", "PGDYNO_TYPED_HOST"


@dataclass(frozen=True)
class TypedAt:
    """``cell`` is the file behind ``--cell`` there; ``by_hand`` is pgdyno on the server's host, by ssh."""

    cell: str
    by_hand: str

    def variables(self) -> dict[str, str]:
        """Return the environment of the carried command."""
        return {IS_CARRIED: "1", _CELL: self.cell, _BY_HAND: self.by_hand}


def typed_at(environment: Mapping[str, str]) -> TypedAt | None:
    """Return where the user of this command sits; None if that is here."""
    if IS_CARRIED not in environment or _CELL not in environment or _BY_HAND not in environment:
        return None
    return TypedAt(environment[_CELL], environment[_BY_HAND])
