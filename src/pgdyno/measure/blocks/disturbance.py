"""CPU use by others during measurement, and the parts left out because of it.

    window          turns of at least a second in whole balanced groups, between two readings of the CPUs
    block, trial    the windows that the window rule keeps; a trial has one window

Windows, blocks and trials are judged alike: by the CPU share of the hypervisor and of other processes. The
limit of each share is its threshold, or twice the median over all comparable ones if that is higher. So
occasional disturbances are left out, while measuring continues on a machine that is always disturbed: half
always counts, and the intervals reflect the noise. The selection depends on what others did, never on a
result, and removes the same part of every arm's time. See decision 30.

Turns that load hosts began at different times: the first host has the server to itself for a while.

The message latency bounds this offset (``load/hosts_turns.py``). A turn does not count if the bound is too
large a share of it. A block does not count if too many turns of one arm do not.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.base import numbers
from pgdyno.measure.blocks.blocks import BY_OTHERS, is_from_audit, trials_void, void_reason
from pgdyno.model.experiments.experiment import Block, Experiment, VoidThresholds
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


LEFT_OUT = "left_out_share"
DISTURBED = "machine disturbed:"
"""Start of a note that must not be overlooked."""

_PARTS = "parts of blocks are left out:"
_NOTES = (DISTURBED, _PARTS, APART_NOTE)
_TIMES_MEDIAN = 2.0  # arbitrary: few values of a skewed distribution are above twice its median
_LEAST_LEFT = 0.5  # share of a block; with less left, the block is judged as a whole
_REMEDIES = {
    "steal_share": ("the hypervisor", "when the physical machine is less busy"),
    "foreign_cpu_share": ("other processes", "when the machine is less busy"),
}


@dataclass(frozen=True)
class _Window:
    """Consecutive slices of a block, with the CPU shares of others; ``shares`` is empty if not read."""

    slices: range
    shares: Mapping[str, float]


def left_out(blocks: Sequence[Sequence[Slice]], thresholds: VoidThresholds) -> list[frozenset[int]]:
    """Return the positions of slices that do not count, by block, for one workload in one round.

    If less than half of a block would be left, all of it counts, and it is judged as a whole.
    """
    windows = [list(_windows(slices)) for slices in blocks]
    limits = raised(thresholds, (window.shares for of_block in windows for window in of_block))
    found = []
    for slices, of_block in zip(blocks, windows, strict=True):
        disturbed = [window.slices for window in of_block if void_reason(window.shares, limits)]
        positions = frozenset(position for window in disturbed for position in window)
        is_enough = len(slices) - len(positions) >= _LEAST_LEFT * len(slices)
        found.append(positions if is_enough else frozenset())
    return found


def audit_windows(slices: Sequence[Slice], out: frozenset[int]) -> dict[str, float]:
    """Return others' CPU shares in the counted part, and the share left out; empty if not read."""
    windows = [window for window in _windows(slices) if window.shares]
    counted = [window for window in windows if window.slices[0] not in out]
    length = sum(len(window.slices) for window in counted)
    if not length:
        return {}
    shares = {
        name: sum(window.shares[name] * len(window.slices) for window in counted) / length
        for name in BY_OTHERS
    }
    return {**shares, LEFT_OUT: len(out) / len(slices)}


def raised(thresholds: VoidThresholds, audits: Iterable[Mapping[str, float]]) -> VoidThresholds:
    """Return the limits: each threshold, or twice the observed median if higher."""
    known = list(audits)
    limits = {}
    for name in BY_OTHERS:
        seen = [audit[name] for audit in known if name in audit]
        usual = _TIMES_MEDIAN * statistics.median(seen) if seen else 0.0
        limits[name] = max(getattr(thresholds, name), usual)
    return replace(thresholds, **limits)


def judge_again(experiment: Experiment) -> Experiment:
    """Return the experiment with its blocks judged by all audits of their workload so far.

    Blocks that are void for reasons outside their audit stay void.
    """
    limits = {
        workload: raised(
            experiment.design.thresholds,
            (audit for block in experiment.blocks if block.workload == workload for audit in _audits(block)),
        )
        for workload in dict.fromkeys(block.workload for block in experiment.blocks)
    }
    blocks = tuple(_judged_again(block, limits[block.workload]) for block in experiment.blocks)
    return replace(experiment, blocks=blocks)


def with_disturbance_notes(experiment: Experiment) -> Experiment:
    """Return the experiment with notes on parts left out, and on disturbed parts that count."""
    others = [note for note in experiment.notes if not note.startswith(_NOTES)]  # of an earlier conclusion
    audits = [audit for block in experiment.blocks for audit in _audits(block)]
    found = (*_throughout_notes(experiment), *_parts_notes(experiment), *apart_notes(audits))
    return replace(experiment, notes=(*others, *found))


def _throughout_notes(experiment: Experiment) -> Iterator[str]:
    for name, (who, when) in _REMEDIES.items():
        threshold = getattr(experiment.design.thresholds, name)
        shares = [share for block in experiment.blocks for share in _counted_shares(block, name)]
        above = [share for share in shares if share > threshold]
        if above:
            yield (
                f"{DISTURBED} {who} took more than {numbers.share(threshold, 0)} of the CPU time in "
                f"{len(above)} of {len(shares)} trials that count (up to {numbers.share(max(above), 0)}; "
                f"median of the {len(shares)}: {numbers.share(statistics.median(shares), 0)}). They count "
                "because that is at most twice the usual here, so the intervals are wider; repeat it "
                f"{when}"
            )


def _parts_notes(experiment: Experiment) -> Iterator[str]:
    shares = [block.audit[LEFT_OUT] for block in experiment.blocks if LEFT_OUT in block.audit]
    if some := [share for share in shares if share > 0]:
        yield (
            f"{_PARTS} {numbers.share(sum(shares) / len(shares), 1)} of the measured time, in {len(some)} of "
            f"{len(shares)} blocks. There the hypervisor or other processes took more of the "
            "CPUs than usual; each variant lost the same part"
        )


def _counted_shares(block: Block, name: str) -> Iterator[float]:
    own = [arm for arm in block.arms if arm.audit]
    counted = [arm.audit for arm in own if arm.void is None] if own else [block.audit]
    if block.void is None:
        yield from (audit[name] for audit in counted if name in audit)


def _windows(slices: Sequence[Slice]) -> Iterator[_Window]:
    first = 0
    for position, one in enumerate(slices):
        if one.steal_share is not None and one.foreign_cpu_share is not None:
            shares = {"steal_share": one.steal_share, "foreign_cpu_share": one.foreign_cpu_share}
            yield _Window(range(first, position + 1), shares)
            first = position + 1
    if first < len(slices):  # cut short before the next reading
        yield _Window(range(first, len(slices)), {})


def _audits(block: Block) -> Iterator[Mapping[str, float]]:
    """Yield each trial's audit: one per arm, or the one common to all arms."""
    own = [arm.audit for arm in block.arms if arm.audit]
    yield from own or [block.audit]


def _judged_again(block: Block, limits: VoidThresholds) -> Block:
    if not any(arm.audit for arm in block.arms):
        return replace(block, void=_again(block.void, block.audit, limits))
    arms = tuple(replace(arm, void=_again(arm.void, arm.audit, limits)) for arm in block.arms)
    return replace(block, arms=arms, void=trials_void(arms))


def _again(void: str | None, audit: Mapping[str, float], limits: VoidThresholds) -> str | None:
    return void_reason(audit, limits) if void is None or is_from_audit(void) else void
