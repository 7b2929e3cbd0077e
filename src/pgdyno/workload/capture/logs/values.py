"""Values of parameters in a log: whole numbers of some calls, and all values if they are to be kept."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

_MOST_CALLS = 20  # arbitrary: the middle of so many limits and ranges is that of all
_MOST_NUMBERS = 100  # of a call, from its first parameter on: arbitrary; lists have more
_MOST_VALUES = 1000  # of a parameter
_MOST_CHARACTERS = 4_000_000  # of all values: a workload's file is read up to 16 million
_WHOLE = re.compile(r"-?[0-9]{1,18}")


@dataclass
class Values:
    """``kept`` are values by statement and number of the parameter, each with how often it was; None is NULL.

    ``numbers`` are whole numbers of some calls, by statement and then by number of the parameter: they tell
    how long ranges are, and stay in no file. ``full`` are parameters with more values than are kept. Without
    ``is_keeping``, nothing is kept.
    """

    is_keeping: bool
    kept: defaultdict[int, dict[int, Counter[str | None]]] = field(default_factory=lambda: defaultdict(dict))
    numbers: defaultdict[int, list[Mapping[int, int]]] = field(default_factory=lambda: defaultdict(list))
    full: set[tuple[int, int]] = field(default_factory=set)
    _characters: int = 0

    def add(self, statement: int, values: Mapping[int, str | None]) -> None:
        """Take the values of a call."""
        calls = self.numbers[statement]
        if len(calls) < _MOST_CALLS:
            first = islice(values.items(), _MOST_NUMBERS)
            calls.append({number: int(text) for number, text in first if text and _WHOLE.fullmatch(text)})
        if self.is_keeping:
            for number, value in values.items():
                self._keep(statement, number, value)

    def notes(self) -> Iterator[str]:
        """Yield the limits that were reached."""
        if self.full:
            yield (
                f"{len(self.full)} parameters had more values than are kept ({_MOST_VALUES} of each, "
                f"{_MOST_CHARACTERS} characters of all): their columns' are drawn, or the first if no column "
                "is known"
            )

    def _keep(self, statement: int, number: int, value: str | None) -> None:
        counts = self.kept[statement].setdefault(number, Counter())
        if value not in counts:
            size = len(value or "")
            if len(counts) >= _MOST_VALUES or self._characters + size > _MOST_CHARACTERS:
                self.full.add((statement, number))
                return
            self._characters += size
        counts[value] += 1
