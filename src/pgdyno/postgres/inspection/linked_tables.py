"""Tables of a database with the foreign keys between them. Only catalogs are read, no table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pgdyno.base.errors import PrivilegeError, RefusedError
from pgdyno.postgres.catalogued_tables import KeyColumn, Link, LinkedTable, Relation
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.inspection.column_statistics import MOST_ROWS, within

_MOST_NAMED = 8
_OPERATOR = re.compile(r"""OPERATOR\((?:\w+|"(?:[^"]|"")+")\.[-+*/<>=~!@#%^&|`?]+\)""")
_TABLES = """
SELECT c.oid, n.nspname, c.relname, c.relkind OPERATOR(pg_catalog.=) 'p', stored.tuples, stored.size_bytes,
       stored.is_unknown,
       ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a
             WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attnum OPERATOR(pg_catalog.>) 0
               AND NOT a.attisdropped AND a.attgenerated OPERATOR(pg_catalog.=) ''
             ORDER BY a.attnum),
       ARRAY(SELECT a.attname::pg_catalog.text
             FROM (SELECT i.indkey[0:i.indnkeyatts OPERATOR(pg_catalog.-) 1] AS numbers
                   FROM pg_catalog.pg_index i
                   WHERE i.indrelid OPERATOR(pg_catalog.=) c.oid AND i.indisunique AND i.indimmediate
                     AND i.indisvalid AND i.indpred IS NULL
                     AND NOT 0 OPERATOR(pg_catalog.=) ANY (i.indkey)
                     AND NOT EXISTS (
                         SELECT 1 FROM pg_catalog.pg_attribute k
                         WHERE k.attrelid OPERATOR(pg_catalog.=) c.oid AND NOT k.attnotnull
                           AND k.attnum OPERATOR(pg_catalog.=) ANY (
                               i.indkey[0:i.indnkeyatts OPERATOR(pg_catalog.-) 1]))
                   ORDER BY NOT i.indisprimary, i.indnkeyatts, i.indexrelid LIMIT 1) best,
                  pg_catalog.unnest(best.numbers) WITH ORDINALITY AS k(number, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
                  AND a.attnum OPERATOR(pg_catalog.=) k.number
             ORDER BY k.place),
       pg_catalog.has_table_privilege(c.oid, 'SELECT'), pg_catalog.row_security_active(c.oid),
       stored.is_elsewhere, c.relforcerowsecurity
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace,
     LATERAL (
         SELECT COALESCE(pg_catalog.sum(GREATEST(l.reltuples, 0)), 0)::pg_catalog.float8 AS tuples,
                COALESCE(pg_catalog.sum(pg_catalog.pg_total_relation_size(l.oid)), 0)::pg_catalog.int8
                AS size_bytes,
                COALESCE(pg_catalog.bool_or(l.reltuples OPERATOR(pg_catalog.<=) 0
                         AND pg_catalog.pg_relation_size(l.oid) OPERATOR(pg_catalog.>) 0), false)
                AS is_unknown,
                COALESCE(pg_catalog.bool_or(l.relkind OPERATOR(pg_catalog.=) 'f'), false) AS is_elsewhere
         FROM pg_catalog.pg_class l
         WHERE l.relkind OPERATOR(pg_catalog.=) ANY ('{r,f}'::pg_catalog."char"[])
           AND (l.oid OPERATOR(pg_catalog.=) c.oid OR l.oid OPERATOR(pg_catalog.=) ANY (
                    SELECT t.relid FROM pg_catalog.pg_partition_tree(c.oid) t WHERE t.isleaf))
     ) stored
WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}'::pg_catalog."char"[])
  AND NOT c.relispartition AND c.relpersistence OPERATOR(pg_catalog.<>) 't'
  AND n.nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$)'
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
                  WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
                    AND d.objid OPERATOR(pg_catalog.=) c.oid AND d.deptype OPERATOR(pg_catalog.=) 'e')
ORDER BY n.nspname, c.relname
"""
# Partitions have copies of a partitioned table's foreign key, with conparentid set. Values are cast to a
# domain's base type, because a domain's CHECK runs its owner's code. MATCH FULL and SIMPLE are treated alike.
_LINKS = """
WITH RECURSIVE below AS (
    SELECT t.oid, t.oid AS type FROM pg_catalog.pg_type t
    UNION ALL
    SELECT b.oid, t.typbasetype
    FROM below b JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) b.type
    WHERE t.typtype OPERATOR(pg_catalog.=) 'd'
), base AS (
    SELECT b.oid, pg_catalog.format_type(b.type, -1) AS name
    FROM below b JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) b.type
    WHERE t.typtype OPERATOR(pg_catalog.<>) 'd'
)
SELECT f.conname,
       COALESCE(pg_catalog.pg_partition_root(f.conrelid), f.conrelid)::pg_catalog.oid,
       cn.nspname, c.relname, c.relkind OPERATOR(pg_catalog.=) 'p',
       COALESCE(pg_catalog.pg_partition_root(f.confrelid), f.confrelid)::pg_catalog.oid,
       tn.nspname, t.relname, t.relkind OPERATOR(pg_catalog.=) 'p',
       pairs.columns, pairs.types, pairs.key, pairs.key_types, pairs.operators, pairs.are_required,
       f.confdeltype OPERATOR(pg_catalog.=) 'c',
       COALESCE((pg_catalog.to_jsonb(f) OPERATOR(pg_catalog.->>) 'conperiod')::pg_catalog.bool, false),
       f.convalidated
FROM pg_catalog.pg_constraint f
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) f.conrelid
JOIN pg_catalog.pg_namespace cn ON cn.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) f.confrelid
JOIN pg_catalog.pg_namespace tn ON tn.oid OPERATOR(pg_catalog.=) t.relnamespace,
LATERAL (
    SELECT pg_catalog.array_agg(a.attname::pg_catalog.text ORDER BY k.place) AS columns,
           pg_catalog.array_agg(own.name ORDER BY k.place) AS types,
           pg_catalog.array_agg(b.attname::pg_catalog.text ORDER BY k.place) AS key,
           pg_catalog.array_agg(its.name ORDER BY k.place) AS key_types,
           pg_catalog.array_agg(
               pg_catalog.format('OPERATOR(%I.%s)', opn.nspname, o.oprname) ORDER BY k.place) AS operators,
           pg_catalog.bool_and(a.attnotnull) AS are_required
    FROM ROWS FROM (pg_catalog.unnest(f.conkey), pg_catalog.unnest(f.confkey),
                    pg_catalog.unnest(f.conpfeqop))
         WITH ORDINALITY AS k(number, referenced, operator, place)
    JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) f.conrelid
         AND a.attnum OPERATOR(pg_catalog.=) k.number
    JOIN base own ON own.oid OPERATOR(pg_catalog.=) a.atttypid
    JOIN pg_catalog.pg_attribute b ON b.attrelid OPERATOR(pg_catalog.=) f.confrelid
         AND b.attnum OPERATOR(pg_catalog.=) k.referenced
    JOIN base its ON its.oid OPERATOR(pg_catalog.=) b.atttypid
    JOIN pg_catalog.pg_operator o ON o.oid OPERATOR(pg_catalog.=) k.operator
    JOIN pg_catalog.pg_namespace opn ON opn.oid OPERATOR(pg_catalog.=) o.oprnamespace
) pairs
WHERE f.contype OPERATOR(pg_catalog.=) 'f' AND f.conparentid OPERATOR(pg_catalog.=) 0
  AND pairs.columns IS NOT NULL
ORDER BY cn.nspname, c.relname, f.conname
"""
_BYPASSING = """
SELECT pg_catalog.quote_ident(rolname) FROM pg_catalog.pg_roles
WHERE rolbypassrls AND rolcanlogin AND NOT rolsuper ORDER BY rolname
"""
_SEQUENCES = """
SELECT schemaname, sequencename, last_value FROM pg_catalog.pg_sequences WHERE last_value IS NOT NULL
"""
_LARGE_OBJECTS = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_largeobject_metadata)"


