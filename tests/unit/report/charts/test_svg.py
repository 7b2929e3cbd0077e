"""Charts as SVG: well-formed, named, escaped, and everything inside its drawing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree as ET

from markupsafe import Markup
from tests.golden.synthetic import READ_ONLY, READ_WRITE, experiment, plan

from pgdyno.measure.view.figures import forest_figure, memory_figure, ratio_figure, value_figure
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.plans.plan import MemoryProof
from pgdyno.model.variants.variant import Variant
from pgdyno.report.charts.marks import arm_shape, mark
from pgdyno.report.charts.svg import tag
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


def test_elements_escape_text_and_attributes_but_not_markup() -> None:
    inner = tag("b", "<&>")
    assert tag("a", inner, 'x"<', data_name='"<') == Markup(
        '<a data-name="&#34;&lt;"><b>&lt;&amp;&gt;</b>x&#34;&lt;</a>'
    )
