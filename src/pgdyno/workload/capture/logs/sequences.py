"""Sessions' transactions, from the order of their statements in a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pgdyno.workload.capture.statements import ENDS, TransactionPart
from pgdyno.workload.capture.transactions import SeenTransaction

MOST_KINDS = 1000
"""Maximum number of kinds of transaction: nobody could edit a file with more."""
_MOST_HELD = 1000  # statements at the beginning of a log, until it is clear whether they were in a block


@dataclass
class Sequences:
    """Kinds of transaction: the same statements in the same order, however often each is repeated.

    ``cut`` counts blocks without their beginning or end in the log, ``late`` the transactions of kinds beyond
    the first ``MOST_KINDS``.
    """

    cut: int = 0
    late: int = 0
    _counts: Counter[tuple[int, ...]] = field(default_factory=Counter)
    _calls: dict[tuple[int, ...], Counter[int]] = field(default_factory=dict)

    def add(self, calls: dict[int, int]) -> None:
        """Count a transaction: statements in order, each with its number of calls."""
        kind = tuple(calls)
        if kind not in self._counts and len(self._counts) >= MOST_KINDS:
            self.late += 1
            return
        self._counts[kind] += 1
        self._calls.setdefault(kind, Counter()).update(calls)

    def notes(self) -> Iterator[str]:
        """Yield the transactions that are left out."""
        if self.cut:
            yield f"{self.cut} transactions left out: incomplete at the beginning or end of the log"
        if self.late:
            yield f"{self.late} transactions left out: they are not of the first {MOST_KINDS} kinds"

    def kinds(self) -> Iterator[SeenTransaction]:
        """Yield the kinds of transaction; BEGIN and COMMIT are among the statements of blocks."""
        for kind, count in self._counts.items():
            calls = tuple((one, self._calls[kind][one] / count) for one in kind)
            yield SeenTransaction(count, calls, is_block=len(kind) > 1)


@dataclass
class LoggedSession:
    """A session and its current transaction.

    ``is_known``: the log has the session's beginning. Otherwise its first statements may be the end of a
    block.
    """

    to: Sequences
    is_known: bool
    began_s: float | None = None
    busy_s: float = 0.0
    _block: dict[int, int] | None = None
    _held: list[int] = field(default_factory=list)

    @property
    def is_in_block(self) -> bool:
        """Whether the session is in a transaction begun with BEGIN."""
        return self._block is not None

    def run(
        self,
        statement: int,
        part: TransactionPart | None,
        time_s: tuple[float | None, float | None],
        *,
        chains: bool,
    ) -> None:
        """Add the next statement with its start and end; ``chains``: it begins another block at once."""
        if part is TransactionPart.BEGIN:
            self._begin(statement, time_s[0])
        elif part in ENDS:
            self._end(statement, time_s[1], chains=chains)
        elif self._block is not None:
            self._block[statement] = self._block.get(statement, 0) + 1
        elif self.is_known:
            self.to.add({statement: 1})
        else:
            self._held.append(statement)
            if len(self._held) > _MOST_HELD:
                self._release_held()

    def leave(self) -> None:
        """Complete the session at its end or at the end of the log."""
        self._release_held()
        if self._block is not None:
            self.to.cut += 1
            self._block = None

    def _begin(self, statement: int, at_s: float | None) -> None:
        self.leave()
        self._block, self.began_s = {statement: 1}, at_s

    def _end(self, statement: int, at_s: float | None, *, chains: bool) -> None:
        if self._block is not None:
            first = next(iter(self._block))
            self._block[statement] = self._block.get(statement, 0) + 1
            self.to.add(self._block)
            if self.began_s is not None and at_s is not None:
                self.busy_s += max(0.0, at_s - self.began_s)
            self._block, self.began_s = ({first: 1}, at_s) if chains else (None, None)
        elif not self.is_known:
            self._held.clear()
            self.to.cut += 1
        self.is_known = True

    def _release_held(self) -> None:
        """Count each held statement as a separate transaction."""
        for one in self._held:
            self.to.add({one: 1})
        self._held.clear()
        self.is_known = True