class LinkedTables(NamedTuple):
    """Tables and the foreign keys between them."""

    tables: tuple[LinkedTable, ...]
    links: tuple[Link, ...]


@checked_results()
def read_linked_tables(connection: Connection) -> LinkedTables:
    """Return the tables of a database, over a connection with an empty search path.

    Raises: PrivilegeError for a table that the role may not read; RefusedError for row security policies
    that would hide rows, and for partitions on other servers; ServerError, ConnectionFailedError.
    """
    with server_errors_converted():
        rows = connection.execute(_TABLES).fetchall()
        links = [_link(row) for row in connection.execute(_LINKS).fetchall()]
        bypassing = [str(name) for (name,) in connection.execute(_BYPASSING).fetchall()]
    _require_all_rows(rows, bypassing)
    tables = tuple(map(_table, rows))
    known = {one.oid for one in tables}
    between = tuple(one for one in links if {one.table, one.target_table} <= known)
    return LinkedTables(tables, between)


@checked_results()
def read_sequences(connection: Connection) -> Mapping[tuple[str, str], int]:
    """Return the last value of each used sequence that the role may read. Raises: ServerError."""
    with server_errors_converted():
        rows = connection.execute(_SEQUENCES).fetchall()
    return {(str(schema), str(name)): int(last) for schema, name, last in rows}


