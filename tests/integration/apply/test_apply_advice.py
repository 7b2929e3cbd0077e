"""Advice on a real server, as apply carries it out."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_servers import RealServer, owned_directory, unprivileged_user
from tests.integration.cli.test_apply import FIGURES, as_nobody
from tests.integration.journal_support import NOWHERE
from tests.integration.other_users import as_user

from pgdyno.apply.apply_advice import ApplyAdvice, apply_request
from pgdyno.apply.apply_plan import preview_apply
from pgdyno.apply.session.access import ServerAccess
from pgdyno.base.errors import DurabilityError
from pgdyno.model.plans.plan import Layer
from pgdyno.plan.engine.resources import Figures
from pgdyno.postgres.connection.connection import connect_to_change
from pgdyno.postgres.inspection.inspection import inspect_server

pytestmark = [pytest.mark.server, pytest.mark.root]
UNTRIED = "the start was not tested beforehand: the server's programs are not accessible"


@pytest.fixture
def dsn(pg18: RealServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A DSN that every user can reach the server by; its socket is in a closed directory."""
    pg18.execute("ALTER ROLE postgres PASSWORD 'a-Pa55word'")
    monkeypatch.setenv("PGPASSWORD", "a-Pa55word")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    return pg18.tcp_dsn_for("postgres")


def test_the_start_check_is_left_out_and_that_is_said(dsn: str) -> None:
    def notes() -> str:
        request = apply_request(ApplyAdvice(dsn, FIGURES, allow_restart=True))
        access = ServerAccess(lambda: connect_to_change(dsn), NOWHERE, inspect_server)
        return "; ".join(preview_apply(access, request).notes)

    assert (
        as_nobody(notes)
        == f"the server's files are not accessible: a revert will use only ALTER SYSTEM; {UNTRIED}"
    )


def test_a_server_that_may_lose_data_gets_no_plan(dsn: str, scratch_pg18: RealServer) -> None:
    scratch_pg18.execute("ALTER SYSTEM SET full_page_writes = off")
    scratch_pg18.execute("SELECT pg_reload_conf()")
    with pytest.raises(DurabilityError) as caught:
        apply_request(ApplyAdvice(scratch_pg18.dsn, FIGURES, allow_restart=True))
    assert caught.value.exit_code == 4
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("full_page_writes is off: ")


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A journal of the user that servers run as, and a home for whatever else it needs."""
    home = owned_directory(Path(tempfile.gettempdir()), "pgdyno-test-")
    monkeypatch.setenv("PGDYNO_HOME", str(home))
    yield home / "journal"
    shutil.rmtree(home)


def test_what_only_root_may_change_is_left_out_of_the_plan_and_that_is_said(
    pg18: RealServer, journal: Path, tmp_path: Path
) -> None:
    """For the server's own user, who may look at everything, in a home that is not root's."""

    def skipped() -> str:
        os.environ["PGDYNO_HOME"] = str(tmp_path if os.geteuid() == 0 else journal.parent)
        layers = (Layer.APPLICATION, Layer.SYSTEM)
        plan = apply_request(ApplyAdvice(pg18.dsn, Figures(), allow_restart=True, layers=layers)).plan
        reasons = {one.lever: one.reason for one in plan.skipped}
        return f"{reasons.get('swappiness')}; {reasons.get('sched_autogroup')}; {plan.host_changes}"

    why = "not available: only root may change the machine, and not in a container"
    assert as_user(str(unprivileged_user()), skipped) == f"{why}; {why}; ()"
