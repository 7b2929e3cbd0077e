"""What each layer of a plan is worth, as the terminal and the page show it."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from tests.golden.synthetic_layers import TIMES, experiment

from pgdyno.experiments.verdicts.layer_effects import layer_effects
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.variants.variant import Variant
from pgdyno.report.page.layers import layers_figure
from pgdyno.report.page.page import render_page
from pgdyno.report.plain.layers_text import layers_text, overlap_remark, remark

READ_ONLY, READ_WRITE = TIMES


def test_effects_are_those_that_were_planted_and_multiply_to_the_whole() -> None:
    for found in layer_effects(experiment()):
        planted = TIMES[found.workload]
        product = found.overlap.point
        for layer, interval in found.layers.items():
            assert interval.point == pytest.approx(planted["plan"] / planted[f"without-{layer}"], rel=0.01)
            product *= interval.point
        assert found.whole.point == pytest.approx(planted["plan"], rel=0.01)
        assert product == pytest.approx(found.whole.point)


def test_a_block_counts_only_with_all_its_arms() -> None:
    base = experiment()
    void = replace(base, blocks=tuple(replace(one, void="stolen") for one in base.blocks if one.round < 4))
    spoilt = replace(base, blocks=(*void.blocks, *(one for one in base.blocks if one.round >= 4)))
    clean = replace(base, blocks=tuple(one for one in base.blocks if one.round >= 4))
    assert layer_effects(spoilt) == layer_effects(clean)


def test_every_layer_has_a_line_and_the_overlap_is_named() -> None:
    text = layers_text(experiment()).replace("\N{NO-BREAK SPACE}", " ")
    lines = [re.sub(r"[+−][\d.]+ %", "N", line) for line in text.splitlines()]
    assert lines[:5] == [
        "The worth of each layer: throughput of the plan against the plan without it:",
        "  sysbench-read-only      application  N (N … N)",
        "                          compiler     N (N … N)",
        "                          system       N (N … N), may be nothing",
        "                          overlap      N (N … N), brought by more than one layer alike",
    ]
    assert lines[8:10] == [
        "                          system       N (N … N), costs",
        "                          overlap      N (N … N), counted in more than one layer",
    ]
    assert "need not add up to that of the whole plan" in text


@pytest.mark.parametrize(
    ("low", "high", "of_layer", "of_overlap"),
    [
        (1.01, 1.2, "", "brought by more than one layer alike"),
        (0.99, 1.2, "may be nothing", "may be nothing"),
        (0.8, 0.99, "costs", "counted in more than one layer"),
    ],
)
def test_remarks_say_what_an_interval_shows(low: float, high: float, of_layer: str, of_overlap: str) -> None:
    interval = Interval(low, (low * high) ** 0.5, high, 0.95)
    assert (remark(interval), overlap_remark(interval)) == (of_layer, of_overlap)


def test_a_plan_of_one_layer_needs_no_table() -> None:
    whole = replace(experiment(), variants=experiment().variants[:2])
    assert layers_text(whole) == ""
    assert layers_figure(whole) is None
    assert 'id="layers"' not in render_page(whole)


def test_too_few_rounds_are_said_to_be_too_few() -> None:
    few = replace(experiment(), blocks=tuple(one for one in experiment().blocks if one.round < 1))
    assert layers_text(few) == "The worth of each layer is not known: too few rounds count.\n"
    assert layers_figure(few) is None


def test_the_picture_is_in_the_page_with_a_bar_for_each_step_in_both_widths() -> None:
    found = layers_figure(experiment())
    assert found is not None
    assert str(found.wide) in render_page(experiment())
    for drawn in (found.wide, found.narrow):
        chart = ET.fromstring(str(drawn))  # noqa: S314 — ours
        bars = [one.get("class") for one in chart.iter("rect")]
        assert bars == [
            *("step better", "step better", "step better", "step equivalent", "step whole"),
            *("step better", "step better", "step worse", "step equivalent", "step whole"),
        ]


def test_each_bar_begins_where_the_one_before_ends_and_the_overlap_ends_at_the_whole() -> None:
    found = layers_figure(experiment())
    assert found is not None
    bars = [
        (float(one.get("x", "")), float(one.get("width", "")))
        for one in ET.fromstring(str(found.wide)).iter("rect")  # noqa: S314 — ours
    ][:5]
    application, compiler, _, overlap, whole = bars
    assert compiler[0] == pytest.approx(sum(application), abs=0.02)
    assert sum(overlap) == pytest.approx(sum(whole), abs=0.02)
    assert whole[0] == application[0]


def test_the_plan_without_what_is_never_applied_is_no_layer() -> None:
    base = experiment()
    beside = replace(base, variants=(*base.variants, Variant("without-plan_cache_mode")))
    assert layer_effects(beside) == layer_effects(base)
