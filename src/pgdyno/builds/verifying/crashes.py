"""Kill servers repeatedly under write load, and check for lost commits.

A commit is lost if it was acknowledged and is missing after recovery.

Two builds take turns on one data directory: each replays the WAL that the other one wrote before it was
killed.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

import psycopg

from pgdyno.base.errors import InstallationError
from pgdyno.builds.make import Watch
from pgdyno.postgres.process.instance import Instance

_CLIENTS = 4
_SHORTEST_S, _LONGEST_S = 0.05, 0.8  # of load before a kill; arbitrary, some hundred commits
_TABLES = (
    "CREATE TABLE ledger (client int, number int, note text, PRIMARY KEY (client, number))",
    "CREATE INDEX ON ledger (note)",
    "CREATE TABLE balance (client int PRIMARY KEY, number int NOT NULL)",
    "CHECKPOINT",
)
_ENTRY = "INSERT INTO ledger VALUES (%s, %s, md5(random()::text))"
_BALANCE = "INSERT INTO balance VALUES (%s, %s) ON CONFLICT (client) DO UPDATE SET number = excluded.number"
_FOUND = """
SELECT b.number, count(l.number), max(l.number)
FROM balance b LEFT JOIN ledger l USING (client) WHERE client = %s GROUP BY b.number
"""


@dataclass
class _Client:
    """Inserts entries one by one. ``acknowledged``: the last entry with an acknowledged commit."""

    number: int
    acknowledged: int = 0
    error: Exception | None = field(default=None, init=False)

    def write(self, server: Instance, is_over: threading.Event) -> None:
        """Write until the connection is lost, which is an error unless ``is_over`` is set."""
        try:
            with closing(server.connect()) as connection:
                while True:
                    self._write_one(connection)
        except psycopg.Error as error:
            if not (is_over.is_set() and isinstance(error, psycopg.OperationalError)):
                self.error = error

    def _write_one(self, connection: psycopg.Connection) -> None:
        following = self.acknowledged + 1
        with connection.transaction():
            connection.execute(_ENTRY, (self.number, following))
            connection.execute(_BALANCE, (self.number, following))
        self.acknowledged = following


def survive_crashes(servers: Sequence[Instance], rounds: int, watch: Watch) -> int:
    """Kill the servers of one data directory in turn, each ``rounds`` times; return the number of crashes.

    The server that recovers from the last crash is stopped normally.
    Raises: InstallationError for a commit that was lost in whole or in part; errors of servers and
    connections.
    """
    clients = [_Client(number) for number in range(_CLIENTS)]
    chance = random.Random(0)  # noqa: S311 — for the times of kills
    with servers[0].running(), closing(servers[0].connect()) as connection:
        for statement in _TABLES:
            connection.execute(statement)
    crashes = rounds * len(servers)
    for crash in range(crashes + 1):
        server = servers[crash % len(servers)]
        try:
            server.start()
            _require_kept(server, clients)
            if crash < crashes:
                _crash_under_load(server, clients, chance.uniform(_SHORTEST_S, _LONGEST_S))
            else:
                server.stop()
        finally:
            server.stop(is_immediate=True)  # already stopped, except after an error
        watch((crash + 1) / (crashes + 1))
    if idle := [client.number for client in clients if client.acknowledged == 0]:
        raise InstallationError(
            f"no commit of clients {', '.join(map(str, idle))} was acknowledged",
            detail=f"in {crashes} rounds of load, each of up to {_LONGEST_S:g} s",
            hint="the host may be too busy for this test: try again",
        )
    return crashes


def _crash_under_load(server: Instance, clients: Sequence[_Client], after_s: float) -> None:
    is_over = threading.Event()
    threads = [threading.Thread(target=client.write, args=(server, is_over)) for client in clients]
    for thread in threads:
        thread.start()
    time.sleep(after_s)
    is_over.set()
    server.crash()
    for thread in threads:
        thread.join()
    for client in clients:
        if client.error is not None:
            raise client.error


def _require_kept(server: Instance, clients: Sequence[_Client]) -> None:
    """Compare the stored rows with the acknowledged commits.

    For each client, one unacknowledged commit may be stored as well: the one in progress at the crash.
    """
    with closing(server.connect()) as connection:
        for client in clients:
            row = connection.execute(_FOUND, (client.number,)).fetchone()
            balance, count, last = (0, 0, 0) if row is None else row
            is_whole = balance == count == last
            if not is_whole or balance not in (client.acknowledged, client.acknowledged + 1):
                raise InstallationError(
                    "after a crash under load the database lacks acknowledged commits or has unexpected ones",
                    detail=f"client {client.number}: acknowledged {client.acknowledged}, balance {balance}, "
                    f"{count} entries, the last one {last}; recovered by {server.installation.title}",
                    hint="do not use it for data; try another compiler or a lower optimisation level",
                )
            client.acknowledged = balance
