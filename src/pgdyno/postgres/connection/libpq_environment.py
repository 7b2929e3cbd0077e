"""Hide libpq's environment variables from clients of scratch servers.

A scratch server is fully identified by its socket. Even so, PGHOSTADDR would lead to a different server, and
PGOPTIONS or PGSERVICE would change the measurement. For a user's own server, all variables are honoured.

Source: PostgreSQL, chapter "Environment Variables" of libpq; postmaster.c also reads some of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_LIBPQ, _OWN = "PG", "PGDYNO_"
LIBPQ_VARIABLES = {
    "password": "PGPASSWORD",
    "hostaddr": "PGHOSTADDR",
    "options": "PGOPTIONS",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "channel_binding": "PGCHANNELBINDING",
    "require_auth": "PGREQUIREAUTH",
}
"""Environment variables by the equivalent connection parameter."""


@contextmanager
def libpq_variables_unset() -> Iterator[None]:
    """Unset libpq's variables in this process for the block: a connection string does not override all."""
    removed = {name: os.environ.pop(name) for name in list(os.environ) if _is_of_libpq(name)}
    try:
        yield
    finally:
        os.environ.update(removed)


def _is_of_libpq(name: str) -> bool:
    return name.startswith(_LIBPQ) and not name.startswith(_OWN)
