"""io_method: reads through io_uring where the build, the kernel and the data make it pay.

What it does:
    Sets io_method to io_uring (18 and later) if the build lists it, the kernel is known to allow it to this
    server, and the data is larger than shared_buffers. Otherwise the default, worker, stays.

Why it helps:
    With worker a read travels to another process and back, which costs context switches; with io_uring the
    session hands it to the kernel itself.

When it hurts:
    Sandboxes forbid the system calls or the locked memory, and then the server does not start: it is not
    proposed in containers, and tried on a scratch directory before it is applied.
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

from pgdyno.levers._contract import (
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
    readable,
    verify_settings,
)

CHOICE = "io_uring"
KERNEL_SWITCH = "kernel.io_uring_disabled"  # 0 = everybody may, since Linux 6.6

LEVER = Lever(
    name="io_method",
    title="asynchronous reads through io_uring",
    layer=Layer.APPLICATION,
    risk=Risk.RESTART,
    maturity=Maturity.PREVIEW,
    settings=("io_method",),
    needs=(Need.DATA_SIZE,),
    order_after={"shared_buffers": "data that fits into it is not read at all"},
)

detect = detect_settings(LEVER)
verify = verify_settings(LEVER)


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
        reason=f"{readable(ctx.data_bytes)} of data do not fit into {pool} of shared_buffers, this build "
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
            f"{readable(ctx.data_bytes)} of data fit into shared_buffers, so there is next to nothing to read"
        )
    if ctx.host is None:
        return "whether the server's kernel allows io_uring is not known"
    if ctx.host.cpu.virtualisation.or_else("container").startswith("container"):
        return "containers often forbid io_uring, and then the server does not start"
    switch = ctx.host.kernel.sysctls.get(KERNEL_SWITCH)
    if switch is None or switch.or_none() != "0":
        return f"{KERNEL_SWITCH} is not known to be 0"
    return None
