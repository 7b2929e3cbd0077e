"""Charts as SVG: well-formed, named, escaped, and everything inside its drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from markupsafe import Markup
from tests.golden.synthetic import READ_ONLY, READ_WRITE, experiment, plan

from pgdyno.measure.view.figures import forest_figure, memory_figure, ratio_figure, value_figure
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Decision, Interval
from pgdyno.model.plans.plan import MemoryItem, MemoryProof
from pgdyno.model.variants.variant import Variant
from pgdyno.report.charts.forest import ForestGroup, ForestRow, forest_plot
from pgdyno.report.charts.marks import arm_shape, mark
from pgdyno.report.charts.svg import NARROW, WIDE, Caption, tag
from pgdyno.report.elements.tables import Figure

HOSTILE = '<script>alert("x")</script>&"\'><svg onload=y>'
PLACES = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height")


def figures(of: Experiment) -> Iterator[Figure]:
    """Yield all figures of the experiment."""
    metrics = ("throughput_tps", "latency_ms_p99")
    found = [
        forest_figure(of),
        *(ratio_figure(of, (READ_ONLY, metric, of.variants[1].name, of.baseline)) for metric in metrics),
        *(value_figure(of, READ_WRITE, metric) for metric in metrics),
        memory_figure(plan().memory_proof or MemoryProof((), 1, "")),
    ]
    yield from (figure for figure in found if figure)


def drawings(of: Experiment) -> Iterator[ET.Element]:
    for figure in figures(of):
        yield from (ET.fromstring(str(drawn)) for drawn in (figure.wide, figure.narrow))  # noqa: S314 — ours


def renamed(variant: str) -> Experiment:
    """Return the experiment with its plan called something else."""
    base = experiment()
    blocks = tuple(
        replace(block, arms=(block.arms[0], replace(block.arms[1], variant=variant))) for block in base.blocks
    )
    return replace(
        base,
        variants=(Variant("default"), Variant(variant)),
        blocks=blocks,
        verdicts=tuple(replace(verdict, variant=variant) for verdict in base.verdicts),
    )


def test_there_are_six_figures() -> None:
    assert len(list(figures(experiment()))) == 6


def test_every_drawing_has_a_title_and_a_description_that_its_label_names() -> None:
    for svg in drawings(experiment()):
        named = {child.get("id"): child.text for child in svg if child.tag in {"title", "desc"}}
        assert svg.get("role") == "img"
        assert (svg.get("aria-labelledby") or "").split() == list(named)
        assert all(named.values())


def test_coordinates_lie_inside_the_drawing() -> None:
    for svg in drawings(experiment()):
        _, _, width, height = map(float, (svg.get("viewBox") or "").split())
        for element in svg.iter():
            for place in PLACES:
                value = float(element.get(place) or 0)
                limit = width if place in {"x", "x1", "x2", "cx", "width"} else height
                assert -1e-6 <= value <= limit + 1e-6, ET.tostring(element)


def test_drawings_carry_no_styles_scripts_or_colours_of_their_own() -> None:
    for svg in drawings(experiment()):
        for element in svg.iter():
            assert element.tag in {
                *("svg", "title", "desc", "g", "text", "line", "rect", "circle", "polygon", "polyline")
            }
            assert not {"style", "fill", "stroke", "href", "onload"} & set(element.attrib)


def test_hostile_names_stay_text() -> None:
    for svg in drawings(renamed(HOSTILE)):
        assert {element.tag for element in svg.iter()}.isdisjoint({"script", "a", "image"})
        assert all(not attribute.startswith("on") for e in svg.iter() for attribute in e.attrib)


def test_ids_stay_ids_whatever_the_names_are() -> None:
    for svg in drawings(renamed('a b"c')):
        for child in svg:
            if identity := child.get("id"):
                assert not set(identity) & set(" \"'<>")


def test_void_blocks_are_hollow_and_say_why_where_the_pointer_rests() -> None:
    figure = ratio_figure(experiment(), (READ_ONLY, "throughput_tps", "plan", "default"))
    assert figure is not None
    svg = ET.fromstring(str(figure.wide))  # noqa: S314 — ours
    void = [e for e in svg.iter() if "void" in (e.get("class") or "").split()]
    reason = "14.2% of the CPU time was stolen by the hypervisor (limit 10%)"
    titles = [e.findtext("title") for e in void]
    assert titles == [f"round 4, block 2: +21.1\N{NO-BREAK SPACE}% (void: {reason})"]


def test_every_block_is_a_point_and_every_round_has_its_mean() -> None:
    figure = ratio_figure(experiment(), (READ_WRITE, "throughput_tps", "plan", "default"))
    assert figure is not None
    svg = ET.fromstring(str(figure.wide))  # noqa: S314 — ours
    classes = [(e.get("class") or "").split() for e in svg.iter()]
    assert sum("mark" in c for c in classes) == 12
    assert sum("mean" in c for c in classes) == 6


def test_five_arms_differ_by_shape_and_not_only_by_colour() -> None:
    drawn = [str(mark(arm_shape(arm), 0, 0, 4.0, "mark")) for arm in range(5)]
    assert len(set(drawn)) == 5
    plus = ET.fromstring(drawn[4]).get("points") or ""  # noqa: S314 — ours
    # clockwise from the upper arm: 4 × 1.25 = 5 long, and 0.4 × 5 = 2 to each side of its middle
    assert plus.split()[:3] == ["2.00,-5.00", "2.00,-2.00", "5.00,-2.00"]
    assert len(plus.split()) == 12


def test_table_behind_a_chart_has_a_row_per_block() -> None:
    figure = value_figure(experiment(), READ_ONLY, "throughput_tps")
    assert figure is not None
    assert len(figure.table.rows) == 12
    assert [column.title for column in figure.table.columns] == [
        *("Round", "Block", "default", "plan", "Void because")
    ]


def test_interval_beyond_the_axis_ends_in_an_arrow() -> None:
    row = ForestRow("w", Decision.INCONCLUSIVE, "?", "", "", Interval(0.001, 1.0, 5000.0, 0.95))
    svg = forest_plot(Caption("k", "t", "d"), [ForestGroup("m", "", (row,))], margin=0.02, width=WIDE)
    assert str(svg).count("<polyline") == 2


def test_one_wild_interval_does_not_squeeze_all_others() -> None:
    rows = [ForestRow(str(n), Decision.BETTER, "", "", "", Interval(1.05, 1.1, 1.15, 0.95)) for n in range(5)]
    wild = ForestRow("wild", Decision.INCONCLUSIVE, "", "", "", Interval(0.01, 1.0, 90.0, 0.95))
    svg = forest_plot(Caption("k", "t", "d"), [ForestGroup("m", "", (*rows, wild))], margin=0.02, width=WIDE)
    bars = [e for e in ET.fromstring(str(svg)).iter("line") if e.get("class") == "interval better"]  # noqa: S314
    assert float(bars[0].get("x2") or 0) - float(bars[0].get("x1") or 0) > 10


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_plot_of_a_verdict_without_an_interval_has_its_texts_only(width: float) -> None:
    row = ForestRow("w", Decision.INCONCLUSIVE, "? inconclusive", "no estimate", "", None)
    svg = forest_plot(Caption("k", "t", "d"), [ForestGroup("m", "", (row,))], margin=0.02, width=width)
    assert "no estimate" in svg
    assert "interval" not in svg


def test_there_is_no_plot_where_nothing_has_an_interval() -> None:
    base = experiment()
    blind = tuple(replace(verdict, interval=None, effect=None) for verdict in base.verdicts)
    assert forest_figure(replace(base, verdicts=blind)) is None


def test_memory_bar_holds_a_worst_case_above_its_limit() -> None:
    proof = MemoryProof((MemoryItem("shared_buffers", "3GB", 3 << 30),), 2 << 30, "/proc/meminfo")
    svg = ET.fromstring(str(memory_figure(proof).wide))  # noqa: S314 — ours
    item = next(e for e in svg.iter("rect") if "item" in (e.get("class") or ""))
    assert float(item.get("x") or 0) + float(item.get("width") or 0) <= WIDE


def test_values_that_are_not_numbers_are_not_drawn() -> None:
    base = experiment()
    first, *rest = base.blocks
    spoilt = replace(first, arms=tuple(replace(a, values={"throughput_tps": math.nan}) for a in first.arms))
    figure = value_figure(replace(base, blocks=(spoilt, *rest)), first.workload, "throughput_tps")
    assert figure is not None
    assert len(figure.table.rows) == 11
    assert "nan" not in str(figure.wide)


def test_elements_escape_text_and_attributes_but_not_markup() -> None:
    inner = tag("b", "<&>")
    assert tag("a", inner, 'x"<', data_name='"<') == Markup(
        '<a data-name="&#34;&lt;"><b>&lt;&amp;&gt;</b>x&#34;&lt;</a>'
    )
