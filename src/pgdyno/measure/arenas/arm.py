"""One variant in one round: its server, its load, and its meter readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, LiteralString, Protocol

import psycopg
from psycopg.conninfo import make_conninfo

from pgdyno.base.errors import ServerCrashedError, ServerError
from pgdyno.load._contract import Target
from pgdyno.measure.meters import MeterModule
from pgdyno.model.experiments.metric import METRICS, Readings
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.connection import open_session
from pgdyno.postgres.connection.connection_errors import control_failed
from pgdyno.postgres.connection.control_connection import (
    OWN_SESSION,
    ControlConnection,
    Settings,
    set_for_session,
)
from pgdyno.postgres.connection.libpq_environment import LIBPQ_VARIABLES
from pgdyno.postgres.process.instance import DATABASE
from pgdyno.postgres.process.processes import CpuClock, children, cpu_ns, read_process, threads

# A database or role may set a search path with planted operators, and its own limits.
# Our queries take milliseconds; reading the size of a large database under load takes seconds. Sessions stay
# idle for rounds.
_LIMITED: Settings = {
    **OWN_SESSION,
    "statement_timeout": "120s",
    "lock_timeout": "0",
    "application_name": "pgdyno",
}
_ANSWER_LIMIT_S = 125.0  # a server that enforces its statement timeout answers by then
# Invariants name the data set's tables without a schema.
_IN_PUBLIC: LiteralString = "SET search_path = pg_catalog, public"
_UNLIMITED: LiteralString = "SET statement_timeout = 0"
# Meter queries must not add work: with parallel costs of zero, even a query on a view uses workers.
_WITHOUT_WORKERS: Settings = {**_LIMITED, "max_parallel_workers_per_gather": "0"}
_AS_CONFIGURED: LiteralString = "RESET ALL; SET search_path = ''"
_EFFECTIVE = """
SELECT pg_catalog.lower(name), CASE WHEN name OPERATOR(pg_catalog.=) 'search_path' THEN reset_val
                                    ELSE pg_catalog.current_setting(name) END
FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) ANY (%s)
"""

_SESSIONS = """
SELECT pid FROM pg_catalog.pg_stat_activity
WHERE backend_type OPERATOR(pg_catalog.=) 'client backend'
  AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
  AND datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
"""
_RELATIONS = "SELECT relname FROM pg_catalog.pg_class WHERE relname OPERATOR(pg_catalog.~~) 'pg_stat%'"

Rows = psycopg.Cursor[tuple[Any, ...]]

_PREWARM_SCHEMA = """
SELECT pg_catalog.quote_ident(n.nspname)
FROM pg_catalog.pg_extension e
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
WHERE e.extname OPERATOR(pg_catalog.=) 'pg_prewarm'
"""
# All arguments with types: a copy may have another function of that name with fewer arguments.
_PREWARM = """
SELECT pg_catalog.sum({}.pg_prewarm(
    c.oid::pg_catalog.regclass, 'buffer'::pg_catalog.text, 'main'::pg_catalog.text,
    NULL::pg_catalog.int8, NULL::pg_catalog.int8))
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'i', 'm']::pg_catalog."char"[])
  AND n.nspname OPERATOR(pg_catalog.<>) ALL (
      ARRAY['pg_catalog', 'information_schema', 'pg_toast']::pg_catalog.name[])
"""


class RunningServer(Protocol):
    """A server to measure: started by pgdyno, or attached."""

    @property
    def host(self) -> str:
        """Its address, or the directory of its Unix socket."""
        ...

    @property
    def port(self) -> int:
        """Its port."""
        ...

    @property
    def user(self) -> str:
        """The role that pgdyno connects as."""
        ...

    @property
    def dsn(self) -> str:
        """The connection string for inspecting it."""
        ...

    @property
    def pid(self) -> int | None:
        """The postmaster's PID; None on another host. Raises: ServerCrashedError if it has exited."""
        ...

    def connect(self, database: str) -> ControlConnection:
        """Open a control connection without statement timeout; never used for load."""
        ...

    def last_log_lines(self) -> str:
        """Return the last lines of its log, or where to find them."""
        ...

    def stop(self, *, is_immediate: bool = False) -> None:
        """Release the server: stop it if pgdyno started it."""
        ...


