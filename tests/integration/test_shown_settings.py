"""Settings that a server shows otherwise than its files have them are no edits that wait for a reload."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.fix_servers import RealServer, running_server

from pgdyno.apply.configuration.foreign_edits import ForeignEdits, read_foreign_edits
from pgdyno.postgres.connection.connection import connect

pytestmark = pytest.mark.server

LINES = """
archive_command = 'cp %p /archive/%f'
tcp_keepalives_idle = 61
tcp_keepalives_interval = 11
tcp_keepalives_count = 7
tcp_user_timeout = 30s
log_file_mode = 0640
unix_socket_permissions = 0770
timezone = 'europe/berlin'
log_timezone = 'PST8PDT'
datestyle = 'ISO,DMY'
search_path = 'public'
"""


@pytest.fixture(params=["pg18_bin", "pg15_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server whose archiving is off, asked over its socket: no keepalives are shown there."""
    programs: Path = request.getfixturevalue(request.param)
    with running_server(programs, LINES) as started:
        yield started


def edits(server: RealServer, dsn: str) -> ForeignEdits:
    with closing(connect(dsn)) as connection:
        return read_foreign_edits(connection)


def test_they_do_not_keep_an_apply_away(server: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.execute("ALTER ROLE postgres PASSWORD 'of this test'")
    monkeypatch.setenv("PGPASSWORD", "of this test")
    for dsn in (server.dsn, server.tcp_dsn_for("postgres")):
        assert edits(server, dsn) == ForeignEdits()


def test_an_edit_of_another_setting_is_seen_beside_them(server: RealServer) -> None:
    """Also of those that pgdyno sets in its own sessions."""
    ours = "statement_timeout = 1h\nlock_timeout = 1min\nidle_session_timeout = 1h\n"
    server.append_configuration(f"tcp_user_timeout = 40s\nwork_mem = 5MB\ndatestyle = 'ISO, MDY'\n{ours}")
    found = edits(server, server.dsn).for_reload
    assert sorted(one.partition(" ")[0] for one in found) == [
        "datestyle", "idle_session_timeout", "lock_timeout", "statement_timeout", "work_mem",
    ]  # fmt: skip
