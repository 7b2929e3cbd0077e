"""wal_buffers: reset to automatic sizing if set lower.

What it does:
    Sets wal_buffers to -1 if it was set below the automatic size, which is 1/32 of shared_buffers, at most
    one WAL segment (16 MB).

Why it helps:
    When the buffers are full, a session must write WAL itself before it can continue. From 512 MB of
    shared_buffers on, the automatic size is a whole segment.

When it hurts:
    Never; it takes at most 16 MB of memory.

How it is verified:
    pg_settings of the running server shows the size chosen.

How it is undone:
    The value found is restored; requires a restart.

Evidence:
    The manual: automatic tuning gives reasonable results in most cases. 64 MB instead of 16: −1.1 % (−3.6 to
    1.4), sysbench read-write, 4 clients, CPUs awake (docs/results).

References:
    https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-WAL-BUFFERS
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import Layer, Lever, Maturity, PlanContext, Planned, Risk, owner_of

AUTOMATIC = "-1"
SHARE_OF_SHARED_BUFFERS = 32

LEVER = Lever(
    name="wal_buffers",
    title="WAL buffers sized automatically",
    layer=Layer.APPLICATION,
    risk=Risk.RESTART,
    maturity=Maturity.STABLE,
    settings=("wal_buffers",),
    order_after={"shared_buffers": "the automatic size is a share of it"},
    tried={"wal_buffers": ("4MB", "16MB", "64MB")},
)


def plan(ctx: PlanContext) -> Planned:
    """Propose automatic sizing only where it is larger than the present value."""
    automatic_bytes = _automatic_bytes(ctx)
    automatic = f"automatic sizing gives {numbers.size(automatic_bytes)}"
    is_automatic = owner_of(ctx.settings.guc("wal_buffers")) is None
    if is_automatic or ctx.settings.text("wal_buffers") == AUTOMATIC:
        return LEVER.skip(automatic)
    found = ctx.settings.display("wal_buffers")
    if ctx.settings.size_bytes("wal_buffers") >= automatic_bytes:
        return LEVER.skip(f"{found} is at least the automatic size; {automatic}")
    line = LEVER.propose(
        ctx,
        "wal_buffers",
        AUTOMATIC,
        reason=f"{automatic}, more than the configured {found}",
        evidence='PostgreSQL manual, "wal_buffers"',
    )
    return LEVER.planned([line], automatic)


def _automatic_bytes(ctx: PlanContext) -> int:
    """Return the size that the server chooses for -1 with the planned shared_buffers."""
    segment_bytes = ctx.settings.size_bytes("wal_segment_size")
    return min(ctx.settings.size_bytes("shared_buffers") // SHARE_OF_SHARED_BUFFERS, segment_bytes)
