"""Which settings name a place or a program, decided for every text that a real server takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pgdyno.model.variants.durability import why_refused
from pgdyno.postgres.process.account import current_account

# Read one by one in the documentation of 15 and 18: texts that name no file, directory, program or network.
HARMLESS = {
    "cluster_name",
    "createrole_self_grant",
    "client_encoding",
    "datestyle",
    "default_table_access_method",
    "default_tablespace",
    "default_text_search_config",
    "event_source",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "local_preload_libraries",
    "log_connections",
    "log_destination",
    "log_line_prefix",
    "log_timezone",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "ssl_ciphers",
    "ssl_ecdh_curve",
    "ssl_groups",
    "ssl_tls13_ciphers",
    "synchronized_standby_slots",
    "synchronous_standby_names",
    "syslog_ident",
    "temp_tablespaces",
    "timezone",
    "timezone_abbreviations",
}
_NAME, _TYPE = 0, 3  # columns of --describe-config: src/backend/utils/misc/help_config.c


@pytest.mark.parametrize("version", ["pg15_bin", "pg18_bin"])
def test_every_text_is_decided_upon(version: str, request: pytest.FixtureRequest) -> None:
    postgres: Path = request.getfixturevalue(version) / "postgres"
    argv = current_account().command([str(postgres), "--describe-config"])
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    texts = {row[_NAME].lower() for row in rows if row[_TYPE] == "STRING"}
    assert len(texts) > 40
    assert {name for name in texts if why_refused(name, "x") is None} == texts & HARMLESS
