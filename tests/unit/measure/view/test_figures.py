"""Figures of an experiment, with the numbers behind them."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.golden.synthetic import READ_ONLY, experiment
from tests.unit.report.charts.test_svg import figures

from pgdyno.measure.view.figures import value_figure


def test_there_are_six_figures() -> None:
    assert len(list(figures(experiment()))) == 6


def test_table_behind_a_chart_has_a_row_per_block() -> None:
    figure = value_figure(experiment(), READ_ONLY, "throughput_tps")
    assert figure is not None
    assert len(figure.table.rows) == 12
    assert [column.title for column in figure.table.columns] == [
        *("Round", "Block", "default", "plan", "Void because")
    ]


def test_values_that_are_not_numbers_are_not_drawn() -> None:
    base = experiment()
    first, *rest = base.blocks
    spoilt = replace(first, arms=tuple(replace(a, values={"throughput_tps": math.nan}) for a in first.arms))
    figure = value_figure(replace(base, blocks=(spoilt, *rest)), first.workload, "throughput_tps")
    assert figure is not None
    assert len(figure.table.rows) == 11
    assert "nan" not in str(figure.wide)
