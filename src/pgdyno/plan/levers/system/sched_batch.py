"""sched_batch: backends that wake up do not interrupt others, on scratch servers; elsewhere reported.

What it does:
    Starts a scratch server under the scheduling policy SCHED_BATCH, which its backends inherit. Of a running
    server it says under which policy the postmaster runs, and how it is started under SCHED_BATCH: a process
    gets its policy from the program that starts it, and pgdyno changes only files and settings that can be
    read back and restored. In a variant: process.scheduling_policy=batch. It is planned only for loads that
    have more busy sessions at any time than there are CPUs.

Why it helps:
    A process under SCHED_BATCH that wakes up waits for its turn instead of interrupting another. With more
    clients than CPUs, backends are interrupted less often in the middle of a statement, also while they hold
    a lock, and find more of their data in the CPU's caches when they go on.

When it hurts:
    Answers begin later when all CPUs are busy, and all programs under the usual policy come first: clients on
    the same machine, and whatever else computes there. A server that shares its CPUs with busy programs, and
    has one short query at a time, waits for its turn at each of them and gets a fraction of the throughput.

How it is verified:
    The policy in /proc/PID/stat; chrt -p PID says the same.

How it is undone:
    Nothing is changed but the start of scratch servers. By hand: take the line out of the unit and restart
    the server.

Evidence:
    Measured by itself, 4 clients on one CPU of the server, 10 rounds each (docs/results): throughput
    read-only +5.1 % (3.4 ... 6.8), read-write +6.8 % (4.8 ... 8.9) with CPUs kept awake, +5.2 % (3.9 ... 6.6)
    and +6.9 % (5.0 ... 8.9) as booted; server CPU per transaction falls as much. What it
    does to the slowest 5 % is not known: estimates are between -11 and 0 %, each +-5 to 12 %. No comparison
    by others was found.
    Beside four busy programs on 2 CPUs that others used as well, the server on one of them (26 November 2026,
    pgbench, the range queries of the Insert Benchmark, the same settings, six turns of a second each): one
    session 170 to 1,260 queries a second instead of 2,830 to 6,280, four sessions 3,980 to 4,910 instead of
    3,810 to 10,890.

References:
    https://man7.org/linux/man-pages/man7/sched.7.html
    https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#CPUSchedulingPolicy=
    https://man7.org/linux/man-pages/man1/chrt.1.html
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.plan.levers._contract import (
    PROCESS,
    Change,
    Detected,
    Effect,
    Layer,
    Lever,
    Maturity,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    State,
    why_absent,
)

POLICY = "server.program.scheduling_policy"
KEY = "process.scheduling_policy"
USUAL, BATCH = "SCHED_OTHER", "SCHED_BATCH"
IN_UNIT = "CPUSchedulingPolicy=batch"

LEVER = Lever(
    name="sched_batch",
    title="backends that do not interrupt each other",
    layer=Layer.SYSTEM,
    risk=Risk.RESTART,
    maturity=Maturity.STABLE,
    process=(KEY,),
    facts=(POLICY,),
    touches_wakeups=True,
)


def detect(ctx: PlanContext) -> Detected:
    """Return the policy that the server runs under."""
    if ctx.host is None:
        return Detected(State.ABSENT, why_absent(ctx, LEVER))
    if missing := ctx.unknown_need(LEVER):
        return Detected(State.UNKNOWN, missing)
    policy = ctx.known(POLICY)
    return Detected(State.ON if policy == BATCH else State.OFF, f"the server runs under {policy}")


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Plan it for a scratch server; say of another how it is started so."""
    policy = ctx.known(POLICY)
    found = f"the server runs under {policy}"
    if policy != USUAL:
        return Skipped(LEVER.name, found)
    if not ctx.is_scratch:
        return Skipped(
            LEVER.name,
            f"reported only: {found}; to try {BATCH} where no other busy program uses its CPUs: {IN_UNIT} in "
            f"its unit's [Service], or start it with chrt --batch 0 before the command (in a variant of a "
            f"scratch server, {KEY}=batch)",
            (IN_UNIT,),
        )
    cpus = ctx.resources.cpu_count.or_none()
    if ctx.sessions is None or cpus is None or ctx.sessions <= cpus:
        return Skipped(LEVER.name, f"left at {policy}: {_too_few(ctx.sessions, cpus)}")
    line = PlanLine(
        change=Change(LEVER.name, PROCESS, KEY, policy, "batch", Effect.RESTART),
        layer=LEVER.layer,
        reason="backends that wake up wait for their turn instead of interrupting another one",
        evidence="sysbench, 10 rounds: +5.1 % (3.4 to 6.8) read-only, +6.8 % (4.8 to 8.9) read-write; "
        "a running server gets it by its unit's " + IN_UNIT,
        risk=LEVER.risk,
        undo="start the server without chrt",
    )
    return (line,)


def _too_few(sessions: int | None, cpus: float | None) -> str:
    """Say that there is too little to gain, or that it is not known."""
    if sessions is None or cpus is None:
        return "it is not known whether the load has more sessions than there are CPUs"
    found = "1 session is" if sessions == 1 else f"{sessions} sessions are"
    return (
        f"at times no more than {found} busy on {cpus:g} CPUs: they hardly interrupt each other, and beside "
        "other busy programs each would wait for its turn"
    )
