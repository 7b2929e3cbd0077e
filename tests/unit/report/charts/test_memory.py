"""The memory proof as a bar."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from pgdyno.measure.view.figures import memory_figure
from pgdyno.model.plans.plan import MemoryItem, MemoryProof
from pgdyno.report.charts.svg import WIDE


def test_memory_bar_holds_a_worst_case_above_its_limit() -> None:
    proof = MemoryProof((MemoryItem("shared_buffers", "3GB", 3 << 30),), 2 << 30, "/proc/meminfo")
    svg = ET.fromstring(str(memory_figure(proof).wide))  # noqa: S314 — ours
    item = next(e for e in svg.iter("rect") if "item" in (e.get("class") or ""))
    assert float(item.get("x") or 0) + float(item.get("width") or 0) <= WIDE
