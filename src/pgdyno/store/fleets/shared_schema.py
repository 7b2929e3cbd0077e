"""Tables of the shared store, in a schema of their own, with a version that no older pgdyno writes to."""

from __future__ import annotations

from psycopg import errors

from pgdyno.model.errors import StorageError
from pgdyno.store.fleets.store_session import Connection

LOCK_CLASS = 0x7067646E
"""Advisory locks of pgdyno's have this first number: "pgdn". The second one is the controller's, or 0."""

_VERSION = 1
_OLDEST_SERVER = 140000
_SCHEMA = """
CREATE TABLE pgdyno.store_version (version integer NOT NULL);
CREATE SEQUENCE pgdyno.controller AS integer CYCLE;
CREATE TABLE pgdyno.fleet (name text COLLATE "C" PRIMARY KEY, id text NOT NULL UNIQUE, command text NOT NULL);
CREATE TABLE pgdyno.trial (
    fleet text COLLATE "C" REFERENCES pgdyno.fleet ON DELETE CASCADE,
    machine text COLLATE "C", number integer,
    state text NOT NULL, lease integer NOT NULL, attempts integer NOT NULL, experiment text, reason text,
    controller integer, PRIMARY KEY (fleet, machine, number), UNIQUE (fleet, experiment)
);
CREATE UNIQUE INDEX trial_lease ON pgdyno.trial (fleet, machine) WHERE state = 'measuring';
CREATE TABLE pgdyno.result (
    fleet text COLLATE "C" REFERENCES pgdyno.fleet ON DELETE CASCADE, experiment text,
    blocks_sha256 text NOT NULL, finding text NOT NULL, PRIMARY KEY (fleet, experiment),
    UNIQUE (fleet, blocks_sha256)
);
CREATE TABLE pgdyno.event (
    fleet text COLLATE "C" NOT NULL REFERENCES pgdyno.fleet ON DELETE CASCADE, at timestamptz NOT NULL,
    machine text NOT NULL, number integer NOT NULL, lease integer NOT NULL, what text NOT NULL, detail text
);
CREATE INDEX event_lease ON pgdyno.event (fleet, machine, number, lease);
"""


def stored_version(connection: Connection, name: str) -> int | None:
    """Return the version of the tables; None: there are none. Raises: StorageError for a newer one."""
    if _one(connection, "SELECT to_regclass('pgdyno.store_version')") is None:
        return None
    found = _one(connection, "SELECT max(version) FROM pgdyno.store_version")
    if not isinstance(found, int) or found > _VERSION:
        raise StorageError(
            f"{name} was written by a newer pgdyno",
            detail=f"its version is {found}, this pgdyno reads up to {_VERSION}",
            hint="upgrade pgdyno",
        )
    return found


def prepare(connection: Connection, name: str) -> None:
    """Make the tables, in one transaction, unless they are there.

    Raises: StorageError for a server or database that cannot hold them, and if the role may not make them.
    """
    _require_database(connection, name)
    connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (LOCK_CLASS,))
    if stored_version(connection, name) is not None:
        return
    try:
        if _one(connection, "SELECT to_regnamespace('pgdyno')") is None:
            connection.execute("CREATE SCHEMA pgdyno")
        connection.execute(_SCHEMA.encode())
        connection.execute("INSERT INTO pgdyno.store_version VALUES (%s)", (_VERSION,))
    except errors.InsufficientPrivilege as error:
        role = connection.info.user
        raise StorageError(
            f"{name} has no tables of pgdyno, and the role may not make them",
            detail=error.diag.message_primary,
            hint=f'as the owner of the database: CREATE SCHEMA pgdyno AUTHORIZATION "{role}"',
        ) from error


def _require_database(connection: Connection, name: str) -> None:
    version = connection.info.server_version
    if version < _OLDEST_SERVER:
        raise StorageError(
            f"{name} is of PostgreSQL {version // 10000}", detail="a store needs PostgreSQL 14 or newer"
        )
    encoding = _one(connection, "SHOW server_encoding")
    if encoding != "UTF8":
        raise StorageError(
            f"{name} is encoded as {encoding}",
            hint="make a database for it: CREATE DATABASE pgdyno ENCODING 'UTF8' TEMPLATE template0",
        )


def _one(connection: Connection, query: str) -> object:
    row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]
