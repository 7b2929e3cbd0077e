"""Statements as text: the answer first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.profile.view.test_profile_page import PROFILE

from pgdyno.base.numbers import SPACE
from pgdyno.profile.records.profile_record import StatementTime
from pgdyno.profile.view.statements_text import statement_tables, where_time_goes
from pgdyno.report.elements.tables import Table

ORDERS = StatementTime(
    "SELECT * FROM orders WHERE customer_id = $1",
    calls=0.5,
    planning_us=0.0,
    executing_us=890.0,
    rows=2.0,
    blocks=867.5,
    wal_records=0.0,
    name="select-orders",
    rows_read=200_000.0,
    node="Seq Scan on orders (filter (customer_id = ?))",
    node_share=1.0,
    waits=(("CPU", 0.9), ("IO:DataFileRead", 0.1)),
)
OTHER = StatementTime("UPDATE products SET stock = stock - $1", 1.0, 10.0, 100.0, 1.0, 3.0, 1.25)


def answer(statements: tuple[StatementTime, ...]) -> str:
    return where_time_goes(statements).replace(SPACE, " ")


def rows(table: Table) -> list[tuple[str, ...]]:
    return [tuple(cell.replace(SPACE, " ") for cell in row) for row in table.rows]


def test_the_answer_names_the_statement_and_what_it_reads() -> None:
    assert answer((ORDERS, OTHER)) == (
        "89 % of the statements' time is select-orders, which reads 200,000 rows to return 4"
    )
    estimated = replace(ORDERS, name="", is_estimated=True)
    assert answer((estimated, OTHER)) == (
        "89 % of the statements' time is SELECT * FROM orders WHERE customer_id = $1, "
        "which reads about 200,000 rows to return 4"
    )


@pytest.mark.parametrize("rows_read", [None, 39.0])
def test_a_statement_that_reads_little_for_what_it_returns_has_no_rows_in_the_answer(
    rows_read: float | None,
) -> None:
    little = replace(ORDERS, rows_read=rows_read)
    assert answer((little,)) == "100 % of the statements' time is select-orders"


def test_a_statement_that_writes_changes_rows() -> None:
    update = replace(OTHER, rows_read=500.0)
    assert answer((update,)).endswith("- $1, which reads 500 rows to change 1")


def test_many_equal_statements_are_no_answer() -> None:
    assert answer((ORDERS,) * 6) == "No statement takes more than 16.7 % of the statements' time"
    assert where_time_goes(()) == ""


def test_the_tables_have_figures_per_call() -> None:
    times, deeds = statement_tables(replace(PROFILE, statements=(ORDERS, OTHER)))
    assert rows(times) == [
        ("select-orders", "89.0 %", "0.5", "0", "1,780", "200,000", "4", "1,735", "0"),
        (
            "UPDATE products SET stock = stock - $1",
            "11.0 %",
            "1",
            "10",
            "100",
            "–",
            "1",
            "3",
            "1.25",
        ),
    ]
    assert rows(deeds) == [
        (
            "select-orders",
            "100 % Seq Scan on orders (filter (customer_id = ?))",
            "90 % CPU, 10 % IO:DataFileRead",
        ),
    ]


def test_statements_are_cut_in_tables() -> None:
    [times] = statement_tables(PROFILE)
    assert len(times.rows[0][0]) == 70
    assert list(statement_tables(replace(PROFILE, statements=()))) == []
