"""dirty_writeback: written pages go to the disk early and evenly.

What it does:
    Where the kernel's limits on dirty memory amount to more, sets vm.dirty_background_bytes to 64 MB, where
    writing begins, and vm.dirty_bytes to 512 MB, where writers have to wait. The ratios that they replace are
    in the same receipt.

Why it helps:
    The ratios are shares of all memory: 20 % of a large machine are tens of GB, and the fsync at a
    checkpoint's end then waits until all of it is on the disk, with every commit behind it.

When it hurts:
    A disk that is slower than the bursts that it gets: writers wait earlier. Bulk loads are the usual case.

How it is verified:
    The kernel's values, read anew.

How it is undone:
    The ratios found are written back, which puts the kernel's byte limits out of force.

Evidence:
    PostgreSQL itself asks the kernel to write early (checkpoint_flush_after), so that little is gained on
    most systems; it is the tail of commit latency that it helps, not throughput.

References:
    https://docs.kernel.org/admin-guide/sysctl/vm.html#dirty-background-bytes
    https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-CHECKPOINT-FLUSH-AFTER
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.levers._contract import (
    MB,
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    detect_files,
    lines_or_skipped,
    propose_file,
    sysctl_path,
    verify_files,
)
from pgdyno.model import numbers

LIMITS = {"dirty_background": 64 * MB, "dirty": 512 * MB}

LEVER = Lever(
    name="dirty_writeback",
    title="written pages go to the disk early",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=tuple(sysctl_path(f"vm.{name}_bytes") for name in LIMITS),
    reads=tuple(sysctl_path(f"vm.{name}_ratio") for name in LIMITS),
    needs=(Need.MEMORY,),
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose the limits where more may be dirty now."""
    lines, allowed = [], []
    for name, limit_bytes in LIMITS.items():
        now_bytes = _now_bytes(ctx, name)
        allowed.append(f"{name} {numbers.size(now_bytes)}")
        if now_bytes > limit_bytes:
            lines.append(
                propose_file(
                    ctx,
                    LEVER,
                    sysctl_path(f"vm.{name}_bytes"),
                    str(limit_bytes),
                    reason=f"up to {numbers.size(now_bytes)} may be dirty now, which an fsync waits for",
                    evidence="Linux, sysctl/vm.rst; TuneD's profile postgresql has the same limits",
                )
            )
    return lines_or_skipped(LEVER, lines, f"limited already: {', '.join(allowed)}")


def _now_bytes(ctx: PlanContext, name: str) -> int:
    """Return the limit in bytes: bytes if they are set, else a share of the memory."""
    limit_bytes = int(ctx.value(sysctl_path(f"vm.{name}_bytes")) or 0)
    ratio = int(ctx.value(sysctl_path(f"vm.{name}_ratio")) or 0)
    return limit_bytes or ctx.memory_bytes * ratio // 100


detect = detect_files(LEVER, plan)
verify = verify_files(LEVER)
