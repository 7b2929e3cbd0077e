"""apply for an operating-system user who may not look into the server's processes and files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fix_machine import DIRTY, SWAPPINESS
from tests.fix_servers import RealServer, owned_directory, unprivileged_user
from tests.integration.journal_support import access_to, plan_of, with_files
from tests.integration.other_users import as_user

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan
from pgdyno.apply.ledger.log import read_journal
from pgdyno.plan.attached import attach
from pgdyno.plan.engine.resources import Figures

pytestmark = [pytest.mark.server, pytest.mark.root]

FIGURES = Figures(memory_bytes=4 << 30, cpu_count=2.0)


def as_nobody(action: Callable[[], str]) -> str:
    """Return what an action says in a process of a user without any rights."""
    return as_user("daemon" if unprivileged_user() == "nobody" else "nobody", action)


@pytest.fixture
def dsn(pg18: RealServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A DSN that every user can reach the server by; its socket is in a closed directory."""
    pg18.execute("ALTER ROLE postgres PASSWORD 'a-Pa55word'")
    monkeypatch.setenv("PGPASSWORD", "a-Pa55word")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    return pg18.tcp_dsn_for("postgres")


def test_a_server_cannot_be_measured_beside_itself_without_its_programs(pg18: RealServer, dsn: str) -> None:
    def refusal() -> str:
        attach(dsn, FIGURES)
        return "attached"

    place = f"host=127.0.0.1 port={pg18.port} dbname=postgres user=postgres"
    assert as_nobody(refusal).splitlines() == [
        f"the programs of the server at {place} are not accessible",
        f"DETAIL:  could not read the program of process {pg18.pid}: Permission denied",
        "HINT:  run pgdyno as root or as the server's user, on its host or in its container",
    ]


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A journal of the user that servers run as, and a home for whatever else it needs."""
    home = owned_directory(Path(tempfile.gettempdir()), "pgdyno-test-")
    monkeypatch.setenv("PGDYNO_HOME", str(home))
    yield home / "journal"
    shutil.rmtree(home)


def test_a_plan_for_the_machine_is_refused_before_anything_is_changed(
    pg18: RealServer, journal: Path
) -> None:
    plan = with_files(plan_of(work_mem="8MB"), {SWAPPINESS: "7", DIRTY: "536870912"})

    def refusal() -> str:
        if os.geteuid() == 0:
            return "not as root"
        apply_plan(access_to(pg18, journal), ApplyRequest(plan))
        return "applied"

    assert as_user(str(unprivileged_user()), refusal).splitlines() == [
        "cannot change vm.swappiness",
        "DETAIL:  /proc/sys/vm/swappiness: Permission denied",
        "HINT:  run pgdyno as root, on the machine itself rather than in a container",
    ]
    assert read_journal(journal).receipts == ()
    assert pg18.execute("SHOW work_mem") == [("4MB",)]
