"""Values of columns without a scale: all are generated, in the order of the values in statistics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
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
    ranks_of,
    shape_of,
)
from pgdyno.workload.synthesis.ordering import Integers

TEXTS = frozenset({"text", "varchar", "bpchar", "name", "citext"})
_APART = 1 << 40  # distance of neighbours on the scale of texts: more than a table has rows
_ENOUGH = 13  # characters: enough for more texts than a table has rows
_SHORT_BYTES = 127  # longer values have a header of four bytes instead of one


def made_up_values(
    column: TableColumn, size: RowCounts, *, is_unique: bool, literals: frozenset[str], seed: int
) -> OrderedValues:
    """Return generated values without real data: texts, and other types without a scale."""
    seen = column.statistics or NOTHING_KNOWN
    parse = _order_of(seen)
    shape = shape_of(seen, parse, size.rows, is_unique=is_unique)
    made = distribute(shape, size.rows, size.most_repeats)
    make = _maker(column, seen, made, parse, seed)
    kept = _kept(column, seen, made, parse, make, literals)

    def render(places: Places) -> list[list[str]]:
        texts = make(places.ordinal)
        if kept:
            for at in np.flatnonzero(np.isin(places.ordinal, list(kept))):
                texts[at] = kept[int(places.ordinal[at])]
        return [texts]

    return OrderedValues(made, render, partial(ranks_of, made, parse))


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
    for one in seen.common:
        number = _ordinal(made, parse(one))
        if number is None:
            continue
        if one in literals:
            kept[number] = one
            continue
        [text] = make(np.array([number], dtype=np.int64))
        if text in known:
            kept[number] = _unlike(text, known, alphabet_of((*seen.bounds, *seen.common)))
    return kept


def _unlike(text: str, known: set[str], alphabet: bytes) -> str:
    """Return a text of the same length that is not a known one, by changing its last characters."""
    letters = alphabet.decode()
    others = (text[:-count] + letter * count for count in range(1, len(text) + 1) for letter in letters)
    return next((one for one in others if one not in known), text)
