"""Entrance to scratch servers from the network: one address of ours, clients' addresses, one password.

The login rules are a file of our own, as in login_rules.py: the servers' account cannot change them. Over the
socket, which only that account reaches, everybody is trusted as before.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from pgdyno.server.connection.control_connection import ControlConnection

_READABLE = 0o644  # the server's account reads it, and cannot write it
_SCRAM = "scram-sha-256"


@dataclass(frozen=True)
class NetworkEntrance:
    """Where servers listen, whom they let in, and by which login rules."""

    address: str
    rules: Path
    password: str = field(repr=False)

    def settings(self) -> dict[str, str]:
        """Return the settings of a server that listens. The password itself is never sent to it."""
        return {"listen_addresses": self.address, "hba_file": str(self.rules)}

    def free_port(self) -> int:
        """Return a port that nobody listens on: others may have the usual ones."""
        family = socket.AF_INET6 if ip_address(self.address).version == 6 else socket.AF_INET
        with socket.socket(family) as probe:
            probe.bind((self.address, 0))
            port: int = probe.getsockname()[1]
            return port

    def set_password(self, connection: ControlConnection, user: str) -> None:
        """Give a role the password; the server, and its log, see the verifier alone."""
        verifier = connection.pgconn.encrypt_password(self.password.encode(), user.encode(), _SCRAM.encode())
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER ROLE {user} PASSWORD '{verifier.decode()}'".encode())


def entrance(
    directory: Path, address: str, clients: Iterable[str], user: str, database: str
) -> NetworkEntrance:
    """Make the login rules in a directory of the caller's own, and a password."""
    path = directory / "entrance_hba.conf"
    with path.open("x", encoding="utf-8") as file:
        os.fchmod(file.fileno(), _READABLE)
        file.write("local all all trust\n")
        for client in map(ip_address, dict.fromkeys(clients)):
            file.write(f"host {database} {user} {client}/{client.max_prefixlen} {_SCRAM}\n")
    return NetworkEntrance(address, path, secrets.token_urlsafe(32))
