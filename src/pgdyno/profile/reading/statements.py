"""Count a scratch server's statements in windows: pg_stat_statements tracks only during these."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pgdyno.measure.arenas.arm import Arm
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.control_connection import ControlConnection
from pgdyno.postgres.sampling.statement_statistics import CountedTimes, read_statement_times
from pgdyno.profile.records.profile_record import StatementTime

LIBRARY = "pg_stat_statements"
DATABASE = "postgres"
"""The extension's database: the database of a copy contains code of its owners."""
_NUMBER = re.compile(r"(?<=[A-Za-z_])\d+\b")
_PRELOADED = "shared_preload_libraries"
_PLANNING = {f"{LIBRARY}.track_planning": "on"}


def counting(variant: Variant) -> Variant:
    """Return a variant that also preloads pg_stat_statements."""
    named = filter(None, (variant.settings.get(_PRELOADED, "").strip(), LIBRARY))
    return replace(variant, settings={**variant.settings, _PRELOADED: ",".join(named), **_PLANNING})


@dataclass(frozen=True)
class StatementCounting:
    """Counts an arm's statements, only in windows. ``session`` is connected to ``DATABASE``."""

    arm: Arm
    session: ControlConnection

    def install(self) -> None:
        """Create the extension, with tracking off and empty statistics."""
        self.session.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public")
        self._track("none")
        self.session.execute("SELECT public.pg_stat_statements_reset()")

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count within the context."""
        self._track("top")
        try:
            yield
        finally:
            self._track("none")

    def times(self, transactions: int) -> tuple[StatementTime, ...]:
        """Return the counts per transaction, by shape, most time first. Raises: ServerError."""
        counted = read_statement_times(self.session, self.arm.database)
        return by_shape(_per_transaction(one, transactions) for one in counted)

    def _track(self, statements: str) -> None:
        self.session.execute(f"ALTER SYSTEM SET pg_stat_statements.track = '{statements}'".encode())
        self.session.execute("SELECT pg_catalog.pg_reload_conf()")


def _per_transaction(one: CountedTimes, transactions: int) -> StatementTime:
    return StatementTime(
        one.sql,
        one.calls / transactions,
        one.planning_ms * 1000 / transactions,
        one.executing_ms * 1000 / transactions,
        one.rows / transactions,
        one.blocks / transactions,
        one.wal_records / transactions,
    )


def by_shape(statements: Iterable[StatementTime]) -> tuple[StatementTime, ...]:
    """Add up the statements of each shape, most time first. A single statement keeps its text."""
    groups: defaultdict[str, list[StatementTime]] = defaultdict(list)
    for one in statements:
        groups[_NUMBER.sub("#", one.sql)].append(one)
    found = (_sum(shape, its) for shape, its in groups.items())
    return tuple(sorted(found, key=lambda one: -(one.planning_us + one.executing_us)))


def _sum(shape: str, statements: list[StatementTime]) -> StatementTime:
    if len(statements) == 1:
        return statements[0]
    return StatementTime(
        shape,
        sum(one.calls for one in statements),
        sum(one.planning_us for one in statements),
        sum(one.executing_us for one in statements),
        sum(one.rows for one in statements),
        sum(one.blocks for one in statements),
        sum(one.wal_records for one in statements),
    )
