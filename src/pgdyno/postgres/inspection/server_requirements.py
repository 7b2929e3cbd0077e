"""Read the demands of a server's data and configuration, and the features of other server binaries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString, TypeAlias

import psycopg
from psycopg import sql

from pgdyno.base.errors import PrivilegeError
from pgdyno.base.facts import Unknown
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.network_access import LoginRules
from pgdyno.postgres.connection.query import Row, ask_rows
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.requirements import Offers, Requirements, options_in
from pgdyno.postgres.server import Server

ConnectTo: TypeAlias = Callable[[str], Connection]
"""Connects to the named database."""

_MADE_BY_INITDB = ("bytes_per_wal_segment", "data_page_checksum_version", "default_char_signedness")
"""Control file fields that describe the data, not the binaries."""
_VERSIONS: LiteralString = """
    SELECT pg_catalog.json_build_object('pg_control_version', c.pg_control_version,
                                        'catalog_version_no', c.catalog_version_no)::pg_catalog.text
      FROM pg_catalog.pg_control_system() AS c"""
_NUMBERS: LiteralString = (
    "SELECT pg_catalog.to_json(c)::pg_catalog.text FROM pg_catalog.pg_control_init() AS c"
)
# A database with an interrupted DROP has the limit -2 and accepts no connections.
_DATABASES: LiteralString = """
    SELECT datname FROM pg_catalog.pg_database
     WHERE datallowconn AND datconnlimit OPERATOR(pg_catalog.<>) -2 ORDER BY datname"""
_INSTALLED: LiteralString = "SELECT extname, extversion FROM pg_catalog.pg_extension"
_AVAILABLE: LiteralString = "SELECT name, version FROM pg_catalog.pg_available_extension_versions"
_LIBRARIES: LiteralString = """
    SELECT DISTINCT p.probin FROM pg_catalog.pg_proc AS p
      JOIN pg_catalog.pg_language AS l ON l.oid OPERATOR(pg_catalog.=) p.prolang
     WHERE l.lanname OPERATOR(pg_catalog.=) 'c' AND p.probin IS NOT NULL"""
_PLUGINS: LiteralString = """
    SELECT DISTINCT plugin::pg_catalog.text FROM pg_catalog.pg_replication_slots WHERE plugin IS NOT NULL"""
_METHODS: LiteralString = """
    SELECT DISTINCT auth_method FROM pg_catalog.pg_hba_file_rules WHERE auth_method IS NOT NULL"""
_HBA_ERRORS: LiteralString = "SELECT error FROM pg_catalog.pg_hba_file_rules WHERE error IS NOT NULL"
_COLLATOR: LiteralString = """
    SELECT pg_catalog.pg_collation_actual_version(oid)
      FROM pg_catalog.pg_collation WHERE collname OPERATOR(pg_catalog.=) 'und-x-icu'"""
_SORTED_BY_ICU: LiteralString = """
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_depend AS d
          JOIN pg_catalog.pg_collation AS c ON c.oid OPERATOR(pg_catalog.=) d.refobjid
         WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_collation'::pg_catalog.regclass
           AND c.collprovider OPERATOR(pg_catalog.=) 'i' AND d.objid OPERATOR(pg_catalog.>=) 16384)
        OR EXISTS (
        SELECT FROM pg_catalog.pg_attribute AS a
          JOIN pg_catalog.pg_collation AS c ON c.oid OPERATOR(pg_catalog.=) a.attcollation
         WHERE c.collprovider OPERATOR(pg_catalog.=) 'i' AND a.attrelid OPERATOR(pg_catalog.>=) 16384)
        OR EXISTS (
        SELECT FROM pg_catalog.pg_database AS d
         WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
           AND (pg_catalog.to_jsonb(d) OPERATOR(pg_catalog.->>) 'datlocprovider')
               OPERATOR(pg_catalog.=) 'i')"""
_USES_XML: LiteralString = """
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_attribute
         WHERE atttypid OPERATOR(pg_catalog.=) ANY (
               ARRAY['pg_catalog.xml'::pg_catalog.regtype, 'pg_catalog.xml[]'::pg_catalog.regtype])
           AND attrelid OPERATOR(pg_catalog.>=) 16384)
        OR EXISTS (
        SELECT FROM pg_catalog.pg_proc
         WHERE oid OPERATOR(pg_catalog.>=) 16384
           AND ('pg_catalog.xml'::pg_catalog.regtype OPERATOR(pg_catalog.=) ANY (proargtypes)
                OR prorettype OPERATOR(pg_catalog.=) 'pg_catalog.xml'::pg_catalog.regtype))"""
_DICTIONARIES: LiteralString = """
    SELECT dictinitoption FROM pg_catalog.pg_ts_dict WHERE dictinitoption IS NOT NULL"""
_SEARCH_FILE = re.compile(r"\b(?:dictfile|afffile|stopwords|synonyms|rules)\s*=\s*'([^']+)'", re.IGNORECASE)
_SHARED: LiteralString = (
    "SELECT setting FROM pg_catalog.pg_config WHERE name OPERATOR(pg_catalog.=) 'SHAREDIR'"
)
_PRELOADED = "shared_preload_libraries"
_LOADED = (_PRELOADED, "session_preload_libraries", "archive_library", "oauth_validator_libraries")
_OF_SOME = ("database", "user", "database user")
_LOADED_AS_PLUGINS = "local_preload_libraries"
_PATHS = ("dynamic_library_path", "extension_control_path")
_UNSUPPORTED = re.compile(r'invalid authentication method "([^"]+)": not supported by this build')


@dataclass
class _InDatabases:
    """Findings accumulated over all databases."""

    extensions: set[tuple[str, str]] = field(default_factory=set)
    libraries: set[str] = field(default_factory=set)
    search_files: set[str] = field(default_factory=set)
    is_sorted_by_icu: bool = False
    has_xml: bool = False

    def add(self, connection: Connection) -> None:
        self.extensions |= {(name, version) for name, version in _rows(connection, _INSTALLED)}
        self.libraries |= {probin for (probin,) in _rows(connection, _LIBRARIES)}
        for (options,) in _rows(connection, _DICTIONARIES):
            self.search_files |= set(_SEARCH_FILE.findall(options))
        self.is_sorted_by_icu |= _rows(connection, _SORTED_BY_ICU)[0][0]
        self.has_xml |= _rows(connection, _USES_XML)[0][0]


def read_demands(connection: Connection, connect_to: ConnectTo, server: Server) -> Requirements:
    """Read the demands from all databases of a running server. Changes nothing.

    Raises: PrivilegeError if the role may not see everything; ServerError, ConnectionFailedError.
    """
    found = _InDatabases(libraries={*_named(server), *(name for (name,) in _rows(connection, _PLUGINS))})
    for (database,) in _rows(connection, _DATABASES):
        with closing(connect_to(database)) as in_database:
            found.add(in_database)
    return Requirements(
        layout=_layout(connection),
        extensions=frozenset(found.extensions),
        libraries=frozenset(found.libraries),
        auth_methods=frozenset(method for (method,) in _rows(connection, _METHODS)),
        has_ssl=server.settings["ssl"].setting == "on",
        compressions=_compressions(server),
        has_xml=found.has_xml,
        search_files=frozenset(found.search_files),
        collator=_collator(connection) if found.is_sorted_by_icu else None,
        has_jit=server.capabilities.has_jit.or_none() is True,
        defaults={guc.name: guc.boot_val for guc in server.settings.values() if guc.source == "default"},
        options=options_in(server.capabilities.build_flags.or_none()),
    )


def read_offers(connection: Connection, demands: Requirements, rules: LoginRules) -> Offers:
    """Read the capabilities of binaries from their scratch server, which loads the demanded libraries.

    The server was started with ``rules`` as its hba_file.
    Raises: ServerError, ConnectionFailedError; RefusedError for an invalid authentication method.
    """
    server = inspect_server(connection)
    return Offers(
        layout=_layout(connection),
        extensions=frozenset((name, version) for name, version in _rows(connection, _AVAILABLE)),
        refused=dict(_refused(connection, demands.libraries)),
        unsupported_methods=_unsupported(connection, demands.auth_methods, rules),
        has_ssl=server.capabilities.has_ssl.or_none() is True,
        compressions=_compressions(server),
        has_xml=_has_xml(connection),
        search_files=frozenset(_search_files(Path(_rows(connection, _SHARED)[0][0]))),
        collator=_collator(connection),
        has_jit=server.capabilities.has_jit.or_none() is True,
        defaults={guc.name: guc.boot_val for guc in server.settings.values() if not guc.is_read_only},
        options=options_in(server.capabilities.build_flags.or_none()),
    )


def paths_of(server: Server) -> dict[str, str]:
    """Return the settings with a server's search paths for libraries and extensions, if set."""
    gucs = (server.settings.get(name) for name in _PATHS)
    return {guc.name: guc.setting for guc in gucs if guc is not None and guc.source != "default"}


