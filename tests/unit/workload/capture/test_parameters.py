"""What parameters of statements stand for. Statements are as pg_stat_statements shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pgdyno.model.experiments.captured import (
    ArrayOf,
    Between,
    ColumnValue,
    Constant,
    Letters,
    NewKey,
    Parameter,
    SameValue,
    Uuid,
)
from pgdyno.postgres.catalogued_tables import Column, IndexScan
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.parameters import by_type, parameters_of
from pgdyno.workload.capture.ranges import on_its_clock

ID, OWNER, BALANCE, NAME = (
    "public.accounts.id",
    "public.accounts.owner",
    "public.accounts.balance",
    "public.users.name",
)
COLUMNS = (
    Column("public", "accounts", "id", "bigint", is_key=True, is_visible=True),
    Column("public", "accounts", "owner", "integer", is_key=False, is_visible=True),
    Column("public", "accounts", "balance", "numeric", is_key=False, is_visible=True),
    Column("public", "users", "id", "integer", is_key=True, is_visible=True),
    Column("public", "users", "name", "text", is_key=False, is_visible=True),
    Column("public", "carts", "account", "bigint", is_key=True, is_visible=True, references=ID),
    Column("audit", "accounts", "id", "uuid", is_key=True, is_visible=False),
)


def drawn(sql: str, types: Sequence[str] = (), rows: float = 1) -> tuple[Parameter, ...]:
    return parameters_of(sql, types, COLUMNS, seen(rows)).drawn


def seen(rows: float = 1) -> Seen:
    """Ten calls that returned so many rows each and took 2 ms each."""
    return Seen(10, 20.0, round(10 * rows), 0, 0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT balance FROM accounts WHERE id = $1",
        "SELECT Balance FROM Accounts WHERE ID = $1",
        "SELECT balance FROM accounts A WHERE a.Id = $1 -- of $2",
        'SELECT balance FROM "accounts" WHERE "id" = $1',
        "SELECT balance FROM accounts WHERE $1 = id",
        "SELECT balance FROM accounts AS a WHERE a.id = $1",
        "SELECT balance FROM public.accounts WHERE id = ($1)::bigint",
        "SELECT balance FROM accounts WHERE id IN ($1)",
        "SELECT balance FROM accounts WHERE id IN ($1 /*, ... */)",
        "UPDATE accounts SET balance = balance WHERE id = $1",
        "DELETE FROM accounts WHERE id = $1",
        "DELETE FROM users USING accounts a WHERE a.id = $1",
        "SELECT name FROM users u JOIN accounts a ON a.owner = u.id WHERE a.id = $1",
        "SELECT name FROM users u, accounts a WHERE a.owner = u.id AND a.id = $1",
        "SELECT * FROM (SELECT * FROM accounts WHERE id = $1) x",
        "WITH x AS (SELECT * FROM accounts WHERE id = $1) SELECT * FROM x",
        "SELECT name FROM users WHERE EXISTS (SELECT FROM accounts WHERE owner = users.id AND id = $1)",
        "SELECT name FROM accounts a LEFT JOIN users u ON u.id = a.owner AND a.id = $1",
    ],
)
def test_what_a_column_is_compared_with_is_one_of_its_values(sql: str) -> None:
    assert drawn(sql) == (ColumnValue(ID),)


def test_a_column_of_a_query_outside_is_found_from_within() -> None:
    sql = "SELECT 1 FROM accounts a WHERE EXISTS (SELECT 1 FROM users WHERE a.id = $1 AND name = $2)"
    assert drawn(sql) == (ColumnValue(ID), ColumnValue(NAME))


def test_a_table_that_is_not_on_the_search_path_is_found_by_its_schema_alone() -> None:
    assert drawn("SELECT 1 FROM audit.accounts WHERE id = $1") == (ColumnValue("audit.accounts.id"),)


def test_the_width_of_a_range_follows_from_its_rows() -> None:
    expected = (ColumnValue(ID), SameValue(1, plus=99))
    assert drawn("SELECT 1 FROM accounts WHERE id BETWEEN $1 AND $2", rows=100) == expected
    assert drawn("SELECT 1 FROM accounts WHERE id >= $1 AND id < $2", rows=100) == expected
    assert drawn("SELECT 1 FROM accounts WHERE owner = 3 AND (id > $1 AND $2 > id)", rows=100) == expected


DATES = (
    Column("public", "orders", "placed", "date", is_key=False, is_visible=True),
    Column("public", "orders", "at", "timestamp with time zone", is_key=False, is_visible=True),
)


@pytest.mark.parametrize(
    ("sql", "types", "expected"),
    [
        ("placed = $1::date", ("date",), (ColumnValue("public.orders.placed"),)),
        (
            "placed <= $1::date - $2::interval day", ("date", "interval"),
            (ColumnValue("public.orders.placed"), Constant("1 day")),
        ),
        (
            "placed >= $1::date AND placed < $2::date + $3::interval", ("date", "date", "interval"),
            (ColumnValue("public.orders.placed"), SameValue(1), Constant("1 day")),
        ),
        (
            "at BETWEEN $1::timestamptz AND $2::timestamptz + $3::interval", ("date", "date", "interval"),
            (ColumnValue("public.orders.at"), SameValue(1), Constant("1 day")),
        ),
        ("at + $1::interval > now()", ("interval",), (Constant("1 day"),)),
        ("at = ANY (ARRAY[$1, $2])", ("timestamptz",) * 2, (ColumnValue("public.orders.at"),) * 2),
    ],
)  # fmt: skip
def test_dates_are_those_of_rows_and_a_range_with_an_interval_has_its_width(
    sql: str, types: tuple[str, ...], expected: tuple[Parameter, ...]
) -> None:
    query = f"SELECT 1 FROM orders WHERE {sql}"  # noqa: S608 — parsed only
    assert parameters_of(query, types, DATES, seen()).drawn == expected


def test_an_open_range_is_no_width() -> None:
    assert drawn("SELECT 1 FROM accounts WHERE id < $1", rows=100) == (ColumnValue(ID),)
    alone = drawn("SELECT 1 FROM accounts WHERE id > $1 OR owner < $2", rows=100)
    assert alone == (ColumnValue(ID), ColumnValue(OWNER))


def test_a_query_that_WITH_has_named_hides_a_table() -> None:  # noqa: N802 — SQL
    sql = "WITH accounts AS (SELECT 1 AS id) SELECT * FROM accounts WHERE id = $1"
    assert parameters_of(sql, ("integer",), COLUMNS, seen()).guessed == (1,)


def test_a_number_after_a_dollar_in_a_quoted_name_is_no_parameter() -> None:
    assert drawn('SELECT "a$2" FROM accounts WHERE id = $1') == (ColumnValue(ID),)


def test_a_new_value_of_a_unique_column_is_made_or_not_known() -> None:
    columns = [
        Column("public", "t", name, type_, is_key=True, is_visible=True)
        for name, type_ in (("a", "uuid"), ("b", "text"), ("c", "point"))
    ]
    found = parameters_of(
        "INSERT INTO t (a, b, c) VALUES ($1, $2, $3)", ("uuid", "text", "point"), columns, seen()
    )
    assert (found.drawn[:2], found.unknown) == ((Uuid(), Letters(20, 20)), (3,))


def test_new_rows_have_new_keys_and_values_as_other_rows_have_them() -> None:
    assert drawn("INSERT INTO accounts (balance, id) VALUES ($1, $2)") == (ColumnValue(BALANCE), NewKey(ID))
    assert drawn("INSERT INTO accounts VALUES ($1, $2, $3)") == (
        NewKey(ID),
        ColumnValue(OWNER),
        ColumnValue(BALANCE),
    )
    several = drawn("INSERT INTO users (id, name) VALUES ($1,$2),($3,$4) ON CONFLICT (id) DO NOTHING")
    assert several == (NewKey("public.users.id"), ColumnValue(NAME)) * 2


def test_a_new_key_that_refers_to_another_table_is_one_of_that_table() -> None:
    assert drawn("INSERT INTO carts (account) VALUES ($1)") == (ColumnValue(ID),)


def test_an_assigned_value_is_one_of_the_column_and_an_added_one_a_small_number() -> None:
    sql = "UPDATE accounts SET owner = $1, balance = balance + $2 WHERE id = $3"
    assert drawn(sql) == (ColumnValue(OWNER), Between(-100, 100), ColumnValue(ID))


@pytest.mark.parametrize(
    ("sql", "array"),
    [
        ("SELECT 1 FROM accounts WHERE id = ANY ($1)", ArrayOf(ID, 7)),
        ("SELECT 1 FROM accounts WHERE id = ANY ($1::bigint[])", ArrayOf(ID, 7)),
        ("SELECT 1 FROM accounts WHERE id = ANY (($1)::bigint[])", ArrayOf(ID, 7)),
        ("SELECT 1 FROM accounts WHERE owner = ANY ($1)", ArrayOf(OWNER, 1)),
    ],
)
def test_an_array_of_keys_has_as_many_values_as_rows_were_seen(sql: str, array: ArrayOf) -> None:
    assert drawn(sql, rows=7) == (array,)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM accounts WHERE (owner, id) > ($1, $2)",
        "SELECT 1 FROM accounts WHERE (owner, id) IN (($1, $2))",
    ],
)
def test_a_row_is_compared_column_by_column(sql: str) -> None:
    assert drawn(sql) == (ColumnValue(OWNER), ColumnValue(ID))


def test_a_row_that_is_compared_with_a_shorter_one_is_not_known() -> None:
    found = parameters_of("SELECT 1 FROM accounts WHERE (id, $1) > ($2, 3, $3)", (), COLUMNS, seen())
    assert found.drawn[1:] == (ColumnValue(ID), Constant(None))
    assert found.unknown == (1, 3)


def test_a_limit_is_as_many_rows_as_were_seen() -> None:
    assert drawn("SELECT 1 FROM accounts ORDER BY id LIMIT $1", rows=9.7) == (Constant("10"),)
    found = parameters_of("SELECT sum(id) FROM (SELECT id FROM accounts LIMIT $1) x", (), COLUMNS, seen())
    assert (found.drawn, found.notes) == (
        (Constant("1"),),
        ("LIMIT $1 of a subquery is unknown: 1 is used, the rows of a whole call",),
    )


def paged(sql: str, blocks: float, scan: IndexScan) -> tuple[Parameter, tuple[str, ...]]:
    """Return the OFFSET of a statement, and the notes, if ten rows a call were read from so many blocks."""
    columns = [replace(COLUMNS[0], scan=scan), *COLUMNS[1:]]
    found = parameters_of(sql, (), columns, Seen(100, 1.0, 1000, round(100 * blocks), 0))
    return found.drawn[1], found.notes


IN_ORDER = IndexScan(rows=100_000, table_blocks=541, visible_blocks=541, index_blocks=276, correlation=1.0)
"""Of 100,000 rows of 44 bytes, inserted in the order of an integer key: PostgreSQL 18's own numbers."""
AT_RANDOM = replace(IN_ORDER, correlation=0.0)
_PAGE = "SELECT id, balance FROM accounts ORDER BY id LIMIT $1 OFFSET $2"