@dataclass
class Arm:
    """A variant's running server, its database, and the CPU time of its load."""

    variant: Variant
    server: RunningServer
    database: str = DATABASE
    environment: Mapping[str, str] = field(default_factory=dict)  # for generators: a password, if any
    begin_turn: Callable[[], None] | None = None  # sets the kernel files that only this variant needs
    read_client_cpu_us: Callable[[], tuple[float, ...] | None] | None = None  # the load's, once it runs
    _connection: ControlConnection | None = field(default=None, init=False)
    _last_read: dict[str, dict[int, float]] = field(default_factory=dict, init=False)

    def prewarm(self) -> None:
        """Read the data set into shared buffers, up to their size, and into the page cache."""
        schema = self._execute(_PREWARM_SCHEMA).fetchone()
        if schema is not None:
            self._execute_unlimited(_PREWARM.format(schema[0]))

    def effective(self, names: Iterable[str]) -> dict[str, str]:
        """Return the settings in effect, as SHOW displays them, by lower-case name."""
        rows = self._execute_after(
            _AS_CONFIGURED,  # otherwise our limits would be returned as the server's
            _EFFECTIVE,
            (list(names),),
        )
        return dict(rows.fetchall())

    def holds(self, condition: str) -> bool:
        """Whether a query returns true."""
        return self._execute_after(_IN_PUBLIC, condition).fetchone() == (True,)

    def checkpoint(self) -> None:
        """Run a checkpoint."""
        self._execute_unlimited("CHECKPOINT")

    def connect(self) -> ControlConnection:
        """Open a control connection with a statement timeout and an empty search path."""
        with ExitStack() as stack:
            connection = stack.enter_context(closing(self.server.connect(self.database)))
            connection.answer_limit_s = _ANSWER_LIMIT_S
            set_for_session(connection, _LIMITED)
            stack.pop_all()
        return connection

    def connect_like_its_load(self) -> ControlConnection:
        """Open a session as generators do: same role, database, address and environment, no settings."""
        target = self.target()
        given = {
            keyword: self.environment[variable]
            for keyword, variable in LIBPQ_VARIABLES.items()
            if variable in self.environment
        }
        conninfo = make_conninfo(
            host=target.host, port=target.port, user=target.user, dbname=target.database, **given
        )
        connection = open_session(conninfo)
        connection.answer_limit_s = _ANSWER_LIMIT_S
        return connection

    def lost(self, error: psycopg.OperationalError) -> ServerError:
        """Return the error for a control connection that failed to open, or was lost."""
        try:
            self.server.pid  # noqa: B018 — it raises if the server exited
        except ServerCrashedError:
            is_running = False
        else:
            is_running = True
        log = self.server.last_log_lines()
        return control_failed(error, f"the server of {self.variant.name}", log, is_running=is_running)

    @contextmanager
    def losses_explained(self) -> Iterator[None]:
        """Raise ServerCrashedError, with the server's log, for further sessions that it lost by exiting.

        Raises: ServerError otherwise.
        """
        try:
            yield
        except psycopg.OperationalError as error:
            raise self.lost(error) from error
        except ServerError as error:
            if isinstance(error.__cause__, psycopg.OperationalError):
                raise self.lost(error.__cause__) from error
            raise

    def target(self) -> Target:
        """Return where generators connect to."""
        return Target(self.server.host, self.server.port, self.server.user, self.database)

    def cpu_clock(self) -> CpuClock:
        """Return a CPU clock over the server's current processes."""
        return CpuClock.of(self.server_pids())

    def close(self) -> None:
        """Close the connection and stop the server at once; its data are no longer needed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self.server.stop(is_immediate=True)

    # The following methods implement ``MeterContext``.

    def server_pids(self) -> tuple[int, ...]:
        """Return the PIDs of the postmaster and its children; empty if they run on another host."""
        pid = self.server.pid
        return () if pid is None else (pid, *children(pid))

    def session_pids(self) -> tuple[int, ...]:
        """Return the PIDs of the database's other sessions; on a scratch server, those of the load."""
        return tuple(pid for (pid,) in self._execute(_SESSIONS).fetchall())

    @property
    def postmaster_pid(self) -> int:
        """The postmaster's PID; only for servers started by pgdyno."""
        pid = self.server.pid
        assert pid is not None  # noqa: S101 — servers started by pgdyno run on this host
        return pid

    def client_cpu_us(self) -> tuple[float, ...] | None:
        """Return the load's CPU time so far, in µs by host; None if no load runs."""
        return None if self.read_client_cpu_us is None else self.read_client_cpu_us()

    def cpu_ns(self, pid: int) -> int | None:
        """Return the CPU time of all threads of a process, in ns; None if it has exited."""
        return cpu_ns(pid)

    def read_process(self, pid: int, name: str) -> str | None:
        """Return ``/proc/PID/NAME``; None if the process has exited or it may not be read."""
        return read_process(pid, name)

    def threads(self, pid: int) -> tuple[int, ...]:
        """Return the TIDs of a process, its own first; empty if it has exited."""
        return threads(pid)

    def add_up(self, counter: str, by_pid: Mapping[int, float]) -> float:
        """Return the sum over all processes seen so far; exited ones count as last read."""
        known = self._last_read.setdefault(counter, {})
        known.update(by_pid)
        return sum(known.values())

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises: as ``_execute``."""
        return self._execute(sql).fetchall()

    def query(self, sql: str) -> tuple[float | None, ...]:
        """Return the single row of a query, as floats."""
        row = self._execute(sql).fetchone()
        assert row is not None  # noqa: S101 — meters' queries are aggregates
        return tuple(None if value is None else float(value) for value in row)

    def has_relation(self, name: str) -> bool:
        """Whether the server has a table or view of this name."""
        return name in self._known_relations

    @cached_property
    def _known_relations(self) -> frozenset[str]:
        rows = self._execute(_RELATIONS)
        return frozenset(name for (name,) in rows)

    def _execute(self, sql: str, parameters: tuple[object, ...] | None = None) -> Rows:
        """Run a statement on the control connection, which is opened at first use.

        Raises: ServerCrashedError, with the server's log, if the server has exited; ServerError if it rejects
        the connection or does not answer in time.
        """
        try:
            if self._connection is None:
                self._connection = self.connect()
                set_for_session(self._connection, _WITHOUT_WORKERS)
            return self._connection.execute(sql.encode(), parameters)
        except psycopg.OperationalError as error:
            raise self.lost(error) from error

    def _execute_after(
        self, setup: LiteralString, sql: str, parameters: tuple[object, ...] | None = None
    ) -> Rows:
        """Run a statement after another one that sets up the session. Raises: as ``_execute``."""
        self._execute(setup)
        rows = self._execute(sql, parameters)
        self._limit()
        return rows

    def _limit(self) -> None:
        """Restore pgdyno's session settings. Raises: as ``_execute``."""
        assert self._connection is not None  # noqa: S101 — just used
        try:
            set_for_session(self._connection, _WITHOUT_WORKERS)
        except psycopg.OperationalError as error:
            raise self.lost(error) from error

    def _execute_unlimited(self, sql: str) -> None:
        """Run a statement without time limit. Raises: as ``_execute``."""
        self._execute(_UNLIMITED)
        assert self._connection is not None  # noqa: S101 — just used
        try:
            with self._connection.waiting_for_hours(self.connect):
                self._connection.execute(sql.encode())
        except psycopg.OperationalError as error:
            raise self.lost(error) from error
        self._limit()


