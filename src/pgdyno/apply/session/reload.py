"""Make the server load its configuration files, and know when it has."""

from __future__ import annotations

import time
from typing import LiteralString

from pgdyno.apply.session.query import Connect, Connection, value
from pgdyno.base.errors import ServerError

_LIMIT_S = 15.0  # the postmaster reloads within milliseconds unless the machine is swamped
_POLL_S = 0.02
_LOAD_TIME: LiteralString = """
SELECT pg_catalog.date_part('epoch', pg_catalog.pg_conf_load_time())::pg_catalog.float8
"""


def reload_and_wait(connection: Connection, connect: Connect) -> None:
    """Reload, and return when new sessions start from the files' present contents.

    pg_reload_conf() only sends a signal. The postmaster notes when it has loaded the files, and every new
    backend inherits that note: this is why a new connection is asked each time.
    Raises: ServerError if the server does not load them, for example because a file cannot be parsed.
    """
    before = _loaded_at(connect)
    if not value(connection, "SELECT pg_catalog.pg_reload_conf()", bool):
        raise ServerError("the server could not reload its configuration")
    deadline_s = time.monotonic() + _LIMIT_S
    while _loaded_at(connect) == before:  # earlier, where the clock was set back
        if time.monotonic() > deadline_s:
            raise ServerError(
                f"the server did not load its configuration within {_LIMIT_S:.0f} s",
                hint="its log says why; SELECT * FROM pg_file_settings WHERE error IS NOT NULL may too",
            )
        time.sleep(_POLL_S)


def _loaded_at(connect: Connect) -> float:
    with connect() as connection:
        return value(connection, _LOAD_TIME, float)
