"""apply for an operating-system user who may not look into the server's processes and files."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fix_servers import RealServer
from tests.integration.journal_support import NOWHERE

from pgdyno.app.apply import preview_apply
from pgdyno.app.apply_advice import ApplyAdvice, apply_request
from pgdyno.app.attached import attach
from pgdyno.journal.access import ServerAccess
from pgdyno.levers.resources import Figures
from pgdyno.model.errors import DurabilityError, PgdynoError
from pgdyno.server.connection import connect

pytestmark = [pytest.mark.server, pytest.mark.root]

FIGURES = Figures(memory_bytes=4 << 30, cpu_count=2.0)
UNTRIED = "the start was not tried beforehand: the server's programs are out of reach"


def as_nobody(action: Callable[[], str]) -> str:
    """Return what an action says in a process of a user without any rights."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user takes root")
    action()  # imports what it needs, which the other user might not be able to read
    nobody = pwd.getpwnam("nobody")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)
            said = action()
        except (PgdynoError, OSError) as error:
            said = str(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


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
        access = ServerAccess(lambda: connect(dsn, is_read_only=False), NOWHERE)
        return "; ".join(preview_apply(access, request).notes)

    assert (
        as_nobody(notes)
        == f"the server's files are out of reach: a revert uses ALTER SYSTEM alone; {UNTRIED}"
    )


def test_a_server_cannot_be_measured_beside_itself_without_its_programs(pg18: RealServer, dsn: str) -> None:
    def refusal() -> str:
        attach(dsn, FIGURES)
        return "attached"

    place = f"host=127.0.0.1 port={pg18.port} dbname=postgres user=postgres"
    assert as_nobody(refusal).splitlines() == [
        f"the programs of the server at {place} are out of reach",
        f"DETAIL:  could not see which program process {pg18.pid} runs: Permission denied",
        "HINT:  run pgdyno as root or as the server's user, on its host or in its container",
    ]


def test_a_server_that_may_lose_data_gets_no_plan(dsn: str, scratch_pg18: RealServer) -> None:
    scratch_pg18.execute("ALTER SYSTEM SET full_page_writes = off")
    scratch_pg18.execute("SELECT pg_reload_conf()")
    with pytest.raises(DurabilityError) as caught:
        apply_request(ApplyAdvice(scratch_pg18.dsn, FIGURES, allow_restart=True))
    assert caught.value.exit_code == 4
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("full_page_writes is off: ")
