"""Commands that change or load a server, against one that does not answer as PostgreSQL does.

Whatever is said in between: they end, in words, with little memory, and ``revert`` then restores the real
server. What a server has claimed to have before is believed: its owner may set that anyway. So after a lie
``revert`` only has to end in words. Here is a sample; ``make hostile`` tries all behaviours.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server
from tests.hostile.attack import Outcome, attack
from tests.hostile.behaviours import Case, breaking, fuzzed, telling
from tests.hostile.commands import GENERATING, LOADING, changing
from tests.hostile.outcomes import require_met, require_no_fault
from tests.integration.journal_support import auto_conf, pg_ctl_restart, under_pg_ctl, write_auto_conf

pytestmark = [pytest.mark.server, pytest.mark.timeout(4 * 3600)]

BREAKING = {case.name: case for case in breaking()}
HONEST = {*BREAKING, "a restart, early", "a restart, later", "endless rows", "a million rows", "no rows"}
CASES = {**BREAKING, **{case.name: case for case in (*telling(), *fuzzed(range(40)))}}
CHANGES = [
    ("apply", "silence, late"),
    ("apply", "a restart, later"),
    ("apply", "seed 3"),
    ("revert", "closed, later"),
    ("revert", "errors of hostile text"),
    ("revert", "values of 100 MB"),
]
MORE_CHANGES = [("apply", "cut off, late"), ("revert", "seed 5"), ("revert", "one column")]
LOADS = [
    ("accelerate", "closed, later"),
    ("run clients --allow-load", "no rows"),
    ("run clients --allow-load", "values of 100 MB"),
    ("run clients --allow-load", "seed 27"),
]
MORE_LOADS = [("run clients --allow-load", "cut off, later"), ("run clients --allow-load", "seed 35")]
LOADS_LIMIT_S = 300.0  # of a measured server, an answer may take two minutes; what looks at it then gives up
GENERATED = [
    ("driver run pgbench-select", "length -1, early"),
    ("driver run pgbench-select", "silence, later"),
    ("driver run pgbench-select", "endless notices, early"),
    ("driver run sysbench-read-write", "errors of hostile text"),
    ("driver run sysbench-read-write", "length 2 GB, early"),
    ("driver run sysbench-read-write", "other types"),
    ("driver load sysbench-read-write", "values of 100 MB"),
    ("driver load sysbench-read-write", "closed, first answer"),
    ("driver load sysbench-read-write", "silence, first answer"),
    ("driver load sysbench-read-write", "endless notices, first answer"),
]

Job = tuple[str, Case]
DRIVER = Path(sys.executable).with_name("pgdyno-driver")


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """The server whose words are altered; pg_ctl restarts it."""
    with running_server(pg18_bin) as started, under_pg_ctl(started):
        yield started


def jobs(
    config: pytest.Config, commands: Sequence[str] | Mapping[str, object], sample: Sequence[tuple[str, str]]
) -> list[Job]:
    """Return what is tried: the sample, or every behaviour on every command."""
    if config.getoption("--all-behaviours"):
        return [(command, case) for command in commands for case in CASES.values()]
    return [(command, CASES[name]) for command, name in sample]


@contextmanager
def fresh_home() -> Iterator[dict[str, str]]:
    """A home without receipts, which the servers' account reaches."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-hostile-") as home:
        Path(home).chmod(0o755)
        yield {"PGDYNO_HOME": home, "PGDYNO_AS_BOOTED": "1"}


def settings(server: RealServer) -> list[str]:
    """Return what ALTER SYSTEM has written, without comments."""
    return [line for line in auto_conf(server).read_text().splitlines() if not line.startswith("#")]


def upstream(server: RealServer) -> Path:
    return server.socket_directory / f".s.PGSQL.{server.port}"


