"""Refresh sets: keys in the gaps of clause 4.2.3, rows that fit their tables, the same for equal seeds."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from pgdyno.studies.bundled.tpch.refresh import (
    Refresh,
    refresh,
    refreshed_orders,
    retail_price_cents,
    sparse_key,
    supplier_of,
)

THOUSANDTHS = 100
PAIR = refresh((1, 0, 1, 1), THOUSANDTHS, 1)


def columns(rows: bytes) -> list[list[str]]:
    return [line.split("\t") for line in rows.decode().splitlines()]


def test_loaded_orders_use_the_first_8_of_every_32_keys() -> None:
    # As tpchgen's and dbgen's orders begin: 1 to 7, then 32 to 39, then 64.
    assert [sparse_key(place, 0) for place in range(1, 17)] == [*range(1, 8), *range(32, 40), 64]


def test_inserted_orders_lie_in_the_gap_after_them() -> None:
    assert [sparse_key(place, 1) for place in range(1, 10)] == [*range(9, 16), 40, 41]


def test_no_key_is_used_twice() -> None:
    keys = [sparse_key(place, gap) for place in range(1, 1000) for gap in range(4)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(("thousandths", "orders"), [(1000, 1500), (100, 150), (10, 15), (1, 1)])
def test_a_set_has_1500_orders_per_scale_factor_and_one_at_least(thousandths: int, orders: int) -> None:
    assert len(refreshed_orders(thousandths, 1)) == orders


def test_sets_follow_each_other_without_a_gap() -> None:
    first, second = refreshed_orders(100, 1), refreshed_orders(100, 2)
    assert (first[0], first[-1] + 1) == (1, second[0])


def test_as_many_orders_are_deleted_as_inserted() -> None:
    assert len(PAIR.deleted) == len(PAIR.inserted) == 150
    assert {*PAIR.deleted}.isdisjoint(PAIR.inserted)
    assert [int(row[0]) for row in columns(PAIR.orders)] == [*PAIR.inserted]


def test_equal_seeds_give_equal_rows() -> None:
    assert refresh((1, 0, 1, 1), THOUSANDTHS, 1) == PAIR
    assert refresh((1, 1, 1, 1), THOUSANDTHS, 1) != PAIR


def test_every_order_has_one_to_seven_lines_and_every_line_an_order() -> None:
    lines: dict[int, int] = {}
    for row in columns(PAIR.lines):
        lines[int(row[0])] = lines.get(int(row[0]), 0) + 1
        assert int(row[3]) == lines[int(row[0])]  # line numbers count from 1
    assert lines.keys() == {*PAIR.inserted}
    assert {*lines.values()} == {1, 2, 3, 4, 5, 6, 7}


def test_columns_are_within_the_ranges_of_the_clause() -> None:
    for row in columns(PAIR.lines):
        part, supplier, quantity = int(row[1]), int(row[2]), int(row[4])
        assert 1 <= part <= 20_000
        assert supplier in {supplier_of(part, which, 1000) for which in range(4)}
        assert 1 <= quantity <= 50
        assert Decimal(row[5]) == quantity * Decimal(retail_price_cents(part)) / 100
        assert 0 <= Decimal(row[6]) <= Decimal("0.10")
        assert 0 <= Decimal(row[7]) <= Decimal("0.08")
        shipped, received = date.fromisoformat(row[10]), date.fromisoformat(row[12])
        assert timedelta(days=1) <= received - shipped <= timedelta(days=30)
        assert (row[9] == "O") == (shipped > date(1995, 6, 17))
        assert (row[8] == "N") == (received > date(1995, 6, 17))
        assert 10 - 2 <= len(row[15]) <= 43
    for row in columns(PAIR.orders):
        assert int(row[1]) % 3 != 0
        assert 1 <= int(row[1]) <= 15_000
        assert row[2] in "OFP"
        assert date(1992, 1, 1) <= date.fromisoformat(row[4]) <= date(1998, 8, 2)
        assert 1 <= int(row[6].removeprefix("Clerk#")) <= 100
        assert len(row[8]) <= 79


def test_an_orders_total_is_the_sum_of_its_lines_with_discount_and_tax() -> None:
    totals: dict[str, Decimal] = {}
    for row in columns(PAIR.lines):
        charge = Decimal(row[5]) * (1 - Decimal(row[6])) * (1 + Decimal(row[7]))
        totals[row[0]] = totals.get(row[0], Decimal(0)) + charge
    for row in columns(PAIR.orders):
        assert abs(Decimal(row[3]) - totals[row[0]]) <= Decimal("0.01")


def test_prices_and_suppliers_are_tpchgens() -> None:
    # The first parts of tpchgen at scale 0.001, which has 10 suppliers: p_retailprice, ps_suppkey.
    assert [retail_price_cents(part) for part in (1, 2, 10, 200)] == [90_100, 90_200, 91_001, 110_020]
    assert [supplier_of(1, which, 10) for which in range(4)] == [2, 4, 6, 8]


def test_nothing_has_to_be_escaped_for_copy() -> None:
    assert b"\\" not in PAIR.orders + PAIR.lines
    assert isinstance(PAIR, Refresh)
