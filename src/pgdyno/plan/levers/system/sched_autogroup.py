"""sched_autogroup: CPU time is shared between processes, not between login sessions.

What it does:
    Turns kernel.sched_autogroup_enabled off.

Why it helps:
    Autogroups are designed for desktops: all processes of a session together get the share of one session. A
    server with a hundred backends then gets as much CPU time as one login shell with one busy program.

When it hurts:
    On a desktop a build in one terminal slows down everything else.

How it is verified:
    The value is read back from the kernel. It applies to processes started afterwards.

How it is undone:
    The value found is written back.

Evidence:
    A report of 2013 (many backends, Linux 3.2) shows a large effect. In whole trials (sysbench read-write, 2
    CPUs, 11 and 12 rounds) throughput was +5.8 % (-5.0 ... +17.8) by default and +12.7 % (+0.1 ... +26.8)
    with the plan, both undecided after correction; no effect was found read-only.

References:
    https://man7.org/linux/man-pages/man7/sched.7.html
    https://www.postgresql.org/message-id/50E4AAB1.9040902@optionshouse.com
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk, sysctl_path

AUTOGROUP = sysctl_path("kernel.sched_autogroup_enabled")

LEVER = Lever(
    name="sched_autogroup",
    title="CPU time shared between processes, not sessions",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(AUTOGROUP,),
)


def plan(ctx: PlanContext) -> Planned:
    """Propose to turn it off."""
    line = LEVER.propose_file(
        ctx,
        AUTOGROUP,
        "0",
        reason="all backends together get as much CPU time as one login session",
        evidence='sched(7), "The autogroup feature"',
    )
    return LEVER.planned([line], "autogroups are already off")
