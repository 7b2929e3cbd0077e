"""Query the capabilities of a server's build.

Versions are never consulted: builds of one version differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import LiteralString

from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.query import ask
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import Capabilities

_JIT: LiteralString = """
    SELECT CASE WHEN pg_catalog.set_config('jit', 'on', true) OPERATOR(pg_catalog.=) 'on'
                THEN pg_catalog.pg_jit_available() END"""
_CONFIGURE: LiteralString = (
    "SELECT setting FROM pg_catalog.pg_config() WHERE name OPERATOR(pg_catalog.=) 'CONFIGURE'"
)
_CFLAGS: LiteralString = (
    "SELECT setting FROM pg_catalog.pg_config() WHERE name OPERATOR(pg_catalog.=) 'CFLAGS'"
)
_SWITCHES = frozenset({"on", "off"})


def read_capabilities(connection: Connection, settings: Mapping[str, Guc]) -> Capabilities:
    """Return the build's capabilities, from allowed setting values and from functions."""
    return Capabilities(
        io_methods=_choices(settings, "io_method", absent=()),
        wal_compression_methods=_wal_compression(settings),
        has_jit=_jit(connection),
        has_ssl=_ssl(settings),
        build_flags=_build(connection, _CONFIGURE, "pg_config() CONFIGURE"),
        compiler_flags=_build(connection, _CFLAGS, "pg_config() CFLAGS"),
    )


def _choices(settings: Mapping[str, Guc], name: str, *, absent: tuple[str, ...]) -> Fact[tuple[str, ...]]:
    """Return an enum's values without the plain switches; ``absent`` where there is no such setting."""
    guc = settings.get(name)
    values = absent if guc is None else tuple(value for value in guc.enumvals if value not in _SWITCHES)
    return Fact(values, f"pg_settings.enumvals of {name}")


def _wal_compression(settings: Mapping[str, Guc]) -> Fact[tuple[str, ...]]:
    guc = settings.get("wal_compression")
    if guc is not None and guc.vartype == "bool":
        # Before there was a choice, "on" was PostgreSQL's own pglz.
        return Fact(("pglz",), "pg_settings.vartype of wal_compression")
    return _choices(settings, "wal_compression", absent=())


def _jit(connection: Connection) -> Fact[bool]:
    """Ask with jit switched on for this statement: pg_jit_available() says no where it is merely off."""
    return ask(connection, _JIT, bool, "pg_jit_available()")


def _ssl(settings: Mapping[str, Guc]) -> Fact[bool]:
    library = settings.get("ssl_library")
    source = "pg_settings.setting of ssl_library"
    if library is None:
        return Fact(Unknown("the server has no such setting"), source)
    return Fact(library.setting != "", source)


def _build(connection: Connection, sql: LiteralString, source: str) -> Fact[str]:
    flags = ask(connection, sql, str, source)
    if flags.or_none() in ("", "not recorded"):
        return Fact(Unknown("the build has not recorded it"), source)
    return flags
