"""sched_batch: woken backends do not preempt others, on scratch servers; elsewhere only reported.

What it does:
    Starts a scratch server with the scheduling policy SCHED_BATCH, which its backends inherit. For a running
    server it reports the postmaster's policy, and how to start it with SCHED_BATCH: a process inherits its
    policy from the program that starts it, and pgdyno changes only files and settings that can be read back
    and restored. In a variant: process.scheduling_policy=batch. It is planned only for loads that always have
    more active sessions than there are CPUs.

Why it helps:
    A woken process with SCHED_BATCH waits for its turn instead of preempting another. With more clients than
    CPUs, backends are preempted less often during a statement or while holding a lock, and find more of their
    data in the CPU's caches when they resume.

When it hurts:
    When all CPUs are busy, statements start later, after all programs with the default policy: local clients,
    and any other computation. A server that shares its CPUs with busy programs, and has one short query at a
    time, waits for a CPU at each query and reaches a fraction of the throughput.

How it is verified:
    The policy in /proc/PID/stat; chrt -p PID shows the same.

How it is undone:
    Only the start of scratch servers changes. By hand: remove the line from the unit and restart the server.

Evidence:
    Measured alone, 4 clients on one CPU of the server, 10 rounds each (docs/results): throughput read-only
    +5.1 % (3.4 ... 6.8), read-write +6.8 % (4.8 ... 8.9) with CPUs kept awake, +5.2 % (3.9 ... 6.6) and
    +6.9 % (5.0 ... 8.9) as booted; server CPU per transaction falls by as much. The effect on the slowest 5 %
    is not known: estimates are between -11 and 0 %, each +-5 to 12 %. No comparison by others was found.
    Next to four busy programs on 2 CPUs shared with others, with the server on one of them (26 November 2026,
    pgbench, the range queries of the Insert Benchmark, the same settings, six turns of a second each): one
    session 170 to 1,260 queries a second instead of 2,830 to 6,280, four sessions 3,980 to 4,910 instead of
    3,810 to 10,890.

References:
    https://man7.org/linux/man-pages/man7/sched.7.html
    https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#CPUSchedulingPolicy=
    https://man7.org/linux/man-pages/man1/chrt.1.html
"""

from __future__ import annotations

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
    Planned,
    Risk,
    State,
    why_absent,
)

POLICY = "server.program.scheduling_policy"
KEY = "process.scheduling_policy"
USUAL, BATCH = "SCHED_OTHER", "SCHED_BATCH"
IN_UNIT = "CPUSchedulingPolicy=batch"

LEVER = Lever(
    name="sched_batch",
    title="backends do not preempt each other",
    layer=Layer.SYSTEM,
    risk=Risk.RESTART,
    maturity=Maturity.STABLE,
    process=(KEY,),
    facts=(POLICY,),
    touches_wakeups=True,
)


def detect(ctx: PlanContext) -> Detected:
    """Return the server's scheduling policy."""
    if ctx.host is None:
        return Detected(State.ABSENT, why_absent(ctx, LEVER))
    if missing := ctx.unknown_need(LEVER):
        return Detected(State.UNKNOWN, missing)
    policy = ctx.known(POLICY)
    return Detected(State.ON if policy == BATCH else State.OFF, f"the server runs under {policy}")


def plan(ctx: PlanContext) -> Planned:
    """Plan it for a scratch server; report how to start other servers with it."""
    policy = ctx.known(POLICY)
    found = f"the server runs under {policy}"
    if policy != USUAL:
        return LEVER.skip(found)
    if not ctx.is_scratch:
        return LEVER.skip(
            f"reported only: {found}; to try {BATCH}, if no other busy program uses its CPUs: {IN_UNIT} in "
            f"its unit's [Service], or start it with chrt --batch 0 before the command (in a variant of a "
            f"scratch server, {KEY}=batch)",
            (IN_UNIT,),
        )
    cpus = ctx.resources.cpu_count.or_none()
    if ctx.sessions is None or cpus is None or ctx.sessions <= cpus:
        return LEVER.skip(f"left at {policy}: {_too_few(ctx.sessions, cpus)}")
    line = PlanLine(
        change=Change(LEVER.name, PROCESS, KEY, policy, "batch", Effect.RESTART),
        layer=LEVER.layer,
        reason="woken backends wait for their turn instead of preempting another one",
        evidence="sysbench, 10 rounds: +5.1 % (3.4 to 6.8) read-only, +6.8 % (4.8 to 8.9) read-write; "
        "for a running server, set it in its unit: " + IN_UNIT,
        risk=LEVER.risk,
        undo="start the server without chrt",
    )
    return (line,)


def _too_few(sessions: int | None, cpus: float | None) -> str:
    """Return why there is too little to gain, or that this is not known."""
    if sessions is None or cpus is None:
        return "it is not known whether the load has more sessions than there are CPUs"
    found = "1 session is" if sessions == 1 else f"{sessions} sessions are"
    return (
        f"at times no more than {found} active on {cpus:g} CPUs: they hardly preempt each other, and next to "
        "other busy programs each would wait for its turn"
    )
