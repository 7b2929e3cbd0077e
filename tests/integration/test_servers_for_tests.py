"""The servers that other tests rely on are what their fixtures promise."""

from __future__ import annotations

import os
import stat

import psycopg
import pytest
from tests.fix_servers import RealServer, other_majors, running_server, unprivileged_user

pytestmark = pytest.mark.server


def test_pg18_is_18_and_takes_statements(pg18: RealServer) -> None:
    assert pg18.execute("SHOW server_version_num")[0][0].startswith("18")


def test_pg15_is_15_and_takes_statements(pg15: RealServer) -> None:
    assert pg15.execute("SHOW server_version_num")[0][0].startswith("15")


def test_other_major_versions_are_what_their_directories_are_named_after() -> None:
    """Their tests are those that take ``each_bin``."""
    found = other_majors() or pytest.skip("capture and replay run on PostgreSQL 18 only: make test-majors")
    for programs in found:
        with running_server(programs) as server:
            [[version]] = server.execute("SHOW server_version")
            assert version.partition(".")[0] == programs.parent.name.partition(".")[0]


def test_the_servers_directory_is_closed_to_others_and_never_roots(pg18: RealServer) -> None:
    status = pg18.directory.stat()
    assert stat.S_IMODE(status.st_mode) == 0o700
    assert (status.st_uid != 0) or unprivileged_user() is None
    assert status.st_uid == os.stat(f"/proc/{pg18.pid}").st_uid  # noqa: PTH116 — a process, not a file


def test_tcp_asks_for_a_password(pg18: RealServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(pg18.tcp_dsn_for("postgres"), passfile=os.devnull)


def test_a_scratch_server_restarts_with_options(scratch_pg18: RealServer) -> None:
    scratch_pg18.restart(["-c", "work_mem=5MB"])
    assert scratch_pg18.execute("SHOW work_mem") == [("5MB",)]
