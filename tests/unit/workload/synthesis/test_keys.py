"""Keys of generated tables: combinations differ, and foreign keys refer to them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.workload.synthesis.test_database import customers, integers, orders, rows_of

from pgdyno.postgres.catalogued_tables import (
    ForeignKey,
    StoredTable,
)
from pgdyno.workload.synthesis.database import MadeUpDatabase


def test_a_foreign_key_has_values_of_the_key_as_frequent_as_in_the_original() -> None:
    made = MadeUpDatabase((customers(), orders()), 1.0, 1)
    known = {one for (one,) in rows_of(made, 1, "id")}
    counts = Counter(one for (one,) in rows_of(made, 2, "customer"))
    assert counts.keys() <= known
    assert counts["7"] == 6000  # 0.3 of 20000
    assert counts["4000"] == 2000
    assert len(counts) == pytest.approx(400, abs=5)
    assert Counter(one for (one,) in rows_of(made, 2, "note"))["\\N"] == 5000


@given(
    orders_=st.integers(1, 2000),
    products=st.integers(20, 500),
    lines=st.integers(1, 6),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_combinations_of_a_key_differ(orders_: int, products: int, lines: int, seed: int) -> None:
    columns = integers("o", orders_, high=orders_), integers("p", products, high=products)
    table = StoredTable(1, "s", "lines", orders_ * lines, 0, columns, (("o", "p"),))
    rows = rows_of(MadeUpDatabase((table,), 1.0, seed), 1, "o", "p")
    assert len(set(rows)) == orders_ * lines


def test_a_key_of_three_levels_and_what_refers_to_a_part_of_it() -> None:
    w, d, c, o = (integers(name, n, high=n) for name, n in (("w", 5), ("d", 10), ("c", 300), ("o", 400)))
    buyers = StoredTable(1, "s", "buyers", 15_000, 0, (w, d, c), (("w", "d", "c"),))
    key = ForeignKey("fk", ("w", "d", "c"), 1, ("w", "d", "c"))
    bought = StoredTable(2, "s", "bought", 20_000, 0, (w, d, o, c), (("w", "d", "o"),), (key,))
    made = MadeUpDatabase((buyers, bought), 1.0, 1)
    known = set(rows_of(made, 1, "w", "d", "c"))
    assert len(known) == 15_000
    assert set(rows_of(made, 2, "w", "d", "c")) <= known
    assert len(set(rows_of(made, 2, "w", "d", "o"))) == 20_000
