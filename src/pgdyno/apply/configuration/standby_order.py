"""The order of changing five settings on a primary and its standbys. Pure.

A standby must have at least the primary's values, or it stops replaying WAL and does not start again. They
must be raised on all standbys before the primary, and lowered on the primary before the standbys. Source:
PostgreSQL manual, "Hot Standby", "Administrator's Overview". A cascading standby is both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.base.errors import RefusedError
from pgdyno.base.facts import Unknown
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import STANDBY_FIRST_SETTINGS, Server


@dataclass(frozen=True)
class _Moves:
    raised: list[str]
    lowered: list[str]


def check_standby_order(server: Server, wanted: Mapping[str, str], *, is_order_kept: bool = False) -> None:
    """Refuse a change that would stop a standby.

    ``is_order_kept``: the user states that the other servers have already been changed.
    Raises: RefusedError naming the order.
    """
    moves = _moves(server.settings, wanted)
    if is_order_kept or not (moves.raised or moves.lowered):
        return
    if moves.raised and (reason := _standbys(server)):
        raise RefusedError(
            f"{', '.join(moves.raised)} must be raised on the standbys first",
            detail=f"{reason}; a standby with less than its primary stops replaying and does not start again",
            hint="raise them on every standby and restart it, then repeat this command with --standbys-done",
        )
    if moves.lowered and server.is_in_recovery:
        raise RefusedError(
            f"{', '.join(moves.lowered)} must be lowered on the primary first",
            detail="this server is a standby; with less than its primary it would not start again",
            hint="lower them on the primary and restart it, then repeat this command with --standbys-done",
        )


def _moves(gucs: Mapping[str, Guc], wanted: Mapping[str, str]) -> _Moves:
    moves = _Moves([], [])
    for name in STANDBY_FIRST_SETTINGS:
        if name in wanted and name in gucs:
            now, then = int(gucs[name].setting), int(gucs[name].check(wanted[name]))
            if then != now:
                (moves.raised if then > now else moves.lowered).append(name)
    return moves


def _standbys(server: Server) -> str | None:
    """Describe the server's standbys; None if it has none."""
    standbys = server.standbys.value
    if isinstance(standbys, Unknown):
        return f"it is unknown whether this server has standbys: {standbys.reason}"
    if not standbys:
        return None
    return "standbys: " + ", ".join(standby.application_name or "unnamed" for standby in standbys)
