"""Lists of which the server shows the first value alone."""

from __future__ import annotations

import pytest

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.counted_texts import Lengthened, lengthened

COLUMNS = (
    Column("public", "t", "id", "integer", is_key=True, is_visible=True),
    Column("public", "t", "kind", "integer", is_key=False, is_visible=True),
    Column("public", "u", "id", "integer", is_key=True, is_visible=True),
)


def found(sql: str, rows: float = 3.0, types: tuple[str, ...] = ("integer", "text")) -> Lengthened | None:
    return lengthened(sql, types, Seen(100, 1.0, round(100 * rows), 0, 0), COLUMNS)


def test_a_list_of_keys_is_as_long_as_the_rows_that_it_finds() -> None:
    assert found("SELECT kind FROM t WHERE id IN ($1 /*, ... */) AND kind = $2", rows=2.9) == Lengthened(
        "SELECT kind FROM t WHERE id IN ($1, $3, $4) AND kind = $2",
        ("integer", "text", "integer", "integer"),
        3,
    )
    deleted = found("DELETE FROM t WHERE id IN ($1 /*, ... */)", rows=2, types=("integer",))
    assert deleted == Lengthened("DELETE FROM t WHERE id IN ($1, $2)", ("integer", "integer"), 2)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT kind FROM t WHERE id IN ($1)",
        "SELECT id FROM t WHERE kind IN ($1 /*, ... */)",
        "SELECT 1 FROM t JOIN u ON u.id = t.kind WHERE t.id IN ($1 /*, ... */)",
        "SELECT count(*) FROM t WHERE id IN ($1 /*, ... */)",
        "SELECT kind FROM t WHERE id IN ($1 /*, ... */) LIMIT $2",
        "SELECT kind FROM t WHERE id IN ($1 /*, ... */) OR id IN ($2 /*, ... */)",
        "SELECT kind FROM t WHERE id NOT IN ($1 /*, ... */)",
        "SELECT kind FROM t WHERE kind = $2 OR id IN ($1 /*, ... */)",
        "SELECT kind FROM t WHERE id IN ($3 /*, ... */)",
        "not SQL ($1 /*, ... */)",
    ],
)
def test_where_rows_do_not_tell_its_length_it_stays_as_it_is(sql: str) -> None:
    assert found(sql) is None


def test_a_list_that_finds_one_row_or_very_many_stays_as_it_is() -> None:
    sql = "SELECT kind FROM t WHERE id IN ($1 /*, ... */)"
    assert [found(sql, rows) for rows in (0.0, 1.0, 1001.0)] == [None] * 3
    assert lengthened(sql, ("integer",), Seen(0, 0.0, 0, 0, 0), COLUMNS) is None
