"""The calls of transactions, with their parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    ColumnValue,
    Constant,
    NewKey,
    OneOf,
    Ordinal,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
)
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.parameters import STEP, UNCHANGED, Parameters
from pgdyno.workload.capture.row_use import RowUse
from pgdyno.workload.capture.statements import TransactionPart, executable
from pgdyno.workload.capture.ties import Inferred, Place, inferred, tied, tied_as_seen
from pgdyno.workload.capture.transactions import SeenTransaction

_BEGIN, _COMMIT = "begin", "commit"
_ROLLBACKS = ("rollback", "abort")  # ROLLBACK TO a savepoint may have the first name
_FROM_OTHERS = (SameValue, RangeEnd, NewKey, ReturnedValue, Ordinal)
KeptValues = Mapping[int, Mapping[int, Mapping[str | None, int]]]
"""Frequencies of values by statement and parameter number; None is NULL."""


@dataclass(frozen=True)
class Statements:
    """Statements with their names, parameters and row use, and the kept values of parameters if any.

    ``full`` are parameters, by statement and number, that had more values than were kept. ``earlier`` maps a
    parameter to earlier ones of its transaction with the same value.
    """

    names: Mapping[int, str]
    parameters: Mapping[int, Parameters]
    uses: Mapping[int, RowUse]
    columns: Sequence[Column]
    kept: KeptValues = field(default_factory=dict)
    full: Collection[Place] = ()
    earlier: Mapping[Place, Sequence[Place]] = field(default_factory=dict)
    inferred: Inferred = field(default_factory=Inferred)

    @property
    def rollback(self) -> str:
        """The name of the statement that rolls a block back."""
        return next(name for name in _ROLLBACKS if name not in self.names.values())

    def transaction(self, one: SeenTransaction, *, has_control: bool) -> CapturedTransaction:
        """Return a kind of transaction; ``has_control``: BEGIN and COMMIT are among its calls."""
        drawn = {statement: self._drawn(statement) for statement, _ in one.calls}
        calls = [
            CapturedCall(self.names[statement], times, drawn[statement]) for statement, times in one.calls
        ]
        if one.is_block:
            calls = self._tied(one, calls)
        calls = [
            replace(call, parameters=self._with_values(statement, call.parameters))
            for (statement, _), call in zip(one.calls, calls, strict=True)
        ]
        if one.is_block and not has_control:
            end = self.rollback if one.is_rolled_back else _COMMIT
            calls = [CapturedCall(_BEGIN, 1.0), *calls, CapturedCall(end, 1.0)]
        return CapturedTransaction(one.count, tuple(calls))

    def _tied(self, one: SeenTransaction, calls: Sequence[CapturedCall]) -> list[CapturedCall]:
        keys = frozenset(column.path for column in self.columns if column.is_key)
        numbered = [(statement, call) for (statement, _), call in zip(one.calls, calls, strict=True)]
        uses = {self.names[statement]: self.uses.get(statement, RowUse()) for statement, _ in one.calls}
        replayed = (place for place in self.earlier if place[0] in self.names)
        seen = {(self.names[statement], number) for statement, number in replayed}
        new = {(statement, number) for statement, its in self.parameters.items() for number in its.new}
        deleting = {statement for statement, its in self.uses.items() if its.is_deleted}
        as_seen = tied_as_seen(numbered, keys, self.earlier, new, self.inferred.again, deleting)
        again = self.inferred.again
        steady = {(self.names[its[0]], its[1]) for its in again if its in again[its] and its[0] in self.names}
        found = tied(as_seen, uses, self.columns, seen, steady)
        numbered = [(statement, call) for (statement, _), call in zip(one.calls, found, strict=True)]
        return list(inferred(numbered, uses, self.inferred))

    def _drawn(self, statement: int) -> tuple[Parameter, ...]:
        return self.parameters[statement].drawn if statement in self.parameters else ()

    def _with_values(self, statement: int, drawn: Sequence[Parameter]) -> tuple[Parameter, ...]:
        """Return parameters with kept values, except new ones, returned values, and copies of others."""
        kept, own = self.kept.get(statement, {}), self._drawn(statement)
        new = self.parameters[statement].new if statement in self.parameters else frozenset()

        def is_replaced(number: int, one: Parameter) -> bool:
            is_full = isinstance(one, ColumnValue) and (statement, number) in self.full
            # A value that no row has yet came from the parameter of a later call, which repeats it.
            is_moved = one not in {own[number - 1], STEP, UNCHANGED} and not isinstance(one, ColumnValue)
            is_own = number not in new and not is_moved and not isinstance(one, _FROM_OTHERS)
            return number in kept and is_own and not is_full

        return tuple(
            _one_of(kept[number]) if is_replaced(number, one) else one for number, one in enumerate(drawn, 1)
        )


def control(
    texts: Mapping[int, str], seen: Mapping[int, Seen], kinds: Mapping[int, TransactionPart], rollback: str
) -> Iterator[CapturedStatement]:
    """Yield the statements that begin and end blocks, each in its most frequent form."""
    parts = {
        _BEGIN: TransactionPart.BEGIN,
        _COMMIT: TransactionPart.COMMIT,
        rollback: TransactionPart.ROLLBACK,
    }
    for name, kind in parts.items():
        its = {one: seen[one] for one, part in kinds.items() if part is kind}
        most = max(its, key=lambda one: its[one].calls, default=None)
        sql = kind.name if most is None else executable(texts[most])
        yield CapturedStatement(name, sql, _sum(its.values()), is_prepared=False)


def _sum(all_seen: Collection[Seen]) -> Seen:
    return Seen(
        sum(one.calls for one in all_seen),
        sum(one.time_ms for one in all_seen),
        sum(one.rows for one in all_seen),
        sum(one.blocks for one in all_seen),
        sum(one.wal_records for one in all_seen),
    )


def _one_of(counts: Mapping[str | None, int]) -> Parameter:
    values = {value: count for value, count in counts.items() if value is not None}
    nulls = counts.get(None, 0)
    if not values:
        return Constant(None)
    is_equal = len(set(values.values())) == 1 and not nulls
    weights = () if is_equal else tuple(float(count) for count in values.values())
    return OneOf(tuple(values), weights, float(nulls))
