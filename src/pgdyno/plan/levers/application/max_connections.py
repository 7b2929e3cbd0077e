"""max_connections: as many connections as requested.

What it does:
    Sets the maximum number of concurrent connections. Without a stated number it is left unchanged.

Why it helps:
    Every allowed connection takes memory in the worst case. A number that matches the need leaves more for
    shared_buffers and work_mem. Connections beyond what the CPUs can serve only wait.

When it hurts:
    If too low, the server refuses clients. In a cluster with standbys, raise it on the standbys first and
    lower it there last. pgdyno cannot know how many connections are needed, so it lowers the number only
    on request.

How it is verified:
    pg_settings of the running server.

How it is undone:
    The value found is restored; requires a restart.

Evidence:
    The memory proof counts about 6 MB of private memory and the page tables per connection.

References:
    https://www.postgresql.org/docs/current/runtime-config-connection.html
    https://www.postgresql.org/docs/current/hot-standby.html#HOT-STANDBY-ADMIN
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    Planned,
    Risk,
    reserved_connections,
)

LEVER = Lever(
    name="max_connections",
    title="connections allowed",
    layer=Layer.APPLICATION,
    risk=Risk.RESTART,
    maturity=Maturity.STABLE,
    settings=("max_connections",),
    needs=(Need.MEMORY,),  # without a limit there is no proof that more connections fit
)


def plan(ctx: PlanContext) -> Planned:
    """Set the requested number, plus the connections reserved for administrators."""
    found = ctx.settings.text("max_connections")
    if ctx.connections is None:
        reason = f"left at {found}: the required number was not stated (--connections)"
        return LEVER.skip(reason)
    if ctx.server.is_in_recovery:
        reason = f"left at {found}: a standby must allow at least as many as its primary"
        return LEVER.skip(reason)
    reserved = reserved_connections(ctx.settings)
    line = LEVER.propose(
        ctx,
        "max_connections",
        str(ctx.connections + reserved),
        reason=f"{ctx.connections} connections were requested, and {reserved} are reserved",
        evidence='PostgreSQL manual, "Connections and Authentication"; stated by the user',
    )
    return LEVER.planned([line], f"{found} was requested, with {reserved} reserved")
