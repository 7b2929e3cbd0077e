"""The cost of shared tables: on a terminal, on the page, as JSON."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.unit.measure.verdicts.test_sharing_cost import KEPT, on_both
from tests.unit.results.test_page import Outline

from pgdyno.measure.verdicts.sharing_cost import SharedLevel, SharingCost
from pgdyno.model.experiments.verdict import Interval
from pgdyno.results.documents import comparison_document
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.studies.grids.shared_tables import sharing

CAPTION = "pgbench-select: the cost of sharing tables"
ALL = "100\N{NO-BREAK SPACE}%"
COSTS = f"Sharing has a cost at 2, 3, 4, 6 and 8 clients: the interval is below {ALL}"
AT_FOUR = f"Sharing has a cost at 4 clients: the interval is below {ALL}"
BETTER = "shared tables scale better than own ones, because of caches or by chance"


def test_the_terminal_has_the_share_by_the_number_of_clients() -> None:
    console = Console(file=io.StringIO(), width=260)
    console.print(verdict_table(on_both()))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().replace("\N{NO-BREAK SPACE}", " ").splitlines()
    first = lines.index(CAPTION) + 2
    assert lines[first - 1].startswith("Scaling is the rate as a multiple of one client's rate; kept is the")
    assert lines[first] == COSTS.replace("\N{NO-BREAK SPACE}", " ")
    assert lines[first + 1].split() == ["Clients", "Scaling", "kept", "95", "%", "interval", "Rounds"]
    rows = [line.split() for line in lines[first + 2 : first + 2 + len(KEPT)]]
    assert [(int(row[0]), int(row[1]) / 100, int(row[-1])) for row in rows] == [
        (clients, share, 8) for clients, share in KEPT.items()
    ]


def test_the_page_and_the_document_have_it_too() -> None:
    of = on_both()
    outline = Outline(render_page(of))
    assert outline.errors == []
    assert CAPTION in outline.text
    assert COSTS.replace(ALL, "100 %.") in outline.text
    costs = comparison_document(of)["sharing_costs"]
    assert isinstance(costs, list)
    assert [one["level"] for one in costs[0]["levels"]] == [*KEPT]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (
            ((0.8, 1.1), (0.7, 0.9)),
            [AT_FOUR],
        ),
        (
            ((1.1, 1.3), (0.7, 0.9)),
            [
                AT_FOUR,
                f"At 2 clients {BETTER}: the interval is above {ALL}",
            ],
        ),
        (
            ((0.8, 1.1), (0.5, 1.2)),
            [f"No cost of sharing was shown or excluded: every interval includes {ALL}"],
        ),
    ],
)
def test_what_the_intervals_show_is_said(ends: tuple[tuple[float, float], ...], said: list[str]) -> None:
    levels = (
        SharedLevel(clients, Interval(low, (low + high) / 2, high, 0.95), 5)
        for clients, (low, high) in zip((2, 4), ends, strict=True)
    )
    assert sharing(SharingCost("pgbench-select", tuple(levels))).sentences == tuple(said)
