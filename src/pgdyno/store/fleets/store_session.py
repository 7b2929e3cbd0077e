"""A connection to a database that holds a store: made again when it is lost, for a limited time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import errors

from pgdyno.model import numbers
from pgdyno.model.errors import ConnectionFailedError, StorageError

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

PATIENCE_S = 120.0  # arbitrary: a restart or a failover takes less
_AGAIN_S = 1.0  # arbitrary

# The server is away, ends the session, is short of something, or has become a standby.
_AWAY = (psycopg.OperationalError, errors.ReadOnlySqlTransaction, ConnectionFailedError)
# The kernel tells of a controller whose host is gone within two minutes; on a Unix socket they do nothing.
_KEEPALIVE = b"SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 20; SET tcp_keepalives_count = 3"

_T = TypeVar("_T")


class StoreSession:
    """Runs transactions. ``say`` is told while the store is waited for; without it nothing is waited for."""

    def __init__(
        self, connect: Callable[[], Connection], name: str, say: Callable[[str], None] | None
    ) -> None:
        """Connect. Raises: StorageError if that fails now."""
        self.name = name
        self._connect, self._say = connect, say
        self._on_connection: Callable[[Connection], None] = lambda _: None
        self._connection: Connection | None = None
        try:
            self._connection = self._connected()
        except _AWAY as error:
            raise StorageError(
                f"could not open {name}",
                detail=_words(error),
                hint="the fleet's file names it, with store; a password belongs into ~/.pgpass",
            ) from error

    def on_connection(self, do: Callable[[Connection], None]) -> None:
        """Do something on this connection, and on each that takes its place."""
        self.run(do)
        self._on_connection = do

    def run(self, work: Callable[[Connection], _T]) -> _T:
        """Return the result of ``work`` in a transaction; it is called again if that got lost.

        Raises: UniqueViolation as it is; StorageError for anything else that the database refuses, and if it
        is away for too long.
        """
        ends_s, is_waited_for = time.monotonic() + PATIENCE_S, False
        while True:
            try:
                found = self._tried(work)
            except errors.UniqueViolation:
                raise
            except _AWAY as error:
                self.close()
                if self._say is None or time.monotonic() >= ends_s:
                    raise self._gave_up(error, is_waited_for=is_waited_for) from error
                if not is_waited_for:
                    is_waited_for = True
                    self._say(
                        f"{self.name} is waited for, up to {numbers.duration(PATIENCE_S)}: {_words(error)}"
                    )
                time.sleep(_AGAIN_S)
            except psycopg.Error as error:
                raise StorageError(f"{self.name} refused a statement", detail=_words(error)) from error
            else:
                if is_waited_for and self._say is not None:
                    self._say(f"{self.name} is there again")
                return found

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _tried(self, work: Callable[[Connection], _T]) -> _T:
        if self._connection is None:
            self._connection = self._connected()
        with self._connection.transaction():
            return work(self._connection)

    def _connected(self) -> Connection:
        connection = self._connect()
        connection.execute(_KEEPALIVE)
        self._on_connection(connection)
        return connection

    def _gave_up(self, error: Exception, *, is_waited_for: bool) -> StorageError:
        for_so_long = f" for {numbers.duration(PATIENCE_S)}" if is_waited_for else ""
        return StorageError(
            f"{self.name} did not answer{for_so_long}",
            detail=_words(error),
            hint="when it is there again, start pgdyno fleet run again: it goes on from what is stored",
        )


def _words(error: Exception) -> str:
    """Return an error in one line."""
    if isinstance(error, ConnectionFailedError):
        return ": ".join(filter(None, (error.message, error.detail)))
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return " ".join((said or str(error)).split())
