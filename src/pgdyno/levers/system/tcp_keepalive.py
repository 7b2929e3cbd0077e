"""tcp_keepalive: when the server learns that a client is gone.

What it does:
    Reports after which time a connection counts as dead, and where it is set for the server alone. It changes
    nothing: a shorter time closes connections that others may want to survive a failure of the network.

Why it helps:
    The backend of a client that vanished without a word keeps its locks, its snapshot and its place among
    max_connections until then, and vacuum cannot remove what the snapshot still sees.

When it hurts:
    Short times close connections over networks that fail for a while, and send packets over idle ones.

How it is verified:
    ss -to shows the timers of the connections.

How it is undone:
    There is nothing to undo. By hand: the values found are written back.

Evidence:
    None needed: it is a report. It is no gain in throughput.

References:
    https://www.postgresql.org/docs/current/runtime-config-connection.html#GUC-TCP-KEEPALIVES-IDLE
    https://man7.org/linux/man-pages/man7/tcp.7.html
"""

from __future__ import annotations

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    sysctl_path,
    verify_files,
)
from pgdyno.levers.system._network import nothing_to_gain

IDLE = sysctl_path("net.ipv4.tcp_keepalive_time")
INTERVAL = sysctl_path("net.ipv4.tcp_keepalive_intvl")
PROBES = sysctl_path("net.ipv4.tcp_keepalive_probes")
OWN = "tcp_keepalives_idle"
LONG_S = 600  # arbitrary: who holds a lock for longer is missed by somebody

LEVER = Lever(
    name="tcp_keepalive",
    title="vanished clients noticed",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    reads=(IDLE, INTERVAL, PROBES),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report how long a vanished client keeps its connection and locks."""
    if obstacle := nothing_to_gain(ctx):
        return Skipped(LEVER.name, obstacle)
    if _is_servers_own(ctx):
        return Skipped(LEVER.name, f"the server has times of its own: {OWN} = {ctx.settings.text(OWN)} s")
    noticed_s = _noticed_s(ctx)
    told = f"a vanished client is noticed after {noticed_s // 60} minutes"
    if noticed_s <= LONG_S:
        return Skipped(LEVER.name, told)
    return Skipped(
        LEVER.name,
        f"{told}, and keeps its locks until then; {OWN} = 60, tcp_keepalives_interval = 10 and "
        "tcp_keepalives_count = 6 make it 2 minutes, for this server alone",
    )


def _noticed_s(ctx: PlanContext) -> int:
    idle, interval, probes = (int(ctx.value(path) or 0) for path in (IDLE, INTERVAL, PROBES))
    return idle + interval * probes


def _is_servers_own(ctx: PlanContext) -> bool:
    return ctx.settings.has(OWN) and ctx.settings.guc(OWN).source != "default"


def _is_in_use(ctx: PlanContext) -> bool:
    return _is_servers_own(ctx) or _noticed_s(ctx) <= LONG_S


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
