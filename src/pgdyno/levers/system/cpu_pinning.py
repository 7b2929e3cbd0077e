"""cpu_pinning: whether the server is confined to some of the CPUs; reported only.

What it does:
    Compares the CPUs that the postmaster may use, by its affinity and its control groups, with those that are
    online.

Why it helps:
    On a machine that it shares, a server with CPUs of its own is disturbed less and measured more steadily;
    on one with several NUMA nodes its memory stays near.

When it hurts:
    CPUs that lie idle beside it cannot help.

How it is verified:
    The kernel's lists.

How it is undone:
    Nothing is changed: who shares the machine is not pgdyno's to know. A unit's CPUAffinity= or
    AllowedCPUs= confines a server from its start.

Evidence:
    No figure of our own yet.

References:
    https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#CPUAffinity=
    https://docs.kernel.org/admin-guide/cgroup-v2.html#cpuset
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    verify_files,
)

ALLOWED, ONLINE = "host.limits.cpuset", "host.cpu.logical_count"

LEVER = Lever(
    name="cpu_pinning",
    title="a server confined to some CPUs",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    facts=(ALLOWED, ONLINE),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report; what else runs on the machine decides."""
    allowed: Sequence[int] = ctx.known(ALLOWED)
    found = f"the server may use all {len(allowed)} CPUs"
    if _is_in_use(ctx):
        limit = ctx.fact(ALLOWED).source
        found = f"the server may use {len(allowed)} of {ctx.known(ONLINE)} CPUs, by {limit}"
    return Skipped(LEVER.name, f"reported only: {found}")


def _is_in_use(ctx: PlanContext) -> bool:
    return len(ctx.known(ALLOWED)) < int(ctx.known(ONLINE))


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
