"""A scratch database that its unprivileged owner fills with made-up rows.

Rows may violate the schema's constraints. A violated constraint is dropped, and a note is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from pgdyno.postgres.connection.connection import open_session
from pgdyno.postgres.connection.connection_errors import server_errors_converted, unqualified_name
from pgdyno.postgres.connection.control_connection import LONG_LIMIT_S, ControlConnection
from pgdyno.postgres.process.dump import COPY_ROLE
from pgdyno.postgres.process.instance import Instance

Blocks = Callable[[frozenset[str]], Iterator[tuple[int, bytes]]]
"""Yields pairs of row count and COPY text, with NULL in the given columns."""

# SQLSTATE classes that psycopg maps to OperationalError: program limit exceeded, object not in prerequisite
# state.
_OF_STATEMENTS = {"54", "55"}
_MOST_TRIES = 50  # arbitrary; each drops a constraint or a column's values
_STAGING = sql.Identifier("pg_temp", "pgdyno_rows")
_WITH_CONSTRAINT = """
WITH RECURSIVE above AS (
    SELECT pg_catalog.to_regclass(%s) AS oid
    UNION SELECT i.inhparent
    FROM above a JOIN pg_catalog.pg_inherits i ON i.inhrelid OPERATOR(pg_catalog.=) a.oid
)
SELECT n.nspname, c.relname
FROM above a
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) a.oid
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits i
                  WHERE i.inhrelid OPERATOR(pg_catalog.=) c.oid AND %s)
  AND (NOT %s OR EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k
                         WHERE k.conrelid OPERATOR(pg_catalog.=) c.oid
                           AND k.conname OPERATOR(pg_catalog.=) %s
                           AND k.coninhcount OPERATOR(pg_catalog.=) 0))
"""
_SEQUENCES = """
SELECT sn.nspname, s.relname, tn.nspname, t.relname, a.attname
FROM (SELECT objid AS sequence, refobjid AS owner, refobjsubid AS number FROM pg_catalog.pg_depend
      WHERE classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
        AND refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
        AND refobjsubid OPERATOR(pg_catalog.>) 0
        AND deptype OPERATOR(pg_catalog.=) ANY ('{a,i}'::pg_catalog."char"[])
      UNION SELECT d.refobjid, ad.adrelid, ad.adnum
      FROM pg_catalog.pg_attrdef ad
      JOIN pg_catalog.pg_depend d
           ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
           AND d.objid OPERATOR(pg_catalog.=) ad.oid
           AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
           AND d.deptype OPERATOR(pg_catalog.=) 'n') used
JOIN pg_catalog.pg_class s ON s.oid OPERATOR(pg_catalog.=) used.sequence
     AND s.relkind OPERATOR(pg_catalog.=) 'S'
JOIN pg_catalog.pg_namespace sn ON sn.oid OPERATOR(pg_catalog.=) s.relnamespace
JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) used.owner
     AND t.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}'::pg_catalog."char"[])
JOIN pg_catalog.pg_namespace tn ON tn.oid OPERATOR(pg_catalog.=) t.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) t.oid
     AND a.attnum OPERATOR(pg_catalog.=) used.number
WHERE a.atttypid OPERATOR(pg_catalog.=) ANY (
    '{pg_catalog.int2,pg_catalog.int4,pg_catalog.int8}'::pg_catalog.regtype[])
