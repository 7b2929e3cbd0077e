"""The statements that take the time: the server's counters, rows that plans read, and waits.

On scratch servers the load's role plans them with the workload's values, and runs those that only read. On
running servers none is run: they are planned with unknown values, by a role whose rights harm nobody.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import LiteralString, TypeAlias

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Unknown
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.statement_counting import NameOf, shape
from pgdyno.measure.statement_plans import PLANNED, in_use, is_generic, planned_statements
from pgdyno.model.experiments.workload import Workload
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.privileges import power_of
from pgdyno.postgres.inspection.named_objects import read_writing_functions
from pgdyno.postgres.planner.rows_read import PlanReading, TableName, reading_of, tables_of
from pgdyno.postgres.planner.sql_text import first_word
from pgdyno.postgres.sampling.planning_share import safe_schema
from pgdyno.postgres.sampling.prepared_plans import (
    Document,
    explain_prepared,
    explain_unknown,
    run_prepared,
)
from pgdyno.postgres.sampling.statement_statistics import (
    CountedTimes,
    StatementStatistics,
    find_statement_statistics,
)
from pgdyno.postgres.statement_counts import Seen, StatementCounts, difference
from pgdyno.postgres.statements import PreparedStatement
from pgdyno.profile.records.profile_record import StatementTime
from pgdyno.workload.capture.statements import is_of_others, reads_alone

StatementWaits: TypeAlias = Mapping[tuple[int, str], int]
"""Samples by query id and wait event."""
Plan: TypeAlias = Callable[[StatementTime], Sequence[Document]]
"""Returns plans of a statement in use; raises ServerError."""

_LEAST_SHARE = 0.01  # arbitrary: of all statements' time; plans of others are not read
_MOST_PLANNED = 12  # arbitrary
_RUNS = 3  # of each statement that only reads
_MOST_WAITS = 3
_OF_TOOLS = "pg_catalog."  # pgdyno's own statements, and psql's and pg_dump's
_TABLE_ROWS: LiteralString = """
SELECT n.nspname, c.relname, c.reltuples FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
 WHERE c.relname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (%s)