@pytest.mark.parametrize(
    ("sql", "blocks", "scan", "offset"),
    [
        # The root and 83 leaves of the index, 163 blocks of the table: (247 - 3) / 0.00817, less ten.
        (_PAGE, 247, IN_ORDER, "29855"),
        (f"{_PAGE.replace('ORDER BY id', 'ORDER BY id DESC')}", 247, IN_ORDER, "29855"),
        (_PAGE, 3, IN_ORDER, "0"),
        (_PAGE, 1000, AT_RANDOM, "984"),  # each row is in another block: 997 / 1.00276, less ten
        ("SELECT id FROM accounts ORDER BY id LIMIT $1 OFFSET $2", 86, AT_RANDOM, "30062"),  # of the index
        (_PAGE, 5000, IN_ORDER, "99990"),  # it has no more rows
    ],
)
def test_an_offset_is_as_many_rows_as_an_index_scan_passes_in_the_blocks(
    sql: str, blocks: float, scan: IndexScan, offset: str
) -> None:
    note = (
        f"OFFSET $2 is unknown: {offset} is used, because a call of the original reads {blocks:,} blocks, "
        "assumed to be those of an index scan in the order of public.accounts.id"
    )
    assert paged(sql, blocks, scan) == (Constant(offset), (note,))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM accounts LIMIT $1 OFFSET $2",
        "SELECT id FROM accounts ORDER BY balance LIMIT $1 OFFSET $2",
        "SELECT id FROM accounts ORDER BY id + 1 LIMIT $1 OFFSET $2",
        "SELECT id FROM accounts ORDER BY id DESC NULLS LAST LIMIT $1 OFFSET $2",
        "SELECT id FROM accounts WHERE balance > 0 ORDER BY id LIMIT $1 OFFSET $2",
        "SELECT a.id FROM accounts a JOIN users u ON u.id = a.owner ORDER BY a.id LIMIT $1 OFFSET $2",
        "SELECT DISTINCT owner, id FROM accounts ORDER BY id LIMIT $1 OFFSET $2",
        "SELECT id, count(*) OVER () FROM accounts ORDER BY id LIMIT $1 OFFSET $2",
        "SELECT id FROM accounts UNION SELECT id FROM users ORDER BY id LIMIT $1 OFFSET $2",
    ],
)
def test_an_offset_that_blocks_do_not_show_is_0_and_said(sql: str) -> None:
    note = "OFFSET $2 is unknown: 0 is used; a call of the original reads 247 blocks"
    assert paged(sql, 247, IN_ORDER) == (Constant("0"), (note,))


