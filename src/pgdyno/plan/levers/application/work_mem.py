"""work_mem: the memory of one sort or hash table before it writes temporary files.

What it does:
    Raises work_mem to a value that all allowed connections can use at once within 80 % of the memory limit,
    at most 64 MB. Lowers it only if the present values do not fit into memory, to no less than 1 MB.

Why it helps:
    A sort or hash join that fits into memory needs no temporary files, and the planner chooses hash plans
    more often.

When it hurts:
    The limit applies per sort and hash table, not per connection: statements with many of them take more
    than the memory proof counts (one sort and one hash table each).

How it is verified:
    pg_settings of the running server; pg_stat_database.temp_bytes stops growing.

How it is undone:
    The value found is restored; requires a reload.

Evidence:
    The manual's definition and the memory proof. Formula-based tools give 20 to 96 MB for the same machine
    (2 CPUs, 24 GB), so the value is computed from this host's memory proof instead.

References:
    https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-WORK-MEM
    https://github.com/le0pard/pgtune/issues/113
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import (
    KB,
    MB,
    REFUSED_ABOVE,
    WORTH_A_CHANGE,
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    Planned,
    Risk,
    format_bytes,
)

SIZES_BYTES = (
    *(size * MB for size in (64, 48, 40, 32, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2)),
    1536 * KB,
    MB,
)
"""Candidate sizes, largest first. More than 64 MB is for analytical statements: set it in their sessions."""

LEVER = Lever(
    name="work_mem",
    title="memory for sorts and hash tables",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.STABLE,
    settings=("work_mem",),
    needs=(Need.MEMORY,),
    order_after={
        "max_connections": "every connection may use it",
        "parallel_workers": "every worker may use it",
        "shared_buffers": "it gets the memory that the buffer pool leaves",
        "huge_pages": "page tables for normal pages take memory in every connection",
        "huge_page_pool": "it avoids these page tables",
        "maintenance_work_mem": "it gets the memory that maintenance leaves",
    },
    tried={"work_mem": (0.25, 4.0)},
)


def plan(ctx: PlanContext) -> Planned:
    """Propose the largest size that fits, or a smaller one if the present one does not."""
    found_bytes = ctx.settings.size_bytes("work_mem")
    fitting_bytes = ctx.largest_that_fits("work_mem", SIZES_BYTES)
    if fitting_bytes is None:
        return LEVER.skip(f"not even {numbers.size(SIZES_BYTES[-1])} for every connection would fit")
    if fitting_bytes >= found_bytes * WORTH_A_CHANGE:
        return _line(
            ctx, fitting_bytes, f"all {_connections(ctx)} connections can use it at once within memory"
        )
    if _present_fits(ctx):
        found = ctx.settings.display("work_mem")
        return LEVER.skip(f"left at {found}: much more for {_connections(ctx)} connections would not fit")
    reason = f"lowered: at present {_connections(ctx)} connections could need more than the available memory"
    return _line(ctx, fitting_bytes, reason)


def _line(ctx: PlanContext, size_bytes: int, reason: str) -> Planned:
    line = LEVER.propose(
        ctx,
        "work_mem",
        format_bytes(size_bytes),
        reason=reason,
        evidence='PostgreSQL manual, "work_mem"; the memory proof of this plan',
    )
    return LEVER.planned([line], reason)


def _present_fits(ctx: PlanContext) -> bool:
    proof = ctx.proof()
    return proof is not None and proof.share <= REFUSED_ABOVE


def _connections(ctx: PlanContext) -> str:
    return ctx.settings.text("max_connections")
