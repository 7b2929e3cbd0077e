"""``pgdyno run clients --dsn``: a running server is measured from where pgdyno runs, and left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.fix_home import pgdyno
from tests.fix_rounds import WHATEVER_ELSE_RUNS
from tests.fix_servers import RealServer

from pgdyno.base.errors import PgdynoError, PrivilegeError, UsageError
from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.attached_server import find_remote_server
from pgdyno.measure.bundled_study import Sizing
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import CLIENT_CPU, SERVER_CPU
from pgdyno.studies.attached import measure_clients_of
from pgdyno.studies.bundled import clients as study_file
from pgdyno.studies.bundled._client_tables import CAVEAT
from pgdyno.workload.workload_choice import find_workloads

pytestmark = pytest.mark.server

PASSWORD = "only the client knows it"  # noqa: S105 — of a role that this file makes
SMALL = Sizing(clients=2, loads=tuple(find_workloads(study_file.STUDY.measures, (), 1).values()))


@pytest.fixture
def role(pg18: RealServer) -> Iterator[str]:
    """Return a role that may do nothing but log in, with a password."""
    pg18.execute(f"CREATE ROLE loader LOGIN PASSWORD '{PASSWORD}'")
    yield "loader"
    pg18.execute("DROP ROLE loader")


def databases(server: RealServer) -> list[tuple[str]]:
    return server.execute("SELECT datname FROM pg_database ORDER BY 1")


def measured(dsn: str, sizing: Sizing = SMALL) -> Experiment:
    design = replace(study_file.STUDY.design, rounds=1, block_s=0.5, thresholds=WHATEVER_ELSE_RUNS)
    return measure_clients_of(dsn, sizing, Conditions(None, {}, design), Lines())


def test_a_server_of_this_host_shows_what_it_spends(home: Path, pg18: RealServer) -> None:
    before = databases(pg18)
    experiment = measured(pg18.dsn)
    assert {block.workload for block in experiment.blocks} == {
        f"{load}-{clients}" for load in study_file.STUDY.measures for clients in (1, 2)
    }
    assert all({SERVER_CPU, CLIENT_CPU} <= block.arms[0].values.keys() for block in experiment.blocks)
    assert not any("not proven" in note for note in experiment.notes)
    assert databases(pg18) == before


def test_clients_write_to_tables_of_their_own_and_all_balances_agree(home: Path, pg18: RealServer) -> None:
    before = databases(pg18)
    own = replace(SMALL, given={"tables": ("own",)}, loads=SMALL.loads[1:])
    experiment = measured(pg18.dsn, own)
    blocks = {block.workload: block.arms[0] for block in experiment.blocks}
    assert sorted(blocks) == ["pgbench-tpcb-own-1", "pgbench-tpcb-own-2"]
    assert all(arm.transactions > 0 for arm in blocks.values())
    assert CAVEAT in experiment.notes
    assert experiment.options["tables"] == "own"
    assert databases(pg18) == before


def test_of_a_server_out_of_sight_only_the_clients_side_is_told(
    home: Path, pg18: RealServer, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role that may not see where the data are is as far from the server's processes as another host."""
    pg18.execute(f"ALTER ROLE {role} CREATEDB")
    pg18.execute(f"GRANT pg_checkpoint TO {role}")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    before = databases(pg18)
    experiment = measured(pg18.tcp_dsn_for(role))
    assert experiment.blocks
    for block in experiment.blocks:
        values = block.arms[0].values
        assert values["throughput_tps"] > 0
        assert CLIENT_CPU in values
        assert values.keys().isdisjoint({SERVER_CPU, "context_switches_per_transaction", "huge_page_bytes"})
    assert any(
        note.startswith("the server is not proven to run on the clients' host") for note in experiment.notes
    )
    assert databases(pg18) == before


def test_what_a_connection_string_says_of_tls_reaches_the_load_generator(pg18: RealServer) -> None:
    _, environment = find_remote_server(f"{pg18.dsn} sslmode=disable")
    assert environment == {"PGSSLMODE": "disable"}


@pytest.mark.parametrize(
    ("granted", "error", "message"),
    [
        ((), PrivilegeError, "the role may not create databases for the measurement"),
        (
            ("ALTER ROLE loader CREATEDB",),
            PrivilegeError,
            "the role may not run checkpoints, which begin every round",
        ),
    ],
)
def test_a_role_that_may_not_load_the_server_is_refused_before_it_does(
    pg18: RealServer,
    role: str,
    home: Path,
    granted: tuple[str, ...],
    error: type[PgdynoError],
    message: str,
) -> None:
    for statement in granted:
        pg18.execute(statement)
    before = databases(pg18)
    with pytest.raises(error) as caught:
        measured(pg18.dsn_for(role))
    assert caught.value.message == message
    assert databases(pg18) == before


def test_more_clients_than_connections_are_refused_with_how_many_there_are(
    home: Path, pg18: RealServer
) -> None:
    with psycopg.connect(pg18.dsn) as connection:
        row = connection.execute("SELECT current_setting('max_connections')::int").fetchone()
    assert row is not None
    many = replace(SMALL, clients=row[0])
    with pytest.raises(UsageError) as caught:
        measure_clients_of(pg18.dsn, many, Conditions(None, {}, study_file.STUDY.design), Lines())
    assert caught.value.message == f"the server does not have enough free connections for {row[0]} clients"
    free = row[0] - 3 - 3  # of superusers, and to look; this test's own connection may not have ended yet
    said = {f"{count} are free for clients now" for count in (free, free - 1)}
    assert caught.value.detail in said


def test_nothing_is_loaded_unless_that_is_allowed(home: Path, pg18: RealServer) -> None:
    for arguments, code, message in (
        (("clients",), 4, "the measurement puts load on the server, and load was not allowed"),
        (("clients", "--allow-load", "--embedded"), 2, "it takes no --embedded"),
        (("clients", "--allow-load", "--query", "SELECT 1"), 2, "the study clients takes no --query"),
        (("loop", "--allow-load"), 2, "the study loop measures only scratch servers"),
    ):
        refused = pgdyno("run", *arguments, "--dsn", pg18.dsn)
        assert refused.returncode == code
        assert message in refused.stderr
