"""busy_poll: waiting for packets awake.

What it does:
    Reports whether processes that wait for a packet ask the network card for it meanwhile (busy_read,
    busy_poll). It changes nothing.

Why it helps:
    A packet is seen without an interrupt and without waking anybody, which saves some microseconds of latency
    per round trip.

When it hurts:
    Each waiting backend keeps a CPU busy for up to the time that is set, which others would need. With more
    clients than CPUs, as servers have, throughput falls. It has to be set for all programs of the machine.

How it is verified:
    The kernel's values, read anew.

How it is undone:
    There is nothing to undo. By hand: 0 turns it off.

Evidence:
    The kernel's documentation recommends 50 µs for whoever needs it, and warns of power usage. No figure of
    our own yet.

References:
    https://docs.kernel.org/admin-guide/sysctl/net.html
    https://docs.kernel.org/networking/napi.html
"""

from __future__ import annotations

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    sysctl_path,
    verify_files,
)
from pgdyno.levers.system._network import nothing_to_gain

WAITS = {name: sysctl_path(f"net.core.{name}") for name in ("busy_read", "busy_poll")}
OFF = "0"

LEVER = Lever(
    name="busy_poll",
    title="waiting for packets awake",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    reads=tuple(WAITS.values()),
    needs=(Need.CPUS,),
    order_after={"max_connections": "more clients than CPUs cannot all wait awake"},
    touches_wakeups=True,
)


def plan(ctx: PlanContext) -> Skipped:
    """Say whether it is on, and who would pay for it."""
    if obstacle := nothing_to_gain(ctx):
        return Skipped(LEVER.name, obstacle)
    have = ", ".join(f"net.core.{name} = {ctx.value(path)}" for name, path in WAITS.items())
    clients = f"up to {ctx.settings.text('max_connections')} clients and {ctx.cpu_count:g} CPUs"
    if _is_in_use(ctx):
        return Skipped(LEVER.name, f"on ({have}): with {clients} it takes CPUs from busy backends")
    return Skipped(LEVER.name, f"left off ({have}): with {clients} it would take CPUs from busy backends")


def _is_in_use(ctx: PlanContext) -> bool:
    return any(ctx.value(path) not in (None, OFF) for path in WAITS.values())


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