@pytest.mark.parametrize(
    "sample", [CHANGES, pytest.param(MORE_CHANGES, marks=pytest.mark.long)], ids=["some", "more"]
)
def test_revert_restores_the_server_whatever_was_said_meanwhile(
    server: RealServer, pytestconfig: pytest.Config, sample: Sequence[tuple[str, str]]
) -> None:
    write_auto_conf(server, "work_mem = '3MB'\n")
    commands = changing(pg_ctl_restart(server))
    outcomes, kept = [], []
    for command, case in jobs(pytestconfig, commands, sample):
        with fresh_home() as environment:
            outcome, is_restored = change(server, commands, command, case, environment)
        outcomes.append(outcome)
        if not is_restored:
            kept.append(f"{command}, {case.name}: {outcome.err[-1500:]!a}")
    require_met(outcomes)
    require_no_fault(outcomes)
    assert not kept, "\n".join(kept)


def change(
    server: RealServer,
    commands: Mapping[str, tuple[str, ...]],
    command: str,
    case: Case,
    environment: Mapping[str, str],
) -> tuple[Outcome, bool]:
    """Apply or revert by the hostile server, then revert by the real one; say whether that restored it."""
    before = settings(server)
    if command == "revert":
        applied = pgdyno(*(text.replace("{dsn}", server.dsn) for text in commands["apply"]), **environment)
        assert applied.returncode == 0, applied.stderr
        assert settings(server) != before
    outcome = attack(command, commands[command], case, upstream(server), environment)
    undone = pgdyno(*(text.replace("{dsn}", server.dsn) for text in commands["revert"]), **environment)
    if case.name not in HONEST:
        assert undone.returncode in {0, 2, 3}, undone.stderr
        assert "PGD-900" not in undone.stderr
        write_auto_conf(server, "work_mem = '3MB'\n")
        return outcome, True
    return outcome, undone.returncode == 0 and settings(server) == before


@pytest.mark.parametrize(
    "sample", [LOADS, pytest.param(MORE_LOADS, marks=pytest.mark.long)], ids=["some", "more"]
)
def test_a_load_ends_in_words_and_leaves_no_database(
    server: RealServer, pytestconfig: pytest.Config, sample: Sequence[tuple[str, str]]
) -> None:
    before = databases(server)
    outcomes = []
    for command, case in jobs(pytestconfig, LOADING, sample):
        with fresh_home() as environment:
            outcomes.append(
                attack(command, LOADING[command], case, upstream(server), environment, limit_s=LOADS_LIMIT_S)
            )
            left = pgdyno("revert", "--all", "--dsn", server.dsn, **environment)
        assert left.returncode in {0, 2}, left.stderr
        drop(server, databases(server) - before)
    require_met(outcomes)
    require_no_fault(outcomes)


def databases(server: RealServer) -> set[str]:
    return {name for (name,) in server.execute("SELECT datname FROM pg_database")}


def drop(server: RealServer, names: set[str]) -> None:
    """Drop what a command could not, because its server had gone for good; the next run would."""
    for name in names:
        server.execute(f'DROP DATABASE "{name}"')


def test_the_load_generator_ends_in_words(server: RealServer, pytestconfig: pytest.Config) -> None:
    tables = ("load", "pgbench-select", "{dsn}"), GENERATING["driver load sysbench-read-write"]
    for arguments in tables:
        patient = [one for one in arguments if not one.startswith("--answer-limit")]
        loaded = generate(server, patient, Case("as it is", lambda: lambda message: (message.encoded(),)))
        assert loaded.exit_code == 0, loaded.err
    outcomes = []
    for command, case in jobs(pytestconfig, GENERATING, GENERATED):
        if command.startswith("driver load"):
            server.execute("DROP TABLE IF EXISTS sbtest1")
        outcomes.append(generate(server, GENERATING[command], case))
    require_met(outcomes)
    require_no_fault(outcomes)


def generate(server: RealServer, arguments: Sequence[str], case: Case) -> Outcome:
    """Run the load generator against a behaviour. It counts answers, and does not look at their values."""
    lied_to = replace(case, may_end_well=case.name not in BREAKING)
    return attack(" ".join(arguments[:2]), arguments, lied_to, upstream(server), {}, program=(str(DRIVER),))
