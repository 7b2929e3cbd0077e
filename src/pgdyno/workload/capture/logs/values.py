"""Values of parameters in a log: numbers and times of some calls, and all values if they are kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from pgdyno.workload.capture.ranges import TIME_OF_CALL, measured

_MOST_CALLS = 20  # arbitrary: enough for the median of limits and ranges
_MOST_NUMBERS = 100  # per call, from its first parameter on: arbitrary; lists have more
_MOST_VALUES = 1000  # per parameter
_MOST_CHARACTERS = 4_000_000  # for all values: a workload's file is read up to 16 million


@dataclass
class Values:
    """Values of parameters. ``kept`` has frequencies by statement and parameter number; None is NULL.

    ``numbers`` are numbers and times of some calls, by statement and then by parameter number: they show the
    widths of ranges, and are not written to any file. ``full`` are parameters with more values than are kept.
    Without ``is_keeping``, ``kept`` stays empty.
    """

    is_keeping: bool
    kept: defaultdict[int, dict[int, Counter[str | None]]] = field(default_factory=lambda: defaultdict(dict))
    numbers: defaultdict[int, list[Mapping[int, float]]] = field(default_factory=lambda: defaultdict(list))
    full: set[tuple[int, int]] = field(default_factory=set)
    _characters: int = 0

    def add(self, statement: int, values: Mapping[int, str | None], at_s: float | None = None) -> None:
        """Add the values of a call that began at a time."""
        calls = self.numbers[statement]
        if len(calls) < _MOST_CALLS:
            first = islice(values.items(), _MOST_NUMBERS)
            found = ((number, measured(text)) for number, text in first if text)
            call = {number: value for number, value in found if value is not None}
            calls.append(call if at_s is None else {TIME_OF_CALL: at_s} | call)
        if self.is_keeping:
            for number, value in values.items():
                self._keep(statement, number, value)

    def notes(self) -> Iterator[str]:
        """Yield the limits that were reached."""
        if self.full:
            yield (
                f"{len(self.full)} parameters had more values than are kept ({_MOST_VALUES} for each, "
                f"{_MOST_CHARACTERS} characters in total): values are drawn from their columns, or from the "
                "first ones if the column is unknown"
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
