"""Turns that load hosts began at different times: the first host has the server to itself for a while.

The message latency bounds this offset (``load/hosts_turns.py``). A turn does not count if the bound is too
large a share of it. A block does not count if too many turns of one arm do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pgdyno.base import numbers
from pgdyno.model.experiments.experiment import VoidThresholds
from pgdyno.model.experiments.slices import Slice

APART, LARGEST = "apart_share", "largest_apart_share"
TOO_FAR = 0.05  # arbitrary share of a turn: the possible error of a block if all turns had this offset
APART_NOTE = "several load hosts:"
"""Start of the note on it."""


def too_far_apart(slices: Sequence[Slice], thresholds: VoidThresholds) -> frozenset[int]:
    """Return the positions of turns that began too far apart; empty if the whole block is void for that."""
    if audit_apart(slices).get(APART, 0.0) > thresholds.apart_share:
        return frozenset()
    return frozenset(_too_far(slices))


def audit_apart(slices: Sequence[Slice]) -> dict[str, float]:
    """Return the share of such turns in the worst arm, and the largest offset of any other turn.

    The offset is a share of the turn. Empty if only one host issued the load.
    """
    if not any(one.apart_ns is not None for one in slices):
        return {}
    too_far = frozenset(_too_far(slices))
    turns, lost = (
        Counter(slices[position].arm for position in some) for some in (range(len(slices)), too_far)
    )
    near = (_share(one) for position, one in enumerate(slices) if position not in too_far)
    return {APART: max(lost[arm] / turns[arm] for arm in turns), LARGEST: max(near, default=0.0)}


def apart_notes(audits: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """Yield a note, from the audits of blocks or trials, if several hosts issued the load."""
    known = [audit for audit in audits if LARGEST in audit]
    if known:
        largest, some = max(audit[LARGEST] for audit in known), sum(audit[APART] > 0 for audit in known)
        yield (
            f"{APART_NOTE} within a turn that counts, their start times differ by at most "
            f"{numbers.share(largest, 1)} of it, by message latency; turns with more than "
            f"{numbers.share(TOO_FAR, 0)} do not count ({some} of {len(known)} trials have such turns)"
        )


def _too_far(slices: Sequence[Slice]) -> Iterator[int]:
    return (position for position, one in enumerate(slices) if _share(one) > TOO_FAR)


def _share(one: Slice) -> float:
    return (one.apart_ns or 0) / max(1, one.end_ns - one.start_ns)
