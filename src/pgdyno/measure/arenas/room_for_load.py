"""Whether a running server takes a load: the role's rights, free connections, no standby."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from pgdyno.base.errors import PrivilegeError, RefusedError, UsageError
from pgdyno.postgres.answers import answers_of_postgresql
from pgdyno.postgres.connection.connection import connect, require_no_pooler
from pgdyno.postgres.connection.connection_errors import failures_in_words

_SPARE_CONNECTIONS = 3  # of the driver's lock, of ours that look, and of ours that make databases
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
    """Rights of the role. ``connections`` is the number of free ones."""

    may_create_databases: bool
    may_checkpoint: bool
    is_standby: bool
    connections: int


def require_room(dsn: str, most_clients: int) -> None:
    """Refuse a server that does not take load of N clients by this role, before any data are loaded.

    Raises: RefusedError for a standby; PrivilegeError; UsageError; ConnectionFailedError.
    """
    _require_room(_look(dsn), most_clients)


@failures_in_words()
@answers_of_postgresql()
def _look(dsn: str) -> _Rights:
    with closing(connect(dsn)) as connection:
        require_no_pooler(connection)
        rows = connection.execute(_RIGHTS).fetchall()
        may_create_databases, may_checkpoint, is_standby, connections = rows[0]
        return _Rights(bool(may_create_databases), bool(may_checkpoint), bool(is_standby), int(connections))


def _require_room(rights: _Rights, most_clients: int) -> None:
    """Refuse standbys, missing rights and missing connections before any data are loaded."""
    if rights.is_standby:
        raise RefusedError(
            "the server is a standby, which takes no data to measure with",
            hint="name its primary with --dsn",
        )
    if not rights.may_create_databases:
        raise PrivilegeError(
            "the role may not create the databases that are measured in",
            hint="connect as a role that has CREATEDB",
        )
    if not rights.may_checkpoint:
        raise PrivilegeError(
            "the role may not order checkpoints, from which every round begins",
            hint="connect as a superuser, or, from PostgreSQL 15 on, GRANT pg_checkpoint TO the role",
        )
    free = rights.connections - _SPARE_CONNECTIONS
    if free < most_clients:
        wanted = "1 client is" if most_clients == 1 else f"{most_clients} clients are"
        raise UsageError(
            f"{wanted} more than the server has connections for",
            detail=f"{max(0, free)} are free for clients now",
            hint="choose fewer clients, or raise max_connections there",
        )
