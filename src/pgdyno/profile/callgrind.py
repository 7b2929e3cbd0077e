"""Parse the counts of one process, as written by ``valgrind --tool=callgrind``.

The file is written with --dump-instr=yes --compress-strings=no --compress-pos=no --collect-jumps=yes: each
line of counts starts with an address. Trailing zeros of a line are omitted. The line after ``calls=`` has the
inclusive cost of the called function, which that function's own lines contain too. The line after ``jump=``
or ``jcnd=`` has only the jump's address. A longer and a shorter session differ only in their number of
transactions: their difference excludes the work to start and end a session. Source: Callgrind Format
Specification, valgrind's manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pgdyno.base.errors import MeasurementError
from pgdyno.profile.records.microarchitecture import (
    INSTRUCTIONS,
    L1D_MISSES,
    EventCount,
    Mean,
    Microarchitecture,
)

TAKEN: Final = "jumps, calls, returns"
"""Taken branches. Each call is assumed to return once."""
_TAKEN_BY: Final = {"calls": 2, "jump": 1, "jcnd": 1}
_BRANCH = re.compile(r"(calls|jump|jcnd)=(\d+)")  # for conditional jumps, the first number is those taken
_UNKNOWN = "???"


@dataclass
class CodeCounts:
    """Totals by event; ``executed`` is the execution count of each instruction, by code file and address.

    ``functions`` has names by file and address. The file "" is code without a file: compiled at run time.
    """

    totals: Mapping[str, int] = field(default_factory=dict)
    executed: dict[str, dict[int, int]] = field(default_factory=dict)
    functions: dict[str, dict[int, str]] = field(default_factory=dict)

    def since(self, before: CodeCounts) -> CodeCounts:
        """Return the additional work of this run compared to a shorter run of an equal process."""
        return CodeCounts(
            {event: count - before.totals.get(event, 0) for event, count in self.totals.items()},
            {
                code: {at: n - before.executed.get(code, {}).get(at, 0) for at, n in counts.items()}
                for code, counts in self.executed.items()
            },
            self.functions,
        )


def parse_callgrind(lines: Iterable[str]) -> CodeCounts:
    """Return the counts of a file. Raises: MeasurementError if it has no addresses or is truncated."""
    reader = _Reader(CodeCounts())
    for line in lines:
        if line.startswith("0x"):
            reader.take_counts(line)
        else:
            reader.take_words(line)
    if not reader.counts.totals:
        raise MeasurementError("callgrind's output is incomplete", detail="it has no totals")
    reader.counts.totals = {**reader.counts.totals, TAKEN: reader.taken}
    return reader.counts


@dataclass
class _Reader:
    """State of parsing: the current code file and function; ``is_skipped``: the next line is not own cost."""

    counts: CodeCounts
    events: tuple[str, ...] = ()
    function: str = ""
    is_skipped: bool = False
    taken: int = 0
    executed: dict[int, int] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)

    def take_counts(self, line: str) -> None:
        """Add an instruction's counts; the first count is its number of executions."""
        if self.is_skipped:
            self.is_skipped = False
            return
        address, count = line.split(None, 2)[:2]
        at = int(address, 16)
        self.executed[at] = self.executed.get(at, 0) + int(count)
        self.functions[at] = self.function

    def take_words(self, line: str) -> None:
        """Process a line with a name, a call, a jump or a header."""
        if line.startswith("fn="):
            self.function = line[3:].strip().partition("'")[0]  # f'2 is f in a recursive call
        elif branch := _BRANCH.match(line):
            self.taken += int(branch[2]) * _TAKEN_BY[branch[1]]
            self.is_skipped = True
        elif line.startswith("ob="):
            name = line[3:].strip()
            code = "" if name == _UNKNOWN else name
            self.executed = self.counts.executed.setdefault(code, {})
            self.functions = self.counts.functions.setdefault(code, {})
        else:
            self._take_head(line)

    def _take_head(self, line: str) -> None:
        key, _, words = line.partition(":")
        if key == "events":
            self.events = tuple(words.split())
        elif key == "positions" and words.split() != ["instr"]:
            raise MeasurementError("callgrind's output has no addresses")
        elif key == "totals":
            found = map(int, words.split())
            self.counts.totals = dict.fromkeys(self.events, 0) | dict(zip(self.events, found, strict=False))


_FIGURES = {
    INSTRUCTIONS: ("Ir",),
    "data reads": ("Dr",),
    "data writes": ("Dw",),
    "branches": ("Bc", "Bi"),
    "taken branches": (TAKEN,),
    "branch mispredictions": ("Bcm", "Bim"),
    "conditional branches mispredicted": ("Bcm",),
    "indirect branches mispredicted": ("Bim",),
    "L1i misses": ("I1mr",),
    L1D_MISSES: ("D1mr", "D1mw"),
    "L2 misses": ("ILmr", "DLmr", "DLmw"),
}
SIMULATED_LIMITS = (
    "simulated: a single session, PostgreSQL's own code without the kernel's, caches not shared with other "
    "processes, no prefetching, no speculation, a simple branch predictor. The figures rank code layouts and "
    "explain differences; no time can be derived from them"
)


@dataclass(frozen=True)
class SimulatedRun:
    """The work of the additional transactions of a longer session."""

    counts: CodeCounts
    transactions: int

    @property
    def instructions(self) -> float:
        """Instructions per transaction."""
        return self.counts.totals["Ir"] / self.transactions


def of_simulation(source: str, runs: Sequence[SimulatedRun], remarks: Sequence[str]) -> Microarchitecture:
    """Return the figures of equal runs."""
    events = tuple(
        EventCount(
            name,
            Mean(sum(_per_transaction(run, named) for run in runs) / len(runs)),
            " + ".join(named),
        )
        for name, named in _FIGURES.items()
        if all(one in run.counts.totals for run in runs for one in named)
    )
    return Microarchitecture(
        source,
        is_simulated=True,
        events=events,
        repeats_within=spread([run.instructions for run in runs]),
        remarks=(SIMULATED_LIMITS, *remarks),
    )


def _per_transaction(run: SimulatedRun, events: Sequence[str]) -> float:
    return sum(run.counts.totals[one] for one in events) / run.transactions


def spread(values: Sequence[float]) -> float | None:
    """Return the range of the values, relative to the smallest; None for one value."""
    return max(values) / min(values) - 1 if len(values) > 1 else None
