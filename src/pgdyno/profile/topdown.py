"""The first two levels of the top-down method, by the names of perf's metrics.

Sources: Linux, tools/perf/pmu-events/arch/: x86/*/*-metrics.json (Intel: TopdownL1, TopdownL2),
x86/amdzen4 and x86/amdzen5/pipeline.json (AMD: PipelineL1, PipelineL2), arm64/sbsa.json and
arm64/arm/neoverse-*/metrics.json (Arm: TopdownL1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgdyno.profile.records.microarchitecture import Mean, SlotShare
from pgdyno.stats.mean_amount import mean_amount

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
