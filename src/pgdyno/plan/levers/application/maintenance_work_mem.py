"""maintenance_work_mem and autovacuum_work_mem: separate memory limits for index builds and vacuum.

What it does:
    Gives a session that builds an index 1/16 of the memory limit (64 MB to 2 GB), and each autovacuum
    worker 1/64 (64 MB to 1 GB) instead of the same large amount.

Why it helps:
    An index build that sorts in memory writes no temporary files. A vacuum that can remember all dead rows
    scans each index once; before 17 it needs 6 bytes per dead row.

When it hurts:
    Every concurrent index build takes this much. The memory proof counts one build, and all autovacuum
    workers.

How it is verified:
    pg_settings of the running server.

How it is undone:
    The values found are restored; requires a reload.

Evidence:
    The manual suggests both settings and warns that autovacuum may allocate this memory several times.
    pgtune uses 1/16 too; timescaledb-tune's 2 GB for each of 10 workers exceeds a 24 GB machine's memory.

References:
    https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-MAINTENANCE-WORK-MEM
    https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-AUTOVACUUM-WORK-MEM
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import (
    GB,
    MB,
    WORTH_A_CHANGE,
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Planned,
    Risk,
    format_bytes,
)

SHARE, CAP_BYTES = 1 / 16, 2 * GB
AUTOVACUUM_SHARE, AUTOVACUUM_CAP_BYTES = 1 / 64, 1 * GB  # before 17 a vacuum cannot use more than 1 GB
FLOOR_BYTES, STEP_BYTES = 64 * MB, 16 * MB
AS_MAINTENANCE = -1
EVIDENCE = 'PostgreSQL manual, "maintenance_work_mem" and "autovacuum_work_mem"'

LEVER = Lever(
    name="maintenance_work_mem",
    title="memory for index builds and vacuum",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.STABLE,
    settings=("maintenance_work_mem", "autovacuum_work_mem"),
    needs=(Need.MEMORY,),
    order_after={
        "shared_buffers": "every query uses the buffer pool, few sessions build indexes",
        "huge_page_pool": "without it page tables need memory",
    },
    shows_late=True,
)


def plan(ctx: PlanContext) -> Planned:
    """Raise maintenance_work_mem, and give autovacuum a smaller amount if it would inherit that one."""
    autovacuum_bytes = _share_bytes(ctx, AUTOVACUUM_SHARE, AUTOVACUUM_CAP_BYTES)
    found_bytes = ctx.settings.size_bytes("maintenance_work_mem")
    target_bytes = _share_bytes(ctx, SHARE, CAP_BYTES)
    inherits = ctx.settings.number("autovacuum_work_mem") == AS_MAINTENANCE
    assumed = {"work_mem": ctx.default_work_mem}
    if inherits:
        assumed["autovacuum_work_mem"] = format_bytes(autovacuum_bytes)
    sizes_bytes = range(target_bytes, int(found_bytes * WORTH_A_CHANGE), -STEP_BYTES)
    size_bytes = ctx.largest_that_fits("maintenance_work_mem", sizes_bytes, **assumed)
    larger_bytes = size_bytes or found_bytes
    lines = [
        _maintenance(ctx, size_bytes),
        _autovacuum(ctx, autovacuum_bytes, larger_bytes) if inherits else None,
    ]
    return LEVER.planned(lines, _why_nothing(ctx, target_bytes, found_bytes))


def _maintenance(ctx: PlanContext, size_bytes: int | None) -> PlanLine | None:
    if size_bytes is None:
        return None
    return LEVER.propose(
        ctx,
        "maintenance_work_mem",
        format_bytes(size_bytes),
        reason=f"at most 1/16 of {numbers.size(ctx.memory_bytes)}, as far as the worst case allows",
        evidence=f"{EVIDENCE}; pgtune uses 1/16 too",
    )


def _autovacuum(ctx: PlanContext, autovacuum_bytes: int, maintenance_bytes: int) -> PlanLine | None:
    if autovacuum_bytes >= maintenance_bytes:
        return None
    workers = ctx.settings.text("autovacuum_max_workers")
    rows_millions = autovacuum_bytes / 6 / 1e6
    return LEVER.propose(
        ctx,
        "autovacuum_work_mem",
        format_bytes(autovacuum_bytes),
        reason=f"otherwise each of {workers} autovacuum workers may take {numbers.size(maintenance_bytes)}; "
        f"this holds {rows_millions:.0f} million dead rows at 6 bytes each",
        evidence=EVIDENCE,
    )


def _share_bytes(ctx: PlanContext, share: float, cap_bytes: int) -> int:
    size_bytes = int(ctx.memory_bytes * share) // STEP_BYTES * STEP_BYTES
    return min(max(size_bytes, FLOOR_BYTES), cap_bytes)


def _why_nothing(ctx: PlanContext, target_bytes: int, found_bytes: int) -> str:
    found = ctx.settings.display("maintenance_work_mem")
    if target_bytes <= found_bytes:
        return f"{found} is not below 1/16 of {numbers.size(ctx.memory_bytes)}"
    return f"more than {found} would not fit the worst case"
