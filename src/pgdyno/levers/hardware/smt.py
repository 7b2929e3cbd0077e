"""smt: whether each core runs two threads; reported only.

What it does:
    Says whether simultaneous multithreading (Hyper-Threading) is in use, and who can turn it on if not.

Why it helps:
    A backend waits for memory much of its time; meanwhile the core works for another.

When it hurts:
    Two threads share a core's caches, and what they have in common may leak from one to the other: it is off
    on some machines on purpose, which is why pgdyno leaves it alone.

How it is verified:
    The kernel's own state, and the number of CPUs beside that of cores.

How it is undone:
    Nothing is changed.

Evidence:
    No figure of our own yet. Sellers of virtual machines commonly count threads as CPUs.

References:
    https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-devices-system-cpu
    https://docs.kernel.org/admin-guide/hw-vuln/index.html
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
    is_virtual,
    verify_files,
)

CONTROL = "/sys/devices/system/cpu/smt/control"
IS_ACTIVE, CPUS, CORES = "host.cpu.is_smt_active", "host.cpu.logical_count", "host.cpu.core_count"

OFF = {
    "off": f"off, and the kernel can turn it on: echo on > {CONTROL}",
    "forceoff": "off by the firmware or the kernel's command line, where alone it can be turned on",
    "notsupported": "this processor's cores have one thread each",
}

LEVER = Lever(
    name="smt",
    title="two threads on each core",
    layer=Layer.HARDWARE,
    risk=Risk.REBOOT,
    maturity=Maturity.PREVIEW,
    reads=(CONTROL,),
    facts=(IS_ACTIVE, CPUS, CORES),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report; a core's threads are left as they are."""
    found = f"on: {ctx.known(CPUS)} CPUs on {ctx.known(CORES)} cores"
    if not _is_in_use(ctx):
        found = OFF.get(ctx.value(CONTROL) or "", f"off: {ctx.known(CPUS)} CPUs on {ctx.known(CORES)} cores")
    told_by = (
        "; the hypervisor decides which values are visible here" if ctx.host and is_virtual(ctx.host) else ""
    )
    return Skipped(LEVER.name, f"reported only: {found}{told_by}")


def _is_in_use(ctx: PlanContext) -> bool:
    return bool(ctx.known(IS_ACTIVE))


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