def test_an_offset_in_a_log_is_the_median_or_0_and_said() -> None:
    def logged(*offsets: int) -> tuple[Parameter, tuple[str, ...]]:
        found = parameters_of(_PAGE, (), COLUMNS, seen(), [{1: 10, 2: one} for one in offsets])
        return found.drawn[1], found.notes

    note = "OFFSET $2 was from 20 to 40000 in the first calls: 30000 is used"
    assert logged(20, 30000, 40000) == (Constant("30000"), (note,))
    assert logged(20, 20, 20) == (Constant("20"), ())
    assert logged() == (Constant("0"), ("OFFSET $2 is unknown: 0 is used",))


def test_what_stands_nowhere_known_is_drawn_by_its_type_and_said() -> None:
    found = parameters_of("SELECT f($1, $2), $3", ("integer", "text", "interval"), COLUMNS, seen())
    assert found.drawn == (Between(1, 100), Letters(5, 20), Constant("1 day"))
    assert (found.guessed, found.unknown) == ((1, 2, 3), ())


def test_a_type_about_which_nothing_is_known_is_said() -> None:
    found = parameters_of("SELECT f($1, $2)", ("integer", "point"), COLUMNS, seen())
    assert (found.guessed, found.unknown) == ((1,), (2,))


def test_a_statement_that_is_not_understood_has_parameters_by_type() -> None:
    found = parameters_of("SELECT FROM WHERE $1 ((", ("integer",), COLUMNS, seen())
    assert (found.drawn, found.guessed) == ((Between(1, 100),), (1,))


