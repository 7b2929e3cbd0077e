"""An experiment that was put together from parts, on the terminal and on the page."""

from __future__ import annotations

import re

from tests.golden.synthetic import experiment
from tests.unit.report.plan_of_parts import composed

from pgdyno.report.method import design_table, method_paragraphs
from pgdyno.report.page import render_page
from pgdyno.report.parts import parts_table, parts_text
from pgdyno.report.repeat import repeat_command


def test_every_step_has_a_line_for_every_workload_and_the_whole_comes_last() -> None:
    assert parts_text(composed()).replace("\N{NO-BREAK SPACE}", " ") == (
        "Layer by layer, throughput of each against the one before:\n"
        "  application  sysbench-read-only   duet                +10.0 % (+8.0 % … +12.0 %), better\n"
        "               sysbench-read-write  duet                +3.0 % (+1.0 % … +5.0 %), better\n"
        "  plan         sysbench-read-only   whole trials        −2.0 % (−30.0 % … +37.0 %), inconclusive\n"
        "               sysbench-read-write  whole trials        inconclusive: why\n"
        "  in all       sysbench-read-only   product of 2 parts  +8.0 % (−23.0 % … +51.0 %), inconclusive\n"
        "               sysbench-read-write  product of 2 parts  0.0 % (−20.0 % … +30.0 %), inconclusive\n"
        "Each part has a report of its own (pgdyno report ID): 20261122-1, 20261122-2\n"
    )
    assert parts_text(experiment()) == ""


def test_the_table_says_the_same() -> None:
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
