"""Parameters of a transaction that have the same values, call after call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.workload.capture.seen_ties import Place

_MOST_CALLS = 200  # of a statement: arbitrary; what is equal in them is equal in all
_MOST_PLACES = 100  # of a transaction that are compared, and of a call: arbitrary
_MOST_PAIRS = 200_000  # in all: they take some ten megabytes
_LONGEST = 100  # characters of a value
_EQUAL = 0.95  # of the calls: some transactions may do otherwise
_VARIED = 5  # values: constants that happen to be the same are no tie


@dataclass
class Equalities:
    """Pairs of parameters, the earlier first: how often they were compared, and equal."""

    _calls: Counter[int] = field(default_factory=Counter)
    _compared: Counter[tuple[Place, Place]] = field(default_factory=Counter)
    _equal: Counter[tuple[Place, Place]] = field(default_factory=Counter)
    _values: defaultdict[Place, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, before: dict[Place, str], statement: int, values: Mapping[int, str | None]) -> None:
        """Compare a call's values with those of its transaction ``before``, which they are added to."""
        self._calls[statement] += 1
        is_compared = self._calls[statement] <= _MOST_CALLS
        for number, value in sorted(values.items())[:_MOST_PLACES]:
            if value is None or len(value) > _LONGEST:
                continue
            place = statement, number
            if is_compared:
                self._compare(before, place, value)
            if len(before) < _MOST_PLACES:
                before.setdefault(place, value)

    def earlier(self) -> dict[Place, list[Place]]:
        """Return by parameter those before it that are the same; none of them if they only happened to be."""
        found: dict[Place, list[Place]] = {place: [] for _, place in self._compared}
        for (earlier, place), count in self._compared.items():
            is_same = self._equal[earlier, place] >= _EQUAL * count
            if is_same and len(self._values[place]) >= _VARIED:
                found[place].append(earlier)
        return found

    def _compare(self, before: Mapping[Place, str], place: Place, value: str) -> None:
        if len(self._values[place]) < _VARIED:
            self._values[place].add(value)
        for earlier, other in before.items():
            pair = earlier, place
            if earlier != place and (pair in self._compared or len(self._compared) < _MOST_PAIRS):
                self._compared[pair] += 1
                self._equal[pair] += value == other
