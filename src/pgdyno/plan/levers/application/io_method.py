"""io_method: reads through io_uring if the build and kernel support it and the data is large enough.

What it does:
    Sets io_method to io_uring (18 and later) if the build lists it, the kernel is known to allow it for the
    server's process, and the data is larger than shared_buffers. Otherwise the default, worker, stays.

Why it helps:
    With worker a read goes to another process and back, which costs context switches; with io_uring the
    session submits it to the kernel directly.

When it hurts:
    Where a sandbox forbids the system calls, the server does not start. It is therefore not proposed if the
    server runs in a container or under a seccomp filter, or if its limit on open files is low, because every
    process needs a file. A test start on a scratch directory cannot detect this, being outside the sandbox.
    The session then verifies checksums alone, without the help of workers. While the data fits into
    shared_buffers there are hardly any reads, so nothing is changed.

How it is verified:
    pg_settings of the running server.

How it is undone:
    The value found is restored; requires a restart.

Evidence:
    Insert Benchmark on 18 beta 1: index creation +7 % over worker, other steps about equal. Not yet measured
    by pgdyno: compare io_method=worker and io_method=io_uring with your workload.

References:
    https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-IO-METHOD
    https://vondra.me/posts/tuning-aio-in-postgresql-18
    https://github.com/docker-library/postgres/issues/1365
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.host.host import Host
from pgdyno.plan.levers._contract import Layer, Lever, Need, PlanContext, Planned, Risk

CHOICE = "io_uring"
KERNEL_SWITCH = "kernel.io_uring_disabled"  # 0: allowed for all processes; since Linux 6.6
SERVER_PROCESSES = (
    "max_connections",
    "max_worker_processes",
    "max_wal_senders",
    "autovacuum_worker_slots",
)
AUXILIARY_PROCESSES = 64  # checkpointer, writers, I/O workers …: 38 in 18, src/include/storage/proc.h
OPEN_FILES, UNLIMITED = "Max open files", "unlimited"

LEVER = Lever(
    name="io_method",
    title="asynchronous reads through io_uring",
    layer=Layer.APPLICATION,
    risk=Risk.RESTART,
    settings=("io_method",),
    needs=(Need.DATA_SIZE,),
    order_after={"shared_buffers": "data that fits into it is hardly read"},
    touches_wakeups=True,
    tried={"io_method": ("sync", "worker", "io_uring")},
)


def plan(ctx: PlanContext) -> Planned:
    """Propose io_uring only if the server can start with it and has data to read."""
    found = ctx.settings.text("io_method")
    if found == CHOICE:
        return LEVER.skip(f"already {CHOICE}")
    obstacle = _obstacle(ctx)
    if obstacle is not None:
        return LEVER.skip(f"left at {found}: {obstacle}")
    pool = ctx.settings.display("shared_buffers")
    line = LEVER.propose(
        ctx,
        "io_method",
        CHOICE,
        reason=f"{numbers.size(ctx.data_bytes)} of data do not fit into {pool} of shared_buffers, this build "
        "lists io_uring and the kernel allows it",
        evidence="Insert Benchmark on PostgreSQL 18 beta 1 (2025): io_uring +7 % at index creation",
    )
    return LEVER.planned([line], f"already {CHOICE}")


def _obstacle(ctx: PlanContext) -> str | None:
    """Return why io_uring is not proposed."""
    if CHOICE not in ctx.settings.guc("io_method").enumvals:
        return f"this build has no {CHOICE}"
    if ctx.data_bytes <= ctx.settings.size_bytes("shared_buffers"):
        return (
            f"{numbers.size(ctx.data_bytes)} of data fit into shared_buffers, so there are hardly any reads"
        )
    if ctx.host is None:
        return "whether the server's kernel allows io_uring is not known"
    return _forbidden(ctx.host) or _too_few_files(ctx, ctx.host)


def _forbidden(host: Host) -> str | None:
    """Return the reason why the server's process may be unable to use io_uring; None if there is none."""
    if host.cpu.virtualisation.or_else("container").startswith("container"):
        return "the server may run in a container; if that forbids io_uring, the server does not start"
    seccomp = host.limits.seccomp
    if seccomp.or_none() != "disabled":
        mode = seccomp.or_else("not known")
        return f"seccomp of the server's process is {mode}, and a filter may forbid io_uring"
    switch = host.kernel.sysctls.get(KERNEL_SWITCH)
    if switch is None or switch.or_none() != "0":
        return f"{KERNEL_SWITCH} is not known to be 0"
    return None


def _too_few_files(ctx: PlanContext, host: Host) -> str | None:
    """Return the shortage of open files: each process has a file for its queue and inherits all others."""
    limit = host.limits.rlimits.or_else({}).get(OPEN_FILES)
    known = filter(ctx.settings.has, SERVER_PROCESSES)
    queues = int(sum(map(ctx.settings.number, known))) + AUXILIARY_PROCESSES
    if limit is None:
        return "the server's limit on open files is not known"
    if limit != UNLIMITED and int(limit) < 2 * queues:  # the other half is for tables
        return f"the server's limit is {limit} open files, and io_uring would need {queues}"
    return None
