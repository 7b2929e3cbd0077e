"""The counts of one process as ``valgrind --tool=callgrind`` writes them.

The file is that of --dump-instr=yes --compress-strings=no --compress-pos=no --collect-jumps=yes: an address
before each line of counts. Zeros at the end of a line are left out. A line after ``calls=`` has what the
called function cost, which stands in its own lines too; the one after ``jump=`` and ``jcnd=`` has the jump's
address alone. Source: Callgrind Format Specification, valgrind's manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pgdyno.base.errors import MeasurementError

TAKEN: Final = "jumps, calls, returns"
"""Branches that were taken. A called function is taken to return once."""
_TAKEN_BY: Final = {"calls": 2, "jump": 1, "jcnd": 1}
_BRANCH = re.compile(r"(calls|jump|jcnd)=(\d+)")  # of conditional jumps, those taken come first
_UNKNOWN = "???"


@dataclass
class CodeCounts:
    """Totals by event, and of each file of code how often each of its instructions was executed.

    ``functions`` has the names by file and address. A file named "" is code that is in none: compiled while
    the server ran.
    """

    totals: Mapping[str, int] = field(default_factory=dict)
    executed: dict[str, dict[int, int]] = field(default_factory=dict)
    functions: dict[str, dict[int, str]] = field(default_factory=dict)

    def since(self, before: CodeCounts) -> CodeCounts:
        """Return the additional work of this run over a shorter one of an equal process."""
        return CodeCounts(
            {event: count - before.totals.get(event, 0) for event, count in self.totals.items()},
            {
                code: {at: n - before.executed.get(code, {}).get(at, 0) for at, n in counts.items()}
                for code, counts in self.executed.items()
            },
            self.functions,
        )


def parse_callgrind(lines: Iterable[str]) -> CodeCounts:
    """Return the counts of a file. Raises: MeasurementError if it has no addresses or was not ended."""
    reader = _Reader(CodeCounts())
    for line in lines:
        if line.startswith("0x"):
            reader.take_counts(line)
        else:
            reader.take_words(line)
    if not reader.counts.totals:
        raise MeasurementError("callgrind's output is not complete", detail="it has no totals")
    reader.counts.totals = {**reader.counts.totals, TAKEN: reader.taken}
    return reader.counts


@dataclass
class _Reader:
    """The place in a file: its file of code, its function, and whether the next line has no counts of it."""

    counts: CodeCounts
    events: tuple[str, ...] = ()
    function: str = ""
    is_skipped: bool = False
    taken: int = 0
    executed: dict[int, int] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)

    def take_counts(self, line: str) -> None:
        """Take an instruction's counts, of which the first is how often it was executed."""
        if self.is_skipped:
            self.is_skipped = False
            return
        address, count = line.split(None, 2)[:2]
        at = int(address, 16)
        self.executed[at] = self.executed.get(at, 0) + int(count)
        self.functions[at] = self.function

    def take_words(self, line: str) -> None:
        """Take a line that names the code, function or call of others."""
        if line.startswith("fn="):
            self.function = line[3:].strip().partition("'")[0]  # f'2 is f, called by itself
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
            raise MeasurementError("callgrind has written no addresses")
        elif key == "totals":
            found = map(int, words.split())
            self.counts.totals = dict.fromkeys(self.events, 0) | dict(zip(self.events, found, strict=False))
