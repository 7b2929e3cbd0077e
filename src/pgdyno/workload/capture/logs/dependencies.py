"""How parameters depend on earlier ones of their transaction, by the values in a log.

A log has no results. A value that a query returned is recognised by the parameters after it: an UPDATE that
raises a counter by one, an INSERT of the number before.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from pgdyno.workload.capture.ties import Place

_MOST_CALLS = 200  # compared per statement: arbitrary; parameters equal in all of them are equal in all calls
_MOST_REPEATED = 3  # calls of a statement compared per transaction: more transactions have more values
_MOST_PLACES = 100  # parameters compared per transaction, and per call: arbitrary
_MOST_PAIRS = 200_000  # in total: they take some ten megabytes
_MOST_ROWS = 100_000  # whose last value is known: arbitrary
_MOST_OF_A_ROW = 20  # parameters of a statement that sets a counter: arbitrary
_LONGEST = 100  # characters of a compared value
_EQUAL = 0.95  # of the calls: some transactions may differ
_VARIED = 5  # changes of value needed: constants that happen to be equal are not a tie
_INTEGER = re.compile(r"-?[0-9]{1,18}")


@dataclass
class TransactionSoFar:
    """Values of the latest call of each statement in a transaction, and the number of its calls."""

    values: dict[int, dict[int, str]] = field(default_factory=dict)
    calls: Counter[int] = field(default_factory=Counter)
    places: int = 0

    def clear(self) -> None:
        """Begin another transaction."""
        self.values.clear()
        self.calls.clear()
        self.places = 0


@dataclass
class _Pair:
    """An earlier parameter and a later one. ``difference`` is that of their first values, if integers.

    ``changes`` counts how often the later one was not as before: a constant is no tie.
    """

    difference: int | None
    last: str = ""
    changes: int = 0
    compared: int = 0
    equal: int = 0
    shifted: int = 0


@dataclass
class Dependencies:
    """Parameters compared with earlier ones, the number of the call, and the last value of a row."""

    _calls: Counter[int] = field(default_factory=Counter)
    # The last key: the earlier statement, or this one, was called several times; the latest call is compared.
    _pairs: dict[tuple[Place, Place, bool], _Pair] = field(default_factory=dict)
    _ordinals: defaultdict[Place, Counter[bool]] = field(default_factory=lambda: defaultdict(Counter))
    _steps: defaultdict[Place, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    _last: dict[int, int] = field(default_factory=dict)  # by hash of the place and the other values

    def add(self, so_far: TransactionSoFar, statement: int, values: Mapping[int, str | None]) -> None:
        """Compare a call's values, and add them to those of its transaction."""
        so_far.calls[statement] += 1
        is_compared = so_far.calls[statement] <= _MOST_REPEATED and self._calls[statement] < _MOST_CALLS
        self._calls[statement] += is_compared
        before = so_far.values.pop(statement, {})
        so_far.places -= len(before)
        own = so_far.values[statement] = {}
        for number, value in sorted(values.items())[:_MOST_PLACES]:
            if value is None or len(value) > _LONGEST:
                continue
            place = statement, number
            if is_compared:
                self._compare(so_far, place, value, before.get(number))
                if _INTEGER.fullmatch(value):
                    self._take_step(place, int(value), values)
            if so_far.places < _MOST_PLACES:
                own[number] = value
                so_far.places += 1

    def earlier(self) -> dict[Place, list[Place]]:
        """Return for each parameter the earlier ones that are the same value, without coincidences."""
        compared = {place: list[Place]() for earlier, place, _ in self._pairs if earlier != place}
        return compared | self._same(is_again=False)

    def again(self) -> dict[Place, list[Place]]:
        """Return the earlier ones that are the same value in the latest of several calls.

        A parameter that is as in the previous call of its statement is among its own.
        """
        return self._same(is_again=True)

    def shifted(self) -> dict[Place, tuple[Place, int]]:
        """Return parameters that differ from an earlier one of another statement by the same number."""
        found: dict[Place, tuple[Place, int]] = {}
        for (earlier, place, is_again), pair in sorted(self._pairs.items(), key=lambda its: -its[1].compared):
            is_shifted = pair.shifted >= _EQUAL * pair.compared and pair.changes >= _VARIED
            if pair.difference and is_shifted and not is_again and earlier[0] != place[0]:
                found.setdefault(place, (earlier, pair.difference))
        return found

    def ordinals(self) -> frozenset[Place]:
        """Return parameters that number the calls of their statement in a transaction from 1."""
        return frozenset(
            place
            for place, counts in self._ordinals.items()
            if counts[True] >= max(_VARIED, _EQUAL * counts.total())
        )

    def steps(self) -> dict[Place, int]:
        """Return parameters that are a constant step from their last value for the same other parameters."""
        found = {}
        for place, counts in self._steps.items():
            [(step, count)] = counts.most_common(1)
            if step and count >= max(_VARIED, _EQUAL * counts.total()):
                found[place] = step
        return found

    def _same(self, *, is_again: bool) -> dict[Place, list[Place]]:
        found: defaultdict[Place, list[Place]] = defaultdict(list)
        for (earlier, place, again), pair in self._pairs.items():
            is_equal = pair.equal >= _EQUAL * pair.compared and pair.changes >= _VARIED
            if is_equal and again is is_again:
                found[place].append(earlier)
        return dict(found)

    def _compare(self, so_far: TransactionSoFar, place: Place, value: str, before: str | None) -> None:
        call = so_far.calls[place[0]]
        if call > 1:  # the first call of a statement that is called once would be 1 by chance
            self._ordinals[place][value == str(call)] += 1
        latest = (
            ((one, number), other) for one, its in so_far.values.items() for number, other in its.items()
        )
        own = () if before is None else ((place, before),)
        for earlier, other in chain(latest, own):
            is_again = earlier == place or (earlier[0] != place[0] and so_far.calls[earlier[0]] > 1)
            pair = self._pairs.get((earlier, place, is_again))
            if pair is None:
                if len(self._pairs) >= _MOST_PAIRS:
                    continue
                pair = self._pairs[earlier, place, is_again] = _Pair(_difference(other, value))
            pair.compared += 1
            pair.changes += value != pair.last
            pair.last = value
            pair.equal += value == other
            pair.shifted += pair.difference is not None and _difference(other, value) == pair.difference

    def _take_step(self, place: Place, value: int, values: Mapping[int, str | None]) -> None:
        """Compare a value with the last one of a call that is equal but for this parameter."""
        if len(values) > _MOST_OF_A_ROW:
            return
        row = hash((place, *(other for number, other in values.items() if number != place[1])))
        before = self._last.get(row)
        if before is not None:
            self._steps[place][value - before] += 1
        if before is not None or len(self._last) < _MOST_ROWS:
            self._last[row] = value


def _difference(earlier: str, later: str) -> int | None:
    are_integers = _INTEGER.fullmatch(earlier) and _INTEGER.fullmatch(later)
    return int(later) - int(earlier) if are_integers else None