def test_a_statement_without_parameters_has_none() -> None:
    assert drawn("SELECT count(*) FROM accounts") == ()


def test_a_sleep_is_as_long_as_it_was() -> None:
    assert drawn("SELECT pg_sleep($1)", ("double precision",)) == (Constant("0.002000"),)


def test_an_advisory_lock_is_hardly_ever_one_that_another_has() -> None:
    assert drawn("SELECT pg_advisory_xact_lock($1)", ("bigint",)) == (Between(1, 1_000_000_000),)


def test_numbers_of_calls_tell_limits_and_widths_of_ranges_where_rows_are_not_known() -> None:
    def of(sql: str, *numbers: dict[int, int]) -> tuple[Parameter, ...]:
        return parameters_of(sql, ("bigint", "bigint"), COLUMNS, seen(0), numbers).drawn

    ends = "SELECT 1 FROM accounts WHERE id BETWEEN $1 AND $2"
    assert of(ends, {1: 5, 2: 14}, {1: 3, 2: 12}) == (ColumnValue(ID), SameValue(1, plus=9))
    limit = "SELECT 1 FROM accounts LIMIT $1 OFFSET $2"
    assert of(limit, {1: 10, 2: 20}, {1: 10, 2: 40}, {1: 50}) == (Constant("10"), Constant("20"))
    assert of(limit) == (Between(1, 100), Constant("0"))
    unknown = parameters_of(ends, ("bigint", "bigint"), COLUMNS, seen(0), ())
    assert (unknown.drawn[1], dict(unknown.unmeasured)) == (SameValue(1), {2: (ID, False)})


MADE = (
    Column("public", "parts", "id", "integer", is_key=True, is_visible=True),
    Column("public", "items", "part", "integer", is_key=False, is_visible=True, references="public.parts.id"),
    Column("public", "items", "code", "character varying", is_key=True, is_visible=True, length=16),
    Column("public", "items", "state", "character", is_key=True, is_visible=True, length=2),
    Column("public", "items", "made", "timestamp with time zone", is_key=False, is_visible=True),
    Column("public", "items", "day", "date", is_key=False, is_visible=True),
    Column("public", "items", "count", "integer", is_key=False, is_visible=True, is_checked=True),
    Column("public", "items", "price", "integer", is_key=False, is_visible=True),
)


