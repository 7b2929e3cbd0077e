from __future__ import annotations

import dataclasses

from pgdyno.base.facts import Fact, unknown
from pgdyno.plan.view.server_text import Means, data_directory_text, server_text
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import (
    Capabilities,
    ConfigurationManager,
    DataDirectory,
    FileSetting,
    Postmaster,
    Server,
    SettingOverride,
    Standby,
)


def guc(name: str, setting: str, source: str = "configuration file", **more: object) -> Guc:
    plain = Guc(
        name=name,
        setting=setting,
        unit=None,
        vartype="string",
        context="sighup",
        source=source,
        boot_val="",
        reset_val=setting,
    )
    return dataclasses.replace(plain, **more)  # type: ignore[arg-type]


SETTINGS = (
    guc("work_mem", "65536", unit="kB", vartype="integer", sourcefile="/etc/pg.conf", sourceline=7),
    guc("shared_buffers", "1048576", "command line", unit="8kB", vartype="integer", pending_restart=True),
    guc("DateStyle", "ISO, MDY", "database"),
    guc("listen_addresses", "", "command line"),
    guc("max_connections", "100", "default", vartype="integer"),
    guc("application_name", "pgdyno", "client"),
    guc("server_version", "17.5", "default"),
    guc("default_toast_compression", "pglz", "default", vartype="enum", enumvals=("pglz", "lz4")),
)

SERVER = Server(
    version_num=170005,
    version="17.5",
    settings={setting.name: setting for setting in SETTINGS},
    capabilities=Capabilities(
        io_methods=Fact((), "io_method"),
        wal_compression_methods=Fact(("pglz", "lz4"), "wal_compression"),
        has_jit=Fact(value=True, source="pg_jit_available()"),
        has_ssl=Fact(value=False, source="ssl_library"),
        build_flags=unknown("permission denied for function pg_config", "pg_config()"),
        compiler_flags=unknown("permission denied for function pg_config", "pg_config()"),
    ),
    overrides=Fact(
        (SettingOverride("app", "shop", "work_mem", "5MB"), SettingOverride(None, None, "jit", "off")), "x"
    ),
    databases_bytes=Fact(3 << 30, "sum of pg_database_size()"),
    standbys=Fact((Standby("one", "streaming", "async"),), "pg_stat_replication"),
    is_in_recovery=False,
    data_directory=Fact("/data", "data_directory"),
    is_superuser=False,
    hidden=("something (GRANT pg_monitor TO app shows it)",),
    is_colocated=unknown("no process here has the backend's process id 7", "/proc"),
    managers=(ConfigurationManager("Patroni", "a client says so", "patronictl edit-config"),),
    build="PostgreSQL 17.5 on x86_64",
)

MEANS = Means(Fact(6 << 30, "--ram"), Fact(8.0, "--cpus"), unknown("state it with --storage", "host"))


def test_everything_that_is_known_is_shown_and_what_is_not_says_why() -> None:
    assert server_text(SERVER, target="host=db port=5432 dbname=shop user=app", means=MEANS) == (
        """\
Server
  version           PostgreSQL 17.5, primary
  build             PostgreSQL 17.5 on x86_64
  connection        host=db port=5432 dbname=shop user=app (ordinary role)
  data directory    /data
  databases         3\xa0GB, 50.0\xa0% of the memory limit 6\xa0GB
  on this host      unknown: no process here has the backend's process id 7
  standbys          one (streaming, async)
  managed by        Patroni: a client says so
                    change settings with patronictl edit-config

Available resources
  memory            6\xa0GB  (--ram)
  CPUs              8  (--cpus)
  storage           unknown: state it with --storage

Capabilities of this build
  I/O methods       none
  WAL compression   pglz, lz4
  TOAST compression pglz, lz4
  JIT               yes
  SSL               no
  configured with   unknown: permission denied for function pg_config
  CFLAGS            unknown: permission denied for function pg_config

Configured settings (4)
  DateStyle         ISO, MDY  database
  listen_addresses  ''        command line
  shared_buffers    8GB       command line (pending restart)
  work_mem          64MB      /etc/pg.conf:7

Per-role and per-database settings (2)
  work_mem  5MB  role app in database shop
  jit       off  every role

Hidden from this role
  something (GRANT pg_monitor TO app shows it)
"""
    )


def test_a_size_without_a_known_memory_limit_stands_alone() -> None:
    means = dataclasses.replace(MEANS, memory_bytes=unknown("why", "where"))
    assert "  databases         3\xa0GB, memory unknown\n" in server_text(SERVER, target="x", means=means)


def test_one_overlong_value_does_not_push_the_others_away() -> None:
    settings = {"a": guc("a", "x" * 80), "b": guc("b", "y", "command line")}
    server = dataclasses.replace(SERVER, settings={**settings})
    assert "\n  b  y  command line\n" in server_text(server, target="x", means=MEANS)


def test_the_files_of_a_stopped_server_are_listed() -> None:
    directory = DataDirectory(
        path="/data",
        major=15,
        owner="postgres",
        postmaster=unknown("not running: there is no postmaster.pid", "/data/postmaster.pid"),
        settings=Fact((FileSetting("work_mem", "4MB", "/data/postgresql.conf", 12),), "/data"),
    )
    assert data_directory_text(directory) == (
        """\
Data directory
  path              /data
  major version     15
  owner             postgres
  server            unknown: not running: there is no postmaster.pid

Settings in its files (1; of duplicates the last one takes effect)
  work_mem  4MB  /data/postgresql.conf:12
"""
    )


def test_a_data_directory_without_settings_says_where_was_looked() -> None:
    directory = DataDirectory(
        path="/data",
        major=15,
        owner="postgres",
        postmaster=Fact(Postmaster(7, 5432, "/run", None), "/data/postmaster.pid"),
        settings=Fact((), "/data/postgresql.auto.conf"),
    )
    text = data_directory_text(directory)
    assert "  server            process 7\n" in text
    assert "  settings          none in /data/postgresql.auto.conf\n" in text
