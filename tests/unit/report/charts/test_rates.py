"""The rate over a step's time."""

from __future__ import annotations

import re

from pgdyno.model.experiments.step_record import Stall, StallCause
from pgdyno.report.charts.rates import RateLine, RatePoint, RateStrip, binned, rate_chart
from pgdyno.report.charts.svg import NARROW, WIDE, Caption

CAPTION = Caption("rates", "rows/s", "two variants")


def line(round_: int, count: int, stalls: tuple[Stall, ...] = ()) -> RateLine:
    points = tuple(RatePoint(float(second), 1.0, 100.0 + second) for second in range(count))
    return RateLine(round_, points, stalls)


def test_points_are_joined_to_means_over_time() -> None:
    points = [RatePoint(0, 1, 10.0), RatePoint(1, 3, 20.0), RatePoint(4, 1, 7.0)]
    assert binned(points, 2) == [RatePoint(0, 4, 17.5), RatePoint(4, 1, 7.0)]


def test_few_points_stay_as_they_are() -> None:
    points = [RatePoint(0, 1, 10.0), RatePoint(1, 1, 20.0)]
    assert binned(points, 9) == points
    assert binned([], 9) == []


def test_every_variant_has_a_strip_and_every_round_a_line() -> None:
    strips = [RateStrip("a <b>", 0, (line(1, 30), line(2, 30))), RateStrip("c", 1, (line(1, 30),))]
    chart = str(rate_chart(CAPTION, strips, width=WIDE))
    assert len(re.findall(r'<polyline [^>]*class="trace arm-0"', chart)) == 2
    assert len(re.findall(r'<polyline [^>]*class="trace arm-1"', chart)) == 1
    assert "a &lt;b&gt;" in chart
    assert "a <b>" not in chart


def test_long_steps_do_not_make_long_pages() -> None:
    chart = str(rate_chart(CAPTION, [RateStrip("a", 0, (line(1, 3600),))], width=NARROW))
    (points,) = re.findall(r'<polyline points="([^"]*)"', chart)
    assert len(points.split()) <= NARROW / 6


def test_stalls_are_shaded_and_say_why() -> None:
    stall = Stall(5.0, 7.0, StallCause.AUTOVACUUM, "autovacuum worked on a table")
    chart = str(rate_chart(CAPTION, [RateStrip("a", 0, (line(3, 30, (stall,)),))], width=WIDE))
    assert chart.count('class="stall"') == 1
    said = chart.replace("\N{NO-BREAK SPACE}", " ")
    assert "<title>round 3, 2 s: autovacuum: autovacuum worked on a table</title>" in said


def test_nothing_to_draw_is_drawn_as_nothing() -> None:
    assert "polyline" not in str(rate_chart(CAPTION, [], width=WIDE))
