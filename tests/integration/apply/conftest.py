"""The server of a module's tests, and the access to change it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_servers import RealServer, running_server
from tests.integration.journal_support import access_to, under_pg_ctl

from pgdyno.apply.session.access import ServerAccess


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """A PostgreSQL 18 that pg_ctl restarts; every test leaves it as it was."""
    with running_server(pg18_bin) as started, under_pg_ctl(started):
        yield started


@pytest.fixture
def access(server: RealServer, tmp_path: Path) -> ServerAccess:
    return access_to(server, tmp_path / "journal")
