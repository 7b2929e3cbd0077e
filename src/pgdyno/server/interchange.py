"""Asks a server what its data demand of programs, and another one what its programs offer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import LiteralString, TypeAlias

import psycopg
from psycopg import sql

from pgdyno.model.errors import PrivilegeError
from pgdyno.model.facts import Unknown
from pgdyno.model.interchange import Demands, Offers
from pgdyno.model.server import Server
from pgdyno.server.connection import Connection
from pgdyno.server.inspection import inspect_server
from pgdyno.server.query import Row, ask_rows

ConnectTo: TypeAlias = Callable[[str], Connection]
"""Connects to a database by its name."""

_MADE_BY_INITDB = ("bytes_per_wal_segment", "data_page_checksum_version", "default_char_signedness")
"""Numbers of a control file that say what the data are like, rather than what their programs are."""
_VERSIONS: LiteralString = """
    SELECT pg_catalog.json_build_object(
        'pg_control_version', pg_control_version, 'catalog_version_no', catalog_version_no)::text
      FROM pg_catalog.pg_control_system()"""
_NUMBERS: LiteralString = "SELECT pg_catalog.to_json(c)::text FROM pg_catalog.pg_control_init() AS c"
_DATABASES: LiteralString = "SELECT datname FROM pg_catalog.pg_database WHERE datallowconn ORDER BY datname"
_INSTALLED: LiteralString = "SELECT extname, extversion FROM pg_catalog.pg_extension"
_AVAILABLE: LiteralString = "SELECT name, version FROM pg_catalog.pg_available_extension_versions"
_LIBRARIES: LiteralString = """
    SELECT DISTINCT p.probin FROM pg_catalog.pg_proc AS p
      JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
     WHERE l.lanname = 'c' AND p.probin IS NOT NULL"""
_PLUGINS: LiteralString = """
    SELECT DISTINCT plugin::text FROM pg_catalog.pg_replication_slots WHERE plugin IS NOT NULL"""
_METHODS: LiteralString = """
    SELECT DISTINCT auth_method FROM pg_catalog.pg_hba_file_rules WHERE auth_method IS NOT NULL"""
_CONFIGURE: LiteralString = "SELECT setting FROM pg_catalog.pg_config WHERE name = 'CONFIGURE'"
_ICU: LiteralString = """
    SELECT pg_catalog.pg_collation_actual_version(oid)
      FROM pg_catalog.pg_collation WHERE collname = 'und-x-icu'"""
_SORTED_BY_ICU: LiteralString = """
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_collation AS c ON c.oid = a.attcollation
         WHERE c.collprovider = 'i' AND a.attrelid >= 16384)
        OR EXISTS (
        SELECT FROM pg_catalog.pg_database AS d
         WHERE d.datname = pg_catalog.current_database()
           AND pg_catalog.to_jsonb(d) ->> 'datlocprovider' = 'i')"""
_LOADED = ("shared_preload_libraries", "session_preload_libraries", "local_preload_libraries")


def read_demands(connection: Connection, connect_to: ConnectTo, server: Server) -> Demands:
    """Look through all databases of a running server. Changes nothing.

    Raises: PrivilegeError if the role may not see it all; ServerError, ConnectionFailedError.
    """
    extensions: set[tuple[str, str]] = set()
    libraries = {library for name in _LOADED for library in _listed(server, name)}
    libraries |= {*_listed(server, "archive_library")} | {name for (name,) in _rows(connection, _PLUGINS)}
    is_sorted_by_icu = False
    for (database,) in _rows(connection, _DATABASES):
        with closing(connect_to(database)) as beside:
            extensions |= {(name, version) for name, version in _rows(beside, _INSTALLED)}
            libraries |= {probin for (probin,) in _rows(beside, _LIBRARIES)}
            is_sorted_by_icu |= _rows(beside, _SORTED_BY_ICU)[0][0]
    return Demands(
        layout=_layout(connection),
        extensions=frozenset(extensions),
        libraries=frozenset(libraries),
        auth_methods=frozenset(method for (method,) in _rows(connection, _METHODS)),
        has_ssl=server.settings["ssl"].setting == "on",
        icu_version=_icu(connection) if is_sorted_by_icu else None,
        has_jit=server.capabilities.has_jit.or_none() is True,
        configure=_rows(connection, _CONFIGURE)[0][0],
    )


def read_offers(connection: Connection, libraries: Iterable[str]) -> Offers:
    """Ask a scratch server of the programs, also by loading these libraries.

    Raises: ServerError, ConnectionFailedError.
    """
    server = inspect_server(connection)
    return Offers(
        layout=_layout(connection),
        extensions=frozenset((name, version) for name, version in _rows(connection, _AVAILABLE)),
        refused=dict(_refused(connection, libraries)),
        configure=_rows(connection, _CONFIGURE)[0][0],
        has_ssl=server.capabilities.has_ssl.or_none() is True,
        icu_version=_icu(connection),
        has_jit=server.capabilities.has_jit.or_none() is True,
    )


def preloaded(server: Server) -> Mapping[str, str]:
    """Return the setting without which some libraries cannot be loaded later."""
    return {_LOADED[0]: server.settings[_LOADED[0]].setting}


def _layout(connection: Connection) -> dict[str, str]:
    numbers: dict[str, object] = {}
    for query in (_VERSIONS, _NUMBERS):
        numbers |= json.loads(_rows(connection, query)[0][0])
    return {name: str(value) for name, value in numbers.items() if name not in _MADE_BY_INITDB}


def _icu(connection: Connection) -> str | None:
    rows = _rows(connection, _ICU)
    return rows[0][0] if rows else None


def _listed(server: Server, name: str) -> Iterator[str]:
    guc = server.settings.get(name)
    for one in guc.setting.split(",") if guc else ():
        if stripped := one.strip().strip('"'):
            yield stripped


def _refused(connection: Connection, libraries: Iterable[str]) -> Iterator[tuple[str, str]]:
    for library in sorted(libraries):
        try:
            connection.execute(sql.SQL("LOAD {}").format(sql.Literal(library)))
        except psycopg.Error as error:
            yield library, error.diag.message_primary or str(error).strip()


def _rows(connection: Connection, query: LiteralString) -> tuple[Row, ...]:
    """Return the rows of a query without which nothing can be said. Raises: PrivilegeError, ServerError."""
    rows = ask_rows(connection, query, "catalogs").value
    if not isinstance(rows, Unknown):
        return rows
    raise PrivilegeError(
        "this role may not see all that the server asks of its programs",
        detail=rows.reason,
        hint="connect as a superuser",
    )
