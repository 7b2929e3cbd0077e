"""cpu_pinning: whether the server is confined to some of the CPUs; reported only.

What it does:
    Compares the CPUs that the postmaster may use, by its affinity and its control groups, with those that are
    online, and says how a server, its clients and a single process of it are confined.

Why it helps:
    On a machine that it shares, a server with CPUs of its own is disturbed less and measured more steadily;
    on one with several NUMA nodes its memory stays near.

When it hurts:
    CPUs that lie idle beside it cannot help. A process that is confined alone, as the walwriter, waits when
    its CPU is busy, and its successor after a crash is not confined.

How it is verified:
    The kernel's lists: Cpus_allowed_list in /proc/PID/status of each process.

How it is undone:
    Nothing is changed: who shares the machine is not pgdyno's to know. By hand: systemctl revert UNIT takes
    back what set-property wrote; a unit's CPUAffinity= confines a server from its next start on.

Evidence:
    No figure of our own yet.

References:
    https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html#AllowedCPUs=
    https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#CPUAffinity=
    https://man7.org/linux/man-pages/man1/taskset.1.html
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
FEWEST_CPUS = 4  # arbitrary: with fewer, one CPU is too large a part to give away
SHARE_OF_OTHERS = 4  # a fourth of the CPUs, arbitrary: what clients on the same machine take differs

LEVER = Lever(
    name="cpu_pinning",
    title="a server confined to some CPUs",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    facts=(ALLOWED, ONLINE),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report only: other programs on the machine decide."""
    allowed: Sequence[int] = ctx.known(ALLOWED)
    if _is_in_use(ctx):
        limit = ctx.fact(ALLOWED).source
        found = f"the server may use {len(allowed)} of {ctx.known(ONLINE)} CPUs, by {limit}"
        return Skipped(LEVER.name, f"reported only: {found}")
    found = f"the server may use all {len(allowed)} CPUs"
    return Skipped(LEVER.name, f"reported only: {found}{_advice(allowed)}")


def _advice(cpus: Sequence[int]) -> str:
    """Say how a fourth of the CPUs is left to others; nothing where there are too few."""
    if len(cpus) < FEWEST_CPUS:
        return ""
    count = len(cpus) // SHARE_OF_OTHERS
    others, own = _as_list(cpus[:count]), _as_list(cpus[count:])
    return (
        f"; to leave {others} to others: systemctl set-property UNIT AllowedCPUs={own}, clients on this "
        f"machine under taskset -c {others}, a single process by taskset -cp CPU PID (pg_stat_activity has "
        "the walwriter's)"
    )


def _as_list(cpus: Sequence[int]) -> str:
    """Return CPUs as the kernel and systemd write them: ``0-3,8``."""
    runs: list[list[int]] = []
    for cpu in cpus:
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _is_in_use(ctx: PlanContext) -> bool:
    return len(ctx.known(ALLOWED)) < int(ctx.known(ONLINE))


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
