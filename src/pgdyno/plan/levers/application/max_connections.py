"""max_connections: as many connections as requested.

What it does:
    Sets how many connections the server allows at once. Without a stated number it is left alone.

Why it helps:
    Every allowed connection reserves memory in the worst case. A number that matches the need leaves more
    for shared_buffers and work_mem, and more connections than CPUs can serve wait rather than work.

When it hurts:
    Too low, and clients are refused. On a cluster with standbys the standbys must be raised first and
    lowered last. The number in use cannot be known from here, so it is never lowered unasked.

How it is verified:
    pg_settings of the running server.

How it is undone:
    The value found is restored; takes a restart.

Evidence:
    The memory proof counts it: about 6 MB of private memory and the page tables per connection.

References:
    https://www.postgresql.org/docs/current/runtime-config-connection.html
    https://www.postgresql.org/docs/current/hot-standby.html#HOT-STANDBY-ADMIN
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    detect_settings,
    lines_or_skipped,
    propose,
    reserved_connections,
)

LEVER = Lever(
    name="max_connections",
    title="connections allowed",
    layer=Layer.APPLICATION,
    risk=Risk.RESTART,
    maturity=Maturity.STABLE,
    settings=("max_connections",),
    needs=(Need.MEMORY,),  # without a limit nobody can prove that more connections fit
)

detect = detect_settings(LEVER)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Set the requested number, plus the connections reserved for administrators."""
    found = ctx.settings.text("max_connections")
    if ctx.connections is None:
        reason = f"left at {found}: how many are needed was not stated (--connections)"
        return Skipped(LEVER.name, reason)
    if ctx.server.is_in_recovery:
        reason = f"left at {found}: a standby must allow at least as many as its primary"
        return Skipped(LEVER.name, reason)
    reserved = reserved_connections(ctx.settings)
    line = propose(
        ctx,
        LEVER,
        "max_connections",
        str(ctx.connections + reserved),
        reason=f"{ctx.connections} connections were requested, and {reserved} are reserved",
        evidence='PostgreSQL manual, "Connections and Authentication"; stated by the user',
    )
    return lines_or_skipped(LEVER, [line], f"{found} was requested, with {reserved} reserved")
