"""Made-up values: different, in order, and of the original's form alone."""

from __future__ import annotations

import re
import uuid

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.postgres.catalogued_tables import ColumnStatistics, TableColumn
from pgdyno.workload.synthesis.columns import ordered_values
from pgdyno.workload.synthesis.generated_texts import addresses, alphabet_of, made_up_texts, uuids
from pgdyno.workload.synthesis.ordered_values import RowCounts


@given(total=st.integers(1, 3000), length=st.integers(1, 40), seed=st.integers(0, 1 << 32))
def test_texts_are_different_and_in_the_order_of_their_numbers(total: int, length: int, seed: int) -> None:
    numbers = np.arange(total)
    texts = made_up_texts(numbers, total, np.full(total, length), alphabet_of(()), seed)
    assert texts == sorted(set(texts))
    assert {len(one) for one in texts} <= {length, 1, 2, 3}  # 26 ** 3 is more than 3000


@given(total=st.integers(1, 2000), seed=st.integers(0, 1 << 32))
def test_uuids_are_different_in_order_and_random_ones_by_their_form(total: int, seed: int) -> None:
    made = uuids(np.arange(total), total, seed)
    assert made == sorted(set(made))
    assert {uuid.UUID(one).version for one in made} == {4}


def test_addresses_are_private_ones() -> None:
    made = addresses(np.arange(1000), 1000)
    assert len(set(made)) == 1000
    assert all(re.fullmatch(r"10(\.\d{1,3}){3}", one) for one in made)


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
