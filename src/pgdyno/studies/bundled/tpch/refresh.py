"""The refresh functions (clauses 2.5 to 2.7): inserts of RF1 and deletes of RF2.

tpchgen generates no refresh sets, so this module does, by the rules of clause 4.2.3 with NumPy's random
numbers. A set has 1500 orders per scale factor. Order keys use 8 of every 32 numbers. Set n deletes the n-th
share of the loaded orders, and inserts the same number of orders into the gaps. Comments consist of a few
fixed words: no query searches for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.random import Generator as Random

from pgdyno.load.tpch_tables import exact_rows
from pgdyno.studies.bundled.tpch.query_parameters import INSTRUCTIONS, PRIORITIES, SHIP_MODES

_FIRST_DAY, _LAST_DAY = date(1992, 1, 1), date(1998, 8, 2)  # of orders: 151 days before the end of 1998
_TODAY = date(1995, 6, 17)
_CLERKS_PER_SCALE = 1000
_SENTENCE = "carefully final deposits sleep among the quickly regular packages above furiously even ideas"
_WORDS = _SENTENCE.split()
_ORDER_COMMENT, _LINE_COMMENT = (19, 78), (10, 43)  # characters


@dataclass(frozen=True)
class Refresh:
    """The data of one pair of refresh functions.

    ``orders`` and ``lines`` are input of COPY, in text format.
    """

    orders: bytes
    lines: bytes
    deleted: tuple[int, ...]  # order keys
    inserted: tuple[int, ...]


def refresh(seed: Sequence[int], thousandths: int, number: int) -> Refresh:
    """Return refresh set ``number``, from 1, at a scale in thousandths. Equal seeds, equal rows."""
    random = np.random.default_rng(seed)
    places = refreshed_orders(thousandths, number)
    inserted = tuple(sparse_key(place, 1) for place in places)
    orders, lines = [], []
    for key in inserted:
        order, of_order = _order(random, key, exact_rows(thousandths), thousandths)
        orders.append(order)
        lines += of_order
    return Refresh(_copied(orders), _copied(lines), tuple(sparse_key(place, 0) for place in places), inserted)


def refreshed_orders(thousandths: int, number: int) -> range:
    """Return the places, counted from 1, of the loaded orders that a refresh set deletes."""
    count = max(1, thousandths * 3 // 2)
    return range((number - 1) * count + 1, number * count + 1)


def sparse_key(place: int, gap: int) -> int:
    """Return the order key at a place, counted from 1.

    Gap 0 has the loaded data; 1 to 3 are free (clause 4.2.3).
    """
    return ((place >> 3) * 4 + gap) * 8 + (place & 7)


def _order(
    random: Random, key: int, rows: dict[str, int], thousandths: int
) -> tuple[Sequence[object], list[Sequence[object]]]:
    """Return the columns of an order and of its lines."""
    ordered = _FIRST_DAY + timedelta(days=_between(random, 0, (_LAST_DAY - _FIRST_DAY).days))
    lines = [_line(random, key, number, ordered, rows) for number in range(1, _between(random, 1, 7) + 1)]
    states = {line.status for line in lines}
    customer = _between(random, 1, rows["customer"])
    customer -= customer % 3 == 0  # one in three customers has no orders
    order = (
        *(key, customer, "P" if len(states) > 1 else states.pop()),
        *(_money(round(sum(line.charge for line in lines))), ordered),
        *(_one(random, PRIORITIES), f"Clerk#{_between(random, 1, _clerks(thousandths)):09d}"),
        *(0, _comment(random, *_ORDER_COMMENT)),
    )
    return order, [line.columns for line in lines]


@dataclass(frozen=True)
class _Line:
    columns: Sequence[object]
    status: str
    charge: float  # cents, with discount and tax


def _line(random: Random, key: int, number: int, ordered: date, rows: dict[str, int]) -> _Line:
    part, quantity = _between(random, 1, rows["part"]), _between(random, 1, 50)
    supplier = supplier_of(part, _between(random, 0, 3), rows["supplier"])
    price_cents = quantity * retail_price_cents(part)
    discount, tax = _between(random, 0, 10), _between(random, 0, 8)
    shipped = ordered + timedelta(days=_between(random, 1, 121))
    committed = ordered + timedelta(days=_between(random, 30, 90))
    received = shipped + timedelta(days=_between(random, 1, 30))
    returned = _one(random, "RA") if received <= _TODAY else "N"
    status = "O" if shipped > _TODAY else "F"
    columns = (
        *(key, part, supplier, number, quantity, _money(price_cents), _money(discount), _money(tax)),
        *(returned, status, shipped, committed, received),
        *(_one(random, INSTRUCTIONS), _one(random, SHIP_MODES), _comment(random, *_LINE_COMMENT)),
    )
    return _Line(columns, status, price_cents * (100 - discount) * (100 + tax) / 10_000)


def retail_price_cents(part: int) -> int:
    """Return a part's retail price in cents (clause 4.2.3)."""
    return 90_000 + part // 10 % 20_001 + 100 * (part % 1000)


def supplier_of(part: int, which: int, suppliers: int) -> int:
    """Return the key of one of the four suppliers of a part; ``which`` is 0 to 3 (clause 4.2.3)."""
    return (part + which * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1


def _clerks(thousandths: int) -> int:
    return max(1, thousandths * _CLERKS_PER_SCALE // 1000)


def _between(random: Random, low: int, high: int) -> int:
    return int(random.integers(low, high, endpoint=True))


def _one(random: Random, among: Sequence[str]) -> str:
    return among[_between(random, 0, len(among) - 1)]


def _comment(random: Random, shortest: int, longest: int) -> str:
    words = " ".join(_one(random, _WORDS) for _ in range(longest // 3))
    return words[: _between(random, shortest, longest)].strip()


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def _copied(rows: Sequence[Sequence[object]]) -> bytes:
    """Return rows in COPY's text format; no value contains characters to escape."""

    def lines() -> Iterator[str]:
        for row in rows:
            yield "\t".join(map(str, row)) + "\n"

    return "".join(lines()).encode()
