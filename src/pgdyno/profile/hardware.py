"""Compute the processor's work per transaction from windows of its hardware counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgdyno.profile.perf_stat import Count, PerfCounts
from pgdyno.profile.records.microarchitecture import CYCLES, INSTRUCTIONS, EventCount, Mean, Microarchitecture
from pgdyno.profile.topdown import METRICS, mean_of, slot_shares

SOURCE: Final = "hardware counters of the sessions' processes (perf stat)"
EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    INSTRUCTIONS: ("instructions",),
    CYCLES: ("cycles",),
    "branches": ("branches",),
    "taken branches": ("br_inst_retired.near_taken", "ex_ret_brn_tkn"),
    "branch mispredictions": ("branch-misses",),
    "L1i misses": ("L1-icache-load-misses", "l1i_cache_refill", "ic_tag_hit_miss.instruction_cache_miss"),
    "iTLB misses": ("iTLB-load-misses", "itlb_misses.walk_completed", "l1i_tlb_refill"),
    "L1d misses": ("L1-dcache-load-misses", "l1d_cache_refill"),
    "L2 misses": ("l2_rqsts.miss", "l2_cache_req_stat.ic_dc_miss_in_l2", "l2d_cache_refill"),
}
"""Figure -> perf's events: generic names, then those of Intel, Arm and AMD (``perf list``)."""
_FULL = 0.995  # below this, the counter was multiplexed


@dataclass(frozen=True)
class CountedWindow:
    """A window's counts, and the number of transactions that ended in it."""

    counts: PerfCounts
    transactions: int


def of_hardware(windows: Sequence[CountedWindow], events: Mapping[str, str]) -> Microarchitecture:
    """Return the figures of one or more windows. ``events`` maps figures to the events that were counted."""
    found = tuple(_events(windows, events))
    cycles, instructions = (_values(windows, events.get(name)) for name in (CYCLES, INSTRUCTIONS))
    ipc: Mean | None = None
    if cycles and instructions and all(one.value for one in cycles):
        ipc = mean_of([a.value / b.value for a, b in zip(instructions, cycles, strict=True)])
    slots = slot_shares([one.counts.metrics for one in windows])
    return Microarchitecture(
        SOURCE, is_simulated=False, events=found, slots=slots, ipc=ipc, remarks=tuple(_remarks(windows))
    )


def _values(windows: Sequence[CountedWindow], event: str | None) -> list[Count]:
    """Return an event's count per transaction in each window; empty if any window lacks the event."""
    counted = [(one.counts.counts.get(event or ""), one.transactions) for one in windows]
    found = [Count(count.value / of, count.ran) for count, of in counted if count is not None and of]
    return found if len(found) == len(windows) else []


def _events(windows: Sequence[CountedWindow], events: Mapping[str, str]) -> Iterator[EventCount]:
    for name, event in events.items():
        if values := _values(windows, event):
            yield EventCount(name, mean_of([one.value for one in values]), event, min(v.ran for v in values))


def _remarks(windows: Sequence[CountedWindow]) -> Iterator[str]:
    if any(one.counts.is_user_alone for one in windows):
        yield "hardware counters cover only PostgreSQL's own code: counting the kernel's work needs root"
    ran = [count.ran for one in windows for count in one.counts.counts.values()]
    if ran and min(ran) < _FULL:
        yield (
            "the CPU has fewer hardware counters than figures: the events were multiplexed, each was counted "
            f"at least {min(ran):.0%} of the time, and counts are extrapolated"
        )
    if any(one.counts.unsettled & METRICS for one in windows):
        yield "the CPU has cores of two kinds: shares of slots are not shown where these differ"
