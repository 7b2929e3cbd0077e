"""Whether a change of the original is seen by the replay of its workload, in the same statement and as large.

python -m bench.planted_changes [--for 8]: a shop is captured on PostgreSQL 18. Then three changes are made
and undone in turns, on the original under its load and on a copy under the replay: an index is dropped,
work_mem made too small, a function made slow. The last two columns are the size of the change in the replay,
as a share of that in the original.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import psycopg
from bench.likeness import Quiet
from tests.fix_servers import RealServer, running_server
from tests.shop import buying

from pgdyno.measure.replay import ReplayRequest, replay
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.process.registry import embedded
from pgdyno.postgres.sampling.statement_statistics import find_statement_statistics
from pgdyno.store.workload_file import read_workload_file, write_workload_file
from pgdyno.workload.capture_server import CaptureRequest, capture

_SETTINGS = "shared_preload_libraries = 'pg_stat_statements'\nshared_buffers = 256MB\nwork_mem = 16MB\n"
_TURNS = 5
_FUNCTION = (
    "CREATE OR REPLACE FUNCTION with_tax(price numeric) RETURNS numeric LANGUAGE plpgsql AS $$ "
    "BEGIN {} RETURN price * 1.2; END $$"
)
_REPORT = (
    "SELECT count(*) FROM customers WHERE country = %s "
    "AND id NOT IN (SELECT customer_id FROM orders WHERE state = %s)"
)
_PRICE = "SELECT with_tax(price) FROM products WHERE id = %s"


@dataclass(frozen=True)
class Change:
    """A change to plant: statements that make it and undo it, and the statement that it slows down."""

    title: str
    make: str
    undo: str
    statement: str


@dataclass(frozen=True)
class Times:
    """The mean time of a call of a statement, in ms, without a change and with it."""

    without_ms: float
    with_ms: float

    @property
    def multiple(self) -> float:
        """How many times as long a call takes."""
        return self.with_ms / self.without_ms

    @property
    def added_ms(self) -> float:
        """How much longer it takes."""
        return self.with_ms - self.without_ms


_CHANGES = (
    Change(
        "an index dropped",
        "DROP INDEX orders_customer_id_idx",
        "CREATE INDEX orders_customer_id_idx ON orders (customer_id)",
        "FROM orders AS o",
    ),
    Change(
        "work_mem too small",
        "ALTER DATABASE {database} SET work_mem = '64kB'",
        "ALTER DATABASE {database} RESET work_mem",
        "NOT IN",
    ),
    Change(
        "a slow function",
        _FUNCTION.format("PERFORM count(*) FROM generate_series(1, 3000);"),
        _FUNCTION.format(""),
        "SELECT with_tax",
    ),
)


def main() -> None:
    """Plant every change on both sides, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--for", dest="seconds", type=float, default=8.0, metavar="SECONDS")
    seconds = parser.parse_args().seconds
    with running_server(embedded().bin_directory, _SETTINGS) as server:
        workload = _captured(server, 4 * seconds)
        server.execute("CREATE DATABASE copy TEMPLATE shop")
        server.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
        print("| change | original, ms a call | replay, ms a call | multiple | added time |")
        print("|---|---:|---:|---:|---:|")
        for change in _CHANGES:
            original = _times(server, "shop", change, partial(_under_load, server, change, seconds))
            replayed = _times(server, "copy", change, partial(_replayed, server, workload, change, seconds))
            print(_row(change, original, replayed), flush=True)


def _row(change: Change, original: Times, replayed: Times) -> str:
    """Return a row: how large the change is in the replay, as a share of its size in the original."""
    shown = [
        f"{one.without_ms:.3f} → {one.with_ms:.3f} (×{one.multiple:.2f})" for one in (original, replayed)
    ]
    shares = replayed.multiple / original.multiple, replayed.added_ms / original.added_ms
    return f"| {change.title} | {' | '.join(shown)} | {' | '.join(f'{one:.2f}' for one in shares)} |"


def _captured(server: RealServer, seconds: float) -> CapturedWorkload:
    server.execute("CREATE DATABASE shop")
    server.execute("CREATE EXTENSION pg_stat_statements", "shop")
    dsn = server.dsn_for("postgres", "shop")
    buying.make(dsn)
    server.execute(_FUNCTION.format(""), "shop")
    with _load(dsn):
        workload = capture(CaptureRequest(dsn, "shop", seconds), Quiet())
    with tempfile.TemporaryDirectory() as directory:  # through the file, as everyone's
        file = Path(directory) / "shop.toml"
        write_workload_file(file, workload)
        return read_workload_file(file)


@contextmanager
def _load(dsn: str) -> Iterator[None]:
    """Let customers of the shop work, and a clerk who asks for a report and for prices."""
    is_over = threading.Event()

    def ask() -> None:
        with psycopg.connect(dsn, autocommit=True, prepare_threshold=1) as connection:
            turn = 0
            while not is_over.is_set():
                connection.execute(_REPORT, (("at", "ch", "de")[turn % 3], "paid"))
                for product in range(1, 20):
                    connection.execute(_PRICE, (1 + (turn * 19 + product) % 500,))
                turn += 1

    clerk = threading.Thread(target=ask)
    with buying.load(dsn):
        clerk.start()
        try:
            yield
        finally:
            is_over.set()
            clerk.join()


def _times(server: RealServer, database: str, change: Change, measure: Callable[[], float]) -> Times:
    """Return the times of a call without a change and with it: medians of several turns."""
    without_ms, with_ms = [], []
    for _ in range(_TURNS):
        without_ms.append(measure())
        server.execute(change.make.format(database=database), database)
        with_ms.append(measure())
        server.execute(change.undo.format(database=database), database)
    return Times(median(without_ms), median(with_ms))


def _under_load(server: RealServer, change: Change, seconds: float) -> float:
    """Return the mean time of a call of the statement on the original, in ms."""
    dsn = server.dsn_for("postgres", "shop")
    with psycopg.connect(dsn, autocommit=True) as connection, _load(dsn):
        statistics = find_statement_statistics(connection)
        time.sleep(1)
        before = statistics.read().seen
        time.sleep(seconds)
        after = statistics.read().seen
        [one] = [id_ for id_, text in statistics.texts(after).items() if change.statement in text]
    return (after[one].time_ms - before[one].time_ms) / (after[one].calls - before[one].calls)


def _replayed(server: RealServer, workload: CapturedWorkload, change: Change, seconds: float) -> float:
    """Return the mean time of a call of the statement in the replay, in ms."""
    done = replay(workload, ReplayRequest(server.dsn_for("app", "copy"), seconds), Quiet())
    [name] = [one.name for one in workload.statements if change.statement in one.sql]
    [found] = [one for one in done.likeness.statements if one.name == name]
    assert found.replay_ms is not None  # noqa: S101 — its load calls it all the time
    return found.replay_ms


if __name__ == "__main__":
    main()
