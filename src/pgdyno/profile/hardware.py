"""Compute the processor's work per transaction from windows of its hardware counters.

Sources of the top-down method's metrics: Linux, tools/perf/pmu-events/arch/: x86/*/*-metrics.json (Intel:
TopdownL1, TopdownL2), x86/amdzen4 and x86/amdzen5/pipeline.json (AMD: PipelineL1, PipelineL2),
arm64/sbsa.json and arm64/arm/neoverse-*/metrics.json (Arm: TopdownL1).

``perf stat --json-output`` prints a line per event or further metric. Versions of perf differ: values are
numbers or strings; a line may have a comma before its closing brace. Event names may contain the type of
cores (``cpu_core/cycles/``) and a privilege modifier (``cycles:u``).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pgdyno.profile.records.microarchitecture import (
    CYCLES,
    INSTRUCTIONS,
    EventCount,
    Mean,
    Microarchitecture,
    SlotShare,
)
from pgdyno.stats.nested import mean_amount

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


FRONTEND, BAD_SPECULATION, BACKEND, RETIRING = (
    "frontend bound",
    "bad speculation",
    "backend bound",
    "retiring",
)
_OTHER_THREAD = "given to the core's other thread"
GROUPS = ("TopdownL1,TopdownL2", "PipelineL1,PipelineL2", "TopdownL1", "PipelineL1")
"""perf's metric groups, best first."""
_FIRST: Mapping[str, tuple[str, ...]] = {
    FRONTEND: ("tma_frontend_bound", "frontend_bound"),
    BAD_SPECULATION: ("tma_bad_speculation", "bad_speculation"),
    BACKEND: ("tma_backend_bound", "backend_bound"),
    RETIRING: ("tma_retiring", "retiring"),
    _OTHER_THREAD: ("smt_contention",),
}
_SECOND: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    FRONTEND: {
        "late: caches and addresses of code": ("tma_fetch_latency", "frontend_bound_by_latency"),
        "slow: decoding": ("tma_fetch_bandwidth", "frontend_bound_by_bandwidth"),
    },
    BAD_SPECULATION: {
        "mispredicted branches": ("tma_branch_mispredicts", "bad_speculation_from_mispredicts"),
        "restarts": (
            *("tma_machine_clears", "bad_speculation_from_pipeline_restarts"),
            "bad_speculation_pipeline_restarts",
        ),
    },
    BACKEND: {
        "memory": ("tma_memory_bound", "backend_bound_by_memory"),
        "the core itself": ("tma_core_bound", "backend_bound_by_cpu"),
    },
    RETIRING: {
        "light operations": ("tma_light_operations", "retiring_from_fastpath"),
        "heavy operations: microcode": ("tma_heavy_operations", "retiring_from_microcode"),
    },
}
METRICS = frozenset(
    name for parts in (_FIRST, *_SECOND.values()) for names in parts.values() for name in names
)
"""All metrics used."""
_LEVEL = 0.95


def has_first_level(metrics: Mapping[str, float]) -> bool:
    """Return whether the metrics contain the parts of level 1; bad speculation may be missing."""
    return all(any(one in metrics for one in _FIRST[name]) for name in (FRONTEND, BACKEND, RETIRING))


def slot_shares(windows: Sequence[Mapping[str, float]]) -> tuple[SlotShare, ...]:
    """Return the parts with metrics in all windows; each part of level 1 precedes its parts of level 2."""
    shares = []
    for name, metrics in _FIRST.items():
        if (share := _share(windows, metrics)) is not None:
            shares.append(SlotShare(name, 1, share))
            for part, part_metrics in _SECOND.get(name, {}).items():
                if (of_part := _share(windows, part_metrics)) is not None:
                    shares.append(SlotShare(part, 2, of_part, name))
    return tuple(shares)


def _share(windows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Mean | None:
    """Return the mean of the first metric in all windows, as a fraction; perf reports percent."""
    for name in names:
        values = [one[name] / 100 for one in windows if name in one]
        if values and len(values) == len(windows):
            return mean_of(values)
    return None


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of one value per window, with its confidence interval if there are several windows."""
    if len(values) < 2:
        return Mean(values[0])
    amount = mean_amount(values, _LEVEL)
    return Mean(amount.mean, amount.low, amount.high)


_UNENDED = re.compile(r",\s*}\s*$")
_NAME = re.compile(r"(?:(?P<unit>[\w.-]+)/)?(?P<event>[^/:]+)/?(?::(?P<limit>\w+)|(?P<of_unit>[a-z]+))?")
_USER_ALONE = "u"


@dataclass(frozen=True)
class Count:
    """A counter's value. ``ran`` is the fraction of the time in which it was counted."""

    value: float
    ran: float


@dataclass(frozen=True)
class PerfCounts:
    """A window's counts by event and metrics by name, without those that perf could not count.

    ``is_user_alone``: the kernel's work is excluded. ``unsettled`` are metrics and units with several values,
    for several types of cores or events.
    """

    counts: Mapping[str, Count]
    metrics: Mapping[str, float]
    is_user_alone: bool = False
    unsettled: frozenset[str] = frozenset()


def parse_perf_stat(lines: Iterable[str]) -> PerfCounts:
    """Return the counts and metrics; lines without a JSON object are skipped."""
    by_unit: dict[tuple[str, str], Count] = {}
    found: dict[str, set[float]] = {}
    limits = set()
    for entry in _entries(lines):
        if (value := _number(entry.get("counter-value"))) is not None:
            unit, event, limit = _named(str(entry.get("event", "")))
            by_unit.setdefault((unit, event), Count(value, (_number(entry.get("pcnt-running")) or 0.0) / 100))
            limits.add(limit)
        words = str(entry.get("metric-unit", "")).split()
        if words and (metric := _number(entry.get("metric-value"))) is not None:
            found.setdefault(words[-1], set()).add(metric)
    settled = {name: values.pop() for name, values in found.items() if len(values) == 1}
    return PerfCounts(
        _summed(by_unit), settled, limits == {_USER_ALONE}, frozenset(found.keys() - settled.keys())
    )


def _entries(lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        text = line.strip()
        if text.startswith("{"):
            try:
                entry = json.loads(_UNENDED.sub("}", text))
            except ValueError:
                continue
            yield entry


def _number(value: object) -> float | None:
    """Return a finite number; None for "<not counted>", "nan" and the like."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _named(event: str) -> tuple[str, str, str]:
    """Return an event's processor unit, name and privilege modifier."""
    found = _NAME.fullmatch(event.strip())
    if found is None:
        return "", event, ""
    return found["unit"] or "", found["event"], found["limit"] or found["of_unit"] or ""


def _summed(by_unit: Mapping[tuple[str, str], Count]) -> dict[str, Count]:
    """Return each event's count, summed over all types of cores; ``ran`` is the smallest."""
    sums: dict[str, Count] = {}
    for (_, event), count in by_unit.items():
        before = sums.get(event, Count(0.0, 1.0))
        sums[event] = Count(before.value + count.value, min(before.ran, count.ran))
    return sums
