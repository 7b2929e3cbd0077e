"""mitigations: the kernel's mitigations of processor faults; reported only, never changed.

What it does:
    Lists the faults that this processor has, and whether the kernel works around them.

Why it helps:
    Workarounds cost time at system calls, interrupts and switches between processes, of which short
    transactions have many. Whoever compares two machines has to know of them.

When it hurts:
    Without them one program can read another's memory. pgdyno does not trade that for speed.

How it is verified:
    The kernel's own list.

How it is undone:
    Nothing is changed.

Evidence:
    Reported in 2018, of the first workarounds: 7 to 23 % of a load like TPC-H. No figure of our own yet.

References:
    https://docs.kernel.org/admin-guide/hw-vuln/index.html
    https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-devices-system-cpu
"""

from __future__ import annotations

from collections.abc import Mapping

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

ANSWERS = "host.cpu.mitigations"
MITIGATED, VULNERABLE = "Mitigation", "Vulnerable"  # how the kernel's answers begin

LEVER = Lever(
    name="mitigations",
    title="mitigations of CPU vulnerabilities",
    layer=Layer.HARDWARE,
    risk=Risk.REBOOT,
    maturity=Maturity.PREVIEW,
    facts=(ANSWERS,),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report; security is not traded."""
    mitigated, open_ = (_names(ctx, beginning) for beginning in (MITIGATED, VULNERABLE))
    return Skipped(LEVER.name, f"reported only, never changed: mitigated: {mitigated}; open: {open_}")


def _names(ctx: PlanContext, beginning: str) -> str:
    answers: Mapping[str, str] = ctx.known(ANSWERS)
    return ", ".join(sorted(name for name in answers if answers[name].startswith(beginning))) or "none"


def _is_in_use(ctx: PlanContext) -> bool:
    return _names(ctx, MITIGATED) != "none"


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
