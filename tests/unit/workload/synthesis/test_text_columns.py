"""Texts of a column: none that is known but those in the schema, of the original's form."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.postgres.catalogued_tables import ColumnStatistics, TableColumn
from pgdyno.workload.synthesis.columns import ordered_values
from pgdyno.workload.synthesis.ordered_values import RowCounts


def column(
    *, common: tuple[str, ...] = (), bounds: tuple[str, ...] = (), distinct: float = -1
) -> TableColumn:
    share = tuple(0.5 / len(common) for _ in common)
    seen = ColumnStatistics(0.0, 12, distinct, common, share, bounds, 0.0)
    return TableColumn("c", "text", -1, is_not_null=True, statistics=seen)


def texts_of(of: TableColumn, rows: int, *, literals: frozenset[str] = frozenset()) -> list[str]:
    made = ordered_values(of, RowCounts(rows, rows), is_unique=False, literals=literals, seed=7)
    return made.at(np.arange(rows))[0]


@given(
    common=st.lists(st.text("abcdefgh ", min_size=6, max_size=12), min_size=1, max_size=8, unique=True),
    bounds=st.lists(st.text("ijklmnop ", min_size=6, max_size=12), min_size=2, max_size=8, unique=True),
)
def test_no_known_text_is_made(common: list[str], bounds: list[str]) -> None:
    of = column(common=tuple(common), bounds=tuple(sorted(bounds)), distinct=50)
    texts = texts_of(of, 400)
    assert not {*common, *bounds} & set(texts)
    lengths = sorted({len(one) for one in common})
    assert set(lengths) <= {len(one) for one in texts}


def test_texts_that_the_schema_names_are_kept() -> None:
    of = column(common=("paid", "secret"), distinct=2)
    texts = texts_of(of, 100, literals=frozenset({"paid"}))
    assert texts.count("paid") == 50
    assert "secret" not in texts
    assert len(set(texts)) == 2


def test_short_texts_are_no_longer_than_their_type_allows() -> None:
    seen = ColumnStatistics(0.0, 2, 40)
    one_letter = TableColumn("c", "bpchar", 5, is_not_null=True, statistics=seen)  # char(1): 4 bytes more
    texts = texts_of(one_letter, 200)
    assert ({len(one) for one in texts}, len(set(texts))) == ({1}, 40)


def test_digits_stay_digits() -> None:
    texts = texts_of(column(bounds=("01067", "50667", "99998"), distinct=-1), 300)
    assert all(re.fullmatch(r"\d+", one) for one in texts)


def test_common_bytes_are_as_long_as_known_ones_and_not_as_their_text() -> None:
    known = ("\\x00", "\\x0102", "\\xffffffffff")
    seen = ColumnStatistics(0.0, 3, 3, known, (0.4, 0.3, 0.3))
    texts = texts_of(TableColumn("c", "bytea", -1, is_not_null=True, statistics=seen), 100)
    assert {len(bytes.fromhex(one.removeprefix("\\x"))) for one in texts} == {1, 2, 5}
