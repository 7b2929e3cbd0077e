"""SQL queries for a sample's rows, and the scratch database that receives them.

Values are converted to text with ``concat``, which uses the types' output functions: a cast may be a function
created by a user of the database. Comparisons use the foreign keys' operators, by qualified name.

The role that owns the scratch database has no other privileges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

from pgdyno.base.errors import ServerError
from pgdyno.postgres.catalogued_tables import (
    AllRows,
    ByHash,
    ByLinkHash,
    Choice,
    Link,
    LinkedTable,
    OfChosen,
    Relation,
    Unlinked,
)
from pgdyno.postgres.connection.connection import encoding_of
from pgdyno.postgres.connection.connection_errors import (
    QUALIFY_NAMES,
    server_errors_converted,
    unqualified_name,
)
from pgdyno.postgres.connection.control_connection import ControlConnection
from pgdyno.postgres.process.instance import Instance
from pgdyno.postgres.process.synthetic_copy import MadeUpCopy

_HALF = 1 << 63  # hashes are signed 64-bit integers
ReadRows = Callable[[Link, LinkedTable, Sequence[Sequence[bytes]]], Iterator[bytes]]
"""Yields COPY text of the rows referenced by foreign key values, which are given as one list per column."""
_KEYS = 5000
"""Keys per query; arbitrary: a few milliseconds of server time."""
_SET_SEQUENCE = """
SELECT pg_catalog.setval(s.oid::pg_catalog.regclass, %s) FROM pg_catalog.pg_class s
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) s.relnamespace
WHERE s.relkind OPERATOR(pg_catalog.=) 'S' AND n.nspname OPERATOR(pg_catalog.=) %s
  AND s.relname OPERATOR(pg_catalog.=) %s
"""


@dataclass(frozen=True)
class SampledCopy:
    """A session of the unprivileged role, with an empty search path. The copy lacks ``left_out``."""

    connection: ControlConnection
    left_out: Sequence[str] = ()

    @classmethod
    def open(cls, server: Instance, database: str, left_out: Sequence[str]) -> SampledCopy:
        """Connect to a database of a scratch server. Raises: ServerError."""
        return cls(MadeUpCopy.open(server, database).connection, left_out)

    def load(self, table: LinkedTable, blocks: Iterator[bytes]) -> int:
        """Load rows into a table; return their number. Raises: ServerError."""
        with server_errors_converted(), self._functions_named(table), self.connection.cursor() as cursor:
            with cursor.copy(unconverted(loading(table), self.connection)) as copy:
                for block in blocks:
                    copy.write(block)
            return cursor.rowcount

    def complete(self, link: Link, target: LinkedTable, read: ReadRows) -> int:
        """Add missing rows that a foreign key references; return their number. Raises: ServerError."""
        added = 0
        with server_errors_converted(), self.connection.transaction():
            declare = sql.SQL("DECLARE pgdyno_missing NO SCROLL CURSOR FOR {}")
            self.connection.execute(declare.format(missing_keys(link)))
            fetch = sql.SQL("FETCH {} FROM pgdyno_missing").format(sql.SQL(str(_KEYS)))
            while keys := self.connection.execute(fetch).fetchall():
                columns = [[bytes(value) for value in column] for column in zip(*keys, strict=True)]
                added += self.load(target, read(link, target, columns))
        return added

    def set_sequences(self, last: Mapping[tuple[str, str], int]) -> None:
        """Set sequences to the original's last values. Raises: ServerError."""
        with server_errors_converted():
            for (schema, name), value in last.items():
                self.connection.execute(_SET_SEQUENCE, (value, schema, name))

    @contextmanager
    def _functions_named(self, table: LinkedTable) -> Iterator[None]:
        """Name a function of a table's CHECK or generated column that depends on a search path."""
        try:
            yield
        except psycopg.Error as error:
            message, context = error.diag.message_primary or "", error.diag.context or ""
            found = unqualified_name(message, context, self.left_out)
            if found is None:
                raise
            raise ServerError(f"could not load {table.path}", detail=found, hint=QUALIFY_NAMES) from error


@dataclass(frozen=True)
class Sampling:
    """The share of rows sampled by hashes, and the seed of the hashes."""

    share: float
    seed: int = 1

    def rows(self, table: LinkedTable, choice: Choice) -> sql.Composed:
        """Return a COPY … TO STDOUT statement for the chosen rows of a table."""
        condition = self._condition(choice, 0)
        return _copy(table, sql.SQL("{} WHERE {}").format(_from(table.relation, 0), condition))

    def _condition(self, choice: Choice, depth: int) -> sql.Composable:
        """Return a condition on the rows with alias t<depth>; t0 is the table that is read."""
        if isinstance(choice, AllRows):
            return sql.SQL("true")
        if isinstance(choice, ByHash):
            return self._is_hashed(depth, choice.columns)
        if isinstance(choice, ByLinkHash):
            own = [one.name for one in choice.link.columns]
            return sql.SQL("{} AND {}").format(_linked(choice.link, depth), self._is_hashed(depth, own))
        if isinstance(choice, Unlinked):
            return sql.SQL("NOT ({}) AND {}").format(
                _linked(choice.link, depth), self._is_hashed(depth, choice.own.columns)
            )
        return self._is_of_chosen(choice, depth)

    def _is_of_chosen(self, choice: OfChosen, depth: int) -> sql.Composable:
        link, above = choice.link, depth + 1
        chosen = sql.SQL(" OR ").join(
            sql.SQL("({})").format(self._condition(one, above)) for one in choice.chosen
        )
        own = [_column(depth, one.name) for one in link.columns]
        return sql.SQL("EXISTS (SELECT 1 {} WHERE {} AND ({}))").format(
            _from(link.target, above), _refers(link, above, own), chosen
        )

    def _is_hashed(self, depth: int, columns: Sequence[str]) -> sql.Composable:
        values = [_column(depth, one) for one in columns]
        texts = [_text(one) for one in values] or [_text(_column(depth, "tableoid"), _column(depth, "ctid"))]
        hashed: sql.Composable = sql.SQL("{}::pg_catalog.int8").format(str(self.seed))
        for text in texts:
            hashed = sql.SQL("pg_catalog.hashtextextended({}, {})").format(text, hashed)
        limit = min(round(2 * self.share * _HALF) - _HALF, _HALF - 1)
        return sql.SQL("{} OPERATOR(pg_catalog.<) {}::pg_catalog.int8").format(hashed, str(limit))


