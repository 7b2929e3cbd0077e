"""The systemd unit of a server, guessed from the path of its configuration."""

from __future__ import annotations

import re

from pgdyno.postgres.server import Server

_DEBIAN = re.compile(r"^/etc/postgresql/(\d+(?:\.\d+)?)/([A-Za-z0-9_.-]+)/", re.ASCII)
_RED_HAT = re.compile(
    r"^/var/lib/pgsql/(\d+(?:\.\d+)?)/data/", re.ASCII
)  # packages of the PostgreSQL project
_ANY = "postgresql.service"


def configuration_file(server: Server) -> str:
    """Return the path of postgresql.conf; a common default if the connection's role may not see it."""
    shown = server.settings.get("config_file")
    return shown.setting if shown is not None and shown.setting else "/etc/postgresql/postgresql.conf"


def unit_of(server: Server) -> str:
    """Return the name of the server's unit as installed by packages."""
    path = configuration_file(server)
    if debian := _DEBIAN.match(path):
        return f"postgresql@{debian[1]}-{debian[2]}.service"
    if red_hat := _RED_HAT.match(path):
        return f"postgresql-{red_hat[1]}.service"
    return _ANY
