"""Parse the counts of one process, as written by ``valgrind --tool=callgrind``.

The file is written with --dump-instr=yes --compress-strings=no --compress-pos=no --collect-jumps=yes: each
line of counts starts with an address. Trailing zeros of a line are omitted. The line after ``calls=`` has the
inclusive cost of the called function, which that function's own lines contain too. The line after ``jump=``
or ``jcnd=`` has only the jump's address. Source: Callgrind Format Specification, valgrind's manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pgdyno.base.errors import MeasurementError

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
