"""How like the original a replay of a captured workload is, on three loads: pgbench, sysbench, a shop.

python -m bench.likeness [--for 60] [--pg-bin DIR]: each load runs on PostgreSQL 18, or on the server in DIR,
while it is captured, and is replayed on a copy of its database. The CPU time of the capture's session in the
server is read as well. A log has no rows and blocks: for workloads from a sample of
transactions, the server counts them meanwhile, without BEGIN and COMMIT. Then a trigger slows one statement
of the shop by about half, in the original and in the replay, in turns.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.fix_servers import RealServer, as_unprivileged, running_server
from tests.shop import buying

from pgdyno.builds.switching.server_access import server_access
from pgdyno.measure.replay import Replay, ReplayRequest, replay
from pgdyno.model.experiments.captured import QUANTITIES, CapturedWorkload
from pgdyno.model.experiments.failures import failures_text
from pgdyno.model.experiments.likeness import likeness_words
from pgdyno.postgres.process.processes import cpu_ns
from pgdyno.postgres.process.registry import embedded
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.likeness import seen_by_name
from pgdyno.workload.capture_sample import LogSampleRequest, capture_sample
from pgdyno.workload.capture_server import CaptureRequest, capture

_SETTINGS = """\
shared_preload_libraries = 'pg_stat_statements'
shared_buffers = 256MB
logging_collector = on
"""
_SYSBENCH = ("sysbench", "oltp_read_write", "--db-driver=pgsql", "--tables=8", "--table-size=20000")
_KEYS = {
    "sysbench, uniform keys": "uniform",
    "sysbench, its own keys": "special",
    "sysbench, its own keys, log sample": "special",
}
_SAMPLED = 0.1  # of the transactions, in a log sample
_COUNTED = (
    "SELECT queryid, query, calls, total_exec_time, rows, shared_blks_hit + shared_blks_read, wal_records "
    "FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = dbid WHERE datname = '{}'"
)
_TRIGGER = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RETURN new; END';
CREATE TRIGGER slow BEFORE UPDATE ON products FOR EACH ROW EXECUTE FUNCTION slow();
ALTER TABLE products DISABLE TRIGGER slow;
"""
_UPDATES = (
    "SELECT calls, total_exec_time FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = dbid "
    "WHERE query LIKE 'UPDATE products%' AND datname = '{}'"
)
_OURS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgdyno' AND datname = '{}'"


class Quiet:
    """Progress of which nothing is shown."""

    def step(self, _: str) -> None:
        """Say nothing."""

    def advance(self, _: float, __: float) -> None:
        """Say nothing."""


def main() -> None:
    """Capture and replay all three, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--for", dest="seconds", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--pg-bin", type=Path, metavar="DIR")
    given = parser.parse_args()
    seconds, programs = given.seconds, given.pg_bin or embedded().bin_directory
    print("| load | replayed | likeness | calls | time | rows | blocks | WAL records | capture's CPU |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for title in ("pgbench", *_KEYS, "shop"):
        name = title.partition(",")[0]
        with running_server(programs, _SETTINGS) as server:
            server.execute(f"CREATE DATABASE {name}")
            server.execute("CREATE EXTENSION pg_stat_statements", name)
            workload, share = _captured(server, title, seconds)
            server.execute(f"CREATE DATABASE copy TEMPLATE {name}")
            server.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
            done = replay(workload, ReplayRequest(server.dsn_for("app", "copy"), seconds), Quiet())
            print(_row(title, workload, done, share), flush=True)
            failed = failures_text(done.run.failures) or "none"
            print(f"<!-- {likeness_words(done.likeness)}; failed: {failed} -->", flush=True)
    print(_slowed(programs, seconds))


def _slowed(programs: Path, seconds: float) -> str:
    """Return how much a trigger slows a statement of the shop, in the original and in the replay."""
    with running_server(programs, _SETTINGS) as server:
        server.execute("CREATE DATABASE shop")
        server.execute("CREATE EXTENSION pg_stat_statements", "shop")
        buying.make(server.dsn_for("postgres", "shop"))
        server.execute(_TRIGGER, "shop")
        with buying.load(server.dsn_for("postgres", "shop")):
            time.sleep(2)
            workload = capture(CaptureRequest(server.reading_dsn("shop"), "shop", seconds), Quiet())
            original = _times_as_long(server, "shop", seconds)
        server.execute("CREATE DATABASE copy TEMPLATE shop")
        server.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
        request = ReplayRequest(server.dsn_for("app", "copy"), seconds + 10)
        with ThreadPoolExecutor() as pool:
            replaying = pool.submit(replay, workload, request, Quiet())
            time.sleep(5)
            replayed = _times_as_long(server, "copy", seconds)
            replaying.result()
    return (
        f"update-products with the trigger ÷ without: original {original:.2f}, replay {replayed:.2f}; "
        f"of the original's slowdown: {(replayed - 1) / (original - 1):.2f}"
    )


def _times_as_long(server: RealServer, database: str, seconds: float) -> float:
    """Return the server's time per call with the trigger divided by that without it, in turns of a second."""
    spent: dict[str, list[float]] = {"ENABLE": [0.0, 0.0], "DISABLE": [0.0, 0.0]}
    for turn in range(int(seconds)):
        state = ("ENABLE", "DISABLE", "DISABLE", "ENABLE")[turn % 4]
        server.execute(f"ALTER TABLE products {state} TRIGGER slow", database)
        [[calls, ms]] = server.execute(_UPDATES.format(database), "shop")
        time.sleep(1)
        [[calls_after, ms_after]] = server.execute(_UPDATES.format(database), "shop")
        spent[state][0] += calls_after - calls
        spent[state][1] += ms_after - ms
    (slow_calls, slow_ms), (calls, ms) = spent["ENABLE"], spent["DISABLE"]
    return slow_ms / slow_calls / (ms / calls)


