"""Finds stalls in a step's intervals, and the activity during each.

A stall is a run of successive intervals in which the step's leading role committed less than half of the
step's median rate. Its cause is the first of: a checkpoint, or a running autovacuum worker, in at least half
of the samples during the stall; WAL, or I/O, as the wait of at least half of the busy backends. Concurrent
activity need not be the reason: the evidence also states how often it was seen in the whole step.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from pgdyno.model.experiments.step_record import IntervalRecord, Stall, StallCause
from pgdyno.postgres.waits import ActivitySample, Wait

_STALL_SHARE = 0.5  # of the step's median rate
_MIN_INTERVALS = 5  # the median of fewer is meaningless
_FULL_SHARE = 0.9  # of the median length: a shorter interval is the rest of a step
_SEEN_SHARE = 0.5  # of the samples, or of the busy backends in them
_LISTED = 3


def find_stalls(
    intervals: Sequence[IntervalRecord],
    samples: Sequence[ActivitySample],
    role: str,
    *,
    until_s: float | None = None,
) -> tuple[Stall, ...]:
    """Return the stalls of a role.

    ``until_s`` is the time at which its first client finished: from then on fewer clients are slower, which
    is not a stall. Times of intervals and samples count from the step's beginning.
    """
    counted = _full(intervals, until_s)
    if len(counted) < _MIN_INTERVALS:
        return ()
    median = statistics.median(_rate(interval, role) for interval in counted)
    return tuple(
        _stall([counted[index] for index, _ in group], samples)
        for is_slow, group in groupby(
            enumerate(counted), key=lambda one: _rate(one[1], role) < _STALL_SHARE * median
        )
        if is_slow
    )


def wait_shares(samples: Iterable[ActivitySample]) -> dict[str, float]:
    """Return the shares of busy backends in all samples by wait event type, largest first."""
    counts: Counter[str] = Counter()
    for wait, backends in _busy(samples).items():
        counts[wait.type] += backends
    return {kind: count / counts.total() for kind, count in counts.most_common()}


def busy_backends(samples: Iterable[ActivitySample]) -> int:
    """Return the total number of busy backends in all samples."""
    return _busy(samples).total()


def _full(intervals: Sequence[IntervalRecord], until_s: float | None) -> list[IntervalRecord]:
    if not intervals:
        return []
    shortest_s = _FULL_SHARE * statistics.median(interval.length_s for interval in intervals)
    return [
        interval
        for interval in intervals
        if interval.length_s >= shortest_s and (until_s is None or _end_s(interval) <= until_s)
    ]


def _stall(intervals: Sequence[IntervalRecord], samples: Sequence[ActivitySample]) -> Stall:
    start_s, end_s = intervals[0].start_s, _end_s(intervals[-1])
    cause, why = _cause([sample for sample in samples if start_s <= sample.at_s < end_s], samples)
    return Stall(start_s, end_s, cause, why)


def _cause(inside: Sequence[ActivitySample], samples: Sequence[ActivitySample]) -> tuple[StallCause, str]:
    if not inside:
        return StallCause.UNKNOWN, "no sample was taken during it"
    seen: tuple[tuple[StallCause, str, Callable[[ActivitySample], bool]], ...] = (
        (StallCause.CHECKPOINT, "a checkpoint was running", lambda sample: sample.is_checkpointing),
        (StallCause.AUTOVACUUM, "autovacuum was running", lambda sample: sample.autovacuum_workers > 0),
    )
    for cause, words, is_seen in seen:
        times, in_all = sum(map(is_seen, inside)), sum(map(is_seen, samples))
        if times >= _SEEN_SHARE * len(inside):
            of = f"{times} of {_samples(len(inside))}"
            return cause, f"{words} in {of}; in the whole step, in {in_all} of {len(samples)}"
    return _cause_by_waits(_busy(inside), len(inside))


def _cause_by_waits(busy: Counter[Wait], samples: int) -> tuple[StallCause, str]:
    total = busy.total()
    if total == 0:
        return StallCause.UNKNOWN, f"no backend was busy in {_samples(samples)}: there was no work"
    for cause, is_match in ((StallCause.WAL, _is_wal), (StallCause.IO, _is_io)):
        matching = Counter({wait: backends for wait, backends in busy.items() if is_match(wait)})
        if matching.total() >= _SEEN_SHARE * total:
            waits = f"{matching.total()} of {total} busy backends waited for {cause}"
            return cause, f"{waits} ({_listed(matching)})"
    return StallCause.UNKNOWN, (
        f"neither checkpoint nor autovacuum in most of {_samples(samples)}; "
        f"{total} busy backends: {_listed(busy)}"
    )


def _listed(waits: Counter[Wait]) -> str:
    return ", ".join(f"{wait} {backends}" for wait, backends in waits.most_common(_LISTED))


def _is_wal(wait: Wait) -> bool:
    """Whether it is one of WALWrite, WALSync, WALInsert, …; since version 17 some begin with "Wal"."""
    return wait.event.upper().startswith("WAL")


def _is_io(wait: Wait) -> bool:
    """Whether it waits for I/O: its own, or another process's or io_uring's (version 18: Aio…, BufferIo)."""
    return wait.type == "IO" or wait.event.upper().startswith(("AIO", "BUFFERIO"))


def _busy(samples: Iterable[ActivitySample]) -> Counter[Wait]:
    counts: Counter[Wait] = Counter()
    for sample in samples:
        for wait, backends in sample.waits:
            counts[wait] += backends
    return counts


def _rate(interval: IntervalRecord, role: str) -> float:
    return interval.transactions.get(role, 0) / interval.length_s


def _end_s(interval: IntervalRecord) -> float:
    return interval.start_s + interval.length_s


def _samples(count: int) -> str:
    return f"{count} sample" if count == 1 else f"{count} samples"
