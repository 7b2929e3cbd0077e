"""Limits of a search on a running server, in words."""

from __future__ import annotations

from pgdyno.model.tuning.tuning import OwnerLimits

GB = 1 << 30
SPACE = "\u00a0"


def test_without_a_limit_nothing_is_over_it() -> None:
    limits = OwnerLimits()
    assert not limits.is_any
    assert not limits.over_latency(1e9, "w")
    assert not limits.over_memory(1 << 60)
    assert not limits.over_memory_at_worst(1 << 60, 0)


def test_a_latency_is_over_its_limit_not_at_it() -> None:
    limits = OwnerLimits(latency_ms=20.0)
    assert limits.is_any
    assert not limits.over_latency(20.0, "shop")
    assert limits.over_latency(31.25, "shop") == (
        f"the 99th percentile of shop was 31.2{SPACE}ms, and --limit-latency is 20{SPACE}ms"
    )


def test_memory_is_over_its_limit_not_at_it() -> None:
    limits = OwnerLimits(memory_bytes=8 * GB)
    assert not limits.over_memory(8 * GB)
    assert limits.over_memory(9 * GB) == (
        f"the server had 9{SPACE}GB in memory, and --limit-memory is 8{SPACE}GB"
    )


def test_a_worst_case_may_be_over_the_limit_where_the_one_found_is_as_well() -> None:
    limits = OwnerLimits(memory_bytes=8 * GB)
    assert not limits.over_memory_at_worst(8 * GB, 4 * GB)
    assert not limits.over_memory_at_worst(12 * GB, 12 * GB)
    assert limits.over_memory_at_worst(13 * GB, 12 * GB) == (
        f"its worst case is 13{SPACE}GB, and --limit-memory is 8{SPACE}GB"
    )
