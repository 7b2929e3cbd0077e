"""tcp_backlog: a listen backlog as long as the server requests.

What it does:
    Raises net.core.somaxconn to twice max_connections, the backlog that PostgreSQL requests, if it is less.
    Without SYN cookies also net.ipv4.tcp_max_syn_backlog, the queue of incomplete connections.

Why it helps:
    When many clients connect at once, for example after a failover, those that do not fit into the queue are
    refused (Unix sockets) or retry after a second (TCP).

When it hurts:
    Hardly: a queue takes memory only while it is filled. Clients of an overloaded server wait longer until
    they are refused.

How it is verified:
    The value is read back from the kernel. The server requests its backlog at start; ss -lnt then shows the
    length as Send-Q.

How it is undone:
    The value found is written back; the server's queue keeps its length until the server is restarted.

Evidence:
    The source code of PostgreSQL (ListenServerPort); listen(2). It does not increase throughput.

References:
    https://man7.org/linux/man-pages/man2/listen.2.html
    https://docs.kernel.org/networking/ip-sysctl.html
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk, sysctl_path
from pgdyno.plan.levers.system._network import nothing_to_gain, other_network

ACCEPTED = sysctl_path("net.core.somaxconn")
BEING_MADE, COOKIES = sysctl_path("net.ipv4.tcp_max_syn_backlog"), sysctl_path("net.ipv4.tcp_syncookies")
LONGEST = 65535  # older kernels keep a queue's length in 16 bits

LEVER = Lever(
    name="tcp_backlog",
    title="listen backlog for connecting clients",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(ACCEPTED, BEING_MADE),
    reads=(COOKIES,),
    order_after={"max_connections": "the server requests a backlog of twice this number"},
)


def plan(ctx: PlanContext) -> Planned:
    """Propose the server's requested backlog if the kernel allows less."""
    if obstacle := other_network(ctx):
        return LEVER.skip(obstacle)
    wanted = min(2 * int(ctx.settings.number("max_connections")), LONGEST)
    requested = f"the server requests a backlog of {wanted}, twice max_connections"
    reasons = {ACCEPTED: f"{requested}, but gets {ctx.value(ACCEPTED)}; effective from its next start"}
    if _needs_both(ctx):
        found = ctx.value(BEING_MADE)
        reasons[BEING_MADE] = f"{requested}; without SYN cookies, only {found} connections may be incomplete"
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            str(wanted),
            reason=reason,
            evidence="PostgreSQL, ListenServerPort in pqcomm.c; listen(2)",
        )
        for path, reason in reasons.items()
        if int(ctx.value(path) or wanted) < wanted
    ]
    return LEVER.planned(lines, f"{requested}; the kernel allows {ctx.value(ACCEPTED)}")


def _needs_both(ctx: PlanContext) -> bool:
    """Whether incomplete connections are limited too: only without SYN cookies and for remote clients."""
    return ctx.value(COOKIES) == "0" and nothing_to_gain(ctx) is None
