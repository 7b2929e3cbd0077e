"""Access to a server for apply and revert: one journal, one server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_servers import RealServer
from tests.integration.apply.test_revert import ALL
from tests.integration.journal_support import (
    plan_of,
    snapshot,
)

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan
from pgdyno.apply.ledger.log import open_journal
from pgdyno.apply.revert import revert
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.session import locked_session
from pgdyno.base.errors import LockHeldError
from pgdyno.postgres.connection.connection import connect_to_change

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def _nothing_is_left(server: RealServer) -> Iterator[None]:
    before = snapshot(server)
    yield
    assert snapshot(server) - before == []


def test_two_processes_do_not_share_a_journal(access: ServerAccess) -> None:
    with open_journal(access.journal_directory), pytest.raises(LockHeldError) as caught:
        revert(access, ALL)
    assert caught.value.detail == f"process {os.getpid()} holds {access.journal_directory / 'lock'}"
    assert caught.value.hint == "wait until it has ended, then see pgdyno status"


def test_two_journals_do_not_share_a_server(server: RealServer, access: ServerAccess, tmp_path: Path) -> None:
    """The lock holds across databases, although advisory locks belong to one."""
    server.execute("CREATE DATABASE other")
    try:
        elsewhere = connect_to_change(server.dsn_for("postgres", "other"))
        with locked_session(lambda: elsewhere), pytest.raises(LockHeldError) as caught:
            apply_plan(
                replace(access, journal_directory=tmp_path / "other"), ApplyRequest(plan_of(work_mem="8MB"))
            )
    finally:
        server.execute("DROP DATABASE other")
    assert caught.value.message == "another pgdyno is changing this server"
    assert (caught.value.hint or "").startswith("wait until it has ended, then see pgdyno status; if it is ")
    assert caught.value.detail is not None
    assert f"the lock is held by pgdyno, process {os.getpid()} on " in caught.value.detail
