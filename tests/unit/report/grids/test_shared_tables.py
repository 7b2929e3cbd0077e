"""The cost of shared tables: on a terminal, on the page, as JSON."""

from __future__ import annotations

import io

from rich.console import Console
from tests.unit.experiments.verdicts.test_sharing_cost import KEPT, on_both
from tests.unit.report.page.test_page import Outline

from pgdyno.report.documents import comparison_document
from pgdyno.report.page.page import render_page
from pgdyno.report.page.verdict_text import verdict_table

CAPTION = "pgbench-select: of the scaling that own tables have, shared ones keep"


def test_the_terminal_has_the_share_by_the_number_of_clients() -> None:
    console = Console(file=io.StringIO(), width=110)
    console.print(verdict_table(on_both()))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().replace("\N{NO-BREAK SPACE}", " ").splitlines()
    first = lines.index(CAPTION)
    assert lines[first + 1].split() == ["Clients", "Kept", "95", "%", "interval", "Rounds"]
    rows = [line.split() for line in lines[first + 2 : first + 2 + len(KEPT)]]
    assert [(int(row[0]), int(row[1]) / 100, int(row[-1])) for row in rows] == [
        (clients, share, 8) for clients, share in KEPT.items()
    ]


def test_the_page_and_the_document_have_it_too() -> None:
    of = on_both()
    outline = Outline(render_page(of))
    assert outline.errors == []
    assert CAPTION in outline.text
    costs = comparison_document(of)["sharing_costs"]
    assert isinstance(costs, list)
    assert [one["level"] for one in costs[0]["levels"]] == [*KEPT]
