"""A grid of loads, sizes and clients: figures and tables, reckoned by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from tests.golden.synthetic import experiment as without_a_grid

from pgdyno.measure.view.figures import forest_figure
from pgdyno.measure.view.series import SeriesEstimate, estimates
from pgdyno.measure.view.wording import answers
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, Experiment, SettingDifference
from pgdyno.model.experiments.verdict import Decision, Interval, Verdict
from pgdyno.model.experiments.workload import Cell
from pgdyno.model.variants.variant import Variant
from pgdyno.report.elements.tables import Figure, StyledCell
from pgdyno.studies.grids.grid import Grid, grid, place_among

NBSP = "\N{NO-BREAK SPACE}"
MIB = 1 << 20
CELLS = {
    "s-512-1": Cell("select", 512 * MIB, 1),
    "s-512-4": Cell("select", 512 * MIB, 4),
    "s-2048-1": Cell("select", 2048 * MIB, 1),
    "s-2048-4": Cell("select", 2048 * MIB, 4),
}
TPS = "throughput_tps"


def block(workload: str, round_: int, index: int, values: Mapping[str, Mapping[str, float]]) -> Block:
    arms = tuple(ArmBlock(name, 1, 1.0, of_arm) for name, of_arm in values.items())
    return Block(workload, round_, index, round_ * 10 + index, arms)


def blocks(rates: Sequence[float], gain: float = 1.1) -> tuple[Block, ...]:
    """Return a block per cell and round; every cell has the same rates."""
    return tuple(
        block(
            name,
            round_,
            0,
            {
                "4kB": {TPS: rate, "page_table_bytes": 8.0 * MIB * cell.clients, "huge_page_bytes": 0.0},
                "2MB": {TPS: rate * gain, "page_table_bytes": 1.0 * MIB, "huge_page_bytes": 512.0 * MIB},
            },
        )
        for round_, rate in enumerate(rates)
        for name, cell in CELLS.items()
    )


def verdict(workload: str, decision: Decision, bounds: tuple[float, float, float] | None) -> Verdict:
    return Verdict(
        workload=workload,
        metric=TPS,
        variant="2MB",
        baseline="4kB",
        decision=decision,
        reason="because",
        effect=bounds[1] if bounds else None,
        interval=Interval(*bounds, 0.95) if bounds else None,
        mde=None,
        p_value=None,
        p_adjusted=None,
        rounds=3,
        blocks=3,
        void_blocks=0,
    )


VERDICTS = (
    verdict("s-512-1", Decision.EQUIVALENT, (0.995, 1.001, 1.007)),
    verdict("s-512-4", Decision.BETTER, (1.02, 1.05, 1.08)),
    verdict("s-2048-1", Decision.INCONCLUSIVE, (0.97, 1.01, 1.05)),
    verdict("s-2048-4", Decision.WORSE, (0.91, 0.94, 0.97)),
)


def experiment(
    of: Sequence[Block] = (), verdicts: Sequence[Verdict] = VERDICTS, shared_buffers: str = "1GB"
) -> Experiment:
    return Experiment(
        id="g",
        name="huge-pages",
        question="?",
        created="2026-11-22T08:15:00Z",
        pgdyno_version="0.1.0",
        design=Design(rounds=3, level=0.95, equivalence_margin=0.02),
        variants=(Variant("4kB"), Variant("2MB")),
        baseline="4kB",
        workloads=tuple(CELLS),
        reset_policies={},
        blocks=tuple(of) or blocks((200.0, 100.0, 400.0)),
        verdicts=tuple(verdicts),
        settings=(SettingDifference("4kB", "shared_buffers", "1GB", shared_buffers),),
        cells=CELLS,
    )


def grid_of(of: Experiment) -> Grid:
    found = grid(of)
    assert found is not None
    return found


def titles(figure: Figure) -> list[str]:
    svg = ET.fromstring(str(figure.wide))  # noqa: S314 — ours
    return [
        (e.findtext("title") or "").replace(NBSP, " ") for e in svg.iter() if "mark" in (e.get("class") or "")
    ]


def named(figures: Sequence[Figure], title: str) -> Figure:
    (found,) = [figure for figure in figures if figure.title == title]
    return found


def rows(of: Sequence[tuple[str, ...]]) -> list[list[str]]:
    return [[cell.replace(NBSP, " ") for cell in row] for row in of]


def test_mean_over_rounds_has_the_t_interval_of_the_logarithms() -> None:
    # ln 200, ln 100, ln 400: mean ln 200, sd ln 2, error ln 2 / √3 = 0.400189; Student's t of 2 degrees of
    # freedom at 95 % is 4.302653 (tables), so that the ends are 200 × exp(±1.721873) = 200 × 5.594998^±1
    found = estimates(experiment(), "s-512-1", TPS)["4kB"]
    assert found.rounds == 3
    assert found.mean == pytest.approx(200.0)
    assert found.bounds == pytest.approx((35.7462, 1118.9996), rel=1e-5)


def test_blocks_of_a_round_are_one_value() -> None:
    three = [
        block("s-512-1", round_, index, {"4kB": {TPS: rate}})
        for round_, of_round in enumerate([(400.0, 100.0), (50.0, 200.0), (800.0, 200.0)])  # 200, 100, 400
        for index, rate in enumerate(of_round)
    ]
    found = estimates(experiment(three), "s-512-1", TPS)["4kB"]
    assert found.rounds == 3
    assert found.mean == pytest.approx(200.0)


def test_two_rounds_have_a_mean_and_no_interval() -> None:
    found = estimates(experiment(blocks((100.0, 400.0))), "s-512-1", TPS)
    assert found["4kB"].mean == pytest.approx(200.0)
    assert (found["4kB"].bounds, found["4kB"].rounds) == (None, 2)


def test_rounds_that_are_exactly_alike_have_no_interval() -> None:
    assert estimates(experiment(), "s-512-1", "page_table_bytes")["2MB"].bounds is None


def test_amounts_that_are_nothing_have_a_mean() -> None:
    assert estimates(experiment(), "s-512-1", "huge_page_bytes")["4kB"] == SeriesEstimate(0.0, None, 3)


def test_void_blocks_and_void_arms_do_not_count() -> None:
    first, second, third, *more = (
        b for b in blocks((1.0, 200.0, 2.0, 100.0, 400.0)) if b.workload == "s-512-1"
    )
    arm = replace(third.arms[0], void="no pages")
    spoilt = (replace(first, void="stolen"), second, replace(third, arms=(arm, third.arms[1])), *more)
    found = estimates(experiment(spoilt), "s-512-1", TPS)
    assert found["4kB"].mean == pytest.approx(200.0)
    assert (found["4kB"].rounds, found["2MB"].rounds) == (3, 4)


@pytest.mark.parametrize(
    ("size", "place"),
    [(512, 0.0), (1024, 1.0), (2048, 1.5), (4096, 2.0), (256, -0.4), (8192, 2.4), (4705, 2.1)],
)
def test_a_size_stands_among_others_by_its_logarithm(size: int, place: float) -> None:
    assert place_among(size, [512, 1024, 4096]) == pytest.approx(place, abs=1e-4)  # 4705 = 4096 × 4^0.1


def test_an_experiment_without_cells_has_no_grid() -> None:
    assert grid(without_a_grid()) is None


def test_title_says_what_is_varied() -> None:
    assert grid_of(experiment()).title == "By database size and clients"
    of_one_size = {name: cell for name, cell in CELLS.items() if cell.database_bytes == 512 * MIB}
    one = replace(experiment(), cells=of_one_size, workloads=tuple(of_one_size))
    assert grid_of(one).title == "By clients"
    assert [figure.title for figure in grid_of(one).parts[0].figures if "size" in figure.title] == []


def test_gains_are_the_verdicts_of_every_cell() -> None:
    (part,) = grid_of(experiment()).parts
    assert part.gains is not None
    assert [(name.replace(NBSP, " "), cells) for name, cells in part.gains.rows] == [
        ("512 MB, 1 client", (StyledCell(f"+0.1{NBSP}% =", _range("−0.5", "+0.7"), "equivalent"),)),
        ("512 MB, 4 clients", (StyledCell(f"+5.0{NBSP}% ✓", _range("+2.0", "+8.0"), "better"),)),
        ("2 GB, 1 client", (StyledCell(f"+1.0{NBSP}% ?", _range("−3.0", "+5.0"), "inconclusive"),)),
        ("2 GB, 4 clients", (StyledCell(f"−6.0{NBSP}% ✗", _range("−9.0", "−3.0"), "worse"),)),
    ]
    assert titles(named(part.figures, "Throughput against 4kB, by clients")) == [
        "2MB, 512 MB, 1 client: equivalent, +0.1 % (−0.5 % … +0.7 %)",
        "2MB, 512 MB, 4 clients: better, +5.0 % (+2.0 % … +8.0 %)",
        "2MB, 2 GB, 1 client: inconclusive, +1.0 % (−3.0 % … +5.0 %)",
        "2MB, 2 GB, 4 clients: worse, −6.0 % (−9.0 % … −3.0 %)",
    ]


def _range(low: str, high: str) -> str:
    return f"{low}{NBSP}%{NBSP}…{NBSP}{high}{NBSP}%"


def test_throughput_is_drawn_by_clients_and_by_size_at_the_most_clients() -> None:
    (part,) = grid_of(experiment()).parts
    by_clients = named(part.figures, "Throughput in transactions/s, by clients")
    assert len(titles(by_clients)) == 8
    assert titles(by_clients)[:2] == [
        "4kB, 512 MB, 1 client: 200 (35.7 … 1,119)",
        "4kB, 512 MB, 4 clients: 200 (35.7 … 1,119)",
    ]
    by_size = named(part.figures, "Throughput in transactions/s, by database size")
    assert titles(by_size) == [
        "4kB, 512 MB, 4 clients: 200 (35.7 … 1,119)",
        "4kB, 2 GB, 4 clients: 200 (35.7 … 1,119)",
        "2MB, 512 MB, 4 clients: 220 (39.3 … 1,231)",
        "2MB, 2 GB, 4 clients: 220 (39.3 … 1,231)",
    ]
    assert rows(by_size.table.rows) == [
        ["512 MB, 4 clients", "200 (35.7 … 1,119)", "220 (39.3 … 1,231)"],
        ["2 GB, 4 clients", "200 (35.7 … 1,119)", "220 (39.3 … 1,231)"],
    ]
    assert [titles(figure)[0] for figure in part.more] == ["4kB, 512 MB, 1 client: 200 (35.7 … 1,119)"]


@pytest.mark.parametrize(
    ("effective", "label"),
    [("1GB", "shared_buffers 1 GB"), ("131072", None), ("unknown", None)],
)
def test_shared_buffers_is_marked_where_it_is_known(effective: str, label: str | None) -> None:
    (part,) = grid_of(experiment(shared_buffers=effective)).parts
    chart = named(part.figures, "Throughput in transactions/s, by database size")
    found = [text for text in str(chart.wide).replace(NBSP, " ").split("<") if "shared_buffers" in text]
    assert [text.partition(">")[2] for text in found] == ([label] if label else [])


def test_memory_stands_beside_in_a_unit_that_suits_it() -> None:
    (part,) = grid_of(experiment()).parts
    page_tables = named(part.figures, "Page tables of the server's processes in MB, by clients")
    assert titles(page_tables)[:2] == [
        "4kB, 512 MB, 1 client: 8 MB (no interval)",
        "4kB, 512 MB, 4 clients: 32 MB (no interval)",
    ]
    assert part.beside is not None
    assert rows(part.beside.rows) == [
        ["Page tables of the server's processes", "8 MB … 32 MB", "1 MB"],
        ["Memory on huge pages, of the process that has most of it", "0 B", "512 MB"],
    ]
    assert rows(part.cells[0].rows)[1] == ["512 MB, 4 clients", "32 MB", "1 MB"]


def test_what_is_missing_is_said_with_its_reason() -> None:
    def without_pages(one: Block) -> Block:
        arm = ArmBlock("2MB", 0, 0.0, {}, void="no pages to be had")
        return replace(one, arms=(one.arms[0], arm)) if one.workload.startswith("s-2048") else one

    of = experiment([without_pages(one) for one in blocks((100.0, 400.0))], VERDICTS[:2])
    (part,) = grid_of(of).parts
    assert [gap.replace(NBSP, " ") for gap in part.gaps] == [
        "2MB at 2 GB, 1 client; 2 GB, 4 clients: no pages to be had",
        "6 values have no interval: fewer than 3 valid rounds",
    ]
    assert part.gains is not None
    assert part.gains.rows[3][1] == (StyledCell("–"),)


def test_a_cell_that_nobody_measured_is_said() -> None:
    of = experiment([one for one in blocks((200.0, 100.0, 400.0)) if one.workload != "s-512-4"])
    (part,) = grid_of(of).parts
    assert [gap.replace(NBSP, " ") for gap in part.gaps] == [
        "4kB at 512 MB, 4 clients: not measured",
        "2MB at 512 MB, 4 clients: not measured",
    ]


def test_an_interrupted_grid_shows_what_there_is() -> None:
    none = replace(experiment(), blocks=(), verdicts=())
    (part,) = grid_of(none).parts
    assert (part.figures, part.gains, part.beside) == ((), None, None)


def test_loads_have_parts_of_their_own() -> None:
    of = replace(experiment(), cells={**CELLS, "s-2048-4": Cell("tpcb", 2048 * MIB, 4)})
    assert [part.load for part in grid_of(of).parts] == ["select", "tpcb"]
    assert len({figure.wide for part in grid_of(of).parts for figure in part.figures}) == 7


def test_answer_counts_cells_by_load() -> None:
    (answer,) = answers(experiment())
    assert answer.replace(NBSP, " ") == (
        "Better on select (1 of 4 cells, +5.0 %); worse on select (1 of 4 cells, −6.0 %); "
        "no difference that matters on select (1 of 4 cells); not decided on select (1 of 4 cells)."
    )


def test_a_grid_has_no_forest() -> None:
    assert forest_figure(experiment()) is None