"""


def times_of(
    counted: Iterable[CountedTimes], transactions: int, waits: StatementWaits, name_of: NameOf
) -> tuple[StatementTime, ...]:
    """Return the statements per transaction, added up by shape, most time first.

    A single statement of a shape keeps its text.
    """
    groups: defaultdict[str, list[CountedTimes]] = defaultdict(list)
    for one in counted:
        groups[shape(one.sql)].append(one)
    found = (_sum(text, its, transactions, waits, name_of) for text, its in groups.items())
    return tuple(sorted(found, key=lambda one: -one.time_us))


def _sum(
    text: str, counted: Sequence[CountedTimes], transactions: int, waits: StatementWaits, name_of: NameOf
) -> StatementTime:
    names = {name_of(one.sql) for one in counted}
    name = (names.pop() if len(names) == 1 else None) or ""
    return StatementTime(
        counted[0].sql if len(counted) == 1 else text,
        sum(one.calls for one in counted) / transactions,
        sum(one.planning_ms for one in counted) * 1000 / transactions,
        sum(one.executing_ms for one in counted) * 1000 / transactions,
        sum(one.rows for one in counted) / transactions,
        sum(one.blocks for one in counted) / transactions,
        sum(one.wal_records for one in counted) / transactions,
        name=name if name != text else "",
        waits=_shares({one.id for one in counted}, waits),
    )


def _shares(ids: set[int], waits: StatementWaits) -> tuple[tuple[str, float], ...]:
    """Return the shares of the most frequent wait events of statements."""
    seen: Counter[str] = Counter()
    for (number, event), samples in waits.items():
        if number in ids:
            seen[event] += samples
    return tuple((event, samples / seen.total()) for event, samples in seen.most_common(_MOST_WAITS))


@dataclass(frozen=True)
class Read:
    """Statements with the rows that their plans read, and remarks on unknown plans."""

    statements: tuple[StatementTime, ...]
    remarks: tuple[str, ...] = ()


def read_plans_of_arm(
    statements: tuple[StatementTime, ...], arm: Arm, workload: Workload, loads: Loads
) -> Read:
    """Return the statements with the rows that their plans on a scratch server read.

    Raises: GeneratorFailedError, ServerError.
    """
    with arm.losses_explained(), closing(loads.connect(arm, workload)) as connection:
        prepared = {one.name: one for one in reversed(planned_statements(connection, workload, loads))}
        writing = read_writing_functions(connection)

        def plans(statement: StatementTime) -> Sequence[Document]:
            one = prepared.get(statement.name)
            return () if one is None else _run_or_planned(connection, one, workload, writing)

        return _with_plans(statements, connection, plans)


def _run_or_planned(
    connection: Connection, statement: PreparedStatement, workload: Workload, writing: frozenset[str]
) -> Sequence[Document]:
    [[mode]] = connection.execute("SELECT pg_catalog.current_setting('plan_cache_mode')").fetchall()
    found = explain_prepared(connection, statement, is_run=False)
    if not reads_alone(statement.sql, writing):
        return in_use(found, workload, str(mode))
    return run_prepared(connection, statement, _RUNS, is_generic=is_generic(found, workload, str(mode)))


@dataclass(frozen=True)
class TrafficCounting:
    """Reads the statements that a running server counts from ``begin`` to ``end``.

    ``before`` are the counters at the beginning, or the reason why they cannot be read.
    """

    connection: Connection
    before: tuple[StatementStatistics, StatementCounts] | str

    @classmethod
    def begin(cls, connection: Connection) -> TrafficCounting:
        """Read the counters. Raises: ServerError, ConnectionFailedError if the connection is lost."""
        schema = safe_schema(connection)
        if isinstance(schema, Unknown):
            return cls(connection, schema.reason)
        try:
            statistics = find_statement_statistics(connection)
            return cls(connection, (statistics, statistics.read()))
        except ServerError as error:
            if connection.closed:
                raise
            return cls(connection, error.message)

    def end(self, transactions: int, waits: StatementWaits) -> Read:
        """Return the statements counted since then, with their plans; or the reason for none.

        Raises: ServerError, ConnectionFailedError if the connection is lost.
        """

        def read(statistics: StatementStatistics, before: StatementCounts) -> Read:
            counts = difference(before, statistics.read())
            if counts is None:
                raise ServerError("pg_stat_statements was reset")
            found = self._read(statistics, counts.seen, transactions, waits)
            remarks = [f"statements are those of the database {statistics.database}, without their planning"]
            if counts.is_evicting:
                remarks.append("pg_stat_statements evicted statements, which are missing")
            return replace(found, remarks=(*remarks, *found.remarks))

        return self._unless_failed(read)

    def so_far(self) -> Read:
        """Return the statements counted before ``begin``, since the last reset; or the reason for none.

        Raises: ServerError, ConnectionFailedError if the connection is lost.
        """
        return self._unless_failed(lambda statistics, counts: self._read(statistics, counts.seen, 1, {}))

    def _unless_failed(self, read: Callable[[StatementStatistics, StatementCounts], Read]) -> Read:
        reason = self.before
        if not isinstance(reason, str):
            try:
                return read(*reason)
            except ServerError as error:
                if self.connection.closed:
                    raise
                reason = error.message
        return Read((), (f"statements are not distinguished: {reason}",))

    def _read(
        self,
        statistics: StatementStatistics,
        seen: Mapping[int, Seen],
        transactions: int,
        waits: StatementWaits,
    ) -> Read:
        texts = statistics.texts(seen)
        counted = [_counted(number, texts[number], one) for number, one in seen.items() if number in texts]
        of_application = (one for one in counted if _OF_TOOLS not in one.sql and not is_of_others(one.sql))
        return self._planned(times_of(of_application, transactions, waits, lambda _: None))

    def _planned(self, statements: tuple[StatementTime, ...]) -> Read:
        if (power := power_of(self.connection)) is not None:
            remark = (
                f"plans of statements are not read, because the role {power}: connect as the application's "
                "role, with pg_read_all_stats"
            )
            return Read(statements, (remark,))
        return _with_plans(
            statements, self.connection, lambda one: (explain_unknown(self.connection, one.sql),)
        )


def _counted(number: int, text: str, seen: Seen) -> CountedTimes:
    return CountedTimes(
        text, seen.calls, 0.0, seen.time_ms, seen.rows, seen.blocks, seen.wal_records, 0, number
    )


def _with_plans(statements: tuple[StatementTime, ...], connection: Connection, plans: Plan) -> Read:
    """Add the rows read and the dearest nodes to the statements with most of the time."""
    whole, unknown = sum(one.time_us for one in statements) or 1.0, dict[str, str]()
    found: list[StatementTime] = []
    for place, one in enumerate(statements):
        is_planned = place < _MOST_PLANNED and one.time_us >= _LEAST_SHARE * whole
        if is_planned and first_word(one.sql) in PLANNED:
            try:
                found.append(_with_reading(one, plans(one), connection))
                continue
            except ServerError as error:
                if connection.closed:
                    raise
                unknown[one.name or one.sql] = (error.detail or error.message).rstrip(".")
        found.append(one)
    if not unknown:
        return Read(tuple(found))
    some = "the plan of 1 statement is" if len(unknown) == 1 else f"plans of {len(unknown)} statements are"
    return Read(tuple(found), (f"{some} unknown: {next(iter(unknown.values()))}",))


def _with_reading(
    statement: StatementTime, plans: Sequence[Document], connection: Connection
) -> StatementTime:
    if not plans:
        return statement
    nodes = [one["Plan"] for one in plans]
    reading: PlanReading = reading_of(nodes, _table_rows(connection, nodes))
    return replace(
        statement,
        rows_read=reading.rows,
        is_estimated=reading.is_estimated,
        node=reading.node,
        node_share=reading.node_share,
    )


@checked_results()
def _table_rows(connection: Connection, nodes: Sequence[Document]) -> Mapping[TableName, float]:
    tables = frozenset().union(*map(tables_of, nodes))
    with server_errors_converted():
        rows = connection.execute(_TABLE_ROWS, (sorted({name for _, name in tables}),)).fetchall()
    return {(str(schema), str(name)): float(count) for schema, name, count in rows}
