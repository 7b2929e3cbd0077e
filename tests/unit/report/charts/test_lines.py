"""Values with intervals over a few places."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from pgdyno.model.experiments.verdict import Decision
from pgdyno.report.charts.lines import Line, LineChart, LinePoint, Panel, Reference, line_chart
from pgdyno.report.charts.svg import NARROW, WIDE, Caption

CAPTION = Caption("lines", "throughput", "two variants")
PLACES = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy")


def point(place: int, value: float, *, decision: Decision | None = None, sign: str = "") -> LinePoint:
    return LinePoint(place, value, (value * 0.9, value * 1.1), f"point {place}", decision, sign)


def chart(*lines: Line, panels: int = 1, places: int = 3, **more: object) -> LineChart:
    of = tuple(Panel(f"panel {number}", lines) for number in range(panels))
    return LineChart(of, tuple(map(str, range(places))), "clients", **more)  # type: ignore[arg-type]


def drawn(of: LineChart, width: float = WIDE) -> ET.Element:
    return ET.fromstring(str(line_chart(CAPTION, of, width=width)))  # noqa: S314 — ours


def having(svg: ET.Element, class_: str) -> list[ET.Element]:
    return [e for e in svg.iter() if class_ in (e.get("class") or "").split()]


def corners(element: ET.Element) -> list[tuple[float, float]]:
    return [
        (float(x), float(y)) for x, y in (pair.split(",") for pair in (element.get("points") or "").split())
    ]


def test_every_value_has_a_mark_a_bar_and_its_words() -> None:
    svg = drawn(chart(Line(0, (point(0, 10), point(1, 20)))))
    assert [mark.findtext("title") for mark in having(svg, "mark")] == ["point 0", "point 1"]
    assert len(having(svg, "bar")) == 2


def test_value_without_an_interval_has_no_bar() -> None:
    svg = drawn(chart(Line(0, (LinePoint(0, 10.0, None, "alone"),))))
    assert len(having(svg, "mark")) == 1
    assert having(svg, "bar") == []


def test_a_place_that_was_not_measured_interrupts_the_line() -> None:
    svg = drawn(chart(Line(1, (point(0, 10), point(1, 11), point(3, 9))), places=4))
    (thread,) = having(svg, "thread")
    assert len(corners(thread)) == 4  # level at each of two places


def test_lines_of_all_variants_rise_between_the_same_two_x() -> None:
    svg = drawn(chart(*(Line(arm, (point(0, 10), point(1, 20 + arm))) for arm in range(3))))
    rises = [corners(thread)[1:3] for thread in having(svg, "thread")]
    assert len(rises) == 3
    assert len({(start[0], end[0]) for start, end in rises}) == 1


def test_panels_share_one_scale() -> None:
    low, high = (Panel(name, (Line(0, (point(0, value),)),)) for name, value in (("a", 10.0), ("b", 100.0)))
    svg = drawn(LineChart((low, high), ("1",), "clients"))
    first, second = (float(mark.get("cy") or 0) for mark in having(svg, "mark"))
    assert first > second + 100


@pytest.mark.parametrize(("width", "rows"), [(WIDE, 1), (NARROW, 3)])
def test_panels_stand_side_by_side_where_there_is_room(width: float, rows: int) -> None:
    svg = drawn(chart(Line(0, (point(0, 10),)), panels=3), width)
    titles = [e for e in svg.iter("text") if (e.text or "").startswith("panel")]
    assert len({e.get("y") for e in titles}) == rows


def test_decision_has_its_sign_and_what_is_not_decided_is_hollow() -> None:
    points = (
        point(0, 1.1, decision=Decision.BETTER, sign="✓"),
        point(1, 1.0, decision=Decision.INCONCLUSIVE, sign="?"),
    )
    svg = drawn(chart(Line(1, points), margin=0.02))
    assert [(e.text, e.get("class")) for e in having(svg, "sign")] == [
        ("✓", "small sign better"),
        ("?", "small sign inconclusive"),
    ]
    assert [e.findtext("title") for e in having(svg, "hollow")] == ["point 1"]
    assert len(having(svg, "band")) == len(having(svg, "zero")) == 1


def test_signs_are_left_out_where_they_would_stand_on_each_other() -> None:
    many = [
        Line(arm, tuple(point(place, 1.1, decision=Decision.BETTER, sign="✓") for place in range(8)))
        for arm in range(6)
    ]
    dense = chart(*many, places=8, margin=0.02)
    assert having(drawn(dense, NARROW), "sign") == []
    assert len(having(drawn(dense), "sign")) == 48


def test_interval_that_leaves_the_axis_has_no_cap_there() -> None:
    wild = LinePoint(1, 1.0, (0.5, 1e6), "wild")
    svg = drawn(chart(Line(1, (point(0, 1.1), wild, point(2, 1.1))), margin=0.02))
    assert sorted(len(corners(bar)) for bar in having(svg, "bar")) == [4, 6, 6]


def test_reference_stands_where_it_was_asked_for() -> None:
    of = chart(
        Line(0, (point(0, 10), point(1, 20))), places=2, reference=Reference(0.5, "shared_buffers 1 GB")
    )
    svg = drawn(of)
    (mark,) = having(svg, "estimate")
    ticks = {e.text: float(e.get("x") or 0) for e in svg.iter("text")}
    assert float(mark.get("x1") or 0) == pytest.approx((ticks["0"] + ticks["1"]) / 2, abs=0.02)
    assert "shared_buffers 1 GB" in ticks


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("value", [0.004, 7.0, 1_250_000.0])
def test_everything_lies_inside_the_drawing(width: float, value: float) -> None:
    svg = drawn(
        chart(*(Line(arm, (point(0, value), point(2, value * 9))) for arm in range(7)), panels=5), width
    )
    _, _, right, bottom = map(float, (svg.get("viewBox") or "").split())
    for element in svg.iter():
        for name in PLACES:
            limit = right if "x" in name else bottom
            assert 0 <= float(element.get(name) or 0) <= limit
        assert all(0 <= x <= right and 0 <= y <= bottom for x, y in corners(element))


def test_titles_are_text() -> None:
    svg = str(line_chart(CAPTION, chart(Line(0, (LinePoint(0, 1.0, None, "<b>"),))), width=WIDE))
    assert "<title>&lt;b&gt;</title>" in svg
