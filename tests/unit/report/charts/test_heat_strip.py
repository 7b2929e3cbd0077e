"""Pages of memory as a strip of cells."""

from __future__ import annotations

from pgdyno.report.charts.shares import HeatCell, Strip, heat_strips, style_of
from pgdyno.report.charts.svg import Caption


def test_a_strip_has_a_cell_for_each_page_in_rows_as_wide_as_the_chart() -> None:
    strip = Strip("a", 10, (HeatCell(0, 0.5, "first"), HeatCell(9, 0.0001, "last")))
    drawn = str(heat_strips(Caption("code", "code", "code"), (strip,), width=31.0))
    # 4 cells of 8 px in 31 px (the last has no gap after it), so 10 cells take three rows.
    assert drawn.count('class="heat heat-none"') == 3
    assert '<title>first</title><rect x="0" y="18" width="7" height="7" class="heat heat-0"/>' in drawn
    assert '<title>last</title><rect x="8" y="34" width="7" height="7" class="heat heat-4"/>' in drawn


def test_styles_go_by_the_share() -> None:
    shares = (0.5, 0.01, 0.002, 0.0005, 0.00001)
    assert [style_of(share) for share in shares] == [f"heat heat-{step}" for step in range(5)]
