"""sched_batch: backends that wake up do not interrupt others; reported only.

What it does:
    Says under which scheduling policy the postmaster runs, which its backends inherit, and how it is started
    under SCHED_BATCH. It changes nothing: a process gets its policy from the program that starts it, and
    pgdyno changes only files and settings that can be read back and restored. No plan has it. A variant of a
    scratch server can: process.scheduling_policy=batch.

Why it helps:
    A process under SCHED_BATCH that wakes up waits for its turn instead of interrupting another. With more
    clients than CPUs, backends are interrupted less often, also while they hold a lock.

When it hurts:
    Answers begin later when all CPUs are busy, and clients on the same machine, which run under the usual
    policy, come first.

How it is verified:
    The policy in /proc/PID/stat; chrt -p PID says the same.

How it is undone:
    Nothing is changed. By hand: take the line out of the unit and restart the server.

Evidence:
    Our estimate is 0 to 4 %; not measured by pgdyno yet. No comparison with PostgreSQL was found.

References:
    https://man7.org/linux/man-pages/man7/sched.7.html
    https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#CPUSchedulingPolicy=
    https://man7.org/linux/man-pages/man1/chrt.1.html
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

POLICY = "server.program.scheduling_policy"
USUAL, BATCH = "SCHED_OTHER", "SCHED_BATCH"
IN_UNIT = "CPUSchedulingPolicy=batch"
IN_VARIANT = "process.scheduling_policy=batch"

LEVER = Lever(
    name="sched_batch",
    title="backends that do not interrupt each other",
    layer=Layer.SYSTEM,
    risk=Risk.RESTART,
    maturity=Maturity.PREVIEW,
    facts=(POLICY,),
    touches_wakeups=True,
)


def plan(ctx: PlanContext) -> Skipped:
    """Report, with the ways to set it."""
    policy = ctx.known(POLICY)
    found = f"reported only: the server runs under {policy}"
    if policy != USUAL:
        return Skipped(LEVER.name, found)
    return Skipped(
        LEVER.name,
        f"{found}; to try {BATCH}: {IN_UNIT} in its unit's [Service], or start it with chrt --batch 0 before "
        f"the command (in a variant of a scratch server, {IN_VARIANT})",
        (IN_UNIT,),
    )


def _is_in_use(ctx: PlanContext) -> bool:
    return bool(ctx.known(POLICY) == BATCH)


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
