"""Values of columns without a scale: all are generated, in the order of the values in statistics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from pgdyno.postgres.catalogued_tables import ColumnStatistics, TableColumn
from pgdyno.workload.synthesis.distribution import Distribution, Places, distribute
from pgdyno.workload.synthesis.generated_texts import (
    ALL_CHARACTERS,
    MAKERS,
    alphabet_of,
    bytes_of,
    lengths_like,
    made_up_texts,
)
from pgdyno.workload.synthesis.ordered_values import (
    NOTHING_KNOWN,
    OrderedValues,
    RowCounts,
    distinct_values,
    ranks_of,
    shape_of,
)
from pgdyno.workload.synthesis.ordering import Integers

TEXTS = frozenset({"text", "varchar", "bpchar", "name", "citext"})
_APART = 1 << 40  # distance of neighbours on the scale of texts: more than a table has rows
_ENOUGH = 13  # characters: enough for more texts than a table has rows
_SHORT_BYTES = 127  # longer values have a header of four bytes instead of one
_MOST_COMMON = 10_000  # of a partitioned table; arbitrary: partitions have 100 each, mostly the same ones
_ALL_ROWS = 1 << 40  # more than a table has: no value of it is lost by rounding

Texts = Callable[[Integers], list[str]]
"""Returns the texts of a column's values, given by ordinal."""


def made_up_values(
    column: TableColumn,
    size: RowCounts,
    *,
    is_unique: bool,
    literals: frozenset[str],
    seed: int,
    shared: SharedTexts | None = None,
) -> OrderedValues:
    """Return generated values without real data: texts, and other types without a scale.

    ``shared`` are the texts of a partition's table; a unique column shares none.
    """
    seen = column.statistics or NOTHING_KNOWN
    if shared is not None and not is_unique:
        each = _with_all_values(seen, size.rows)
        shape = shape_of(each, shared.parse, size.rows, is_unique=False)
        made = distribute(shape, size.rows, size.most_repeats)
        ordinals = shared.ordinals(each, made)
        if ordinals is not None:
            return _values(made, shared.parse, lambda numbers: shared.texts(ordinals(numbers)))
    parse = _order_of(seen)
    made = distribute(shape_of(seen, parse, size.rows, is_unique=is_unique), size.rows, size.most_repeats)
    return _values(made, parse, _texts(column, seen, made, parse, literals, seed))


def _values(made: Distribution, parse: Callable[[str], float | None], texts: Texts) -> OrderedValues:
    def render(places: Places) -> list[list[str]]:
        return [texts(places.ordinal)]

    return OrderedValues(made, render, partial(ranks_of, made, parse))


@dataclass(frozen=True)
class SharedTexts:
    """Texts of a column in all partitions of a table: equal values of two partitions are equal texts.

    ``known`` is the distribution of the whole table's values. If the server estimates a fixed number of
    distinct values, partitions are assumed to share all of them; if it grows with the rows, only the common
    ones, and ``shift`` divides the others among the partitions.
    """

    parse: Callable[[str], float | None]
    known: Distribution
    texts: Texts
    is_fixed: bool
    shift: float = 0.0

    def of_part(self, number: int, parts: int) -> SharedTexts:
        """Return the texts of one of a table's partitions."""
        return self if self.is_fixed else replace(self, shift=number / parts)

    def ordinals(self, seen: ColumnStatistics, made: Distribution) -> Callable[[Integers], Integers] | None:
        """Return a function from ordinals of a partition's values to those of the table's.

        None if the partition has more values than the table: two of them would be equal.
        """
        pairs = {
            _ordinal(made, self.parse(one)): _ordinal(self.known, self.parse(one)) for one in seen.common
        }
        same = sorted((own, its) for own, its in pairs.items() if own is not None and its is not None)
        own, theirs = np.array(same, dtype=np.int64).reshape(-1, 2).T
        others, free = made.values - len(own), self.known.values - len(own)
        if others > free:
            return None
        taken = np.sort(theirs) - np.arange(len(theirs))  # of the free ones, the number before each

        def ordinals(numbers: Integers) -> Integers:
            before = np.searchsorted(own, numbers)
            places = ((numbers - before + self.shift) * (free / max(1, others))).astype(np.int64)
            found = places + np.searchsorted(taken, places, side="right")
            at = np.minimum(before, max(0, len(own) - 1))
            return np.where(own[at] == numbers, theirs[at], found) if len(own) else found

        return ordinals


