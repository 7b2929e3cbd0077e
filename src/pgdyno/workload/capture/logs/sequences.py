"""The transactions of sessions, as their statements follow each other in a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pgdyno.workload.capture.statements import TransactionPart
from pgdyno.workload.capture.transactions import SeenTransaction

MOST_KINDS = 1000
"""Of transactions that are told apart: a file with more is nothing for people."""
_MOST_HELD = 1000  # statements at the beginning of a log, until it shows whether they were in a block


@dataclass
class Sequences:
    """Kinds of transactions: the same statements in the same order, however often each is repeated.

    ``cut`` counts blocks that the log has no beginning or no end of, ``late`` transactions of kinds that came
    after the first that are told apart.
    """

    cut: int = 0
    late: int = 0
    _counts: Counter[tuple[int, ...]] = field(default_factory=Counter)
    _calls: dict[tuple[int, ...], Counter[int]] = field(default_factory=dict)

    def add(self, calls: dict[int, int]) -> None:
        """Count a transaction: statements in order, each with how often it was called."""
        kind = tuple(calls)
        if kind not in self._counts and len(self._counts) >= MOST_KINDS:
            self.late += 1
            return
        self._counts[kind] += 1
        self._calls.setdefault(kind, Counter()).update(calls)

    def kinds(self) -> Iterator[SeenTransaction]:
        """Yield the kinds of transactions; BEGIN and COMMIT are among the statements of blocks."""
        for kind, count in self._counts.items():
            calls = tuple((one, self._calls[kind][one] / count) for one in kind)
            yield SeenTransaction(count, calls, is_block=len(kind) > 1)


@dataclass
class LoggedSession:
    """A session, and the transaction that it is in.

    ``is_known``: the log has its beginning. Otherwise its first statements may be the end of a block.
    """

    to: Sequences
    is_known: bool
    began_s: float | None = None
    busy_s: float = 0.0
    _block: dict[int, int] | None = None
    _held: list[int] = field(default_factory=list)

    @property
    def is_in_block(self) -> bool:
        """Whether a transaction has begun by BEGIN."""
        return self._block is not None

    def run(
        self,
        statement: int,
        part: TransactionPart | None,
        time_s: tuple[float | None, float | None],
        *,
        chains: bool,
    ) -> None:
        """Take the next statement, its beginning and end; ``chains``: another block follows at once."""
        if part is TransactionPart.BEGIN:
            self._begin(statement, time_s[0])
        elif part is TransactionPart.END:
            self._end(statement, time_s[1], chains=chains)
        elif self._block is not None:
            self._block[statement] = self._block.get(statement, 0) + 1
        elif self.is_known:
            self.to.add({statement: 1})
        else:
            self._held.append(statement)
            if len(self._held) > _MOST_HELD:
                self._let_go()

    def leave(self) -> None:
        """Take the end of the log, or of the session."""
        self._let_go()
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

    def _let_go(self) -> None:
        """Take the statements that were held for transactions of their own."""
        for one in self._held:
            self.to.add({one: 1})
        self._held.clear()
        self.is_known = True
