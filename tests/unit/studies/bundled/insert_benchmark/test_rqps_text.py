"""The tables over all steps on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.golden.synthetic_steps import experiment

from pgdyno.measure.view.wording import compact
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.variants.variant import Variant
from pgdyno.results.verdict_text import verdict_table

NBSP = "\N{NO-BREAK SPACE}"


def printed(of: Experiment, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(verdict_table(of))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().replace(NBSP, " ").splitlines()]


@pytest.mark.parametrize("width", [80, 110])
def test_ten_steps_fit_without_losing_a_figure(width: int) -> None:
    lines = printed(experiment(), width)
    assert all(len(line) <= width for line in lines)
    assert not [line for line in lines if "…" in line]


def test_a_row_has_ratio_sign_and_half_the_interval_of_every_step() -> None:
    lines = printed(experiment(), 110)
    head = lines.index("Relative rate (rQPS), 17 = 1; below, ± half of the interval's width")
    assert " ".join(lines[head + 1].split()) == "l.i0 l.x l.i1 l.i2 qr100 qp100 qr500 qp500 qr1000 qp1000"
    assert lines[head + 2].startswith("18-sync     1.07 ✓ 1.00 =")
    assert lines[head + 3].split()[0] == "±0.6%"


def test_missed_cells_are_named_in_every_table() -> None:
    lines = printed(experiment(), 110)
    shown = "\n".join(lines)
    (worker,) = [line for line in lines if line.startswith("18-worker") and "0.94 ✗" in line]
    assert worker.endswith("missed      –")
    assert sum(line.strip() == "missed" for line in lines) == 4  # two cells, in rates and background
    assert (
        "? 9 comparisons: 17 missed the background rate in 6 of 6 passes: 93 % of it at worst (95 %" in shown
    )


def test_intervals_that_allow_both_need_no_line_of_their_own() -> None:
    assert not [line for line in printed(experiment()) if "allows both" in line]


def test_steps_of_one_variant_are_not_related() -> None:
    base = experiment()
    lines = printed(replace(base, variants=base.variants[:1], verdicts=()))
    assert "Rate, per second: rows in l.*, queries in q*" in lines
    assert not [line for line in lines if "Relative" in line or "insert-benchmark-l.i0, " in line]


def test_names_are_printed_as_they_are() -> None:
    base = experiment()
    odd = replace(base, variants=(Variant("17"), Variant("[red]x\x1b")), verdicts=(), blocks=())
    assert [line for line in printed(odd) if line.startswith("[red]x\ufffd")]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (0.0, "0"),
        (9080.4, "9,080"),
        (99_999.4, "99,999"),
        (99_999.6, "100k"),
        (239_432.0, "239k"),
        (999_499.0, "999k"),
        (999_500.0, "1.00M"),
        (1_043_000.0, "1.04M"),
    ],
)
def test_rates_take_six_characters_at_most(rate: float, expected: str) -> None:
    assert compact(rate) == expected
    assert len(compact(rate)) <= 6
