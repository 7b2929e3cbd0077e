"""Tables whose rows are made up: keys differ, what refers to them is there, NULL and shares are as wanted."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgdyno.postgres.catalogued_tables import (
    ColumnStatistics,
    Dependency,
    ForeignKey,
    StoredTable,
    TableColumn,
)
from pgdyno.workload.synthesis.columns import has_order
from pgdyno.workload.synthesis.database import MadeUpDatabase


def integers(
    name: str,
    distinct: float,
    *,
    low: int = 1,
    high: int = 1000,
    nulls: float = 0.0,
    correlation: float = 0.0,
) -> TableColumn:
    seen = ColumnStatistics(nulls, 4, distinct, (), (), (str(low), str(high)), correlation)
    return TableColumn(name, "int4", -1, is_not_null=nulls == 0, statistics=seen)


def rows_of(made: MadeUpDatabase, oid: int, *columns: str) -> list[tuple[str, ...]]:
    table = made.table(oid)
    places = [table.columns.index(name) for name in columns]
    text = b"".join(block for _, block in table.blocks()).decode()
    lines = [line.split("\t") for line in text.splitlines()]
    assert len(lines) == table.rows
    return [tuple(line[place] for place in places) for line in lines]


def customers(rows: float = 5000) -> StoredTable:
    return StoredTable(1, "s", "customers", rows, 1 << 20, (integers("id", -1, high=5000),), (("id",),))


def orders(*, skew: float = 0.3) -> StoredTable:
    hot = ColumnStatistics(0.0, 4, 400, ("7", "4000"), (skew, 0.1), ("1", "2500", "5000"), 0.0)
    columns = (
        integers("id", -1, high=20_000, correlation=1.0),
        TableColumn("customer", "int4", -1, is_not_null=True, statistics=hot),
        integers("note", 10, nulls=0.25),
    )
    key = ForeignKey("fk", ("customer",), 1, ("id",))
    return StoredTable(2, "s", "orders", 20_000, 1 << 20, columns, (("id",),), (key,))


def test_a_share_makes_fewer_rows_and_keys_of_large_tables_alone() -> None:
    made = MadeUpDatabase((customers(), orders()), 0.25, 1)
    ids = [int(one) for (one,) in rows_of(made, 1, "id")]
    assert sorted(ids) == list(range(1, 1251))
    referred = Counter(int(one) for (one,) in rows_of(made, 2, "customer"))
    assert (sum(referred.values()), referred.keys() <= set(ids)) == (5000, True)
    assert referred.most_common(1)[0][1] == 1500  # 0.3 of them
    small = MadeUpDatabase((customers(900),), 0.01, 1)
    assert len(rows_of(small, 1, "id")) == 900


def test_tables_that_refer_to_each_other_are_made() -> None:
    hen = ForeignKey("hen", ("egg",), 2, ("id",))
    egg = ForeignKey("egg", ("id",), 1, ("id",))
    hens = StoredTable(
        1, "s", "hens", 3000, 0, (integers("id", -1, high=3000), integers("egg", -0.5)), (("id",),), (hen,)
    )
    eggs = StoredTable(2, "s", "eggs", 1500, 0, (integers("id", -1, high=3000),), (("id",),), (egg,))
    made = MadeUpDatabase((hens, eggs), 1.0, 1)
    of_hens, of_eggs = ({one for (one,) in rows_of(made, oid, "id")} for oid in (1, 2))
    assert (len(of_hens), len(of_eggs), of_eggs <= of_hens) == (3000, 1500, True)
    assert {one for (one,) in rows_of(made, 1, "egg")} <= of_eggs


def test_values_follow_from_others_as_dependencies_say() -> None:
    columns = integers("zip", 500, high=500), integers("city", 50, high=50)
    depends = (Dependency(("zip",), "city", 1.0), Dependency(("city",), "zip", 0.1))
    table = StoredTable(1, "s", "t", 10_000, 0, columns, dependencies=depends)
    rows = set(rows_of(MadeUpDatabase((table,), 1.0, 1), 1, "zip", "city"))
    assert len(rows) == len({zip_ for zip_, _ in rows})
    assert len({city for _, city in rows}) == 50


_TEXTS = st.lists(st.one_of(st.text(max_size=8), st.integers().map(str), st.dates().map(str)), max_size=6)
_SHARES = st.lists(st.floats(0, 1), max_size=6)
_STATISTICS = st.builds(
    ColumnStatistics,
    null_fraction=st.floats(0, 1),
    width_bytes=st.integers(0, 3000),
    distinct=st.floats(-1, 1e6),
    common=_TEXTS.map(tuple),
    frequencies=_SHARES.map(tuple),
    bounds=_TEXTS.map(tuple),
    correlation=st.floats(-1, 1),
)
_COLUMNS = st.builds(
    lambda type_, modifier, seen: TableColumn("c", type_, modifier, is_not_null=False, statistics=seen),
    st.sampled_from(
        ["int2", "int8", "numeric", "float8", "bool", "date", "timestamptz", "time", "interval", "text",
         "bpchar", "uuid", "bytea", "inet", "jsonb", "tsvector", "bit", "circle"]
    ),
    st.integers(-1, 1 << 20),
    st.none() | _STATISTICS,
)  # fmt: skip


@given(
    column=_COLUMNS,
    rows=st.none() | st.floats(0, 400),
    is_key=st.booleans(),
    refers=st.booleans(),
    share=st.floats(0.01, 1),
)
@settings(deadline=None, max_examples=200)
def test_any_statistics_make_as_many_rows(
    *, column: TableColumn, rows: float | None, is_key: bool, refers: bool, share: float
) -> None:
    keys = (("c",),) if is_key else ()
    table = StoredTable(1, "s", "t", rows, 0, (column,), keys)
    key = (ForeignKey("fk", ("c",), 1, ("c",)),) if refers and is_key else ()
    child = StoredTable(2, "s", "u", rows, 0, (column,), (), key)
    made = MadeUpDatabase((table, child), share, 1)
    wanted = 100 if rows is None else round(rows)
    found = {oid: rows_of(made, oid, "c") for oid in (1, 2)}
    assert [len(one) for one in found.values()] == [wanted, wanted]
    known = {one for one in found[1] if one != ("\\N",)}
    if key and known and has_order(column):
        assert {one for one in found[2] if one != ("\\N",)} <= known


def partition(oid: int, rows: int, seen: ColumnStatistics, *keys: tuple[str, ...]) -> StoredTable:
    columns = TableColumn("kind", "text", -1, is_not_null=True, statistics=seen), integers("n", -1, high=rows)
    return StoredTable(oid, "s", f"events_{oid}", rows, 0, columns, keys, parent=9)


def kinds(common: tuple[str, ...], *shares: float) -> ColumnStatistics:
    return ColumnStatistics(0.0, 6, len(common), common, shares, (), 0.0)


def texts_of(made: MadeUpDatabase, oid: int) -> Counter[str]:
    return Counter(one for (one,) in rows_of(made, oid, "kind"))


def test_values_that_partitions_share_are_equal_texts() -> None:
    """Common ones of different frequency, one in two of three partitions, and bounds of a small partition."""
    tables = (
        partition(1, 4000, kinds(("click", "view", "buy"), 0.5, 0.25, 0.25)),
        partition(2, 1000, kinds(("view", "click"), 0.9, 0.1)),
        partition(3, 2, ColumnStatistics(0.0, 6, -1, (), (), ("buy", "view"), 1.0)),
    )
    made = MadeUpDatabase(tables, 1.0, 1)
    first, second, third = (texts_of(made, oid) for oid in (1, 2, 3))
    by_count = {count: text for text, count in second.items()}
    click, view = by_count[100], by_count[900]
    assert (first[click], first[view]) == (2000, 1000)
    [buy] = first.keys() - {click, view}
    assert (first[buy], third) == (1000, Counter([buy, view]))
    assert sorted([buy, click, view]) == [buy, click, view]  # in the order of the originals
    assert not {"buy", "click", "view"} & first.keys()


def test_a_fixed_number_of_values_is_the_same_in_each_partition() -> None:
    users = tuple(f"user {number:04d}" for number in range(0, 1000, 10))
    seen = ColumnStatistics(0.0, 10, 1000, ("user 0500",), (0.1,), users, 0.0)
    made = MadeUpDatabase((partition(1, 20_000, seen), partition(2, 20_000, seen)), 1.0, 1)
    first, second = texts_of(made, 1), texts_of(made, 2)
    assert first == second
    assert len(first) == pytest.approx(1000, abs=5)
    assert first.most_common(1)[0][1] == 2000


def test_values_that_grow_with_the_rows_are_others_in_each_partition() -> None:
    notes = tuple(f"note {number:04d}" for number in range(0, 1000, 10))
    seen = ColumnStatistics(0.0, 10, -0.5, ("note 0500",), (0.1,), notes, 0.0)
    made = MadeUpDatabase((partition(1, 2000, seen), partition(2, 2000, seen)), 1.0, 1)
    first, second = texts_of(made, 1), texts_of(made, 2)
    assert len(first) == len(second) == pytest.approx(1000, abs=20)
    [(common, count)] = first.most_common(1)
    assert (count, second[common]) == (200, 200)
    assert len(first.keys() & second.keys()) < 25


def test_keys_of_partitions_with_shared_texts_differ() -> None:
    seen = ColumnStatistics(0.0, 6, 40, ("a", "b"), (0.3, 0.2), tuple("cdefghij"), 0.0)
    key = ("kind", "n")
    made = MadeUpDatabase((partition(1, 3000, seen, key), partition(2, 500, seen, key)), 1.0, 1)
    for oid, rows in ((1, 3000), (2, 500)):
        assert len(set(rows_of(made, oid, "kind", "n"))) == rows


@given(first=_STATISTICS, second=_STATISTICS, rows=st.integers(0, 400), others=st.integers(0, 400))
@settings(deadline=None, max_examples=100)
def test_any_statistics_of_partitions_make_as_many_rows(
    first: ColumnStatistics, second: ColumnStatistics, rows: int, others: int
) -> None:
    made = MadeUpDatabase((partition(1, rows, first), partition(2, others, second)), 1.0, 1)
    assert [texts_of(made, oid).total() for oid in (1, 2)] == [rows, others]
    known = {*first.common, *first.bounds} & {*first.common}
    common = {one for one in known if len(one) > 3}
    assert not common & texts_of(made, 1).keys()
