"""Whether costs that are planted show in the right line of a profile, and as large as they are.

python -m bench.planted_profile [--turns 5]: one client of pgbench runs a script with a cost and without, in
turns, on PostgreSQL 18, while `pgdyno profile --dsn` watches. pgbench's own latency says how much longer a
transaction is; the last column is what the lines of that cost say, as a share of it, with a 95 % interval.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

from bench.likeness import Quiet
from scipy import special
from tests.fix_servers import RealServer, running_server

from pgdyno.postgres.process.registry import embedded
from pgdyno.profile import parts
from pgdyno.profile.reading.traffic_profile import profile_attached
from pgdyno.profile.records.profile_record import AccountGroup, AccountLine

_WATCHED_S, _MARGIN_S = 20.0, 2.0
_LATENCY = re.compile(r"latency average = ([0-9.]+) ms")
_READ = "SELECT abalance FROM pgbench_accounts WHERE aid = 1;\n"
_READS = _READ * 5
_COMMIT = "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n"
_SPIN = (
    "CREATE FUNCTION spin(n integer) RETURNS integer LANGUAGE plpgsql AS "
    "$$ DECLARE x integer := 0; BEGIN FOR i IN 1..n LOOP x := x + 1; END LOOP; RETURN x; END $$"
)
_POINT = "SELECT 1 FROM pgbench_branches WHERE bid = -1;\n"
_JOINED = " JOIN ".join(["pgbench_branches b0", *(f"pgbench_branches b{i} USING (bid)" for i in range(1, 7))])
_JOIN = f"SELECT 1 FROM {_JOINED} WHERE bid = -1;\n"  # noqa: S608 — all of it stands here
# A wake-up of the server is one of the client as well.
_WAKE_UP = frozenset({AccountGroup.CLIENT, AccountGroup.WAKING, AccountGroup.QUEUE})
_DELAY_FILE = "fdatasync-us"
# Makes fdatasync take longer by the microseconds in a file; a device with limits would do as well.
_SLOW_SYNC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int fdatasync(int fd)
{
    static int (*real)(int);
    int us = 0;
    FILE *file = fopen("%s", "r");
    if (file) { if (fscanf(file, "%%d", &us) != 1) us = 0; fclose(file); }
    if (us > 0) usleep((useconds_t) us);
    if (!real) real = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
    return real(fd);
}
"""


@dataclass(frozen=True)
class Cost:
    """A cost to plant: a script with it, one without, and the lines or groups of lines that it belongs to."""

    title: str
    without: str
    with_it: str
    lines: frozenset[str]
    delay_us: int = 0
    protocol: str = "simple"


_COSTS = (
    Cost(
        "a sleep of 2 ms",
        f"{_READS}SELECT pg_sleep(0);\n",
        f"{_READS}SELECT pg_sleep(0.002);\n",
        frozenset({"Timeout:PgSleep"}),
    ),
    Cost(
        "a loop in a function",
        f"{_READS}SELECT spin(1);\n",
        f"{_READS}SELECT spin(20000);\n",
        frozenset({parts.PLPGSQL, parts.FUNCTIONS}),
    ),
    Cost(
        "planning a join of seven tables",
        f"{_READS}{_POINT}",
        f"{_READS}{_JOIN}",
        frozenset({parts.PLANNING}),
    ),
    Cost("fdatasync slower by 3 ms", _COMMIT, _COMMIT, frozenset({"IO:WalSync"}), delay_us=3000),
    Cost(
        "19 wake-ups: 20 statements without a pipeline",
        f"\\startpipeline\n{_READ * 20}\\endpipeline\n",
        _READ * 20,
        frozenset({*_WAKE_UP, parts.RECEIVING, parts.SENDING}),
        protocol="extended",
    ),
)


@dataclass(frozen=True)
class Seen:
    """A transaction as pgbench and as the profile sees it, in µs."""

    latency_us: float
    lines: tuple[AccountLine, ...]

    def of(self, names: frozenset[str]) -> float:
        """Return the time of lines and groups of lines."""
        return sum(one.time.us for one in self.lines if one.name in names or one.group in names)


def main() -> None:
    """Plant every cost, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        preloaded = {"LD_PRELOAD": str(_slow_sync(directory))}
        with running_server(embedded().bin_directory) as server:
            server.stop()
            server.environment = preloaded
            server.start()
            _pgbench(server, "-i", "-q", "-s", "1")
            server.execute(_SPIN)
            print("| planted | µs a transaction, pgbench | its lines | lines' share of it |")
            print("|---|---:|---|---:|")
            for cost in _COSTS:
                print(_row(server, directory, cost, turns), flush=True)


def _row(server: RealServer, directory: Path, cost: Cost, turns: int) -> str:
    added, seen = [], []
    for _ in range(turns):
        before = _seen(server, directory, cost.without, cost.protocol)
        after = _seen(server, directory, cost.with_it, cost.protocol, cost.delay_us)
        added.append(after.latency_us - before.latency_us)
        seen.append(after.of(cost.lines) - before.of(cost.lines))
    named = ", ".join(sorted(cost.lines))
    return f"| {cost.title} | {mean(added):,.0f} | {named} | {_share(seen, added)} |"


def _share(seen: Sequence[float], added: Sequence[float]) -> str:
    """Return the ratio of two means with its 95 % interval over the turns; a single turn has none.

    Source: Cochran (1977), Sampling Techniques, 3rd ed., §6.4.
    """
    share = mean(seen) / mean(added)
    if len(added) < 2:
        return f"{share:.2f}"
    apart = [found - share * planted for found, planted in zip(seen, added, strict=True)]
    error = stdev(apart) / sqrt(len(apart)) / mean(added)
    reach = float(special.stdtrit(len(apart) - 1, 0.975)) * error
    return f"{share:.2f} ({share - reach:.2f} … {share + reach:.2f})"


def _seen(server: RealServer, directory: Path, script: str, protocol: str, delay_us: int = 0) -> Seen:
    (directory / _DELAY_FILE).write_text(str(delay_us))
    file = directory / "script.sql"
    file.write_text(f"BEGIN;\n{script}COMMIT;\n")  # else each statement is a transaction to the server
    program = [
        str(server.bin_directory / "pgbench"),
        "-n",
        "-c",
        "1",
        "-M",
        protocol,
        "-f",
        str(file),
        "-T",
        str(int(_WATCHED_S + 2 * _MARGIN_S)),
    ]
    with subprocess.Popen([*program, *_where(server)], stdout=subprocess.PIPE, text=True) as load:
        time.sleep(_MARGIN_S)  # a session that is opened while it is watched has no times
        profile = profile_attached(server.dsn, _WATCHED_S, Quiet())
        said, _ = load.communicate()
    found = _LATENCY.search(said)
    assert found is not None, said  # noqa: S101 — pgbench prints it
    return Seen(1000 * float(found[1]), profile.lines)


def _pgbench(server: RealServer, *arguments: str) -> None:
    program = str(server.bin_directory / "pgbench")
    subprocess.run([program, *arguments, *_where(server)], check=True, capture_output=True)


def _where(server: RealServer) -> list[str]:
    return ["-h", str(server.socket_directory), "-p", str(server.port), "-U", "postgres", "postgres"]


def _slow_sync(directory: Path) -> Path:
    """Compile the library that makes fdatasync slow. Raises: CalledProcessError."""
    source, library = directory / "slow_sync.c", directory / "slow_sync.so"
    source.write_text(_SLOW_SYNC % (directory / _DELAY_FILE))
    compiler = shutil.which("gcc") or "cc"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"], check=True)
    library.chmod(0o755)
    return library


if __name__ == "__main__":
    main()
