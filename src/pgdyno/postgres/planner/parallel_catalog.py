"""Read facts about parallelism from the catalogs: tables, functions, currently busy workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, LiteralString

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.query import ask_rows
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.inspection.columns import read_schemas
from pgdyno.postgres.parallel_degree import Hazard, Pools, Scan, Table

# Only the main fork counts, as in the planner's estimate; a partitioned table has no pages.
_TABLES: LiteralString = """
    SELECT n.nspname, c.relname, pg_catalog.format('%%I.%%I', n.nspname, c.relname),
           n.nspname OPERATOR(pg_catalog.=) ANY (
               ARRAY['pg_catalog', 'pg_toast', 'information_schema']::pg_catalog.name[]),
           c.relkind::pg_catalog.text, c.relpersistence OPERATOR(pg_catalog.=) 't',
           COALESCE(pg_catalog.pg_relation_size(c.oid, 'main') OPERATOR(pg_catalog./)
                    pg_catalog.current_setting('block_size')::pg_catalog.int8, 0),
           (SELECT option_value::pg_catalog.int4 FROM pg_catalog.pg_options_to_table(c.reloptions)
             WHERE option_name OPERATOR(pg_catalog.=) 'parallel_workers')
      FROM pg_catalog.pg_class AS c
      JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
     WHERE (n.nspname::pg_catalog.text, c.relname::pg_catalog.text) OPERATOR(pg_catalog.=) ANY (
           SELECT * FROM ROWS FROM (pg_catalog.unnest(%s::pg_catalog.text[]),
                                    pg_catalog.unnest(%s::pg_catalog.text[])) AS t)"""
_FUNCTIONS: LiteralString = """
    SELECT n.nspname, p.proname, p.oid::pg_catalog.regprocedure::pg_catalog.text,
           p.proparallel::pg_catalog.text
      FROM pg_catalog.pg_proc AS p
      JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
     WHERE p.proname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.text[])
     ORDER BY p.oid::pg_catalog.regprocedure::pg_catalog.text"""
_OPERATORS: LiteralString = """
    SELECT o.oprname, p.oid::pg_catalog.regprocedure::pg_catalog.text, p.proparallel::pg_catalog.text,
           p.pronamespace OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace
      FROM pg_catalog.pg_operator AS o
      JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) o.oprcode
      JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) o.oprnamespace
     WHERE o.oprname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.text[])
       AND n.nspname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.text[])
     ORDER BY p.oid::pg_catalog.regprocedure::pg_catalog.text"""
# All other processes are background workers (GetBackendTypeDesc in miscinit.c, 14 to 18).
_BUSY: LiteralString = """
    SELECT pg_catalog.count(*) FILTER (WHERE backend_type OPERATOR(pg_catalog.=) 'parallel worker'),
           pg_catalog.count(*) FILTER (WHERE backend_type OPERATOR(pg_catalog.<>) ALL (ARRAY[
               'parallel worker', 'client backend', 'autovacuum launcher', 'autovacuum worker', 'walsender',
               'standalone backend', 'dead-end client backend', 'archiver', 'background writer',
               'checkpointer', 'io worker', 'startup', 'walreceiver', 'walsummarizer', 'walwriter', 'logger',
               'slotsync worker'])),
           pg_catalog.count(*) FILTER (WHERE backend_type IS NULL)
      FROM pg_catalog.pg_stat_activity"""
_BUSY_SOURCE = "pg_stat_activity.backend_type"
_HIDDEN = Unknown("this role does not see other sessions (GRANT pg_monitor TO it shows them)")


def read_tables(connection: Connection, scans: Iterable[Scan]) -> dict[str, Table]:
    """Return the tables of scans by ``Scan.relation``. Raises: ServerError, ConnectionFailedError."""
    wanted = sorted({(scan.schema, scan.table) for scan in scans})
    if not wanted:
        return {}
    schemas, names = zip(*wanted, strict=True)
    rows = _rows(connection, _TABLES, (list(schemas), list(names)))
    return {
        f"{schema}.{table}": Table(name, is_system, kind, is_temporary, pages, option)
        for schema, table, name, is_system, kind, is_temporary, pages, option in rows
    }


def read_hazards(
    connection: Connection,
    calls: Iterable[tuple[str | None, str]],
    operators: Iterable[str],
    search_path: str | None = None,
) -> tuple[Hazard, ...]:
    """Return the functions that are not parallel safe among those that a statement may call.

    ``calls`` are pairs of schema (None if unqualified) and name; ``search_path`` None: the role's own.
    Raises: ServerError, ConnectionFailedError.
    """
    path = read_schemas(connection, search_path)
    wanted = set(calls)
    found: dict[tuple[str, bool], list[tuple[str, str, bool]]] = {}
    rows = _rows(connection, _FUNCTIONS, (sorted({name for _, name in wanted}),))
    for schema, name, signature, label in rows:
        if (schema, name) in wanted or ((None, name) in wanted and schema in path):
            found.setdefault((name, False), []).append((signature, label, schema == "pg_catalog"))
    for name, signature, label, is_builtin in _rows(connection, _OPERATORS, (sorted(set(operators)), path)):
        found.setdefault((name, True), []).append((signature, label, is_builtin))
    return tuple(
        hazard
        for (called_as, _), candidates in sorted(found.items())
        for label in ("u", "r")
        if (hazard := _hazard(called_as, label, candidates))
    )


def read_pools(connection: Connection, settings: Mapping[str, Guc]) -> Pools:
    """Return the worker pools, and their current use."""
    rows = ask_rows(connection, _BUSY, _BUSY_SOURCE)
    if isinstance(rows.value, Unknown):
        parallel = others = Fact[int](rows.value, _BUSY_SOURCE)
    else:
        busy, other_workers, hidden = rows.value[0]
        parallel = Fact[int](_HIDDEN if hidden else busy, _BUSY_SOURCE)
        others = Fact[int](_HIDDEN if hidden else other_workers, _BUSY_SOURCE)
    return Pools(
        int(settings["max_parallel_workers"].setting),
        int(settings["max_worker_processes"].setting),
        parallel,
        others,
    )


def _hazard(called_as: str, label: str, candidates: list[tuple[str, str, bool]]) -> Hazard | None:
    """Return the candidates with this label; each is a signature, a label, and whether it is built in."""
    labelled = [one for one in candidates if one[1] == label]
    if not labelled:
        return None
    return Hazard(
        called_as,
        functions=tuple(signature for signature, _, _ in labelled),
        is_unsafe=label == "u",
        is_builtin=all(is_builtin for _, _, is_builtin in labelled),
        is_certain=len(labelled) == len(candidates),
    )


def _rows(connection: Connection, query: LiteralString, parameters: tuple[object, ...]) -> list[Any]:
    rows = ask_rows(connection, query, "catalogs", parameters)
    if isinstance(rows.value, Unknown):
        raise ServerError("could not read the server's catalogs", detail=rows.value.reason)
    return list(rows.value)