def preloaded(server: Server) -> Mapping[str, str]:
    """Return the preload setting, without which some libraries cannot be loaded later."""
    return {_PRELOADED: server.settings[_PRELOADED].setting}


def _named(server: Server) -> Iterator[str]:
    """Yield the libraries named by settings, including per-role and per-database ones.

    Per-role and per-database local_preload_libraries are skipped: any role may set them for itself, so they
    must neither be loaded as a superuser nor prevent a switch to other binaries.
    """
    values = [
        (guc.name, guc.setting)
        for guc in server.settings.values()
        if guc.name != _LOADED_AS_PLUGINS or guc.source not in _OF_SOME
    ]
    values += [
        (one.name, one.value) for one in server.overrides.or_else(()) if one.name != _LOADED_AS_PLUGINS
    ]
    for name, value in values:
        libraries = (one.strip().strip('"') for one in value.split(","))
        if name in _LOADED:
            yield from filter(None, libraries)
        elif name == _LOADED_AS_PLUGINS:  # the server loads none with a slash
            yield from (f"$libdir/plugins/{one}" for one in libraries if one and "/" not in one)


def _layout(connection: Connection) -> dict[str, str]:
    numbers: dict[str, object] = {}
    for query in (_VERSIONS, _NUMBERS):
        numbers |= json.loads(_rows(connection, query)[0][0])
    return {name: str(value) for name, value in numbers.items() if name not in _MADE_BY_INITDB}


