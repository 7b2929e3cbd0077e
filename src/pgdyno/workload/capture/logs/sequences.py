"""Sessions' transactions, from the order of their statements in a log."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from pgdyno.workload.capture.statements import ENDS, TransactionPart
from pgdyno.workload.capture.syntax import parameter_count
from pgdyno.workload.capture.transactions import SeenTransaction

MOST_KINDS = 1000
"""Maximum number of kinds of transaction: nobody could edit a file with more."""
MOST_ORDERS = 15
"""Maximum number of orders per kind in a file: arbitrary; TPC-C's new orders of 5 to 15 lines have 11."""
MOST_STEPS = 200
"""Maximum length of an order: arbitrary; nobody could edit longer ones."""
_MOST_WRITTEN = 20_000  # calls and parameters of all orders in a file: some megabytes
_MOST_KEPT_STEPS = 2_000_000  # of all orders in a log: some ten megabytes
_MOST_HELD = 1000  # statements at the beginning of a log, until it is clear whether they were in a block
_REPEATABLE = (TransactionPart.QUERY, None)  # savepoints are used one by one


@dataclass(slots=True)
class LoggedTransaction:
    """A transaction: the number of calls of each statement, and the steps in order.

    A query that is repeated at once is one step; ``times`` has its calls. Steps beyond ``MOST_STEPS`` and one
    more are not kept.
    """

    calls: dict[int, int] = field(default_factory=dict)
    steps: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def add(self, statement: int, part: TransactionPart | None) -> None:
        """Add a call."""
        self.calls[statement] = self.calls.get(statement, 0) + 1
        if part in _REPEATABLE and self.steps[-1:] == [statement]:
            self.times[-1] += 1
        elif len(self.steps) <= MOST_STEPS:
            self.steps.append(statement)
            self.times.append(1)


@dataclass
class _Order:
    """An order of a kind's statements: the number of its transactions, and all calls of each step."""

    count: int
    times: list[int]

    def seen(self, steps: tuple[int, ...], count: int) -> SeenTransaction:
        """Return ``count`` transactions in this order."""
        calls = tuple((one, its / self.count) for one, its in zip(steps, self.times, strict=True))
        return SeenTransaction(count, calls, is_block=len(steps) > 1, is_in_order=True)


