"""How fast ``t_bit`` is made: by pgdyno-driver's COPY in binary, and by INSERT … SELECT generate_series.

By turns on one server, in the order A B B A; a round's ratio is that of its times. Both end with the same
state: rows frozen, statistics there. Of INSERT the time without that VACUUM is told as well.

    python -m bench.loading source-18 --rounds 10
"""

from __future__ import annotations

import argparse
import math
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import psycopg

from pgdyno.load._contract import Target
from pgdyno.load.discovery import find_driver
from pgdyno.model.experiments.workload import DataSet
from pgdyno.postgres.process.instance import SUPERUSER, Instance, initialise
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation
from pgdyno.stats.inference import infer
from pgdyno.stats.sample import Sample

ROWS = 2_000_000
PORT = 5432  # of a socket in a private directory
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "1h", "autovacuum": "off"}
CREATE = "CREATE TABLE t_bit(id bit(200))"
# The cheapest that makes 200 random bits in SQL here; drawing each bit by itself takes many times as long.
INSERT = """
INSERT INTO t_bit SELECT (random() * 9e18)::bigint::bit(64) || (random() * 9e18)::bigint::bit(64)
    || (random() * 9e18)::bigint::bit(64) || (random() * 255)::int::bit(8)
FROM generate_series(1, %s)
"""
LEVEL, MARGIN = 0.95, 0.02
VACUUM = "VACUUM (FREEZE, ANALYZE) t_bit"


def timed(connection: psycopg.Connection, work: Callable[[], None]) -> float:
    """Return the seconds that work takes on a server that has written out everything before."""
    connection.execute("DROP TABLE IF EXISTS t_bit")
    connection.execute("CHECKPOINT")
    began = time.monotonic()
    work()
    return time.monotonic() - began


@dataclass(frozen=True)
class Round:
    """Seconds that each way took in one round."""

    copy_s: float
    insert_and_vacuum_s: float
    insert_s: float


def play_round(connection: psycopg.Connection, load: Sequence[str]) -> Round:
    """Load in both ways, A B B A, and once by INSERT alone."""

    def copy() -> None:
        subprocess.run(load, check=True, capture_output=True)

    def insert() -> None:
        connection.execute(CREATE)
        connection.execute(INSERT, (ROWS,))

    def insert_and_vacuum() -> None:
        insert()
        connection.execute(VACUUM)

    order = (copy, insert_and_vacuum, insert_and_vacuum, copy, insert)
    times_s = [timed(connection, work) for work in order]
    return Round(times_s[0] + times_s[3], times_s[1] + times_s[2], 2 * times_s[4])


def ratio(log_ratios: Sequence[float]) -> str:
    """Return a ratio with its interval over rounds."""
    sample = Sample.of([[one] for one in log_ratios])
    found = infer(sample, level=LEVEL, margin=MARGIN, is_anytime=False)
    middle = math.exp(sample.round_means.mean())
    return f"{middle:.2f} times as long ({math.exp(found.low):.2f} … {math.exp(found.high):.2f})"


def main() -> None:
    """Print every round, and how many times as long INSERT takes, with its interval."""
    parser = argparse.ArgumentParser(description="How fast t_bit is made.")
    parser.add_argument("server", metavar="SERVER")
    parser.add_argument("--rounds", type=int, default=10, help="at least 5")
    asked = parser.parse_args()
    place = workspace()
    installation = find_installation(asked.server, place)
    with place.scratch() as scratch, place.sockets(scratch) as sockets:
        initialise(installation, place.account, scratch / "data")
        server = Instance(installation, place.account, scratch / "data", sockets, PORT, SETTINGS)
        target = Target(str(sockets), PORT, SUPERUSER, "postgres")
        load = find_driver(scratch).prepare(target, DataSet("t_bit", ROWS // 1000, 60_236)).argv
        played = []
        with server.running(), closing(server.connect()) as connection:
            for _ in range(asked.rounds):
                played.append(play_round(connection, load))
                print(played[-1], flush=True)
    print("INSERT and VACUUM", ratio([math.log(one.insert_and_vacuum_s / one.copy_s) for one in played]))
    print("INSERT alone     ", ratio([math.log(one.insert_s / one.copy_s) for one in played]))


if __name__ == "__main__":
    main()
