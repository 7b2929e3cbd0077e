"""Which of a column's values a statement favours: positions of drawn values among the column's in order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from math import floor, log10
from typing import Any

import numpy as np

from pgdyno.model.experiments.captured import CapturedStatement, CapturedWorkload, ColumnValue
from pgdyno.postgres.catalogued_tables import ColumnValues
from pgdyno.workload.capture.ranges import measured
from pgdyno.workload.capture.statements import executable

LEAST = 50  # drawn values, and values of a column
_BUCKETS = 40  # equally frequent: arbitrary
_DIGITS = 4  # of a position, counted from the nearer end
_STRANGE = 0.01  # of the drawn values may be none of the column's; they are left out
_KINDS = 100  # a column with at most so many different values has no others
# Kolmogorov and Smirnov's statistic of equal distributions exceeds this, times the root of 1/n + 1/m, for one
# parameter of 10,000: 2 exp(-2 x²).
_UNLIKELY = 2.23
_BOOLEANS = {
    **dict.fromkeys(("true", "t", "1", "on", "yes", "y"), "true"),
    **dict.fromkeys(("false", "f", "0", "off", "no", "n"), "false"),
}
_OFTEN = 5  # times as frequent as in the rows, and calls with the same value
DrawnValues = Mapping[int, Mapping[int, Sequence[str]]]
"""Values of parameters in some calls, by statement and parameter number."""


def with_positions(
    workload: CapturedWorkload,
    texts: Mapping[int, str],
    drawn: DrawnValues,
    values_of: Callable[[str], ColumnValues],
) -> CapturedWorkload:
    """Return a workload with parameters that favour the values of columns that the original favoured.

    ``texts`` are those of statements by number; ``values_of`` returns the values of a column.
    """
    by_sql = {executable(sql): drawn[one] for one, sql in texts.items() if one in drawn}
    columns = {
        (call.statement, number): one.column
        for kind in workload.transactions
        for call in kind.calls
        for number, one in enumerate(call.parameters, 1)
        if isinstance(one, ColumnValue)
    }

    def favours(one: CapturedStatement) -> Iterator[tuple[int, tuple[float, ...]]]:
        for number, values in sorted(by_sql.get(one.sql, {}).items()):
            if (one.name, number) in columns and len(values) >= LEAST:
                yield number, positions_of(values, values_of(columns[one.name, number]))

    def favouring(one: CapturedStatement) -> CapturedStatement:
        return replace(one, favours={number: found for number, found in favours(one) if found})

    return replace(workload, statements=tuple(map(favouring, workload.statements)))


def positions_of(drawn: Sequence[str], values: ColumnValues) -> tuple[float, ...]:
    """Return bounds of equally frequent positions of drawn values: 0 is the lowest value, 1 the highest.

    Empty: they may be as frequent as the rows that have them, or some are not of the column.
    """
    spans = sorted(_spans(drawn, values))
    count = len(spans)
    if count < max(LEAST, (1 - _STRANGE) * len(drawn)):
        return ()
    of_column = 0.0 if values.dense is not None else 1 / len(values.sample)
    furthest, least = 0.0, _UNLIKELY * (1 / count + of_column) ** 0.5
    below = 0
    for (low, high), often in sorted(Counter(spans).items()):
        furthest = max(furthest, abs(below / count - low))
        below += often
        furthest = max(furthest, abs(below / count - high))
        is_frequent = often >= max(_OFTEN, count / _BUCKETS)
        if is_frequent and often > _OFTEN * (1 + count * (high - low)):
            least = 0.0
    if furthest <= least:
        return ()
    middles = [(low + high) / 2 for low, high in spans]
    bounds = np.quantile(middles, np.linspace(0, 1, _BUCKETS + 1))
    return tuple(_coarse([float(one) for one in bounds]))


def in_order(sample: Sequence[str]) -> list[str]:
    """Return texts in the order of the numbers or times that they are, or of their characters."""
    numbers = {text: measured(text) for text in sample}
    if None in numbers.values():
        return sorted(sample)
    return sorted(sample, key=lambda text: numbers[text] or 0)


def _spans(drawn: Sequence[str], values: ColumnValues) -> Iterator[tuple[float, float]]:
    """Yield the shares of the column's values that are lower, and not higher, than each drawn one.

    Values that the column has not are left out.
    """
    numbers = [one for text in drawn if (one := measured(text)) is not None]
    if values.dense is not None:
        low, high = values.dense
        count = high - low + 1
        for one in numbers:
            if low <= one <= high:
                yield (one - low) / count, (one - low + 1) / count
        return
    if len(values.sample) < LEAST:
        return
    column = _ordered(values.sample)
    if column.numbers:
        yield from (_span(column.numbers, one) for one in numbers)
        return
    for text in drawn:
        spelt = column.spelling.get(text.lower(), text)
        if not column.kinds or spelt in column.kinds:
            yield _span(column.texts, spelt)


@dataclass(frozen=True)
class _Ordered:
    """A column's values in order, also as numbers if all are.

    ``kinds`` are all values that it has; empty if too many. ``spelling`` maps their forms in logs to them.
    """

    texts: Sequence[str]
    numbers: Sequence[float]
    kinds: frozenset[str]
    spelling: Mapping[str, str]


@lru_cache(maxsize=256)
def _ordered(sample: tuple[str, ...]) -> _Ordered:
    texts, kinds = in_order(sample), frozenset(sample)
    numbers = [one for text in texts if (one := measured(text)) is not None]
    is_boolean = kinds <= frozenset(_BOOLEANS.values())
    return _Ordered(
        texts,
        numbers if len(numbers) == len(texts) else (),
        kinds if len(kinds) <= _KINDS else frozenset(),
        _BOOLEANS if is_boolean else {},
    )


def _span(ordered: Sequence[Any], one: object) -> tuple[float, float]:
    return bisect_left(ordered, one) / len(ordered), bisect_right(ordered, one) / len(ordered)


def _coarse(positions: Sequence[float]) -> Iterator[float]:
    """Yield positions, in order, that identify no row of a large table.

    Different ones that are equal when rounded are spread evenly: equal ones mean a single value.
    """
    for rounded, group in groupby(positions, _rounded):
        each = list(group)
        places = {position: place for place, position in enumerate(dict.fromkeys(each))}
        unit = 10 ** (floor(log10(min(rounded, 1 - rounded) or 1)) + 1 - _DIGITS)
        for position in each:
            shift = (places[position] + 1 / 2) / len(places) - 1 / 2
            yield round(min(max(rounded + shift * unit, 0.0), 1.0), 9)


def _rounded(position: float) -> float:
    if position > 1 / 2:
        return 1 - _rounded(1 - position)
    return float(f"{position:.{_DIGITS}g}")
