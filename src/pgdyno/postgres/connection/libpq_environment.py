"""Keep libpq's environment variables from clients of scratch servers.

A scratch server is named in full by its socket. PGHOSTADDR would lead to another server all the same, and
PGOPTIONS or PGSERVICE would change what is measured. Someone's own server is reached with all of them.

Source: PostgreSQL, chapter "Environment Variables" of libpq; postmaster.c reads some of them too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_LIBPQS, _OURS = "PG", "PGDYNO_"
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
"""Environment variables, by the keyword of a connection string that means the same."""


@contextmanager
def libpq_variables_unset() -> Iterator[None]:
    """Unset libpq's variables in this process meanwhile: not all of them yield to a connection string."""
    taken = {name: os.environ.pop(name) for name in list(os.environ) if _is_libpqs(name)}
    try:
        yield
    finally:
        os.environ.update(taken)


def _is_libpqs(name: str) -> bool:
    return name.startswith(_LIBPQS) and not name.startswith(_OURS)
