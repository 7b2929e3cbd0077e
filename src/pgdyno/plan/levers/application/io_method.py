"""io_method: reads through io_uring where the build, the kernel and the data make it pay.

What it does:
    Sets io_method to io_uring (18 and later) if the build lists it, the kernel is known to allow it to the
    server's own process, and the data is larger than shared_buffers. Otherwise the default, worker, stays.

Why it helps:
    With worker a read travels to another process and back, which costs context switches; with io_uring the
    session hands it to the kernel itself.

When it hurts:
    Sandboxes forbid the system calls, and then the server does not start: it is not proposed where the
    server runs in a container or under a seccomp filter, nor where its limit on open files is low, since
    every process takes a file. A start on a scratch directory cannot find this out: it is not in the sandbox.
    Checksums are then verified by the session alone rather than by several workers. While the data fits
    into shared_buffers there is next to nothing to read, so nothing is changed.

How it is verified:
    pg_settings of the running server.

How it is undone:
    The value found is restored; takes a restart.

Evidence:
    Insert Benchmark on 18 beta 1: index creation +7 % over worker, other steps about equal. Not yet measured
    by pgdyno: compare io_method=worker and io_method=io_uring on your workload.

References:
    https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-IO-METHOD
    https://vondra.me/posts/tuning-aio-in-postgresql-18
    https://github.com/docker-library/postgres/issues/1365
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base import numbers
from pgdyno.host.host import Host
from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    detect_settings,
    lines_or_skipped,
    propose,
)

CHOICE = "io_uring"
KERNEL_SWITCH = "kernel.io_uring_disabled"  # 0 = everybody may, since Linux 6.6
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
    maturity=Maturity.PREVIEW,
    settings=("io_method",),
    needs=(Need.DATA_SIZE,),
    order_after={"shared_buffers": "data that fits into it is not read at all"},
    touches_wakeups=True,
    tried={"io_method": ("sync", "worker", "io_uring")},
)

detect = detect_settings(LEVER)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose io_uring only where it can start and has something to do."""
    found = ctx.settings.text("io_method")
    if found == CHOICE:
        return Skipped(LEVER.name, f"already {CHOICE}")
    obstacle = _obstacle(ctx)
    if obstacle is not None:
        return Skipped(LEVER.name, f"left at {found}: {obstacle}")
    pool = ctx.settings.display("shared_buffers")
    line = propose(
        ctx,
        LEVER,
        "io_method",
        CHOICE,
        reason=f"{numbers.size(ctx.data_bytes)} of data do not fit into {pool} of shared_buffers, this build "
        "lists io_uring and the kernel allows it",
        evidence="Insert Benchmark on PostgreSQL 18 beta 1 (2025): io_uring +7 % at index creation",
    )
    return lines_or_skipped(LEVER, [line], f"already {CHOICE}")


def _obstacle(ctx: PlanContext) -> str | None:
    """Return why io_uring is not proposed."""
    if CHOICE not in ctx.settings.guc("io_method").enumvals:
        return f"this build has no {CHOICE}"
    if ctx.data_bytes <= ctx.settings.size_bytes("shared_buffers"):
        return (
            f"{numbers.size(ctx.data_bytes)} of data fit into shared_buffers, so there is next to "
            "nothing to read"
        )
    if ctx.host is None:
        return "whether the server's kernel allows io_uring is not known"
    return _forbidden(ctx.host) or _too_few_files(ctx, ctx.host)


def _forbidden(host: Host) -> str | None:
    """Return the obstacle that keeps the server's process from using io_uring."""
    if host.cpu.virtualisation.or_else("container").startswith("container"):
        return "the server may run in a container, which often forbids io_uring: then it does not start"
    seccomp = host.limits.seccomp
    if seccomp.or_none() != "disabled":
        mode = seccomp.or_else("not known")
        return f"seccomp of the server's process is {mode}, and a filter may forbid io_uring"
    switch = host.kernel.sysctls.get(KERNEL_SWITCH)
    if switch is None or switch.or_none() != "0":
        return f"{KERNEL_SWITCH} is not known to be 0"
    return None


def _too_few_files(ctx: PlanContext, host: Host) -> str | None:
    """Every process of the server gets a file for its queue, and inherits those of all others."""
    limit = host.limits.rlimits.or_else({}).get(OPEN_FILES)
    known = filter(ctx.settings.has, SERVER_PROCESSES)
    queues = int(sum(map(ctx.settings.number, known))) + AUXILIARY_PROCESSES
    if limit is None:
        return "how many files the server may open is not known"
    if limit != UNLIMITED and int(limit) < 2 * queues:  # the other half is for tables
        return f"the server may open {limit} files, and {queues} would be taken by io_uring"
    return None
