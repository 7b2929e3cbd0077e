"""Check that a running server can take a load: the role's privileges, free connections, no standby."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from pgdyno.base.errors import PrivilegeError, RefusedError, UsageError
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import connect, require_no_pooler
from pgdyno.postgres.connection.connection_errors import server_errors_converted

_SPARE_CONNECTIONS = 3  # for the driver's lock, for inspection, and for creating databases
_RIGHTS = """
SELECT r.rolsuper OR r.rolcreatedb,
       r.rolsuper OR EXISTS (
           SELECT FROM pg_catalog.pg_roles c
           WHERE c.rolname OPERATOR(pg_catalog.=) 'pg_checkpoint'
             AND pg_catalog.pg_has_role(c.oid, 'USAGE')),
       pg_catalog.pg_is_in_recovery(),
       (SELECT pg_catalog.sum(CASE WHEN name OPERATOR(pg_catalog.=) 'max_connections'
                                   THEN setting::pg_catalog.int4
                                   ELSE OPERATOR(pg_catalog.-) setting::pg_catalog.int4 END)
        FROM pg_catalog.pg_settings
        WHERE name OPERATOR(pg_catalog.=) ANY (
            ARRAY['max_connections', 'superuser_reserved_connections', 'reserved_connections']))
       OPERATOR(pg_catalog.-)
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity
        WHERE backend_type OPERATOR(pg_catalog.=) 'client backend'
          AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid())
FROM pg_catalog.pg_roles r WHERE r.rolname OPERATOR(pg_catalog.=) CURRENT_USER
"""


@dataclass(frozen=True)
class _Rights:
    """The role's privileges, and ``connections``, the number of free ones."""

    may_create_databases: bool
    may_checkpoint: bool
    is_standby: bool
    connections: int


def require_room(dsn: str, most_clients: int) -> None:
    """Refuse a server that cannot take a load of N clients by this role, before any data are loaded.

    Raises: RefusedError for a standby; PrivilegeError; UsageError; ConnectionFailedError.
    """
    _require_room(_read_rights(dsn), most_clients)


@server_errors_converted()
@checked_results()
def _read_rights(dsn: str) -> _Rights:
    with closing(connect(dsn)) as connection:
        require_no_pooler(connection)
        rows = connection.execute(_RIGHTS).fetchall()
        may_create_databases, may_checkpoint, is_standby, connections = rows[0]
        return _Rights(bool(may_create_databases), bool(may_checkpoint), bool(is_standby), int(connections))


def _require_room(rights: _Rights, most_clients: int) -> None:
    if rights.is_standby:
        raise RefusedError(
            "the server is a standby and cannot store test data",
            hint="name its primary with --dsn",
        )
    if not rights.may_create_databases:
        raise PrivilegeError(
            "the role may not create databases for the measurement",
            hint="connect as a role with CREATEDB",
        )
    if not rights.may_checkpoint:
        raise PrivilegeError(
            "the role may not run checkpoints, which begin every round",
            hint="connect as a superuser, or, since PostgreSQL 15, GRANT pg_checkpoint TO the role",
        )
    free = rights.connections - _SPARE_CONNECTIONS
    if free < most_clients:
        wanted = "1 client" if most_clients == 1 else f"{most_clients} clients"
        raise UsageError(
            f"the server does not have enough free connections for {wanted}",
            detail=f"{max(0, free)} are free for clients now",
            hint="use fewer clients, or raise max_connections there",
        )
