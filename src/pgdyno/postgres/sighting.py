"""A session, as it was seen at an instant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sighting:
    """The transaction that a session was in, and the id of its last statement there.

    ``is_between``: that statement was over, and the transaction was not.
    """

    session: int
    transaction: str
    statement: int
    is_between: bool = False