@checked_results()
def has_large_objects(connection: Connection) -> bool:
    """Whether a database has large objects. Raises: ServerError."""
    with server_errors_converted():
        [[found]] = connection.execute(_LARGE_OBJECTS).fetchall()
    return bool(found)


def _require_all_rows(rows: Sequence[Sequence[Any]], bypassing: Sequence[str]) -> None:
    """Check that the role can read every row of every table, and that all are on this server.

    ``bypassing`` are roles that no policy applies to. Raises: PrivilegeError, RefusedError.
    """
    paths = [(f"{row[1]}.{row[2]}", *row[9:13]) for row in rows]
    if unread := [path for path, may_read, *_ in paths if not may_read]:
        raise PrivilegeError(
            f"the role may not read {_listed(unread)}",
            hint="connect as a role with SELECT on these tables, such as the application's",
        )
    if policed := [path for path, _, is_policed, *_ in paths if is_policed]:
        forced = [path for path, _, is_policed, _, is_forced in paths if is_policed and is_forced]
        role = f"a role with BYPASSRLS ({_listed(bypassing) if bypassing else 'none exists yet'})"
        raise RefusedError(
            f"row security policies hide rows of {_listed(policed)} from the role",
            detail="a sample of the visible rows would not represent the table"
            + (f"; policies apply to the owner of {_listed(forced)}, too" if forced else ""),
            hint=f"connect as {role}" if forced else f"connect as the tables' owner, or as {role}",
        )
    if elsewhere := [path for path, _, _, is_elsewhere, _ in paths if is_elsewhere]:
        raise RefusedError(
            f"{_listed(elsewhere)} has partitions on other servers",
            detail="pgdyno reads only the named server",
            hint="copy the whole database, without --sample: pg_dump omits the rows of foreign tables",
        )


def _table(row: Sequence[Any]) -> LinkedTable:
    oid, schema, name, has_parts, tuples, size_bytes, is_unknown, columns, key, *_ = row
    return LinkedTable(
        int(oid),
        Relation(str(schema), str(name), bool(has_parts)),
        None if is_unknown else within(float(tuples), 0, MOST_ROWS),
        int(size_bytes),
        tuple(map(str, columns)),
        tuple(map(str, key)),
    )


def _link(row: Sequence[Any]) -> Link:
    name, table, *source, target_table, schema, relation, has_parts = row[:9]
    columns, types, key, key_types, operators, is_required, *flags = row[9:]
    is_cascading, is_temporal, is_valid = map(bool, flags)
    return Link(
        name=str(name),
        table=int(table),
        source=Relation(str(source[0]), str(source[1]), bool(source[2])),
        columns=tuple(KeyColumn(str(one), str(type_)) for one, type_ in zip(columns, types, strict=True)),
        target_table=int(target_table),
        target=Relation(str(schema), str(relation), bool(has_parts)),
        key=tuple(KeyColumn(str(one), str(type_)) for one, type_ in zip(key, key_types, strict=True)),
        operators=tuple(map(_operator, operators)),
        is_required=bool(is_required),
        is_cascading=is_cascading,
        is_temporal=is_temporal,
        is_valid=is_valid,
    )


def _operator(text: str) -> str:
    """Return the text if it is an operator's qualified name. Raises: ValueError otherwise."""
    if _OPERATOR.fullmatch(text) is None:
        raise ValueError(f"{text} is not an operator")
    return text


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