def shared_texts(
    column: TableColumn,
    parts: Collection[tuple[int, ColumnStatistics]],
    literals: frozenset[str],
    seed: int,
) -> SharedTexts:
    """Return the texts of a column in all partitions of a table.

    ``parts`` are the partitions' numbers of rows that are not NULL, and their statistics.
    """
    ordered = [(rows, _with_all_values(its, rows)) for rows, its in sorted(parts, key=lambda one: -one[0])]
    largest = ordered[0][1]
    shares: dict[str, float] = {}
    for rows, its in ordered:
        for text, frequency in zip(its.common, its.frequencies, strict=False):
            shares[text] = shares.get(text, 0.0) + rows * frequency
    common = sorted(shares, key=lambda one: -shares[one])[:_MOST_COMMON]
    is_fixed = largest.distinct > 0
    if is_fixed:
        distinct = max(len(common), *(len(its.common) + _others(its, rows) for rows, its in ordered))
    else:
        distinct = len(common) + sum(_others(its, rows) for rows, its in ordered)
    whole = replace(
        largest,
        null_fraction=0.0,
        distinct=float(max(1, distinct)),
        common=tuple(common),
        frequencies=(0.5 / max(1, len(common)),) * len(common),  # the other half is left for other values
        bounds=next((its.bounds for _, its in ordered if its.bounds), ()),
    )
    parse = _order_of(whole)
    known = distribute(shape_of(whole, parse, _ALL_ROWS, is_unique=False), _ALL_ROWS)
    return SharedTexts(parse, known, _texts(column, whole, known, parse, literals, seed), is_fixed)


def _with_all_values(seen: ColumnStatistics, rows: int) -> ColumnStatistics:
    """Return statistics with bounds as common values if no other values exist, as in a small partition."""
    others = round(distinct_values(seen, rows)) - len(seen.common)
    if others != len(seen.bounds) or len(seen.frequencies) != len(seen.common):
        return seen
    left = max(0.0, 1 - seen.null_fraction - sum(seen.frequencies))
    frequencies = (*seen.frequencies, *(left / others for _ in seen.bounds))
    return replace(seen, common=(*seen.common, *seen.bounds), frequencies=frequencies, bounds=())


def _others(seen: ColumnStatistics, rows: int) -> int:
    """Return the greatest number of values that a distribution has, without the common ones."""
    others = max(0, round(distinct_values(seen, rows)) - len(seen.common))
    return max(others, len(seen.bounds) + len(seen.common)) if seen.bounds else others


def _texts(
    column: TableColumn,
    seen: ColumnStatistics,
    made: Distribution,
    parse: Callable[[str], float | None],
    literals: frozenset[str],
    seed: int,
) -> Texts:
    """Return a generator of texts, some of which are kept."""
    make = _maker(column, seen, made, parse, seed)
    kept = _kept(column, seen, made, parse, make, literals)

    def texts(ordinals: Integers) -> list[str]:
        found = make(ordinals)
        if kept:
            for at in np.flatnonzero(np.isin(ordinals, list(kept))):
                found[at] = kept[int(ordinals[at])]
        return found

    return texts


def _order_of(seen: ColumnStatistics) -> Callable[[str], float | None]:
    """Return a scale with known values in order, at large equal distances."""
    key = next((key for key in (_plain, _folded) if _is_sorted(seen.bounds, key)), _plain)
    known = sorted({*seen.common, *seen.bounds}, key=key)
    keys = [key(one) for one in known]

    def parse(text: str) -> float | None:
        wanted = key(text)
        at = bisect_left(keys, wanted)
        if at < len(keys) and keys[at] == wanted:
            return at * _APART
        if at in {0, len(keys)}:
            return at * _APART - _APART // 2
        return (at - 1) * _APART + 1 + int(_between(wanted, keys[at - 1], keys[at]) * (_APART - 2))

    return parse