def _compressions(server: Server) -> frozenset[str]:
    known = (*server.capabilities.wal_compression_methods.or_else(()), *_of_values(server))
    return frozenset(known) & {"lz4", "zstd"}


def _of_values(server: Server) -> tuple[str, ...]:
    guc = server.settings.get("default_toast_compression")
    return () if guc is None else guc.enumvals


def _has_xml(connection: Connection) -> bool:
    try:
        connection.execute("SELECT '<a/>'::pg_catalog.xml")
    except psycopg.errors.FeatureNotSupported:
        return False
    return True


def _search_files(shared: Path) -> Iterator[str]:
    for path in (shared / "tsearch_data").glob("*.*"):
        yield path.stem


def _collator(connection: Connection) -> str | None:
    rows = _rows(connection, _COLLATOR)
    return rows[0][0] if rows else None


def _unsupported(connection: Connection, methods: Iterable[str], rules: LoginRules) -> frozenset[str]:
    """Return the unsupported authentication methods, by the server's errors on HBA lines with them."""
    rules.append(methods)
    errors = (error for (error,) in _rows(connection, _HBA_ERRORS))
    return frozenset(found[1] for error in errors if (found := _UNSUPPORTED.search(error)))


def _refused(connection: Connection, libraries: Iterable[str]) -> Iterator[tuple[str, str]]:
    for library in sorted(libraries):
        try:
            connection.execute(sql.SQL("LOAD {}").format(sql.Literal(library)))
        except psycopg.Error as error:
            yield library, error.diag.message_primary or str(error).strip()


def _rows(connection: Connection, query: LiteralString) -> tuple[Row, ...]:
    """Return the rows of a required query. Raises: PrivilegeError if unknown, ServerError."""
    rows = ask_rows(connection, query, "catalogs").value
    if not isinstance(rows, Unknown):
        return rows
    raise PrivilegeError(
        "this role may not see everything that the server requires of its binaries",
        detail=rows.reason,
        hint="connect as a superuser",
    )
