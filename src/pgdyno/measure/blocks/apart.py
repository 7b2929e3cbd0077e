"""Turns that several load hosts have begun apart: while one is alone, it has the server to itself.

How far apart is known as a bound: how long words took (``load/hosts_turns.py``). A turn in which that
is too much of it does not count; a block does not if it is so in too many turns of an arm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pgdyno.base import numbers
from pgdyno.model.experiments.experiment import Slice, VoidThresholds

APART, LARGEST = "apart_share", "largest_apart_share"
TOO_FAR = 0.05  # arbitrary: of a turn; what a block's figures could be wrong by, if all turns were like that
APART_NOTE = "several load hosts:"
"""How the note on it begins."""


def too_far_apart(slices: Sequence[Slice], thresholds: VoidThresholds) -> frozenset[int]:
    """Return the positions of turns that do not count for it; none where the block is void for it."""
    if audit_apart(slices).get(APART, 0.0) > thresholds.apart_share:
        return frozenset()
    return frozenset(_too_far(slices))


def audit_apart(slices: Sequence[Slice]) -> dict[str, float]:
    """Return the share of such turns, of the arm that has most, and the most that any turn was apart by.

    The latter is a share of the turn, of those that are not too far apart. Empty if one host issued the load.
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
    """Yield a note on it where several hosts issued the load, by the audits of blocks or trials."""
    told = [audit for audit in audits if LARGEST in audit]
    if told:
        largest, some = max(audit[LARGEST] for audit in told), sum(audit[APART] > 0 for audit in told)
        yield (
            f"{APART_NOTE} they began each turn that counts within {numbers.share(largest, 1)} of it, by how "
            f"long words to them took; turns with more than {numbers.share(TOO_FAR, 0)} do not count (there "
            f"were some in {some} of {len(told)} trials)"
        )


def _too_far(slices: Sequence[Slice]) -> Iterator[int]:
    return (position for position, one in enumerate(slices) if _share(one) > TOO_FAR)


def _share(one: Slice) -> float:
    return (one.apart_ns or 0) / max(1, one.end_ns - one.start_ns)
