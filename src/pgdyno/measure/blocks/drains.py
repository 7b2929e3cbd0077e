"""Ends of turns: time in which running transactions finish and none begins.

It counts for no throughput, so that a stall that falls into it is hidden there. How much there is of it is
seen per arm; arms that differ in it differ in what is hidden. No block is void for it: slow transactions
make it longer, and they are a result.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.model.experiments.experiment import Slice
from pgdyno.model.experiments.metric import DRAIN_SHARE

DIFFERENCE = "drain_share_difference"


def drain_share(slices: Sequence[Slice], arm: int) -> float | None:
    """Return which part of an arm's turns, ends included, their ends were; None if they were not recorded."""
    own = [(one, one.drained_ns) for one in slices if one.arm == arm and one.drained_ns is not None]
    occupied_ns = sum(drained_ns - one.start_ns for one, drained_ns in own)
    if occupied_ns <= 0:
        return None
    return sum(drained_ns - one.end_ns for one, drained_ns in own) / occupied_ns


def audit_drains(slices: Sequence[Slice]) -> dict[str, float]:
    """Return the largest share of all arms and how far the arms are apart; nothing if none was recorded."""
    found = [drain_share(slices, arm) for arm in sorted({one.arm for one in slices})]
    shares = [share for share in found if share is not None]
    if not shares:
        return {}
    apart = {DIFFERENCE: max(shares) - min(shares)} if len(shares) > 1 else {}
    return {DRAIN_SHARE: max(shares), **apart}