@dataclass
class _Kind:
    """Transactions with the same statements, in the order of first calls. ``calls`` are those of all."""

    count: int = 0
    calls: Counter[int] = field(default_factory=Counter)
    orders: dict[tuple[int, ...], _Order] = field(default_factory=dict)

    def chosen(self) -> dict[tuple[int, ...], int]:
        """Return the orders in a file with their numbers of transactions.

        Of too many, each represents equally many transactions of about its length.
        """
        ordered = sorted(self.orders, key=lambda steps: (self._length(steps), steps))
        counts = [self.orders[steps].count for steps in ordered]
        if len(ordered) <= MOST_ORDERS:
            return dict(zip(ordered, counts, strict=True))
        until, chosen = list(accumulate(counts)), Counter[tuple[int, ...]]()
        bounds = [round(until[-1] * at / MOST_ORDERS) for at in range(MOST_ORDERS + 1)]
        for first, end in pairwise(bounds):
            chosen[ordered[bisect_right(until, (first + end) // 2)]] += end - first
        return dict(+chosen)

    def together(self, chosen: Mapping[tuple[int, ...], int]) -> SeenTransaction:
        """Return the transactions of no ``chosen`` order, with all calls of a statement at its first one."""
        left = Counter(self.calls)
        for steps, order in self.orders.items() if chosen else ():
            for one, times in zip(steps, order.times, strict=True):
                left[one] -= times
        count = self.count - sum(chosen.values())
        calls = tuple((one, times / count) for one, times in left.items())
        return SeenTransaction(count, calls, is_block=len(calls) > 1)

    def _length(self, steps: tuple[int, ...]) -> float:
        order = self.orders[steps]
        return sum(order.times) / order.count


@dataclass
class Sequences:
    """Kinds of transaction: the same statements, first called in the same order.

    ``cut`` counts blocks without their beginning or end in the log, ``late`` the transactions of kinds beyond
    the first ``MOST_KINDS``.
    """

    cut: int = 0
    late: int = 0
    _kinds: dict[tuple[int, ...], _Kind] = field(default_factory=dict)
    _kept_steps: int = 0

    def add(self, block: LoggedTransaction) -> None:
        """Count a transaction."""
        kind = self._kinds.get(tuple(block.calls))
        if kind is None:
            if len(self._kinds) >= MOST_KINDS:
                self.late += 1
                return
            kind = self._kinds[tuple(block.calls)] = _Kind()
        kind.count += 1
        for one, times in block.calls.items():
            kind.calls[one] += times
        steps = tuple(block.steps)
        order = kind.orders.get(steps)
        if order is not None:
            order.count += 1
            order.times = [one + other for one, other in zip(order.times, block.times, strict=True)]
        elif len(steps) <= MOST_STEPS and self._kept_steps < _MOST_KEPT_STEPS:
            self._kept_steps += len(steps)
            kind.orders[steps] = _Order(1, block.times)

    def notes(self, texts: Mapping[int, str]) -> Iterator[str]:
        """Yield the transactions that are left out, or have a different order."""
        if self.cut:
            yield f"{self.cut} transactions left out: incomplete at the beginning or end of the log"
        if self.late:
            yield f"{self.late} transactions left out: they are not of the first {MOST_KINDS} kinds"
        similar = together = 0
        for kind, chosen in self._chosen(texts):
            together += kind.count - sum(chosen.values())
            similar += sum(max(0, count - kind.orders[steps].count) for steps, count in chosen.items())
        if similar:
            yield (
                f"{similar} transactions are replayed in the order of similar ones: a kind has at most "
                f"{MOST_ORDERS} orders of its statements"
            )
        if together:
            yield (
                f"{together} transactions are replayed with all calls of a statement together: they have "
                f"more than {MOST_STEPS} calls, or too many orders for a file"
            )

    def kinds(self, texts: Mapping[int, str]) -> Iterator[SeenTransaction]:
        """Yield the kinds of transaction in their orders; BEGIN and COMMIT are among the steps of blocks.

        ``texts`` are the statements.
        """
        for kind, chosen in self._chosen(texts):
            for steps, count in chosen.items():
                yield kind.orders[steps].seen(steps, count)
            if sum(chosen.values()) < kind.count:
                yield kind.together(chosen)

    def _chosen(self, texts: Mapping[int, str]) -> Iterator[tuple[_Kind, dict[tuple[int, ...], int]]]:
        """Yield the kinds with the orders in a file; none if a file has no room for them."""
        widths, room = {one: 1 + parameter_count(sql) for one, sql in texts.items()}, _MOST_WRITTEN
        for kind in sorted(self._kinds.values(), key=lambda one: -one.count):
            chosen = kind.chosen()
            repeating = [steps for steps in chosen if len(chosen) > 1 or len({*steps}) < len(steps)]
            size = sum(widths[one] for steps in repeating for one in steps)
            if size > room:
                yield kind, {}
            else:
                room -= size
                yield kind, chosen


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
    _block: LoggedTransaction | None = None
    _begin: int = 0
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
            self.leave()
            self._begin = statement
            self._open(time_s[0])
        elif part in ENDS:
            self._end(statement, time_s[1], chains=chains)
        elif self._block is not None:
            self._block.add(statement, part)
        elif self.is_known:
            self._add_single(statement)
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

    def _open(self, at_s: float | None) -> None:
        self._block, self.began_s = LoggedTransaction(), at_s
        self._block.add(self._begin, TransactionPart.BEGIN)

    def _end(self, statement: int, at_s: float | None, *, chains: bool) -> None:
        if self._block is not None:
            self._block.add(statement, TransactionPart.COMMIT)
            self.to.add(self._block)
            if self.began_s is not None and at_s is not None:
                self.busy_s += max(0.0, at_s - self.began_s)
            self._block, self.began_s = None, None
            if chains:
                self._open(at_s)
        elif not self.is_known:
            self._held.clear()
            self.to.cut += 1
        self.is_known = True

    def _release_held(self) -> None:
        """Count each held statement as a separate transaction."""
        for one in self._held:
            self._add_single(one)
        self._held.clear()
        self.is_known = True

    def _add_single(self, statement: int) -> None:
        single = LoggedTransaction()
        single.add(statement, None)
        self.to.add(single)
