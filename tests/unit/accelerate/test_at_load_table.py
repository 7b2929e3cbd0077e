"""Latencies at a fixed rate, as terminal and page show them."""

from __future__ import annotations

import re
from dataclasses import replace

from rich.console import Console
from tests.golden.synthetic import experiment

from pgdyno.accelerate.view import at_load_table
from pgdyno.model.experiments.verdict import AtLoad, Interval, LatencyAtLoad
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table

P99 = LatencyAtLoad("latency_ms_p99", 4.0, 3.0, Interval(0.7, 0.75, 0.8, 0.95))
P50 = LatencyAtLoad("latency_ms_p50", 2.0, 1.5, None)
EFFECT = ("−25.0 %", "−30.0 % … −20.0 %")
FOUND = replace(experiment(), at_load=(AtLoad("sysbench-read-only", 900.0, 0.6, "e", (P50, P99)),))


def test_every_latency_has_a_row_with_its_interval() -> None:
    table = at_load_table(FOUND)
    assert table is not None
    rows = [[re.sub(r"\s", " ", cell) for cell in row] for row in table.rows]
    assert rows == [
        ["sysbench-read-only, 900/s", "Median latency", "2.00 ms", "1.50 ms", "–", "–"],
        [
            "sysbench-read-only, 900/s",
            "99th percentile latency",
            "4.00 ms",
            "3.00 ms",
            "−25.0 %",
            "−30.0 % … −20.0 %",
        ],
    ]
    assert at_load_table(experiment()) is None


def test_page_and_terminal_show_it_where_it_was_measured() -> None:
    console = Console(width=160, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(verdict_table(FOUND))
    assert "Latencies at 60 % of the baseline's throughput" in captured.get().replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert '<h2 id="at-load">Latencies at a fixed load</h2>' in render_page(FOUND)
    assert "Latencies at a fixed load" not in render_page(experiment())