def test_new_texts_fit_the_declared_length() -> None:
    found = parameters_of("INSERT INTO items (code, state) VALUES ($1, $2)", (), MADE, seen())
    assert found.drawn == (Letters(16, 16), Letters(2, 2))
    assert found.notes == ("$2: new values of public.items.state may exist, with 2 letters",)
    assert by_type(MADE[2]) == Letters(5, 16)
    assert by_type(MADE[3]) == Letters(2, 2)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO items (made, day, price) VALUES ($1, $2, $3)",
        "UPDATE items SET made = $1, day = $2 WHERE price = $3",
        "INSERT INTO items (code) VALUES ('') ON CONFLICT DO UPDATE SET made = $1, day = $2, price = $3",
    ],
)
def test_times_that_are_written_are_the_current_ones_unless_a_log_shows_others(sql: str) -> None:
    price, written = ColumnValue("public.items.price"), frozenset({1, 2})
    now: tuple[Parameter, ...] = (Constant("now"), Constant("today"), price)
    rows = ColumnValue("public.items.made"), ColumnValue("public.items.day"), price
    counted = parameters_of(sql, (), MADE, seen())
    note = "the dates and times that it writes are unknown: the current ones are used ($1, $2)"
    assert (counted.drawn, counted.notes, counted.new) == (now, (note,), written)

    # The log's clock was at 10:00:05 on a Tuesday in another zone, an hour ahead.
    midnight = 1_767_571_200.0
    call = {0: midnight + 36_005.0, 1: midnight + 32_403.5, 2: midnight}
    calls, notes = on_its_clock({7: [call] * 9 + [{**call, 1: midnight + 1, 2: 1.0}]}, [7])
    logged = parameters_of(sql, (), MADE, seen(0), calls[7])
    assert notes == (
        ("written times are 1 h before the call: they are taken for the current time of another time zone"),
    )
    assert (logged.drawn, logged.notes, logged.new) == (now, (), written)
    apart = {0: midnight + 36_005.0, 1: midnight + 32_100.0 + 450, 2: midnight - 2 * 86_400}
    older = parameters_of(sql, (), MADE, seen(0), on_its_clock({7: [call, apart]}, [7])[0][7])
    assert (older.drawn, older.notes, older.new) == (rows, (), frozenset())
    without_times = parameters_of(sql, (), MADE, seen(0), [{1: midnight + 32_403.5, 2: midnight}])
    assert (without_times.drawn, without_times.notes) == (now, (note,))


def test_times_that_are_compared_are_those_of_rows() -> None:
    found = parameters_of("SELECT 1 FROM items WHERE made = $1 AND day > $2", (), MADE, seen())
    assert found.drawn == (ColumnValue("public.items.made"), ColumnValue("public.items.day"))


def test_a_column_with_a_check_constraint_keeps_its_value() -> None:
    sql = "UPDATE items SET count = count - $1, price = price + $2 WHERE count + $3 > price"
    found = parameters_of(sql, (), MADE, seen())
    assert found.drawn == (Constant("0"), Between(-100, 100), Between(-100, 100))
    note = "$1 is 0: public.items.count has a CHECK constraint, which others may violate"
    assert found.notes == (note,)


def test_the_check_constraint_of_the_assigned_column_counts() -> None:
    of_unchecked = parameters_of("UPDATE items SET count = price - $1", (), MADE, seen())
    assert of_unchecked.drawn == (Constant("0"),)
    of_checked = parameters_of("UPDATE items SET price = count - $1", (), MADE, seen())
    read = parameters_of("SELECT count + $1 FROM items", (), MADE, seen())
    assert (of_checked.drawn, read.drawn) == ((Between(-100, 100),), (Between(-100, 100),))
    assert (of_checked.notes, read.notes) == ((), ())


@pytest.mark.parametrize(("is_required", "is_known"), [(True, False), (False, True)])
def test_a_required_key_of_an_empty_table_is_unknown_with_the_reason(
    *, is_required: bool, is_known: bool
) -> None:
    columns = (replace(MADE[0], is_empty=True), replace(MADE[1], is_required=is_required))
    found = parameters_of("INSERT INTO items (part) VALUES ($1)", ("integer",), columns, seen())
    why = "public.items.part references public.parts.id, which has no rows"
    assert (found.unknown == (), dict(found.arguments)) == (is_known, {} if is_known else {1: why})