ORDER BY 1, 2
"""
_IS_PARTITIONED = """
SELECT relkind OPERATOR(pg_catalog.=) 'p' FROM pg_catalog.pg_class
WHERE oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(%s)
"""
_FORCED = """
SELECT n.nspname, c.relname
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relforcerowsecurity
"""


@dataclass(frozen=True)
class Loaded:
    """The number of rows that a table got, and notes on dropped constraints and values."""

    rows: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TableTarget:
    """A table to fill, and the columns of its rows."""

    schema: str
    name: str
    columns: tuple[str, ...]

    @property
    def identifier(self) -> sql.Identifier:
        """The qualified name in SQL."""
        return sql.Identifier(self.schema, self.name)

    @property
    def path(self) -> str:
        """The qualified name for display, unquoted."""
        return f"{self.schema}.{self.name}"


@dataclass
class _Attempt:
    """The state of filling a table: constraints and values dropped for its rows so far."""

    notes: list[str] = field(default_factory=list)
    emptied: set[str] = field(default_factory=set)
    is_staged: bool = False


@dataclass(frozen=True)
class MadeUpCopy:
    """A session of the unprivileged role, with an empty search path. The copy lacks ``left_out``."""

    connection: ControlConnection
    left_out: Sequence[str] = ()

    @classmethod
    def open(cls, server: Instance, database: str, left_out: Sequence[str] = ()) -> MadeUpCopy:
        """Connect to a database of a scratch server. Raises: ServerError."""
        with server_errors_converted():
            dsn = f"host={server.host} port={server.port} user={COPY_ROLE} dbname={database}"
            connection = open_session(dsn)
            connection.answer_limit_s = LONG_LIMIT_S
            connection.execute("SET search_path = ''; SET statement_timeout = 0; SET row_security = on")
        return cls(connection, left_out)

    def fill(self, table: TableTarget, blocks: Blocks, report: Callable[[int], None]) -> Loaded:
        """Fill a table; ``report`` gets the row count of each block. Raises: ServerError."""
        attempt = _Attempt()
        for _ in range(_MOST_TRIES):
            try:
                rows = self._try(table, blocks, attempt, report)
            except psycopg.Error as error:
                self._truncate(table, error)
                if not self._drop_cause(table, error, attempt):
                    message = (error.diag.message_primary or str(error)).strip()
                    why = unqualified_name(message, error.diag.context or "", self.left_out) or message
                    return Loaded(0, (*attempt.notes, f"{table.path} is empty: {why}"))
            else:
                return Loaded(rows, tuple(attempt.notes))
        return Loaded(0, (*attempt.notes, f"{table.path} is empty: it has too many constraints"))

    def set_sequences(self) -> tuple[str, ...]:
        """Set sequences to the highest value of their columns; return notes on failures."""
        notes, highest = [], dict[tuple[str, str], int]()
        with server_errors_converted():
            for *sequence, schema, name, column in self.connection.execute(_SEQUENCES).fetchall():
                query = sql.SQL("SELECT pg_catalog.max({}) FROM {}").format(
                    sql.Identifier(column), sql.Identifier(schema, name)
                )
                [[value]] = self.connection.execute(query).fetchall()
                path = str(sequence[0]), str(sequence[1])
                highest[path] = max(highest.get(path, 0), value or 0)
            for path, value in highest.items():
                identifier = sql.Identifier(*path).as_string(self.connection)
                setting = sql.SQL(
                    "SELECT pg_catalog.setval({}::pg_catalog.regclass, {}) WHERE {} OPERATOR(pg_catalog.>) 0"
                )
                try:
                    self.connection.execute(setting.format(identifier, value, value))
                except psycopg.DataError as error:
                    notes.append(f"sequence {'.'.join(path)}: {error.diag.message_primary}")
        return tuple(notes)

    def refresh(self, views: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        """Refresh materialized views, retrying for dependencies; return notes on those that stay empty."""
        left, errors = list(views), dict[tuple[str, str], str]()
        with server_errors_converted():
            while left:
                failed = [one for one in left if not self._refresh(one, errors)]
                if len(failed) == len(left):
                    break
                left = failed
        return tuple(f"materialized view {'.'.join(one)} is empty: {errors[one]}" for one in left)

    def let_dump(self) -> tuple[str, ...]:
        """Remove FORCE ROW LEVEL SECURITY, so that the owner can dump all rows; return a note per table."""
        with server_errors_converted():
            forced = self.connection.execute(_FORCED).fetchall()
            for schema, name in forced:
                statement = sql.SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY")
                self.connection.execute(statement.format(sql.Identifier(schema, name)))
        return tuple(f"{schema}.{name}: row security is not forced on its owner" for schema, name in forced)

    def _truncate(self, table: TableTarget, error: psycopg.Error) -> None:
        """Free the space of rejected rows. Raises: ServerError if the error was not about rows."""
        with server_errors_converted():
            if _is_of_the_server(error):
                raise error
            path = table.identifier.as_string(self.connection)
            [[is_partitioned]] = self.connection.execute(_IS_PARTITIONED, (path,)).fetchall()
            # Inheriting tables have separate rows, which must stay; partitions have only the table's rows.
            statement = sql.SQL("TRUNCATE {}" if is_partitioned else "TRUNCATE ONLY {}")
            self.connection.execute(statement.format(table.identifier))

    def _try(
        self, table: TableTarget, blocks: Blocks, attempt: _Attempt, report: Callable[[int], None]
    ) -> int:
        if not attempt.is_staged:
            return self._copy(table.identifier, table.columns, blocks(frozenset(attempt.emptied)), report)
        run = self.connection.execute
        run(sql.SQL("DROP TABLE IF EXISTS {}").format(_STAGING))
        run(sql.SQL("CREATE TEMPORARY TABLE pgdyno_rows (LIKE {})").format(table.identifier))
        made = self._copy(_STAGING, table.columns, blocks(frozenset(attempt.emptied)), report)
        [[bound]] = run(
            "SELECT pg_catalog.pg_get_partition_constraintdef(pg_catalog.to_regclass(%s))",
            (table.identifier.as_string(self.connection),),
        ).fetchall()
        columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
        insert = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {} WHERE ").format(
            table.identifier, columns, columns, _STAGING
        )
        rows = run(insert.as_bytes(self.connection) + str(bound).encode()).rowcount
        run(sql.SQL("DROP TABLE {}").format(_STAGING))
        if rows < made:
            attempt.notes.append(
                f"{table.path}: {made - rows} of {made} rows were outside its partition bounds"
            )
        return rows

    def _copy(
        self,
        table: sql.Identifier,
        columns: Sequence[str],
        blocks: Iterator[tuple[int, bytes]],
        report: Callable[[int], None],
    ) -> int:
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        listed = sql.SQL("({})").format(names) if columns else sql.SQL("")
        made = 0
        statement = sql.SQL("COPY {} {} FROM STDIN").format(table, listed)
        with self.connection.cursor().copy(statement) as copy:
            for rows, text in blocks:
                copy.write(text)
                made += rows
                report(rows)
        return made

    def _drop_cause(self, table: TableTarget, error: psycopg.Error, attempt: _Attempt) -> bool:
        """Drop the constraint or values that caused the error; return False if none was found."""
        try:
            if isinstance(error, psycopg.errors.CheckViolation):
                return self._without_check(table, error, attempt)
            if isinstance(error, psycopg.errors.NotNullViolation):
                return self._with_null(table, error, attempt)
        except psycopg.Error:
            return False
        return _without_values(table, error, attempt)

    def _without_check(self, table: TableTarget, error: psycopg.Error, attempt: _Attempt) -> bool:
        diag = error.diag
        if diag.constraint_name is None:  # a partition's bounds
            was_staged, attempt.is_staged = attempt.is_staged, True
            return not was_staged
        drop = sql.SQL("ALTER {} {} DROP CONSTRAINT {}")
        name = sql.Identifier(diag.constraint_name)
        if diag.datatype_name is not None:
            domain = sql.Identifier(diag.schema_name or "pg_catalog", diag.datatype_name)
            self.connection.execute(drop.format(sql.SQL("DOMAIN"), domain, name))
            attempt.notes.append(f"domain {diag.datatype_name} lacks the constraint {diag.constraint_name}")
            return True
        checked = TableTarget(diag.schema_name or table.schema, diag.table_name or table.name, ())
        for schema, owner in self._above(checked, diag.constraint_name):  # may be a hash partition
            self.connection.execute(drop.format(sql.SQL("TABLE"), sql.Identifier(schema, owner), name))
            attempt.notes.append(
                f"{schema}.{owner} lacks the constraint {diag.constraint_name}: made-up rows violate it"
            )
        return True

    def _with_null(self, table: TableTarget, error: psycopg.Error, attempt: _Attempt) -> bool:
        diag = error.diag
        if diag.column_name is None:
            domain = sql.Identifier(diag.schema_name or "pg_catalog", diag.datatype_name or "")
            self.connection.execute(sql.SQL("ALTER DOMAIN {} DROP NOT NULL").format(domain))
            attempt.notes.append(f"domain {diag.datatype_name} allows NULL")
            return True
        for schema, owner in self._above(table, None):
            drop = sql.SQL("ALTER TABLE {} ALTER COLUMN {} DROP NOT NULL")
            self.connection.execute(
                drop.format(sql.Identifier(schema, owner), sql.Identifier(diag.column_name))
            )
        attempt.notes.append(f"{table.path}.{diag.column_name} allows NULL: its type has no made-up values")
        return True

    def _above(self, table: TableTarget, constraint: str | None) -> Sequence[tuple[str, str]]:
        """Return a table's topmost ancestors, or those that define a constraint."""
        is_named = constraint is not None
        path = table.identifier.as_string(self.connection)
        rows = self.connection.execute(
            _WITH_CONSTRAINT, (path, not is_named, is_named, constraint)
        ).fetchall()
        return [(str(schema), str(name)) for schema, name in rows]

    def _refresh(self, view: tuple[str, str], errors: dict[tuple[str, str], str]) -> bool:
        try:
            self.connection.execute(sql.SQL("REFRESH MATERIALIZED VIEW {}").format(sql.Identifier(*view)))
        except psycopg.Error as error:
            if _is_of_the_server(error):
                raise
            errors[view] = error.diag.message_primary or str(error)
            return False
        return True


def _is_of_the_server(error: psycopg.Error) -> bool:
    """Whether an error concerns the server, not the rows: a full disk, a lost connection."""
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "")[:2] not in _OF_STATEMENTS


def _without_values(table: TableTarget, error: psycopg.Error, attempt: _Attempt) -> bool:
    """Drop the values of the column named in the error's context (by COPY); return False if none is."""
    context = error.diag.context or ""
    named = [one for one in table.columns if f", column {one}" in context and one not in attempt.emptied]
    if not named:
        return False
    column = max(named, key=len)
    attempt.emptied.add(column)
    attempt.notes.append(f"{table.path}.{column} is NULL: {error.diag.message_primary}")
    return True
