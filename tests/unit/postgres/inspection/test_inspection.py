from __future__ import annotations

from pgdyno.postgres.guc import Guc
from pgdyno.postgres.inspection.inspection import recognise
from pgdyno.postgres.server import ConfigurationManager


def guc(name: str, source: str = "configuration file", sourcefile: str | None = None) -> Guc:
    return Guc(
        name=name,
        setting="x",
        unit=None,
        vartype="string",
        context="sighup",
        source=source,
        boot_val="",
        reset_val="x",
        sourcefile=sourcefile,
    )


def test_an_ordinary_server_has_no_manager() -> None:
    ordinary = [guc("port", sourcefile="/etc/postgresql/15/main/postgresql.conf"), guc("cluster_name")]
    assert recognise(ordinary, ["psql", "pgdyno"]) == ()


def test_patroni_is_recognised_by_its_base_file() -> None:
    found = recognise([guc("datestyle", sourcefile="/data/postgresql.base.conf")], [])
    assert found == (
        ConfigurationManager(
            "Patroni", "datestyle comes from /data/postgresql.base.conf", "patronictl edit-config"
        ),
    )


def test_patroni_is_recognised_by_its_connections_where_files_are_hidden() -> None:
    (found,) = recognise([guc("port")], ["psql", "Patroni heartbeat"])
    assert found.evidence == 'a client has the application name "Patroni heartbeat"'


def test_patroni_is_recognised_by_its_command_line() -> None:
    names = ("cluster_name", "max_locks_per_transaction", "track_commit_timestamp", "wal_log_hints", "port")
    (found,) = recognise([guc(name, source="command line") for name in names], [])
    assert found.name == "Patroni"


def test_a_container_that_passes_a_cluster_name_is_not_patroni() -> None:
    assert recognise([guc("cluster_name", source="command line")], []) == ()


def test_services_are_recognised_by_settings_of_their_own() -> None:
    found = recognise([guc("cnpg.config_sha256"), guc("rds.extensions"), guc("rds.adaptive_autovacuum")], [])
    assert [(manager.name, manager.evidence) for manager in found] == [
        ("CloudNativePG", "the server has the setting cnpg.config_sha256"),
        ("Amazon RDS or Aurora", "the server has the setting rds.adaptive_autovacuum"),
    ]
