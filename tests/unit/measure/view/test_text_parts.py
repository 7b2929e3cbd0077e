"""An experiment that was put together from parts, on the page."""

from __future__ import annotations

import re

from tests.golden.synthetic import experiment
from tests.unit.report.plan_of_parts import composed

from pgdyno.measure.view.method import design_table, method_paragraphs
from pgdyno.measure.view.repeat import repeat_command
from pgdyno.measure.view.text_parts import parts_table
from pgdyno.results.page import render_page


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
    assert "What each step adds" not in render_page(experiment())
