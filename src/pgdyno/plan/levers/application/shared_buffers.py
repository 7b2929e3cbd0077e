"""shared_buffers: PostgreSQL's page cache.

What it does:
    Sizes the buffer pool to a quarter of the memory limit, or to the whole data set plus 25 % for growth,
    if that is more and at most 40 % of the limit.

Why it helps:
    A page in the pool costs a hash lookup. A page that is only in the kernel's cache costs a system call and
    a copy of 8 kB, and evicts another page, which may have to be written first.

When it hurts:
    With data much larger than memory, the same pages are cached twice. A larger pool means more page tables
    in every process (2 MB per GB without huge pages; the memory proof counts them) and more buffers for a
    checkpoint to scan.

How it is verified:
    pg_settings of the running server, and the hit ratio in pg_stat_database.

How it is undone:
    The value found is restored; requires a restart.

Evidence:
    The manual recommends 25 %; more than 40 % is unlikely to work better. In pgdyno's pilot (2 CPUs, 24 GB,
    612 MB of data, time-sliced duet) pgtune's configuration, 6 GB and a larger WAL, gave ×1.19 on sysbench
    read-only and ×1.18 on read-write over the default 128 MB.

References:
    https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-SHARED-BUFFERS
    https://github.com/le0pard/pgtune/issues/35
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
    Planned,
    Risk,
    format_bytes,
)

SHARE = 0.25
SHARE_FOR_WHOLE_DATA_SET = 0.40
GROWTH = 1.25  # room for growth by a quarter of the present data; arbitrary

LEVER = Lever(
    name="shared_buffers",
    title="buffer pool sized to memory and data",
    layer=Layer.APPLICATION,
    risk=Risk.RESTART,
    maturity=Maturity.STABLE,
    settings=("shared_buffers",),
    needs=(Need.MEMORY,),
    order_after={
        "max_connections": "every connection takes memory and page tables",
        "parallel_workers": "every worker may use work_mem",
    },
    tried={"shared_buffers": (0.25, 0.5)},
)


def plan(ctx: PlanContext) -> Planned:
    """Propose the rule's size, or the largest smaller one that fits; never less than at present."""
    found_bytes = ctx.settings.size_bytes("shared_buffers")
    target_bytes, why = _rule(ctx)
    if target_bytes <= found_bytes:
        found = ctx.settings.display("shared_buffers")
        return LEVER.skip(f"{found} is at least the rule's value: {why}")
    size_bytes = ctx.largest_that_fits(
        "shared_buffers", _sizes_bytes(target_bytes, found_bytes), work_mem=ctx.default_work_mem
    )
    if size_bytes is None:
        connections = ctx.settings.text("max_connections")
        reason = f"{why}, but in the worst case {connections} connections leave no room for more"
        return LEVER.skip(f"{reason}: state how many are needed with --connections")
    if size_bytes < target_bytes:
        why += "; reduced, because the worst case of more would not fit into memory"
    line = LEVER.propose(
        ctx,
        "shared_buffers",
        format_bytes(size_bytes),
        reason=why,
        evidence='PostgreSQL manual, "shared_buffers": 25 %, up to 40 %; pgdyno pilot: with a larger WAL '
        "×1.19 read-only, ×1.18 read-write (sysbench, 612 MB of data)",
    )
    return LEVER.planned([line], why)


def _rule(ctx: PlanContext) -> tuple[int, str]:
    """Return the size before the memory proof, and the reason with this host's figures."""
    limit = numbers.size(ctx.memory_bytes)
    quarter_bytes = _rounded_down(int(ctx.memory_bytes * SHARE))
    data_bytes = ctx.resources.data_bytes.or_none()
    if data_bytes is None:
        return quarter_bytes, f"25 % of {limit}; the size of the data is not known"
    whole_bytes = _rounded_up(int(data_bytes * GROWTH))
    data = f"{numbers.size(data_bytes)} of data"
    if whole_bytes <= quarter_bytes:
        return quarter_bytes, f"25 % of {limit}, which holds all of the {data}"
    if whole_bytes <= ctx.memory_bytes * SHARE_FOR_WHOLE_DATA_SET:
        return whole_bytes, f"holds all of the {data} with room to grow, within 40 % of {limit}"
    return quarter_bytes, f"25 % of {limit}; the {data} would need more than 40 %"


def _sizes_bytes(target_bytes: int, found_bytes: int) -> list[int]:
    step_bytes = _step_bytes(target_bytes)
    return list(range(target_bytes, int(found_bytes * WORTH_A_CHANGE), -step_bytes))


def _step_bytes(size_bytes: int) -> int:
    """Return the granularity of a size, coarse enough to be readable."""
    return 128 * MB if size_bytes >= 2 * GB else 16 * MB


def _rounded_down(size_bytes: int) -> int:
    return size_bytes // _step_bytes(size_bytes) * _step_bytes(size_bytes)


def _rounded_up(size_bytes: int) -> int:
    return -(-size_bytes // _step_bytes(size_bytes)) * _step_bytes(size_bytes)
