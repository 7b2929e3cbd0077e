"""What one connection tells about real servers, as superuser, as pg_monitor and as an ordinary role."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Iterator

import psycopg
import pytest
from tests.fix_servers import RealServer, wait_until

from pgdyno.base.errors import ConnectionFailedError
from pgdyno.base.facts import Unknown, to_document
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.inspection.inspection import identify_backend, inspect_server
from pgdyno.postgres.server import Server, SettingOverride, Standby

pytestmark = pytest.mark.server

_ALL_BYTES = "SELECT sum(pg_database_size(oid)) FROM pg_database"
ROLES = ("inspect_plain", "inspect_monitor")
BUILD = "how the server was built (GRANT EXECUTE ON FUNCTION pg_catalog.pg_config() TO {} shows it)"
SOURCES = (
    "the file and line of each setting, and settings such as data_directory "
    "(GRANT pg_monitor TO inspect_plain shows them)"
)
STATISTICS = (
    "the state of standbys, and the size of databases that the role may not connect to "
    "(GRANT pg_monitor TO inspect_plain shows them)"
)


@pytest.fixture(scope="module", params=["pg18", "pg15"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """Return each installed server with an ordinary role, a member of pg_monitor, and a closed database."""
    real: RealServer = request.getfixturevalue(request.param)
    for statement in (
        "CREATE ROLE inspect_plain LOGIN",
        "CREATE ROLE inspect_monitor LOGIN IN ROLE pg_monitor",
        "CREATE DATABASE inspect_closed",
        "REVOKE CONNECT ON DATABASE inspect_closed FROM PUBLIC",
    ):
        real.execute(statement)
    yield real
    real.execute("DROP DATABASE inspect_closed")
    for role in ROLES:
        real.execute(f"DROP ROLE {role}")


def inspected(dsn: str) -> Server:
    with contextlib.closing(connect(dsn)) as connection:
        return inspect_server(connection)


def reason(value: object) -> str:
    assert isinstance(value, Unknown)
    return value.reason


def test_a_superuser_sees_everything(server: RealServer) -> None:
    [[before]] = server.execute(_ALL_BYTES)
    seen = inspected(server.dsn)
    [[after]] = server.execute(_ALL_BYTES)
    assert str(seen.version_num) == server.execute("SHOW server_version_num")[0][0]
    assert seen.version == server.execute("SHOW server_version")[0][0]
    assert seen.build == server.execute("SELECT version()")[0][0]
    assert seen.is_superuser
    assert not seen.is_in_recovery
    assert seen.data_directory.value == str(server.data_directory)
    assert min(before, after) <= seen.databases_bytes.value <= max(before, after)  # a server writes by itself
    assert seen.standbys.value == ()
    assert seen.hidden == ()
    assert seen.managers == ()
    assert not seen.is_colocated.is_known  # fmt: skip


def test_every_setting_arrives_as_pg_settings_has_it(server: RealServer) -> None:
    seen = inspected(server.dsn)
    rows = server.execute(
        "SELECT name, setting, unit, vartype, context, source, boot_val, reset_val, min_val, max_val,"
        " coalesce(enumvals, '{}'), sourcefile, sourceline, pending_restart FROM pg_settings"
    )
    own = {
        "application_name",
        "client_encoding",
        "transaction_isolation",
        "transaction_read_only",
    }  # pgdyno's
    expected = {row[0]: (*row[:10], tuple(row[10]), *row[11:]) for row in rows if row[0] not in own}
    found = {name: dataclasses.astuple(guc) for name, guc in seen.settings.items() if name not in own}
    assert found == expected


def test_configured_settings_come_with_file_and_line(server: RealServer) -> None:
    port = next(guc for guc in inspected(server.dsn).non_default_settings if guc.name == "port")
    path = server.data_directory / "postgresql.conf"
    assert port.sourcefile == str(path)
    assert port.sourceline is not None
    assert path.read_text(encoding="utf-8").splitlines()[port.sourceline - 1] == f"port = {server.port}"


def test_the_time_limits_of_our_own_session_are_not_taken_for_the_servers(server: RealServer) -> None:
    server.execute("ALTER DATABASE inspect_closed SET statement_timeout = '7s'")
    try:
        seen = inspected(server.dsn_for("postgres", "inspect_closed"))
    finally:
        server.execute("ALTER DATABASE inspect_closed RESET statement_timeout")
    assert (seen.settings["statement_timeout"].setting, seen.settings["statement_timeout"].source) == (
        "7000",
        "database",
    )
    assert seen.settings["default_transaction_read_only"].setting == "off"


def test_a_member_of_pg_monitor_lacks_only_the_build_flags(server: RealServer) -> None:
    [[before]] = server.execute(_ALL_BYTES)
    seen = inspected(server.dsn_for("inspect_monitor"))
    [[after]] = server.execute(_ALL_BYTES)
    everything = inspected(server.dsn)
    assert not seen.is_superuser
    assert seen.data_directory.value == str(server.data_directory)
    assert min(before, after) <= seen.databases_bytes.value <= max(before, after)
    assert seen.settings.keys() == everything.settings.keys()
    assert reason(seen.capabilities.build_flags.value) == "permission denied for function pg_config"
    assert seen.hidden == (BUILD.format("inspect_monitor"),)


def test_an_ordinary_role_is_told_what_is_hidden_and_how_to_see_it(server: RealServer) -> None:
    seen = inspected(server.dsn_for("inspect_plain"))
    assert reason(seen.data_directory.value) == ("only members of pg_read_all_settings and superusers see it")
    assert reason(seen.databases_bytes.value) == "the role may not see the size of inspect_closed"
    assert seen.settings["port"].sourcefile is None
    assert seen.hidden == (SOURCES, STATISTICS, BUILD.format("inspect_plain"))


def test_the_grants_that_are_named_show_what_is_hidden(server: RealServer) -> None:
    server.execute('CREATE ROLE "needs Quotes" LOGIN')
    try:
        before = inspected(f"{server.dsn} user='needs Quotes'")
        assert 'GRANT pg_monitor TO "needs Quotes"' in before.hidden[0]
        for thing in before.hidden:
            server.execute(thing[thing.index("(") + 1 : thing.rindex(" show")])
        assert inspected(f"{server.dsn} user='needs Quotes'").hidden == ()
    finally:
        server.execute('DROP OWNED BY "needs Quotes"')
        server.execute('DROP ROLE "needs Quotes"')


def test_settings_of_roles_and_databases_are_listed(server: RealServer) -> None:
    statements = (
        "ALTER ROLE inspect_plain SET work_mem = '5MB'",
        "ALTER ROLE inspect_plain IN DATABASE inspect_closed SET search_path = a, b",
        "ALTER DATABASE inspect_closed SET app.jwt_secret = 'hunter=2'",
        "ALTER ROLE ALL SET random_page_cost = 1.1",
        "ALTER ROLE inspect_plain CONNECTION LIMIT 3",
        "ALTER DATABASE inspect_closed CONNECTION LIMIT 2",
    )
    for statement in statements:
        server.execute(statement)
    try:
        seen = inspected(server.dsn_for("inspect_plain"))
    finally:
        server.execute("ALTER ROLE ALL RESET ALL")
        server.execute("ALTER DATABASE inspect_closed RESET ALL")
        server.execute("ALTER ROLE inspect_plain RESET ALL")
        server.execute("ALTER ROLE inspect_plain IN DATABASE inspect_closed RESET ALL")
        server.execute("ALTER ROLE inspect_plain CONNECTION LIMIT -1")
        server.execute("ALTER DATABASE inspect_closed CONNECTION LIMIT -1")
    assert seen.overrides.value == (
        SettingOverride(None, None, "random_page_cost", "1.1"),
        SettingOverride(None, "inspect_closed", "app.jwt_secret", "********", connection_limit=2),
        SettingOverride("inspect_plain", None, "work_mem", "5MB", connection_limit=3),
        SettingOverride("inspect_plain", "inspect_closed", "search_path", "a, b", connection_limit=2),
    )
    assert "the server-wide value of work_mem: this role or database sets its own" in seen.hidden


def test_a_setting_of_the_connection_is_said_to_hide_the_servers(server: RealServer) -> None:
    seen = inspected(f"{server.dsn} options='-c work_mem=6MB'")
    assert seen.hidden == ("the server-wide value of work_mem: this connection (PGOPTIONS) sets its own",)
    assert "work_mem" not in {guc.name for guc in seen.non_default_settings}


def test_a_setting_that_waits_for_a_restart_says_so(server: RealServer) -> None:
    server.execute("ALTER SYSTEM SET max_connections = 90")
    try:
        server.execute("SELECT pg_reload_conf()")
        wait_until(lambda: inspected(server.dsn).settings["max_connections"].pending_restart)
        guc = inspected(server.dsn).settings["max_connections"]
        assert guc.setting == "100"
    finally:
        server.execute("ALTER SYSTEM RESET ALL")
        server.execute("SELECT pg_reload_conf()")


def test_an_ordinary_role_learns_which_process_serves_it(server: RealServer) -> None:
    with contextlib.closing(connect(server.dsn_for("inspect_plain"))) as connection:
        backend = identify_backend(connection)
        process = os.stat(f"/proc/{backend.pid}")  # noqa: PTH116 — a process, not a file
    assert process.st_uid == server.directory.stat().st_uid
    assert backend.start_s == pytest.approx(time.time(), abs=60)


def test_the_whole_inspection_has_a_json_form(server: RealServer) -> None:
    document = json.loads(json.dumps(to_document(inspected(server.dsn))))
    assert document["settings"]["port"]["setting"] == str(server.port)
    assert document["capabilities"]["has_jit"]["source"] == "pg_jit_available()"


def test_capabilities_are_the_builds_own(pg18: RealServer, pg15: RealServer) -> None:
    """The wheel's configure line has no --with-ssl, --with-lz4 and --with-llvm; Debian's has them all."""
    wheel, debian = inspected(pg18.dsn).capabilities, inspected(pg15.dsn).capabilities
    assert wheel.io_methods.value == ("sync", "worker")
    assert debian.io_methods.value == ()
    assert wheel.wal_compression_methods.value == ("pglz",)
    assert debian.wal_compression_methods.value == ("pglz", "lz4", "zstd")
    assert (wheel.has_ssl.value, debian.has_ssl.value) == (False, True)
    assert (wheel.has_jit.value, debian.has_jit.value) == (False, True)
    assert "--without-icu" in wheel.build_flags.or_else("")
    assert "--with-lz4" in debian.build_flags.or_else("")
    assert "-O2" in debian.compiler_flags.or_else("")


def test_jit_that_is_only_switched_off_is_still_a_capability(pg15: RealServer) -> None:
    assert inspected(f"{pg15.dsn} options='-c jit=off'").capabilities.has_jit.value is True


def test_values_of_the_command_line_and_of_another_file_are_told_apart(scratch_pg18: RealServer) -> None:
    (scratch_pg18.data_directory / "conf.d").mkdir()
    extra = scratch_pg18.data_directory / "conf.d/memory.conf"
    extra.write_text("work_mem = 7MB\nmaintenance_work_mem = 70MB\n")
    for path in (extra.parent, extra):
        os.chown(path, scratch_pg18.directory.stat().st_uid, -1)
    scratch_pg18.append_configuration("include_dir = 'conf.d'\n")
    scratch_pg18.restart(["-c", "maintenance_work_mem=80MB"])
    settings = inspected(scratch_pg18.dsn).settings
    assert (
        settings["work_mem"].source,
        settings["work_mem"].sourcefile,
        settings["work_mem"].sourceline,
    ) == (
        "configuration file",
        str(extra),
        1,
    )
    assert (settings["maintenance_work_mem"].source, settings["maintenance_work_mem"].display()) == (
        "command line",
        "80MB",
    )


def test_patroni_is_recognised_on_a_server_configured_as_patroni_does(scratch_pg18: RealServer) -> None:
    base = scratch_pg18.data_directory / "postgresql.base.conf"
    (scratch_pg18.data_directory / "postgresql.conf").rename(base)
    scratch_pg18.append_configuration("include 'postgresql.base.conf'\n")
    os.chown(scratch_pg18.data_directory / "postgresql.conf", scratch_pg18.directory.stat().st_uid, -1)
    scratch_pg18.restart()
    (manager,) = inspected(scratch_pg18.dsn).managers
    assert manager.name == "Patroni"
    assert manager.evidence.endswith(f"comes from {base}")
    with psycopg.connect(scratch_pg18.dsn, application_name="Patroni heartbeat"):
        scratch_pg18.execute("CREATE ROLE plain LOGIN")
        (hidden_files,) = inspected(scratch_pg18.dsn_for("plain")).managers
    assert hidden_files.evidence == 'a client has the application name "Patroni heartbeat"'


def test_a_standby_is_seen_from_both_sides_and_not_forgotten_while_away(scratch_pg18: RealServer) -> None:
    primary = scratch_pg18
    primary.execute("CREATE ROLE plain LOGIN")
    primary.execute("SELECT pg_create_physical_replication_slot('one', true)")
    directory = primary.directory / "standby"
    primary.run(
        "pg_basebackup", "-h", str(primary.socket_directory), "-p", str(primary.port), "-U", "postgres",
        "-D", str(directory / "data"), "-R", "-S", "one", "-X", "stream", "-c", "fast",
    )  # fmt: skip
    standby = RealServer(primary.bin_directory, directory, primary.port + 1)
    standby.append_configuration(
        f"port = {standby.port}\nunix_socket_directories = '{directory}'\ncluster_name = 'one'\n"
    )
    standby.start()
    try:
        streaming = (Standby("one", "streaming", "async"),)
        wait_until(lambda: inspected(primary.dsn).standbys.value == streaming)
        assert inspected(standby.dsn).is_in_recovery
        assert inspected(standby.dsn).settings["primary_conninfo"].setting.find("passfile") >= 0
        assert reason(inspected(primary.dsn_for("plain")).standbys.value) == (
            "WAL senders exist (1), but the role may not see their activity"
        )
    finally:
        standby.stop()
    away = (Standby("one", "disconnected", "unknown"),)
    wait_until(lambda: inspected(primary.dsn_for("plain")).standbys.value == away)


def test_a_connection_that_ends_in_the_middle_is_one_clear_error(pg18: RealServer) -> None:
    with contextlib.closing(connect(pg18.dsn)) as connection:
        pg18.execute(f"SELECT pg_terminate_backend({connection.info.backend_pid})")
        with pytest.raises(ConnectionFailedError) as caught:
            inspect_server(connection)
    assert caught.value.message == "lost the connection to the server"
