"""A grid on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.golden.synthetic_grid import NOT_TO_BE_HAD, experiment
from tests.unit.studies.grids.test_grid import CELLS
from tests.unit.studies.grids.test_grid import experiment as by_hand

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.workload import Cell
from pgdyno.results.verdict_text import verdict_table

NBSP = "\N{NO-BREAK SPACE}"


def printed(of: Experiment, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(verdict_table(of))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().replace(NBSP, " ").splitlines()]


def test_every_load_has_a_table_with_a_row_per_cell() -> None:
    lines = printed(by_hand())
    head = lines.index("select: throughput against 4kB, ± half of the 95 % interval's width")
    assert lines[head + 1 : head + 6] == [
        "database  clients            2MB",
        "512 MB          1  +0.1% = ±0.6%",
        "                4  +5.0% ✓ ±2.9%",
        "2 GB            1  +1.0% ? ±4.0%",
        "                4  −6.0% ✗ ±3.2%",
    ]
    assert lines[head + 6] == "✓ better  ✗ worse  = no difference that matters (±2 %)  ? cannot tell"


@pytest.mark.parametrize("width", [80, 110])
def test_five_variants_fit_without_losing_a_figure(width: int) -> None:
    lines = printed(experiment(), width)
    assert all(len(line) <= width for line in lines)
    rows = [line for line in lines if line.count("±") == 4]
    assert len(rows) == 17
    assert f"1GB at 2 GB, 16 clients: {NOT_TO_BE_HAD}" in lines


def test_many_variants_get_narrow_columns_that_break_before_the_interval() -> None:
    base = experiment()
    names = [f"variant-{number}" for number in range(8)]
    many = replace(
        base,
        variants=(base.variants[0], *(replace(base.variants[1], name=name) for name in names)),
        verdicts=tuple(
            replace(v, variant=name) for name in names for v in base.verdicts if v.variant == "2MB"
        ),
    )
    lines = printed(many, 110)
    assert all(len(line) <= 110 for line in lines)
    assert [line for line in lines if line.count("✓") == 8]
    assert [line for line in lines if line.count("±") == 8]


def test_cells_have_no_line_for_every_interval_that_allows_both() -> None:
    assert not [line for line in printed(experiment()) if "allows both" in line]


def test_workloads_beside_the_grid_keep_their_table() -> None:
    cells = {name: cell for name, cell in CELLS.items() if name != "s-2048-4"}
    lines = printed(replace(by_hand(), cells=cells))
    assert "s-2048-4" in lines
    assert sum("✗ worse" in line for line in lines) == 2  # in that table and in the legend


def test_without_verdicts_there_is_no_table() -> None:
    assert not [line for line in printed(replace(by_hand(), verdicts=())) if "against" in line]


def test_names_are_printed_as_they_are() -> None:
    odd = replace(
        by_hand(), cells={name: Cell("[red]x\x1b", c.database_bytes, c.clients) for name, c in CELLS.items()}
    )
    assert [line for line in printed(odd) if line.startswith("[red]x\ufffd: throughput")]
