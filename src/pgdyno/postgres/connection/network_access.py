"""Access to scratch servers: their HBA files, one listen address, listed client addresses, one password.

Load hosts, and attackers between them and the server, get only the rights that load requires: an unprivileged
role that owns the load's database. A superuser could run programs as the servers' account.

The HBA file is owned by pgdyno's user and replaces pg_hba.conf in the data directory. The servers' account
can write there, and so can libraries that the server loads: they could replace that file by a link before a
line is appended. Over the socket, which only that account can reach, connections are trusted.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import IO

from pgdyno.base.errors import RefusedError
from pgdyno.postgres.connection.control_connection import ControlConnection

_READABLE = 0o644  # the servers' account can read it, but not write it
_SCRAM = b"scram-sha-256"
LOAD_ROLE = "pgdyno_load"
HAS_CHECKPOINT_ROLE = 15  # first major version with the role pg_checkpoint
_ANY_DATABASE = "postgres"
_WRITING = "SET search_path = ''; SET default_transaction_read_only = off"
"""A load host may have created objects in the search path of a copy that is reused between rounds."""
_HAS_ROLE = "SELECT FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) %s"
_TO_BE_OWNED = """
SELECT 'SCHEMA', pg_catalog.quote_ident(nspname) FROM pg_catalog.pg_namespace
WHERE nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$|public$)'
UNION ALL
SELECT CASE WHEN c.relkind OPERATOR(pg_catalog.=) 'v' THEN 'VIEW'
            WHEN c.relkind OPERATOR(pg_catalog.=) 'm' THEN 'MATERIALIZED VIEW'
            WHEN c.relkind OPERATOR(pg_catalog.=) 'S' THEN 'SEQUENCE'
            ELSE 'TABLE' END,
       pg_catalog.format('%%I.%%I', n.nspname, c.relname)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) c.relowner
WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,v,m,S}'::pg_catalog."char"[])
  AND n.nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$)'
  AND r.rolname OPERATOR(pg_catalog.<>) %s
  AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.objid OPERATOR(pg_catalog.=) c.oid
      AND (d.deptype OPERATOR(pg_catalog.=) 'e'
           OR c.relkind OPERATOR(pg_catalog.=) 'S'
              AND d.deptype OPERATOR(pg_catalog.=) ANY ('{a,i}'::pg_catalog."char"[])))
"""
"""Schemas and relations outside extensions. A column's sequence follows its table's owner."""


@dataclass(frozen=True)
class NetworkAccess:
    """The listen address, the load's database, the HBA file and the password."""

    address: str
    rules: Path
    database: str
    password: str = field(repr=False)

    def settings(self) -> dict[str, str]:
        """Return the settings that make a server listen. The password itself is never sent to it."""
        return {"listen_addresses": self.address, "hba_file": str(self.rules)}

    def free_port(self) -> int:
        """Return an unused port; the usual ones may be taken."""
        family = socket.AF_INET6 if ip_address(self.address).version == 6 else socket.AF_INET
        with socket.socket(family) as probe:
            probe.bind((self.address, 0))
            port: int = probe.getsockname()[1]
            return port

    def admit(self, connect: Callable[[str], ControlConnection]) -> None:
        """Create the load role as the owner of the database; ``connect`` opens superuser sessions.

        The server and its log see only the password's SCRAM verifier.
        """
        with closing(connect(_ANY_DATABASE)) as connection:
            connection.execute(_WRITING)
            if connection.execute(_HAS_ROLE, (LOAD_ROLE,)).rowcount == 0:
                connection.execute(f"CREATE ROLE {LOAD_ROLE} LOGIN".encode())
            verifier = connection.pgconn.encrypt_password(self.password.encode(), LOAD_ROLE.encode(), _SCRAM)
            connection.execute(f"ALTER ROLE {LOAD_ROLE} PASSWORD '{verifier.decode()}'".encode())
            if connection.info.server_version >= HAS_CHECKPOINT_ROLE * 10_000:
                connection.execute(f"GRANT pg_checkpoint TO {LOAD_ROLE}".encode())
            connection.execute(f"ALTER DATABASE {self.database} OWNER TO {LOAD_ROLE}".encode())
        with closing(connect(self.database)) as connection:
            connection.execute(_WRITING)
            for kind, name in connection.execute(_TO_BE_OWNED, (LOAD_ROLE,)).fetchall():
                connection.execute(f"ALTER {kind} {name} OWNER TO {LOAD_ROLE}".encode())


def entrance(directory: Path, address: str, clients: Iterable[str], database: str) -> NetworkAccess:
    """Create the HBA file in a directory owned by the caller, and a random password."""
    path = directory / "entrance_hba.conf"
    with path.open("x", encoding="utf-8") as file:
        os.fchmod(file.fileno(), _READABLE)
        file.write("local all all trust\n")
        for client in map(ip_address, dict.fromkeys(clients)):
            file.write(f"host {database} {LOAD_ROLE} {client}/{client.max_prefixlen} {_SCRAM.decode()}\n")
    return NetworkAccess(address, path, database, secrets.token_urlsafe(32))


_METHOD = re.compile(r"[a-z0-9-]+")
_SHOWN_CHARACTERS = 40  # arbitrary; a name may have thousands


@dataclass(frozen=True)
class LoginRules:
    """An open file that a server uses as its ``hba_file``."""

    path: Path
    file: IO[str]

    def append(self, methods: Iterable[str]) -> None:
        """Append a line for each authentication method.

        Raises: RefusedError, before anything is written, for an invalid method name.
        """
        methods = sorted(methods)
        for method in methods:
            _require_name(method)
        self.file.writelines(f"host all all 127.0.0.1/32 {method}\n" for method in methods)
        self.file.flush()


@contextmanager
def login_rules(directory: Path) -> Iterator[LoginRules]:
    """Create the file in a directory owned by the caller. It trusts all connections over the socket."""
    path = directory / "pg_hba.conf"
    with path.open("x", encoding="utf-8") as file:
        os.fchmod(file.fileno(), _READABLE)
        file.write("local all all trust\n")
        file.flush()
        yield LoginRules(path, file)


def _require_name(method: str) -> None:
    if not _METHOD.fullmatch(method):
        raise RefusedError(
            f"the server reports an invalid authentication method: {method[:_SHOWN_CHARACTERS]!a}",
            detail="method names consist of lower-case letters, digits and hyphens",
            hint="nothing was changed; see SELECT auth_method FROM pg_hba_file_rules",
        )
