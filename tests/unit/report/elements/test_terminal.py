"""Tables on terminals that are wide, and narrow."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pgdyno.report.elements.tables import Table, columns
from pgdyno.report.elements.terminal import PlainTable

SHOWN = Table(
    "levels",
    columns("Clients", "Client CPU time", "Of the highest", numbers_from=0),
    (("1", "35 %", "46 % (33 % … 65 %)"), ("16", "9 %", "the highest")),
)


def printed(width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(PlainTable(SHOWN))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_headings_stay_in_one_line_where_they_fit() -> None:
    assert printed(44) == [
        "Clients  Client CPU time      Of the highest",
        "      1             35 %  46 % (33 % … 65 %)",
        "     16              9 %         the highest",
    ]


def test_headings_are_broken_before_figures() -> None:
    assert printed(43) == [
        "         Client",
        "            CPU",
        "Clients    time      Of the highest",
        "      1    35 %  46 % (33 % … 65 %)",
        "     16     9 %         the highest",
    ]


@pytest.mark.parametrize("width", [20, 30])
def test_no_figure_is_lost_on_the_narrowest_terminal(width: int) -> None:
    found = "".join(printed(width))
    assert all(figure in found for figure in ("35", "46", "33", "65"))
