"""Commands that change nothing against servers that do not answer as PostgreSQL does, with bad intent.

Whatever they say: a command ends, in words, with little memory, and nothing is changed. Here is a sample;
``make hostile`` tries all behaviours on all commands, and prints what docs/results/trust/hostile.md has.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import psycopg
import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server
from tests.hostile.attack import Outcome, attack
from tests.hostile.behaviours import Case, after, breaking, fuzzed, instead, telling
from tests.hostile.commands import READING, TABLE
from tests.hostile.outcomes import require_met, require_no_fault
from tests.hostile.peer import Instead, Peer
from tests.integration.journal_support import auto_conf, under_pg_ctl

from pgdyno.base.errors import ConnectionFailedError
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.connection.control_connection import ANSWER_LIMIT_S, MOST_VALUES

pytestmark = [pytest.mark.server, pytest.mark.timeout(4 * 3600)]

BREAKING, TELLING = breaking(), [*telling(), *fuzzed(range(40))]
CASES = {case.name: case for case in (*BREAKING, *TELLING)}
# What breaks the protocol is met by the connection, whatever is written of its answers later.
ONE_OF_EACH = (
    "inspect",
    "advise --format text",
    "levers",
    "explain-degree",
    "status",
    "profile --json",
    "apply --dry-run",
)
SEEDED = ("inspect", "inspect --json", "explain-degree", "explain-degree --workload")
SAMPLE = [
    ("inspect", "silence, login"),
    ("inspect", "silence, early"),
    ("levers", "silence, later"),
    ("status", "endless notices, first answer"),
    ("inspect", "length 2 GB, early"),
    ("inspect", "endless notifications, early"),
    ("advise --format text", "endless parameters, early"),
    ("advise --format text", "endless rows"),
    ("inspect --json", "a million rows"),
    ("inspect", "values of 100 MB"),
    ("apply --dry-run", "NULL everywhere"),
    ("advise --format ansible", "one column"),
    ("inspect", "no rows"),
    ("explain-degree", "no rows"),
    ("inspect", "errors without fields"),
    ("status", "errors of hostile text"),
    ("advise --format terraform", "version 99.99; rm -rf"),
    ("inspect", "numbers: 1e400"),
    ("advise --format text", "numbers: 0"),
    ("apply --dry-run", "a restart, later"),
    ("profile --json", "other types"),
    ("profile --json", "NULL everywhere"),
    ("profile --json", "seed 2"),
    *((command, f"seed {seed}") for seed, command in enumerate(SEEDED)),
    ("explain-degree --workload", "other types"),
    ("explain-degree --workload", "NULL everywhere"),
    ("explain-degree --workload", "numbers: 1e400"),
]  # fmt: skip
LARGER = [
    ("explain-degree", "values of 100 MB"),
    ("status", "NULL everywhere"),
    ("profile --json", "numbers: 1e400"),
    ("explain-degree --workload", "no rows"),
    ("explain-degree", "other types"),
    *((command, f"seed {seed}") for seed in range(4) for command in SEEDED if seed != SEEDED.index(command)),
]
AT_ONCE = 6


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """The server whose words are altered; pg_ctl restarts it."""
    with running_server(pg18_bin) as started, under_pg_ctl(started):
        started.execute(TABLE)
        started.execute("ANALYZE public.attacked")
        yield started


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """A home that the servers' account reaches; the tests' own libpq variables are left out."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-hostile-") as home:
        Path(home).chmod(0o755)
        yield {"PGDYNO_HOME": home, "PGDYNO_AS_BOOTED": "1"}


def upstream(server: RealServer) -> Path:
    return server.socket_directory / f".s.PGSQL.{server.port}"


def attacked(
    jobs: Sequence[tuple[str, Case]], server: RealServer, environment: Mapping[str, str]
) -> list[Outcome]:
    """Run commands against behaviours, some at a time."""

    def run(job: tuple[str, Case]) -> Outcome:
        command, case = job
        return attack(command, READING[command], case, upstream(server), environment)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, jobs))


@pytest.mark.parametrize(
    "names", [SAMPLE, pytest.param(LARGER, marks=pytest.mark.long)], ids=["some", "more"]
)
def test_a_command_that_reads_ends_in_words(
    server: RealServer,
    environment: dict[str, str],
    pytestconfig: pytest.Config,
    names: Sequence[tuple[str, str]],
) -> None:
    sample = [(command, CASES[name]) for command, name in names]
    every = [*product(READING, TELLING), *product(ONE_OF_EACH, BREAKING)]
    before = auto_conf(server).read_bytes()
    outcomes = attacked(every if pytestconfig.getoption("--all-behaviours") else sample, server, environment)
    require_met(outcomes)
    require_no_fault(outcomes)
    assert auto_conf(server).read_bytes() == before
    assert "nothing" in pgdyno("status", **environment).stdout.lower()


def test_a_silent_server_is_not_waited_for_longer_than_the_limit(server: RealServer) -> None:
    with contextlib.closing(connect(server.dsn)) as usual:
        assert usual.answer_limit_s == ANSWER_LIMIT_S
    silent = Peer(upstream(server), after(3, instead(Instead.SILENCE)))
    with silent, contextlib.closing(connect(silent.dsn)) as connection:
        connection.answer_limit_s = 1.0
        with pytest.raises(psycopg.OperationalError) as caught:
            connection.execute("SELECT 1")
        assert str(caught.value) == "the server did not complete a response within 1 s"
        assert connection.closed


def test_an_answer_of_more_values_than_any_has_is_not_taken(pg18: RealServer) -> None:
    with contextlib.closing(connect(pg18.dsn)) as connection:
        assert len(connection.execute(f"SELECT generate_series(1, {MOST_VALUES})").fetchall()) == MOST_VALUES
        with pytest.raises(psycopg.OperationalError) as caught:
            connection.execute(f"SELECT generate_series(0, {MOST_VALUES})")
        said = f"the server returned {MOST_VALUES + 1} rows, more than any expected result has"
        assert str(caught.value) == said
        assert connection.closed


def test_an_answer_that_takes_too_much_memory_is_not_taken(pg18: RealServer) -> None:
    with contextlib.closing(connect(pg18.dsn)) as connection:
        assert len(connection.execute("SELECT repeat('x', 10000000)").fetchall()) == 1
        with pytest.raises(psycopg.OperationalError) as caught:
            connection.execute("SELECT repeat('x', 100000000) FROM generate_series(1, 5)")
        assert str(caught.value) == "the server's response takes too much memory"
        assert connection.closed


def test_values_of_another_type_are_an_error_in_words(server: RealServer) -> None:
    peer = Peer(upstream(server), CASES["numbers: NaN"].make)
    with peer, pytest.raises(ConnectionFailedError) as caught:
        connect(peer.dsn)
    assert (caught.value.detail or "").startswith("the server returned an unreadable value: ")


def test_a_connection_that_is_closed_at_once_is_none(server: RealServer) -> None:
    peer = Peer(upstream(server), CASES["closed, first answer"].make)
    with peer, pytest.raises(ConnectionFailedError) as caught:
        connect(peer.dsn)
    assert caught.value.message.startswith("could not connect to the server")