def _between(text: str, low: str, high: str) -> float:
    """Return a text's relative position between two others, by the first characters that differ."""
    pairs = enumerate(zip(low, high, strict=False))
    same = next((place for place, (one, other) in pairs if one != other), min(len(low), len(high)))
    start, this, end = (_first_characters(one[same:]) for one in (low, text, high))
    if end <= start:
        return 0.5
    return min(1.0, max(0.0, (this - start) / (end - start)))


def _first_characters(text: str) -> float:
    return sum((min(ord(one), 255) * 256.0 ** -(place + 1) for place, one in enumerate(text[:6])), 0.0)


def _plain(text: str) -> str:
    return text


def _folded(text: str) -> str:
    """Return a text's letters and digits in lower case: most languages sort by these first."""
    return "".join(one for one in text.casefold() if one.isalnum())


def _is_sorted(texts: Sequence[str], key: Callable[[str], str]) -> bool:
    keys = [key(one) for one in texts]
    return all(one <= other for one, other in pairwise(keys))


def _maker(
    column: TableColumn,
    seen: ColumnStatistics,
    made: Distribution,
    parse: Callable[[str], float | None],
    seed: int,
) -> Callable[[Integers], list[str]]:
    """Return a generator of values from their ordinals."""
    known = [bytes_of(one, column.type) for one in (*seen.bounds, *seen.common)]
    header = 1 if seen.width_bytes <= _SHORT_BYTES else 4
    usual = max(1, seen.width_bytes - header)
    own = {_ordinal(made, parse(one)): bytes_of(one, column.type) for one in seen.common}
    numbers = np.array(sorted(one for one in own if one is not None), dtype=np.int64)
    lengths_of_own = np.array([own[int(one)] for one in numbers], dtype=np.int64)
    longest = column.modifier - 4 if column.modifier > 4 and column.type in TEXTS else None
    alphabet = alphabet_of((*seen.bounds, *seen.common))
    if longest is not None and len(alphabet) ** min(longest, _ENOUGH) < made.values:
        alphabet = ALL_CHARACTERS
    between = [bytes_of(one, column.type) for one in seen.bounds] or known

    def make(ordinals: Integers) -> list[str]:
        lengths = lengths_like(ordinals, between, usual if not seen.common else _mean(between, usual), seed)
        if len(numbers):
            at = np.minimum(np.searchsorted(numbers, ordinals), len(numbers) - 1)
            lengths = np.where(numbers[at] == ordinals, lengths_of_own[at], lengths)
        if longest is not None:
            lengths = np.minimum(lengths, longest)
        if column.type in MAKERS:
            return MAKERS[column.type](ordinals, made.values, lengths, seed)
        return [one[:longest] for one in made_up_texts(ordinals, made.values, lengths, alphabet, seed)]

    return make


def _mean(lengths: Sequence[int], usual: int) -> int:
    return round(sum(lengths) / len(lengths)) if lengths else usual


def _ordinal(made: Distribution, value: float | None) -> int | None:
    """Return a common value's ordinal; None if no row of the copy has it."""
    at = np.flatnonzero((made.lows == value) & (made.highs == value))
    return None if value is None or not at.size else int(np.cumsum(made.distinct)[at[0]]) - 1


def _kept(
    column: TableColumn,
    seen: ColumnStatistics,
    made: Distribution,
    parse: Callable[[str], float | None],
    make: Callable[[Integers], list[str]],
    literals: frozenset[str],
) -> Mapping[int, str]:
    """Return by ordinal the texts for common values that occur in the schema, or were generated by chance."""
    if column.type not in TEXTS:
        return {}
    known = {*seen.common, *seen.bounds} - literals
    kept: dict[int, str] = {}
    common = {one: number for one in seen.common if (number := _ordinal(made, parse(one))) is not None}
    texts = make(np.array([*common.values()], dtype=np.int64))
    for (one, number), text in zip(common.items(), texts, strict=True):
        if one in literals:
            kept[number] = one
        elif text in known:
            kept[number] = _unlike(text, known, alphabet_of((*seen.bounds, *seen.common)))
    return kept


def _unlike(text: str, known: set[str], alphabet: bytes) -> str:
    """Return a text of the same length that is not a known one, by changing its last characters."""
    letters = alphabet.decode()
    others = (text[:-count] + letter * count for count in range(1, len(text) + 1) for letter in letters)
    return next((one for one in others if one not in known), text)
