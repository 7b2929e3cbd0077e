"""Addresses within a mapping: its end is the first address behind it."""

from __future__ import annotations

from pgdyno.host.processes.memory_mapping import MemoryMapping


def test_the_end_is_not_within() -> None:
    mapping = MemoryMapping(0x1000, 0x3000, is_writable=True, is_shared=False)
    assert [mapping.has(one) for one in (0xFFF, 0x1000, 0x2FFF, 0x3000)] == [False, True, True, False]
