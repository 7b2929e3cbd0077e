"""kernel_profile: whether the kernel was built with profile feedback; reported only.

What it does:
    Looks into the kernel's configuration for AutoFDO and Propeller, by which Clang lays out the kernel's code
    as a recorded load needs it.

Why it helps:
    A server of short transactions is in the kernel much of its time: sockets, the scheduler, page faults.
    That part gets faster, and only that part.

When it hurts:
    The kernel is one's own then: updates, support and signatures are too.

How it is verified:
    The configuration says that a profile could be used. Whether one was, the kernel does not tell.

How it is undone:
    Nothing is changed. Whoever installs such a kernel keeps the former one in the boot menu.

Evidence:
    Google, on Linux 6.9: 2.2 to 2.6 % in UnixBench, 6.1 % in a network benchmark, up to 5 % in applications.
    No figure for PostgreSQL, and none of our own yet.

References:
    https://docs.kernel.org/dev-tools/autofdo.html
    https://docs.kernel.org/dev-tools/propeller.html
    docs/guides/kernel-profile.md: the commands
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
    verify_files,
)

OPTIONS = "host.kernel.profile_options"

LEVER = Lever(
    name="kernel_profile",
    title="a kernel built with a profile",
    layer=Layer.HARDWARE,
    risk=Risk.REBOOT,
    maturity=Maturity.PREVIEW,
    facts=(OPTIONS,),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report; it takes another kernel."""
    found = "built without a profile; docs/guides/kernel-profile.md tells how to build with one"
    if _is_in_use(ctx):
        options = ", ".join(ctx.known(OPTIONS))
        found = f"configured with {options}: whether a profile was used, the kernel does not tell"
    return Skipped(LEVER.name, f"reported only: {found}")


def _is_in_use(ctx: PlanContext) -> bool:
    return bool(ctx.known(OPTIONS))


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
