"""tcp_backlog: as many connections may wait to be accepted as the server asks for.

What it does:
    Raises net.core.somaxconn to twice max_connections where it is less: so long a queue does PostgreSQL ask
    for. Without SYN cookies net.ipv4.tcp_max_syn_backlog too, the queue of connections that are being made.

Why it helps:
    When many clients connect at once, as after a failover, those beyond the queue's end are refused (Unix
    sockets) or try again after a second (TCP).

When it hurts:
    It does not: a queue takes memory while it is filled. Clients of a server that is overloaded wait longer
    until they are told.

How it is verified:
    The kernel's value, read anew. The server asks when it starts: ss -lnt then shows the length, as Send-Q.

How it is undone:
    The value found is written back; the server's queue stays as long as it is until the server starts anew.

Evidence:
    The source of PostgreSQL (ListenServerPort) and of listen(2). It is no gain in throughput.

References:
    https://man7.org/linux/man-pages/man2/listen.2.html
    https://docs.kernel.org/networking/ip-sysctl.html
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    detect_files,
    lines_or_skipped,
    propose_file,
    sysctl_path,
)
from pgdyno.plan.levers.system._network import nothing_to_gain, other_network

ACCEPTED = sysctl_path("net.core.somaxconn")
BEING_MADE, COOKIES = sysctl_path("net.ipv4.tcp_max_syn_backlog"), sysctl_path("net.ipv4.tcp_syncookies")
LONGEST = 65535  # older kernels keep a queue's length in 16 bits

LEVER = Lever(
    name="tcp_backlog",
    title="connections that may wait to be accepted",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=(ACCEPTED, BEING_MADE),
    reads=(COOKIES,),
    order_after={"max_connections": "the server asks for a queue twice as long"},
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose the server's requested backlog where the kernel grants less."""
    if obstacle := other_network(ctx):
        return Skipped(LEVER.name, obstacle)
    wanted = min(2 * int(ctx.settings.number("max_connections")), LONGEST)
    asked = f"the server asks for a queue of {wanted}, twice max_connections"
    reasons = {ACCEPTED: f"{asked}, and gets {ctx.value(ACCEPTED)}; the longer one from its next start on"}
    if _needs_both(ctx):
        found = ctx.value(BEING_MADE)
        reasons[BEING_MADE] = f"{asked}, and without SYN cookies {found} connections may be in the making"
    lines = [
        propose_file(
            ctx,
            LEVER,
            path,
            str(wanted),
            reason=reason,
            evidence="PostgreSQL, ListenServerPort in pqcomm.c; listen(2)",
        )
        for path, reason in reasons.items()
        if int(ctx.value(path) or wanted) < wanted
    ]
    return lines_or_skipped(LEVER, lines, f"{asked}, and {ctx.value(ACCEPTED)} connections may wait")


def _needs_both(ctx: PlanContext) -> bool:
    """Whether connections in the making have a limit too: with SYN cookies, and locally, they have none."""
    return ctx.value(COOKIES) == "0" and nothing_to_gain(ctx) is None


detect = detect_files(LEVER, plan)
