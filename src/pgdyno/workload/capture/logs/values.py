"""Values of parameters in a log: numbers and times of some calls, and all values if they are kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from pgdyno.base.text import counted
from pgdyno.workload.capture.positions import DrawnValues
from pgdyno.workload.capture.ranges import TIME_OF_CALL, measured

_MOST_CALLS = 20  # arbitrary: enough for the median of limits and ranges
_MOST_NUMBERS = 100  # per call, from its first parameter on: arbitrary; lists have more
_MOST_VALUES = 1000  # per parameter
_MOST_CHARACTERS = 4_000_000  # for all values: a workload's file is read up to 16 million
_MOST_DRAWN = 1000  # calls per statement with values: arbitrary
_MOST_DRAWN_VALUES = 1_000_000  # of all statements: about 100 MB
_LONGEST_DRAWN = 200  # characters, as in samples of columns


@dataclass
class _Drawn:
    """Values of a random sample of a statement's calls, by parameter number. ``calls`` are all so far."""

    calls: int = 0
    values: list[Mapping[int, str]] = field(default_factory=list)


@dataclass
class Values:
    """Values of parameters. ``kept`` has frequencies by statement and parameter number; None is NULL.

    ``numbers`` are numbers and times of some calls, by statement and then by parameter number: they show the
    widths of ranges. They and the values of calls in ``drawn`` are not written to any file. ``full`` are
    parameters with more values than are kept.
    Without ``is_keeping``, ``kept`` stays empty.
    """

    is_keeping: bool
    kept: defaultdict[int, dict[int, Counter[str | None]]] = field(default_factory=lambda: defaultdict(dict))
    numbers: defaultdict[int, list[Mapping[int, float]]] = field(default_factory=lambda: defaultdict(list))
    full: set[tuple[int, int]] = field(default_factory=set)
    _characters: int = 0
    _drawn: defaultdict[int, _Drawn] = field(default_factory=lambda: defaultdict(_Drawn))
    _drawn_values: int = 0
    _left_out: set[int] = field(default_factory=set)  # statements, for lack of room
    _chance: np.random.Generator = field(
        default_factory=lambda: np.random.default_rng(1)
    )  # equal in all runs

    def add(self, statement: int, values: Mapping[int, str | None], at_s: float | None = None) -> None:
        """Add the values of a call that began at a time."""
        calls = self.numbers[statement]
        if len(calls) < _MOST_CALLS:
            first = islice(values.items(), _MOST_NUMBERS)
            found = ((number, measured(text)) for number, text in first if text)
            call = {number: value for number, value in found if value is not None}
            calls.append(call if at_s is None else {TIME_OF_CALL: at_s} | call)
        if values:
            self._draw(statement, values)
        if self.is_keeping:
            for number, value in values.items():
                self._keep(statement, number, value)

    def drawn(self) -> DrawnValues:
        """Return values of a random sample of calls, by statement and parameter number."""
        found: defaultdict[int, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for statement, its in self._drawn.items():
            for call in () if statement in self._left_out else its.values:
                for number, value in call.items():
                    found[statement][number].append(value)
        return found

    def notes(self) -> Iterator[str]:
        """Yield the limits that were reached."""
        if self._left_out:
            yield (
                f"{_MOST_DRAWN_VALUES:,} values were sampled: the values that the original uses most are "
                f"unknown for {counted(len(self._left_out), 'statement')}"
            )
        if self.full:
            yield (
                f"{len(self.full)} parameters had more values than are kept ({_MOST_VALUES} for each, "
                f"{_MOST_CHARACTERS} characters in total): values are drawn from their columns, or from the "
                "first ones if the column is unknown"
            )

    def _draw(self, statement: int, values: Mapping[int, str | None]) -> None:
        drawn = self._drawn[statement]
        drawn.calls += 1
        place = len(drawn.values)
        if (
            place == _MOST_DRAWN
        ):  # Vitter 1985, ACM Transactions on Mathematical Software 11, 37-57: algorithm R
            place = int(self._chance.integers(drawn.calls))
            if place >= _MOST_DRAWN:
                return
        first = islice(values.items(), _MOST_NUMBERS)
        call = {number: text for number, text in first if text is not None and len(text) <= _LONGEST_DRAWN}
        if place < len(drawn.values):
            drawn.values[place] = call
        elif self._drawn_values + len(call) <= _MOST_DRAWN_VALUES:
            self._drawn_values += len(call)
            drawn.values.append(call)
        else:
            self._left_out.add(statement)

    def _keep(self, statement: int, number: int, value: str | None) -> None:
        counts = self.kept[statement].setdefault(number, Counter())
        if value not in counts:
            size = len(value or "")
            if len(counts) >= _MOST_VALUES or self._characters + size > _MOST_CHARACTERS:
                self.full.add((statement, number))
                return
            self._characters += size
        counts[value] += 1
