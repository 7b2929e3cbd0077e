"""The worth of each part of a plan, and experiments of several parts."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.golden.synthetic import experiment as without_parts
from tests.golden.synthetic_layers import experiment
from tests.unit.measure.verdicts.test_part_worths import system
from tests.unit.report.plan_of_parts import composed

from pgdyno.measure.view.method import design_table, method_paragraphs
from pgdyno.measure.view.parts_text import attribution_figure, attribution_text, parts_table, remark
from pgdyno.measure.view.repeat import repeat_command
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.variants.variant import Variant
from pgdyno.results.page import render_page


def lines(text: str) -> list[str]:
    """Return the lines with every number as N."""
    return [
        re.sub(r"[+−][\d.]+ %", "N", line) for line in text.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    ]


def test_every_part_has_its_effect_alone_and_in_the_whole_and_small_ones_are_together() -> None:
    head, *rows, end = lines(attribution_text(system(np.random.default_rng(8), noise=0.005)))
    of_part = "N (N … N), alone N, in the whole N, "
    assert head == "The worth of each part, in throughput:"
    assert [line.split() for line in rows] == [
        f"sysbench-read-only buffers {of_part} more with the others than alone".split(),
        f"build {of_part} less with the others than alone".split(),
        f"pages {of_part} more with the others than alone".split(),
        f"wal {of_part} costs, less with the others than alone".split(),
        ["jit,", "cache", "together", "N", "(N", "…", "N),", "may", "be", "nothing"],
        ["remainder", "N", "(N", "…", "N),", "may", "be", "nothing:", "the", "parts", "add", "up"],
        ["whole", "plan", "N", "(N", "…", "N)"],
    ]
    assert end.startswith("A part's worth is the mean of its effect alone and of the loss of the whole")


def test_a_remainder_is_explained() -> None:
    said = lines(attribution_text(system(np.random.default_rng(9), triple=0.2, noise=0.005)))
    assert any(line.endswith("three or more parts depend on one another") for line in said[:-1])


def test_the_answer_of_a_search_is_called_so() -> None:
    found = system(np.random.default_rng(10), noise=0.005)
    renamed = replace(
        found,
        variants=tuple(replace(one, name=_tuned(one.name)) for one in found.variants),
        blocks=tuple(
            replace(block, arms=tuple(replace(arm, variant=_tuned(arm.variant)) for arm in block.arms))
            for block in found.blocks
        ),
    )
    assert "  whole answer  " in attribution_text(renamed)


def _tuned(name: str) -> str:
    return "tuned" if name == "plan" else name


def test_layers_that_were_only_left_out_need_not_add_up() -> None:
    said = lines(attribution_text(experiment()))
    assert said[:6] == [
        "The worth of each part, in throughput:",
        "  sysbench-read-only      application  N (N … N)",
        "                          compiler     N (N … N)",
        "                          system       N (N … N), may be nothing",
        "                          remainder    N (N … N), gained by any of several parts",
        "                          whole plan   N (N … N)",
    ]
    assert said[9:11] == [
        "                          remainder    N (N … N), counted in more than one part",
        "                          whole plan   N (N … N)",
    ]
    assert "need not add up to that of the whole" in said[-1]


@pytest.mark.parametrize(
    ("low", "high", "said"), [(1.01, 1.2, ""), (0.99, 1.2, "may be nothing"), (0.8, 0.99, "costs")]
)
def test_remarks_say_what_an_interval_shows(low: float, high: float, said: str) -> None:
    assert remark(Interval(low, (low * high) ** 0.5, high, 0.95)) == said


def test_a_plan_that_was_not_taken_apart_needs_no_table() -> None:
    whole = replace(experiment(), variants=experiment().variants[:2])
    assert attribution_text(whole) == ""
    assert attribution_figure(whole) is None
    assert 'id="attribution"' not in render_page(whole)


def test_too_few_rounds_are_said_to_be_too_few() -> None:
    few = replace(experiment(), blocks=tuple(one for one in experiment().blocks if one.round < 1))
    assert attribution_text(few) == (
        "The worth of each part is unknown: all servers count in too few rounds, or more transactions "
        "fail on one of them.\n"
    )
    assert attribution_figure(few) is None


def test_the_picture_is_in_the_page_with_a_bar_for_each_step_in_both_widths() -> None:
    found = attribution_figure(experiment())
    assert found is not None
    assert str(found.wide) in render_page(experiment())
    for drawn in (found.wide, found.narrow):
        chart = ET.fromstring(str(drawn))  # noqa: S314 — ours
        bars = [one.get("class") for one in chart.iter("rect")]
        assert bars == [
            *("step better", "step better", "step better", "step equivalent", "step whole"),
            *("step better", "step better", "step worse", "step equivalent", "step whole"),
        ]


def test_each_bar_begins_where_the_one_before_ends_and_the_remainder_ends_at_the_whole() -> None:
    found = attribution_figure(experiment())
    assert found is not None
    bars = [
        (float(one.get("x", "")), float(one.get("width", "")))
        for one in ET.fromstring(str(found.wide)).iter("rect")  # noqa: S314 — ours
    ][:5]
    application, compiler, _, remainder, whole = bars
    assert compiler[0] == pytest.approx(sum(application), abs=0.02)
    assert sum(remainder) == pytest.approx(sum(whole), abs=0.02)
    assert whole[0] == application[0]


def test_a_variant_of_its_own_changes_nothing() -> None:
    base = experiment()
    beside = replace(base, variants=(*base.variants, Variant("without-plan_cache_mode")))
    assert lines(attribution_text(beside)) == lines(attribution_text(base))


def test_the_table_has_every_step_and_the_whole_last() -> None:
    table = parts_table(composed())
    assert [row[0] for row in table.rows] == ["application"] * 2 + ["plan"] * 2 + ["in all"] * 2
    assert table.rows[0][-2:] == ("✓ better", "duet")
    assert table.rows[3][2:4] == ("no estimate", "")
    assert table.totals == 2


def test_the_method_says_how_the_interval_was_made() -> None:
    first, _ = method_paragraphs(composed())
    assert first.lead == "Measured in parts."
    assert "default → application in duet and application → plan in whole trials" in first.text
    assert "log-ratios are added" in first.text
    assert "variances add" in first.text
    assert design_table(composed()).rows[1] == ("20261122-2", "application → plan", "whole trials", "5")
    assert repeat_command(composed()) is None


def test_the_page_shows_the_steps_and_leads_to_the_parts() -> None:
    page = re.sub(r"\s+", " ", render_page(composed()))
    assert "What each step adds" in page
    assert "<wbr>" in page or "whole trials" in page
    assert "pgdyno report 20261122-1" in page
    assert "No block was measured" not in page
    assert "noise floor was not measured" not in page
    assert "What each step adds" not in render_page(without_parts())
