"""Connection for changing a server, and the lock that excludes every other pgdyno.

Later connections of a session reach the same server, or fail: see ``target.bound_to``.

The session that makes the changes holds the lock: after a kill it is held until the server has finished the
statement, so a change can never take effect after the revert that undoes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pgdyno.apply.session.query import Connect, Connection
from pgdyno.apply.session.server_lock import CHANGING, take
from pgdyno.apply.session.target import bound_to, read_target
from pgdyno.base.errors import PgdynoError
from pgdyno.model.plans.journal import Target


@dataclass
class Session:
    """A connection to a server; from ``locked_session`` it holds the lock.

    ``connect`` opens another connection to the same server.
    """

    connect: Connect
    connection: Connection
    target: Target

    def reconnect(self) -> None:
        """Connect and lock again, after a restart of the server.

        Raises: ConnectionFailedError, also if a different server answers: nothing is done on it.
        """
        self.connection.close()
        connection = self.connect()
        try:
            take(connection, CHANGING)
        except PgdynoError:
            connection.close()
            raise
        self.connection = connection


@contextmanager
def locked_session(connect: Connect) -> Iterator[Session]:
    """Provide a locked session.

    Raises: LockHeldError naming the holder; ConnectionFailedError.
    """
    with reading_session(connect) as session:
        take(session.connection, CHANGING)
        yield session


@contextmanager
def reading_session(connect: Connect) -> Iterator[Session]:
    """Provide a session that takes no lock, for read-only use."""
    connection = connect()
    try:
        target = read_target(connection)
    except PgdynoError:
        connection.close()
        raise
    session = Session(bound_to(target, connect), connection, target)
    try:
        yield session
    finally:
        session.connection.close()