def _captured(server: RealServer, title: str, seconds: float) -> tuple[CapturedWorkload, float]:
    """Return the workload, and the share of a CPU that the capture's session took while it watched."""
    name = title.partition(",")[0]
    dsn = server.reading_dsn(name)
    with _load(server, name, _KEYS.get(title, "")):
        time.sleep(2)
        if "log sample" in title:
            return _sampled(server, name, seconds), math.nan
        shares: list[float] = []
        watching = threading.Thread(target=_watch, args=(server, name, seconds, shares))
        watching.start()
        workload = capture(CaptureRequest(dsn, name, seconds), Quiet())
        watching.join()
    return workload, shares[0]


def _sampled(server: RealServer, name: str, seconds: float) -> CapturedWorkload:
    """Return a workload from a sample of transactions, with the server's counts of the same time."""
    server.execute("SELECT pg_stat_statements_reset()", name)
    request = LogSampleRequest(server.reading_dsn(name), name, _SAMPLED, seconds)
    workload = capture_sample(server_access(server.dsn_for("postgres", name)), request, Quiet())
    rows = server.execute(_COUNTED.format(name), name)
    texts, seen = {row[0]: row[1] for row in rows}, {row[0]: Seen(*row[2:]) for row in rows}
    counted = seen_by_name(workload, texts, seen)
    nothing = Seen(0, 0.0, 0, 0, 0)
    statements = (replace(one, seen=counted.get(one.name, nothing)) for one in workload.statements)
    without_control = (one if one.is_prepared else replace(one, seen=nothing) for one in statements)
    return replace(workload, statements=tuple(without_control), counted=QUANTITIES)


def _watch(server: RealServer, name: str, seconds: float, shares: list[float]) -> None:
    """Read the CPU time of the capture's backend after a second, and before it ends."""
    time.sleep(1)
    [[pid]] = server.execute(_OURS.format(name))
    began_ns, began_s = cpu_ns(pid) or 0, time.monotonic()
    time.sleep(seconds - 2)
    shares.append(((cpu_ns(pid) or 0) - began_ns) / 1e9 / (time.monotonic() - began_s))


def _row(name: str, workload: CapturedWorkload, done: Replay, share: float) -> str:
    found = done.likeness
    each = (value for name, value in found.by_quantity.items() if name not in found.of_transactions)
    figures = [f"**{found.least:.2f}**", *(f"{value:.2f}" for value in each)]
    shown = "" if math.isnan(share) else f"{share:.2%}"
    return f"| {name} | {workload.replayed_share:.1%} | {' | '.join(figures)} | {shown} |"


@contextmanager
def _load(server: RealServer, name: str, keys: str) -> Iterator[None]:
    """Prepare a load's database, and run it as long as the block lasts."""
    place = (f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres", name)
    if name == "shop":
        buying.make(server.dsn_for("postgres", name))
        with buying.load(server.dsn_for("postgres", name)):
            yield
        return
    if name == "pgbench":
        server.run("pgbench", "--initialize", "--quiet", "--scale=10", *place)
        pgbench = str(server.client_directory / "pgbench")
        argv = [pgbench, "--client=4", "--time=100000", "--no-vacuum", *place]
    else:
        options = (
            *(f"--pgsql-host={server.socket_directory}", f"--pgsql-port={server.port}"),
            *("--pgsql-user=postgres", f"--pgsql-db={name}"),
        )
        _run([*_SYSBENCH, *options, "prepare"])
        argv = [*_SYSBENCH, *options, f"--rand-type={keys}", "--threads=4", "--time=100000", "run"]
    server.execute("VACUUM ANALYZE", name)
    process = subprocess.Popen(
        [*as_unprivileged(), *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _run(argv: Sequence[str]) -> None:
    subprocess.run([*as_unprivileged(), *argv], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
