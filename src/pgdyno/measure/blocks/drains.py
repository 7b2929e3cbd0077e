"""Drains: time at the end of turns in which running transactions finish and none begins.

Drains do not count for throughput, so a stall during a drain is hidden. The drain share is reported per arm:
arms with different shares hide different amounts. It makes no block void: slow transactions lengthen drains,
and they are a result.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.model.experiments.metric import DRAIN_SHARE
from pgdyno.model.experiments.slices import Slice

DIFFERENCE = "drain_share_difference"


def drain_share(slices: Sequence[Slice], arm: int) -> float | None:
    """Return the share of drains in an arm's turns, drains included; None if drains were not recorded."""
    own = [(one, one.drained_ns) for one in slices if one.arm == arm and one.drained_ns is not None]
    occupied_ns = sum(drained_ns - one.start_ns for one, drained_ns in own)
    if occupied_ns <= 0:
        return None
    return sum(drained_ns - one.end_ns for one, drained_ns in own) / occupied_ns


def audit_drains(slices: Sequence[Slice]) -> dict[str, float]:
    """Return the largest drain share of any arm and the range over the arms; empty if none was recorded."""
    found = [drain_share(slices, arm) for arm in sorted({one.arm for one in slices})]
    shares = [share for share in found if share is not None]
    if not shares:
        return {}
    apart = {DIFFERENCE: max(shares) - min(shares)} if len(shares) > 1 else {}
    return {DRAIN_SHARE: max(shares), **apart}
