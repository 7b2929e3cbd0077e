"""Debian's PostgreSQL 15, made by pg_createcluster and restarted by pg_ctlcluster, over its DSN.

Its configuration lies in /etc, its postgresql.auto.conf in the data directory, and its tools are Debian's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fix_debian import VERSION, DebianCluster
from tests.integration.journal_support import plan_of

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan
from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.revert import RevertRequest, revert
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.query import Connection
from pgdyno.apply.session.restart import command_restarter
from pgdyno.base.errors import ServerStartError
from pgdyno.plan.inspection.start_check import StartCheck
from pgdyno.postgres.connection.connection import connect_to_change
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import installation_in

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.root]

PROGRAMS = Path("/usr/lib/postgresql", VERSION, "bin")


def access_to(cluster: DebianCluster, journal_directory: Path) -> ServerAccess:
    def open_connection() -> Connection:
        return connect_to_change(cluster.dsn)

    restarter = command_restarter(
        ["pg_ctlcluster", VERSION, cluster.name, "restart"], open_connection, limit_s=120.0
    )
    return ServerAccess(open_connection, journal_directory, inspect_server, restarter=restarter)


def state(cluster: DebianCluster) -> tuple[list[Any], list[Any], bytes]:
    """Return everything that a revert has to give back."""
    return (
        cluster.execute("SELECT * FROM pg_settings ORDER BY name"),
        cluster.execute("SELECT * FROM pg_file_settings ORDER BY seqno"),
        (cluster.data_directory / "postgresql.auto.conf").read_bytes(),
    )


def test_a_plan_is_applied_with_a_restart_and_reverted(debian15: DebianCluster, tmp_path: Path) -> None:
    before = state(debian15)
    access = access_to(debian15, tmp_path / "journal")
    plan = plan_of(shared_buffers="96MB", work_mem="8MB", max_wal_size="2GB")
    check = StartCheck(installation_in(PROGRAMS), workspace())
    result = apply_plan(access, ApplyRequest(plan, allow_restart=True, start_check=check))
    assert [(one.key, one.before, one.effective) for one in result.outcomes] == [
        ("shared_buffers", "64MB", "96MB"),
        ("work_mem", "4MB", "8MB"),
        ("max_wal_size", "1GB", "2GB"),
    ]
    assert revert(access, RevertRequest(allow_restart=True)).is_complete
    assert state(debian15) == before


def test_a_cluster_that_does_not_come_up_gets_its_old_values_back(
    debian15: DebianCluster, tmp_path: Path
) -> None:
    before = state(debian15)
    plan = plan_of(work_mem="8MB", shared_preload_libraries="no_such_library")
    with pytest.raises(ServerStartError) as caught:
        apply_plan(access_to(debian15, tmp_path / "journal"), ApplyRequest(plan, allow_restart=True))
    assert caught.value.message == (
        "the server did not start with the new settings; it runs with the original settings again"
    )
    assert caught.value.detail is not None
    assert "no_such_library" in caught.value.detail
    assert state(debian15) == before
    assert read_journal(tmp_path / "journal").open == ()