@dataclass(frozen=True)
class ServerClocks:
    """CPU clocks over the arms' server processes that exist at one moment."""

    pids: Sequence[tuple[int, ...]]
    clocks: Sequence[CpuClock]

    @classmethod
    def of(cls, arms: Sequence[Arm]) -> ServerClocks:
        """Return clocks over the servers' current processes."""
        pids = [arm.server_pids() for arm in arms]
        return cls(pids, [CpuClock.of(of_arm) for of_arm in pids])

    def read_cpu_ns(self) -> tuple[int, ...]:
        """Return the CPU time of each arm's server so far."""
        return tuple(clock.read_ns() for clock in self.clocks)


def read_meters(meters: Iterable[MeterModule], arm: Arm) -> Readings:
    """Return the current readings of an arm's meters, without those that cannot be read."""
    read = ((meter.METER.metric, meter.read(arm)) for meter in meters)
    return {metric: counters for metric, counters in read if counters is not None}


def meter_values(meters: Iterable[MeterModule], deltas: Readings, transactions: int) -> dict[str, float]:
    """Return the metrics computed from meter increments, by name; without undefined ones."""
    return {
        metric: value
        for meter in meters
        if (metric := meter.METER.metric) in deltas
        and (value := meter.value(deltas[metric], transactions)) is not None
    }


def difference(before: Readings, after: Readings) -> Readings:
    """Return after minus before, for the metrics in both; for a level metric, the value after."""
    return {
        metric: counters
        if METRICS[metric].is_level
        else tuple(b - a for a, b in zip(before[metric], counters, strict=True))
        for metric, counters in after.items()
        if metric in before
    }
