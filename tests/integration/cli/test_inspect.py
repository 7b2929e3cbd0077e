"""``pgdyno inspect`` on a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server
from tests.integration.test_session_settings import _CHOSEN, _DATABASE, choose

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    with running_server(pg18_bin) as started:
        started.execute("CREATE ROLE dbo LOGIN")
        started.execute("CREATE ROLE mallory")
        started.execute(f"CREATE DATABASE {_DATABASE} OWNER dbo")
        yield started


@pytest.fixture(params=_CHOSEN, ids="=".join)
def chosen(server: RealServer, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A setting that the owner has chosen after an apply, and its value."""
    name, value = request.param
    yield name, value
    server.execute(f"ALTER DATABASE {_DATABASE} RESET ALL")


def test_the_server_is_seen_as_from_elsewhere(
    server: RealServer, chosen: tuple[str, str], home: Path
) -> None:
    def inspected(database: str) -> dict[str, Any]:
        done = pgdyno("inspect", "--json", "--dsn", server.dsn_for("postgres", database))
        assert done.returncode == 0, done.stderr
        seen: dict[str, Any] = json.loads(done.stdout)["server"]
        return seen

    choose(server, "work_mem", "5MB")  # read after it, not ended by it
    expected = inspected(_DATABASE)
    choose(server, *chosen)
    found = inspected(_DATABASE)
    if chosen[0] == "role":  # who looks sees what that role may see
        return
    assert found["is_colocated"]["value"] is True
    assert expected["settings"]["work_mem"] == found["settings"]["work_mem"]
    different = {name.lower() for name, one in found["settings"].items() if one != expected["settings"][name]}
    assert different == {chosen[0]} - {"client_encoding"}  # which is each client's own


def test_a_database_without_an_encoding_is_read(server: RealServer, home: Path) -> None:
    server.execute("CREATE DATABASE bytes ENCODING SQL_ASCII TEMPLATE template0 LOCALE 'C'")
    done = pgdyno("inspect", "--dsn", server.dsn_for("postgres", "bytes"))
    assert done.returncode == 0, done.stderr