def test_keys_of_new_rows_are_named() -> None:
    found = parameters_of("INSERT INTO accounts (balance, id) VALUES ($1, $2)", (), COLUMNS, seen())
    assert found.new == {2}


GOOD = " SELECT id,\n    owner,\n    (balance * (2)::numeric) AS twice\n   FROM public.accounts;"
VIEW = [
    Column("public", "good", name, type_, is_key=False, is_visible=True, view=GOOD)
    for name, type_ in (("id", "bigint"), ("owner", "integer"), ("twice", "numeric"))
]


def test_a_column_of_a_view_has_the_values_of_the_table_s() -> None:
    columns = (*COLUMNS, *VIEW)
    ranged = parameters_of("SELECT 1 FROM good WHERE id BETWEEN $1 AND $2", (), columns, seen(7))
    assert (ranged.drawn, ranged.notes) == ((ColumnValue(ID), SameValue(1, plus=6)), ())
    inserted = parameters_of("INSERT INTO good (id, owner) VALUES ($1, $2)", (), columns, seen())
    assert (inserted.drawn, inserted.new) == ((NewKey(ID), ColumnValue(OWNER)), frozenset({1}))


@pytest.mark.parametrize(
    "sql", ["SELECT id FROM good WHERE twice = $1", "INSERT INTO good (twice) VALUES ($1)"]
)
def test_what_a_view_computes_is_drawn_by_its_type_and_said(sql: str) -> None:
    found = parameters_of(sql, ("numeric",), (*COLUMNS, *VIEW), seen())
    assert (found.drawn, found.guessed) == ((Between(1, 100),), (1,))
    assert found.notes == ("public.good.twice is computed by its view, so its values are unknown",)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (  # the usual upsert: the row exists, or is new with this key
            (
                "MERGE INTO accounts a USING (SELECT $1::bigint AS id) n ON a.id = n.id "
                "WHEN MATCHED AND a.owner = $2 THEN UPDATE SET balance = a.balance - $3 "
                "WHEN NOT MATCHED THEN INSERT (id, owner, balance) VALUES (n.id, $4, $5)"
            ),
            (
                *(ColumnValue(ID), ColumnValue(OWNER), Between(-100, 100)),
                *(ColumnValue(OWNER), ColumnValue(BALANCE)),
            ),
        ),
        (
            (
                "MERGE INTO accounts USING users u ON owner = u.id AND u.name = $1 "
                "WHEN MATCHED THEN UPDATE SET balance = $2 WHEN NOT MATCHED THEN INSERT VALUES ($3, $4, $5)"
            ),
            (ColumnValue(NAME), ColumnValue(BALANCE), NewKey(ID), ColumnValue(OWNER), ColumnValue(BALANCE)),
        ),
        (
            (
                "MERGE INTO accounts a USING (VALUES ($1, $2)) AS n (id, b) ON a.id = n.id "
                "WHEN MATCHED THEN UPDATE SET balance = n.b"
            ),
            (ColumnValue(ID), ColumnValue(BALANCE)),
        ),
    ],
)
def test_merge_is_read_as_updates_and_inserts_are(sql: str, expected: Sequence[Parameter]) -> None:
    assert drawn(sql, ("bigint", "integer", "numeric", "integer", "numeric")[: len(expected)]) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE accounts a SET balance = v.b FROM (VALUES ($1::bigint, $2)) AS v (id, b) WHERE a.id = v.id",
        "WITH v (id, b) AS (VALUES ($1, $2)) SELECT FROM accounts a JOIN v ON v.id = a.id AND v.b < balance",
        "WITH v AS (SELECT $1 AS id, $2 AS b) DELETE FROM accounts USING v WHERE v.id = id AND balance = v.b",
    ],
)
def test_values_with_a_name_are_those_that_the_name_is_compared_with(sql: str) -> None:
    assert drawn(sql, ("bigint", "numeric")) == (ColumnValue(ID), ColumnValue(BALANCE))


def test_a_query_of_an_insert_writes_values_to_its_columns() -> None:
    sql = (
        "INSERT INTO accounts (owner, id) SELECT $1, $2 AS x "
        "WHERE NOT EXISTS (SELECT FROM accounts WHERE id = $3)"
    )
    assert drawn(sql, ("integer", "bigint", "bigint")) == (ColumnValue(OWNER), NewKey(ID), ColumnValue(ID))