def missing_keys(link: Link) -> sql.Composed:
    """Return a query for a foreign key's values that have no referenced row in the copy.

    They are texts in the database's own encoding: with SQL_ASCII, they may not be UTF-8.
    """
    own = [_column(0, one.name) for one in link.columns]
    names = [sql.Identifier(f"k{place}") for place in range(len(own))]
    return sql.SQL(
        "SELECT {} FROM (SELECT DISTINCT {} {} WHERE {} AND NOT EXISTS (SELECT 1 {} WHERE {})) d"
    ).format(
        _listed(
            sql.SQL("pg_catalog.convert_to({}, pg_catalog.getdatabaseencoding())").format(_text(one))
            for one in names
        ),
        _listed(sql.SQL("{} AS {}").format(*pair) for pair in zip(own, names, strict=True)),
        _from(link.source, 0),
        _linked(link, 0),
        _from(link.target, 1),
        _refers(link, 1, own),
    )


def rows_of_keys(link: Link, table: LinkedTable, keys: Sequence[Sequence[bytes]]) -> sql.Composed:
    """Return a COPY statement for rows referenced by foreign key values; ``keys`` has a list per column."""
    names = [sql.Identifier(f"k{place}") for place in range(len(keys))]
    types = [sql.SQL(_trusted(one.type)) for one in link.columns]
    # A literal is read by its type's input function; a cast from text may be a user's function.
    rows = (
        sql.SQL("({})").format(
            _listed(sql.SQL("{}::{}").format(*pair) for pair in zip(one, types, strict=True))
        )
        for one in zip(*(map(_escaped, one) for one in keys), strict=True)
    )
    wanted = sql.SQL("(VALUES {}) AS w({})").format(_listed(rows), _listed(names))
    condition = sql.SQL("EXISTS (SELECT 1 FROM {} WHERE {})").format(wanted, _refers(link, 0, names))
    return _copy(table, sql.SQL("{} WHERE {}").format(_from(link.target, 0), condition))


def loading(table: LinkedTable) -> sql.Composed:
    """Return a COPY … FROM STDIN statement for a table; a partitioned table routes its rows."""
    relation = sql.Identifier(table.relation.schema, table.relation.name)
    listed = sql.SQL("({})").format(_names(table)) if table.columns else sql.SQL("")
    return sql.SQL("COPY {} {} FROM STDIN").format(relation, listed)


def locking(tables: Sequence[LinkedTable]) -> sql.Composed:
    """Return a LOCK TABLE statement in ACCESS SHARE mode, the lock of every query."""
    named = (_relation(one.relation) for one in tables)
    return sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(_listed(named))


def unconverted(copy: sql.Composed, connection: ControlConnection) -> sql.Composed:
    """Return a COPY statement with rows in the database's own encoding: SQL_ASCII allows any bytes."""
    return sql.SQL("{} (ENCODING {})").format(copy, encoding_of(connection))


def _copy(table: LinkedTable, source: sql.Composable) -> sql.Composed:
    columns = _listed(_column(0, one) for one in table.columns)
    return sql.SQL("COPY (SELECT {} {}) TO STDOUT").format(columns, source)


def _from(relation: Relation, depth: int) -> sql.Composed:
    return sql.SQL("FROM {} AS {}").format(_relation(relation), sql.Identifier(f"t{depth}"))


def _relation(relation: Relation) -> sql.Composed:
    """Return a table without inheriting tables: foreign keys ignore their rows."""
    only = sql.SQL("" if relation.has_parts else "ONLY ")
    return sql.SQL("{}{}").format(only, sql.Identifier(relation.schema, relation.name))


def _refers(link: Link, depth: int, values: Sequence[sql.Composable]) -> sql.Composed:
    """Return the condition that foreign key ``values`` reference the row with alias t<depth>."""
    return sql.SQL(" AND ").join(
        sql.SQL("{} {} {}").format(_column(depth, one.name), sql.SQL(_trusted(operator)), value)
        for one, operator, value in zip(link.key, link.operators, values, strict=True)
    )


def _linked(link: Link, depth: int) -> sql.Composed:
    """Return the condition that a foreign key is not NULL in any column, so it references a row."""
    return sql.SQL(" AND ").join(
        sql.SQL("{} IS NOT NULL").format(_column(depth, one.name)) for one in link.columns
    )


def _text(*values: sql.Composable) -> sql.Composed:
    return sql.SQL('pg_catalog.concat({}) COLLATE pg_catalog."C"').format(_listed(values))


def _escaped(value: bytes) -> sql.SQL:
    """Return a string constant of bytes in the database's encoding."""
    return sql.SQL(_trusted("E'" + "".join(f"\\x{byte:02x}" for byte in value) + "'"))


def _column(depth: int, name: str) -> sql.Identifier:
    return sql.Identifier(f"t{depth}", name)


def _names(table: LinkedTable) -> sql.Composed:
    return _listed(map(sql.Identifier, table.columns))


def _listed(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _trusted(text: str) -> LiteralString:
    """Return a name, already quoted by the server, as a literal string for the type checker."""
    return text
